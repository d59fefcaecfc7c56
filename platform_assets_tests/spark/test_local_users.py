"""Spark on a machine with other users: they read nothing, its ports ask for a secret, and a kill leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.jvm import new_scratch, scratch_folder
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.other_user import a_place_for_all, as_other_user, needs_root, readable

pytestmark = pytest.mark.proof

STARTED = """
import json, os, sys
from platform_assets.settings import load_settings
from platform_assets.spark.session.session import create_session, stop_session
from pyspark import SparkContext
settings = load_settings(state=sys.argv[1], jars=sys.argv[2], spark_conf=json.loads(sys.argv[3]))
spark = create_session(settings, record_classes=False)
spark.range(1000).repartition(4).write.mode("overwrite").parquet(f"{settings.state}/rows")
print(SparkContext._gateway.proc.pid, flush=True)
if sys.stdin.readline():
    stop_session(spark)
"""
ASK = """
def rpc(port):
    body = b"\\0who are you?"
    head = struct.pack(">bqi", 3, 1, len(body))
    return struct.pack(">q", 8 + len(head) + len(body)) + head + body

def answer(port, asked):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.settimeout(2)
        connection.sendall(asked)
        try:
            return connection.recv(4096).decode(errors="replace")
        except TimeoutError:
            return ""

gateway = b"c\\nz:java.lang.System\\ngetProperty\\nsuser.home\\ne\\n"
print(json.dumps([answer(port, rpc(port)) + answer(port, gateway) for port in {ports}]))
"""


@dataclass(frozen=True)
class Working:
    """A process with a session that has shuffled rows, and its JVM.

    Args:
        place: that every user reaches; the state folder lies in it.
        process: of Python.
        jvm: process id.
    """

    place: Path
    process: subprocess.Popen[str]
    jvm: int

    @property
    def settings(self) -> Settings:
        return load_settings(state=self.place / "state")

    def stop(self) -> None:
        self.process.communicate("stop\n", timeout=120)


def start(place: Path) -> Working:
    arguments = [str(place / "state"), str(JARS), OWN_PROCESS]
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        umask=0o022,
    )
    assert process.stdout is not None
    return Working(place, process, int(process.stdout.readline()))


@pytest.fixture(scope="module")
def working() -> Iterator[Working]:
    """Started as from a shell or a notebook that lets everybody read: for the tests that only look."""
    with a_place_for_all() as place:
        started = start(place)
        yield started
        started.stop()
        assert list(scratch_folder(started.settings).iterdir()) == []


def open_files(process: int) -> set[str]:
    """Files that a process has open or mapped."""
    held = {str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
    mapped = (line.split(maxsplit=5) for line in Path(f"/proc/{process}/maps").read_text().splitlines())
    return held | {parts[5] for parts in mapped if len(parts) > 5}


def listening(process: int) -> list[int]:
    """The ports at which a process listens."""
    mine = open_files(process)
    lines = [
        line.split()
        for family in ("tcp", "tcp6")
        for line in Path(f"/proc/{process}/net/{family}").read_text().splitlines()[1:]
    ]
    return [
        int(parts[1].rpartition(":")[2], 16) for parts in lines if parts[3] == "0A" and f"socket:[{parts[9]}]" in mine
    ]


@needs_root
def test_nobody_else_reads_rows_or_what_spark_shuffles(working: Working) -> None:
    scratch = scratch_folder(working.settings)
    assert [path for path in scratch.rglob("shuffle_*.data") if path.stat().st_size]
    assert list((working.place / "state" / "rows").glob("*.parquet"))
    assert readable(working.place) == ["control"]
    every = (*scratch.rglob("*"), *(working.place / "state" / "rows").rglob("*"))
    assert [path for path in every if path.stat().st_mode & 0o077] == []


def test_a_jvm_keeps_nothing_in_the_systems_folder_for_temporary_files(working: Working) -> None:
    temporary = {name for name in open_files(working.jvm) if name.startswith(("/tmp/", "/var/tmp/"))}
    assert temporary
    assert {name for name in temporary if not name.startswith(f"{working.place}/state/")} == set()


@needs_root
def test_every_port_of_the_driver_asks_others_for_a_secret(working: Working) -> None:
    """Driver, block manager and the gateway to Python; what they answer to a question of each kind."""
    ports = listening(working.jvm)
    assert len(ports) == 3
    answers = as_other_user(working.place, ASK.replace("{ports}", repr(ports)))
    asked = [["Expected SaslMessage" in said, "Authentication error" in said] for said in answers]
    assert sorted(asked) == [[False, True], [True, False], [True, False]]


def test_what_killed_processes_left_is_removed_at_the_next_start_and_nothing_else() -> None:
    with a_place_for_all() as place:
        first = start(place)
        os.kill(first.jvm, signal.SIGKILL)
        first.process.kill()
        first.process.communicate(timeout=120)
        until = time.monotonic() + 60
        while Path(f"/proc/{first.jvm}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        folder = scratch_folder(first.settings)
        left = set(folder.iterdir())
        assert [path for path in left if path.is_dir() and any(path.rglob("shuffle_*"))]
        with new_scratch(first.settings) as ours:  # one that lives: whoever starts meanwhile leaves it alone
            assert not left & set(folder.iterdir())
            second = start(place)
            assert ours.folder.is_dir()
            second.stop()
            assert set(folder.iterdir()) == {ours.folder, ours.folder.with_name(f"{ours.folder.name}.lock")}
