"""How commands say how far they are: by a clock that tests turn, and as processes, with a terminal and without."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise

import dagster as dg
import pytest

from platform_assets.cli.progress import Narration
from platform_assets.orchestration.build import run_job
from platform_assets.progress import Progress, meanwhile
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.installation import OWN_PROCESS

TABLE = "silver.transactions"
PROMISED_S = 10.0


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Listener:
    """Listens as the command's thread does, a few times a second, and notes when something was said."""

    clock: Clock
    narration: Narration
    heard: list[tuple[float, str]] = field(default_factory=list)

    def listen(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.clock.seconds += 0.25
            said = self.narration.lines()
            life = self.narration.sign_of_life()
            self.heard += [(self.clock.seconds, line) for line in (*said, *([life] if life else []))]

    @property
    def lines(self) -> list[str]:
        return [line for _, line in self.heard]


@pytest.fixture
def listener() -> Listener:
    clock = Clock()
    return Listener(clock, Narration("refresh", clock))


def test_nobody_waits_longer_than_promised_whatever_the_command_does(listener):
    tell = listener.narration.tell
    listener.listen(25)
    listener.narration.begin("refresh")
    tell(Progress("computing", TABLE, 0, 366))
    with meanwhile(tell, "starting Spark"):
        listener.listen(31.5)
    listener.listen(27)
    tell(Progress("computing", TABLE, 90, 366))
    listener.listen(19)
    tell(Progress("computing", TABLE, 366, 366, rows=1_500_000, finished=True))
    listener.listen(120)
    moments = [0.0, *(moment for moment, _ in listener.heard), listener.clock.seconds]
    assert max(after - before for before, after in pairwise(moments)) < PROMISED_S


def test_a_sign_of_life_says_what_is_done_how_far_it_is_and_since_when(listener):
    tell = listener.narration.tell
    listener.listen(5)
    tell(Progress("taking", "raw.products", 0, 1_400, "file"))
    listener.listen(8)
    tell(Progress("taking", "raw.products", 1_000, 1_400, "file"))
    with meanwhile(tell, "starting Spark"):
        listener.listen(8)
    listener.listen(8)
    tell(Progress("checking", TABLE))
    listener.listen(8)
    assert listener.lines == [
        "refresh, 5 s",
        "taking raw.products: 0 of 1,400 files, 8 s",
        "starting Spark, 8 s",
        "taking raw.products: 1,000 of 1,400 files, 16 s",
        "checking silver.transactions, 8 s",
    ]


def test_a_batch_moves_with_the_tasks_of_spark_and_is_never_done_before_it_is(listener):
    narration = listener.narration
    narration.tell(Progress("computing", TABLE, 0, 366, batch=366))
    reached = []
    for running in ({0: (0, 40)}, {0: (20, 40)}, {1: (0, 200), 2: (0, 8)}, {2: (8, 8)}, {}, {5: (1, 2)}):
        narration.spark.see(running)
        reached.append(narration.now().reached)
    assert reached == sorted(reached), "a bar that goes back says nothing"
    assert 0 == reached[0] < reached[1] < reached[2] < reached[-1] < 366
    assert narration.now().count == "0 of 366 days, Spark at 1 of 2 tasks"
    listener.listen(8)
    assert listener.lines[-1] == f"computing {TABLE}: 0 of 366 days, Spark at 1 of 2 tasks, 5 s"
    narration.tell(Progress("computing", TABLE, 366, 366))
    assert narration.now().reached == 366


def test_a_table_that_is_finished_is_said_once(listener):
    tell = listener.narration.tell
    listener.listen(3)
    tell(Progress("computing", TABLE, 0, 3))
    listener.listen(1.25)
    tell(Progress("computing", TABLE, 3, 3, rows=7_001))
    tell(Progress("computing", TABLE, 3, 3, rows=7_001, finished=True))
    tell(Progress("indexing", "gold.daily_sales", 1, 1, rows=1, finished=True))
    tell(Progress("copying", "manifests", 2, 2, "file", finished=True))
    listener.listen(5)
    assert listener.lines == [
        f"{TABLE}: 3 days, 7,001 rows, 1.2 s",
        "gold.daily_sales: 1 day, 1 row",
        "manifests: 2 files",
    ]


COMMAND = [sys.executable, "-c", "from platform_assets.cli.app import main; main()"]
REFRESH = [*COMMAND, "refresh", SILVER, "--days", "2017-01-02", "--force"]
LINE = re.compile(rf"{SILVER}: 1 day, 0 rows, [0-9.]+ s")
COLUMNS = 60


@dataclass(frozen=True)
class Heard:
    """What came out of a process, and when."""

    code: int
    parts: tuple[tuple[float, str], ...]

    @property
    def text(self) -> str:
        return "".join(part for _, part in self.parts)


def on_a_terminal(*command: str) -> Heard:
    """Run with a terminal for both outputs and none for the input, as in a pipeline."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment | {"TERM": "xterm-256color", "PLATFORM_SPARK_CONF": OWN_PROCESS},
        start_new_session=True,
    )
    os.close(theirs)
    began, parts = time.monotonic(), []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's word for a terminal that nobody has open any more
            break
        parts.append((time.monotonic() - began, part.decode(errors="replace")))
    os.close(ours)
    return Heard(process.wait(60), tuple(parts))


def without_a_terminal(*command: str) -> tuple[Heard, str]:
    """Run with pipes; returns what came from standard error, line by line, and all of standard output."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PLATFORM_SPARK_CONF": OWN_PROCESS},
        text=True,
    )
    assert process.stdout
    assert process.stderr
    out: list[str] = []
    reader = threading.Thread(target=lambda stream: out.append(stream.read()), args=(process.stdout,))
    reader.start()
    began = time.monotonic()
    parts = tuple((time.monotonic() - began, line) for line in process.stderr)
    reader.join()
    return Heard(process.wait(60), parts), out[0]


def drawn(text: str) -> list[str]:
    """Every line as it was drawn, without colours and what moves the cursor."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def assert_left_clean(text: str) -> None:
    """The cursor is there while a bar is drawn anew, in case somebody kills the process, and the last bar is gone."""
    _, *shown = text.split("\x1b[?25l")
    assert shown
    for part in shown:
        before, cursor, _ = part.partition("\x1b[?25h")
        assert cursor
        assert "\x1b[2K" not in before
    last_bar = max(text.rfind("\N{BOX DRAWINGS HEAVY HORIZONTAL}"), text.rfind("\N{BOX DRAWINGS HEAVY LEFT}"))
    assert "\x1b[2K" in text[last_bar:]


def test_an_interrupted_run_of_dagster_is_an_interruption() -> None:
    @dg.op
    def interrupted() -> None:
        raise KeyboardInterrupt

    @dg.job(executor_def=dg.in_process_executor)
    def job() -> None:
        interrupted()

    with dg.DagsterInstance.ephemeral() as instance, pytest.raises(KeyboardInterrupt):
        run_job(dg.Definitions(jobs=[job]), instance, "job", {})


@pytest.mark.proof
def test_a_refresh_on_a_terminal_has_a_bar_and_one_line_for_each_table(products: Settings) -> None:
    heard = on_a_terminal(*REFRESH)
    assert heard.code == 0, heard.text
    said = drawn(heard.text)
    assert any(line.startswith(("starting Spark", "computing")) for line in said)
    assert len([line for line in said if LINE.fullmatch(line.strip())]) == 1
    assert all(len(line) <= COLUMNS for line in said if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in line)
    assert_left_clean(heard.text)


@pytest.mark.proof
def test_a_refresh_without_a_terminal_says_plain_lines_on_standard_error(products: Settings) -> None:
    """A process with a JVM of its own: whether it is silent for long shows only in a real one."""
    heard, out = without_a_terminal(*REFRESH, "--json")
    assert heard.code == 0, heard.text
    assert json.loads(out)["result"]["unchanged"] == {SILVER: 1}
    assert len(LINE.findall(heard.text)) == 1
    assert "\x1b" not in heard.text + out
    assert "\r" not in heard.text
