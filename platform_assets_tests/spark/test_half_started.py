"""A JVM that was to start, when somebody interrupted, is ended: no one else would ever end it."""

from __future__ import annotations

import _thread
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.jvm import _end_half_started, _launch
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.processes import started_from


@pytest.fixture(autouse=True)
def sigint() -> Iterator[None]:
    """As a terminal has it: PySpark's would cancel all jobs of the run's one JVM, those of the other processes, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.proof
def test_a_jvm_is_ended_that_somebody_interrupted_while_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path))
    interrupt = Timer(0.7, _thread.interrupt_main)
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        _launch(load_settings(state=tmp_path, jars=JARS), (), (), ())
    until = time.monotonic() + 15  # it fails at its port within three
    time.sleep(5)
    while started_from(tmp_path) and time.monotonic() < until:
        time.sleep(0.2)
    assert started_from(tmp_path) == []


class Begun(subprocess.Popen[bytes]):
    """A process whose beginning is interrupted, once there is one."""

    numbers: tuple[int, ...] = ()

    def _execute_child(self, *args: Any) -> None:
        super()._execute_child(*args)  # type: ignore[misc]
        Begun.numbers = (self.pid,)
        raise KeyboardInterrupt


def test_one_is_ended_that_had_just_begun() -> None:
    with pytest.raises(KeyboardInterrupt) as interrupted:
        Begun(["sleep", "60"])
    [number] = Begun.numbers
    assert Path(f"/proc/{number}").exists()
    _end_half_started(interrupted.value)
    assert not Path(f"/proc/{number}").exists()
