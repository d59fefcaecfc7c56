"""Start and end the process of a Sail server."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from platform_assets.errors import PlatformError
from platform_assets.places import USE_A_SHORTER, why_no_socket
from platform_assets.settings import Settings

_STARTS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 5.0
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_POOL_SHARE = 0.6
"""Share of the limit for queries' memory; the rest is for uncounted memory, such as buffers of files and answers."""
_MEMORY = {
    # First come, first served, and nothing on disk: a shuffle that has to put rows aside there stands still for ever
    # (apache/datafusion#24883), and of a share for each of its parts a year's days get too little
    "SAIL_RUNTIME__MEMORY_POOL__TYPE": "greedy",
    "SAIL_RUNTIME__TEMPORARY_FILES__MAX_SIZE": "0",
    # Its allocator gives unused memory back at once: with the default of 0.1 s a year left 1.7 GiB behind
    "MIMALLOC_PURGE_DELAY": "0",
}
_READ_SHARE = 1 / 128
"""Of the limit, what files have that are read for a batch at most: packed, where memory holds rows."""
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Of the environment: no secret of ours is among it."""


class SailError(PlatformError):
    """Sail is not installed, or does not start."""


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> str | None:
    """Return how a process ended, as the end of a sentence; None if it still runs after so long."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"was ended by signal {-code}"


@dataclass(frozen=True)
class SailServer:
    """A running server."""

    process: subprocess.Popen[bytes]
    socket: Path

    def ended_within(self, seconds: float = 0.0) -> str | None:
        """Return how it ended, as the end of a sentence; None if it still runs after so long."""
        return ended_within(self.process, seconds)

    def stop(self) -> None:
        """End the server; kill it if it does not react."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        rmtree(self.socket.parent, ignore_errors=True)  # one that was killed could not


def log_file(settings: Settings) -> Path:
    """Return the log file of the newest server of this state folder."""
    return settings.state / "logs" / "sail.log"


def start_server(settings: Settings) -> SailServer:
    """Start a private server.

    No other user of the machine, and no process except through the socket, can reach it. It ends when this process
    ends, in any way, because it reads from a pipe whose other end only this process has.
    """
    if find_spec("pysail") is None:
        raise SailError(
            "PLATFORM_ENGINE=sail needs packages that are not installed.",
            "Install them: uv sync --inexact --extra sail.",
        )
    if why := why_no_socket("sail-abcdefgh/socket"):
        raise SailError(f"Sail does not start: {why}.", USE_A_SHORTER)
    settings.make_state()
    log = log_file(settings)
    log.parent.mkdir(parents=True, exist_ok=True)
    limit = bytes_of(settings.sail_memory)
    own = {name: value for name in _INHERITED if (value := os.environ.get(name))}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "platform_assets.spark.sail.serve", str(limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            # A terminal's Ctrl-C is for the command, which then ends the server
            start_new_session=True,
            umask=settings.access.umask,
            env={
                **own,
                "TZ": "UTC",
                "RUST_LOG": "warn",
                "SAIL_MODE": "local",
                **_MEMORY,
                "SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE": str(int(limit * _POOL_SHARE)),
            },
        )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _STARTS_WITHIN_S)
    said_socket = process.stdout.readline().strip() if ready else b""
    if not said_socket:
        process.kill()
        process.wait()
        raise SailError(
            f"Sail does not start: {_last_words(log)} (log: {log}).",
            "Check that PLATFORM_SAIL_MEMORY is enough and that this machine lets a process have a network of its own "
            "(unshare --user --net true), or compute with PLATFORM_ENGINE=spark.",
        )
    return SailServer(process, Path(os.fsdecode(said_socket)))


def most_bytes_at_once(settings: Settings) -> int:
    """Return how many bytes of files a batch may read, so that Sail has memory for its rows."""
    return int(bytes_of(settings.sail_memory) * _READ_SHARE)


def bytes_of(memory: str) -> int:
    """Return a number of bytes from its spelling in settings."""
    return int(memory[:-1]) * _UNITS[memory[-1].lower()]


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
