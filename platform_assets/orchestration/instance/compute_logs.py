"""Dagster's capture of what a step writes, whose helpers leave a Ctrl-C to the run.

For each step Dagster starts processes that copy what was captured to the terminal. They are in the terminal's group, so
a Ctrl-C is for them, too, and one of them would end with a trace.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from dagster._core.storage.compute_log_manager import CapturedLogContext
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._serdes import ConfigurableClassData


class UninterruptedComputeLogManager(LocalComputeLogManager):
    """Captures as Dagster's own does; an interruption ends the step, and the step ends what was started for it."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> UninterruptedComputeLogManager:
        """Made from `dagster.yaml`."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[CapturedLogContext, None, None]:
        """Capture what is written within."""
        with ExitStack() as stack:
            with _children_without_interrupt():
                captured = stack.enter_context(super().capture_logs(log_key))
            yield captured


@contextmanager
def _children_without_interrupt() -> Iterator[None]:
    """Whatever is started within never sees a Ctrl-C; one that comes meanwhile is raised here afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
