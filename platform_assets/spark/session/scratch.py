"""Keep what a JVM writes in the state folder: its log, and what it needs only while it lives (shuffled rows).

Spark's own choice is the system's folder for temporary files, where it stays for ever once a JVM was killed. Here each
JVM has a folder, with a lock beside it that the operating system holds for exactly as long as the JVM lives. Whoever
starts the next one removes the folders whose locks are free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp

from platform_assets.access import make_folder
from platform_assets.settings import Settings

_ROTATE_AT_BYTES = 20_000_000


@dataclass(frozen=True)
class Scratch:
    """The folder of one JVM.

    Args:
        lock: an open lock file, which the JVM must inherit.
    """

    folder: Path
    lock: int

    @property
    def jvm_option(self) -> str:
        """Return what tells the JVM where to put its own files."""
        return f'"-Djava.io.tmpdir={self.folder.resolve()}"'

    def remove(self) -> None:
        """Remove the folder, once its JVM has ended."""
        shutil.rmtree(self.folder.resolve(), ignore_errors=True)
        if self.folder.is_symlink():
            self.folder.unlink()
        _lock_of(self.folder).unlink(missing_ok=True)


def scratch_folder(settings: Settings) -> Path:
    """Return where the folders of an installation's JVMs lie."""
    return settings.state / "spark"


@contextmanager
def new_scratch(settings: Settings) -> Iterator[Scratch]:
    """Make a folder for a JVM that is started within; from then on only the JVM holds its lock.

    Folders of JVMs that are dead are removed.
    """
    every = scratch_folder(settings)
    settings.make_state()
    make_folder(every, settings.access.state)
    _remove_dead(every)
    scratch = _taken(every, settings.access.state)
    try:
        yield scratch
    except BaseException:
        scratch.remove()
        raise
    finally:
        os.close(scratch.lock)


def _taken(every: Path, mode: int) -> Scratch:
    while True:
        folder = every / f"{os.getpid()}-{token_hex(4)}"
        lock = os.open(_lock_of(folder), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode & 0o666)
        if _take(lock) and _lock_of(folder).exists():  # or somebody took it for a dead one's before it was held
            if "," in str(folder):  # which to Spark is the end of a folder's name
                folder.symlink_to(mkdtemp(prefix="platform-assets-"))
            else:
                make_folder(folder, mode)
            return Scratch(folder, lock)
        os.close(lock)


def _remove_dead(every: Path) -> None:
    for file in every.glob("*.lock"):
        # What another user left, in a folder of a group, is that user's to remove.
        with suppress(OSError), closing(file.open("rb+")) as lock:
            if _take(lock.fileno()):
                Scratch(file.with_suffix(""), lock.fileno()).remove()


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def log_file(settings: Settings) -> Path:
    """Return the file that Spark, its JVM and Ivy append to; what it grew to before is kept beside it once."""
    path = settings.state / "logs" / "spark.log"
    settings.make_state()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.stat().st_size > _ROTATE_AT_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path


def last_words(path: Path, since: int) -> str:
    """Return the last three lines written after a position of the file, for an error message; no lines of a stack."""
    with path.open("rb") as file:
        file.seek(since)
        text = file.read().decode(errors="replace")
    lines = (line.strip() for line in text.splitlines())
    return " | ".join([line for line in lines if line and not line.startswith("at ")][-3:])
