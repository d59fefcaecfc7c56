"""Ctrl-C in a terminal: one sentence, the shell's exit code, and nothing left running or half done."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.places import on_disk


@pytest.fixture(autouse=True)
def sigint() -> Iterator[None]:
    """As a terminal has it: what a shell starts in the background inherits that a Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


COMMAND = "from platform_assets.cli.app import main; main()"


def interrupted(args: list[str], when: bytes, delay_s: float = 0) -> str:
    """Press Ctrl-C some time after something was printed; what was printed in all, which ends with a sentence."""
    ours, theirs = pty.openpty()
    # Its own session, as a terminal gives one: the signal goes to Java, too.
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *args], stdout=theirs, stderr=theirs, start_new_session=True
    )
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
        [sys.executable, "-c", COMMAND, "refresh", SILVER, "--days", "2017-01-02", "--force"],
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
