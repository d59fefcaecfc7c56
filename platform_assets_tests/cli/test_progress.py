"""How commands say how far they are, with a terminal and without, and what a Ctrl-C does."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import dagster as dg
import pytest

from platform_assets.cli.progress import Narration
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release
from platform_assets.orchestration.build import run_job
from platform_assets.progress import Progress, meanwhile
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.installation import OWN_PROCESS
from platform_assets_tests.support.places import on_disk

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


@pytest.fixture(autouse=True)
def sigint() -> Iterator[None]:
    """As a terminal has it: what a shell starts in the background inherits that a Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(args: list[str], when: bytes, delay_s: float = 0) -> str:
    """Press Ctrl-C some time after something was printed; what was printed in all, which ends with a sentence."""
    ours, theirs = pty.openpty()
    # Its own session, as a terminal gives one: the signal goes to Java, too.
    process = subprocess.Popen([*COMMAND, *args], stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    said = b""
    for text in _printed(ours):
        said += text
        if process.poll() is None and when in said:
            time.sleep(delay_s)
            os.killpg(process.pid, signal.SIGINT)
            break
    said += b"".join(_printed(ours))
    assert process.wait(60) == 130, said.decode()
    assert b"Interrupted." in said
    assert b"Run the same command again" in said
    return said.decode()


@pytest.mark.parametrize("form", [(), pytest.param(("--json",), marks=pytest.mark.proof)], ids=["people", "programs"])
def test_a_refresh_is_interrupted_while_spark_starts(products: Settings, form: tuple[str, ...]) -> None:
    lake = Lake.at(products.lake)
    before = current_release(lake)
    the_bar = b"\x1b[?25l"  # is there before Spark is
    said = interrupted(["refresh", SILVER, "--days", "2017-01-02", "--force", *form], the_bar)
    assert "Traceback" not in said
    assert ('"code": 130}}' in said) == bool(form)
    assert current_release(lake) == before
    assert not lake.locks_path.exists() or not list(on_disk(lake.locks_path).glob("stage-*"))


@pytest.mark.proof
def test_a_refresh_without_a_terminal_is_interrupted(products: Settings) -> None:
    """At some moment of Spark's start, which takes longer."""
    process = subprocess.Popen(
        [*COMMAND, "refresh", SILVER, "--days", "2017-01-02", "--force"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    plan = process.stdout.readline()
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    said = plan + process.communicate(timeout=60)[0]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert said.count("Interrupted.") == 1
    assert said.splitlines()[-1].startswith("Interrupted.")


AT_AN_IMPORT = """
import os, signal, sys

module = sys.argv[1]


class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Pressed())
sys.argv = ["platform-assets", *sys.argv[2:]]
from platform_assets.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "platform_assets.operations.opening"])
def test_a_command_is_interrupted_before_it_has_begun(products: Settings, module: str) -> None:
    """While it imports what it needs, or opens the platform."""
    done = subprocess.run([sys.executable, "-c", AT_AN_IMPORT, module, "status"], capture_output=True, text=True)
    assert done.returncode == 130, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("Interrupted.")


def test_programs_are_told_of_an_interruption_as_of_an_error(products: Settings) -> None:
    command = [sys.executable, "-c", AT_AN_IMPORT, "platform_assets.operations.opening", "status", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 130, done.stderr
    assert json.loads(done.stderr)["error"]["what"] == "Interrupted."


@pytest.mark.proof
@pytest.mark.parametrize("delay_s", [0.5, 2.0])
def test_the_demo_is_interrupted_while_spark_works(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, delay_s: float
) -> None:
    monkeypatch.setenv("PLATFORM_STATE", str(settings.state))
    monkeypatch.setenv("PLATFORM_JARS", str(settings.jars))
    said = interrupted(["demo", "--days", "3"], b"taking raw.products", delay_s)
    assert "Traceback" not in said
    lake = Lake.at(settings.lake)
    assert not lake.locks_path.exists() or not list(on_disk(lake.locks_path).glob("stage-*"))


def _printed(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            text = os.read(terminal, 65536)
        except OSError:  # Linux's word for a terminal that nobody has open any more
            return
        if not text:
            return
        yield text
