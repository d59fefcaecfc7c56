"""How commands say how far they are, as processes: on a pseudo-terminal, and without a terminal."""

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
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from platform_assets.orchestration.in_process import run_job
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.installation import OWN_PROCESS

COMMAND = [sys.executable, "-c", "from platform_assets.cli.app import main; main()"]
REFRESH = [*COMMAND, "refresh", SILVER, "--days", "2017-01-02", "--force"]
LINE = re.compile(rf"{SILVER}: 1 day, 0 rows, [0-9.]+ s")
COLUMNS = 60

CAPTURED = """
import sys, time
import dagster as dg
from platform_assets.cli.progress import speaking
from platform_assets.progress import OnProgress, Progress

@dg.op
def work(progress: dg.ResourceParam[OnProgress]):
    print("printed by the step")
    progress(Progress("computing", "gold.daily_sales", 0, 3))
    time.sleep(4)
    progress(Progress("computing", "gold.daily_sales", 3, 3, finished=True))
    time.sleep(1)

@dg.job(executor_def=dg.in_process_executor)
def captured():
    work()

quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
with dg.DagsterInstance.local_temp(sys.argv[1]) as instance, speaking("demo") as voice:
    with voice.telling("first load") as progress:
        captured.execute_in_process(instance=instance, resources={"progress": progress}, run_config=quiet)
"""
"""A step that Dagster captures: what it prints goes to a file, and from there to the terminal when there is time."""


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


@pytest.mark.proof
def test_the_bar_moves_while_dagster_captures_the_terminal(tmp_path: Path) -> None:
    """A step that sleeps for four seconds, long enough to see the bar move."""
    heard = on_a_terminal(sys.executable, "-c", CAPTURED, str(tmp_path))
    assert heard.code == 0, heard.text
    bars = [line for line in drawn(heard.text) if line.startswith("computing gold.daily_sales")]
    assert {" 2 s", " 3 s"} <= {line[-4:] for line in bars}
    assert all("0 of 3 days" in line and len(line) <= COLUMNS for line in bars)
    assert len(re.findall(r"gold\.daily_sales: 3 days, [45]\.[0-9] s", heard.text)) == 1
    assert "printed by the step" in "".join(file.read_text() for file in tmp_path.rglob("*.out"))
    assert_left_clean(heard.text)


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
    assert json.loads(out)["result"]["published"] == {SILVER: 1}
    assert len(LINE.findall(heard.text)) == 1
    assert "\x1b" not in heard.text + out
    assert "\r" not in heard.text


@pytest.mark.proof
def test_a_quick_command_says_nothing_on_its_way(products: Settings, tmp_path: Path) -> None:
    """Four commands, each a process of its own."""
    for command in (["status"], ["stale"], ["backup", str(tmp_path / "copy")], ["ledger", "rebuild"]):
        heard, out = without_a_terminal(*COMMAND, *command)
        assert heard.text == ""
        assert out


@pytest.mark.proof
def test_who_stops_listening_stops_no_command(products: Settings, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*REFRESH, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PLATFORM_SPARK_CONF": OWN_PROCESS},
    )
    assert process.stdout
    assert process.stderr
    process.stderr.close()
    assert json.loads(process.stdout.read())["result"]["published"] == {SILVER: 1}
    assert process.wait(60) == 0
