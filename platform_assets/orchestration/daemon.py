"""Run Dagster's daemon as `up` does: its own command, which leaves it to the code server to say why it cannot load.

Each sensor would log the same with a trace, as often as it is asked while the definitions cannot be loaded.
"""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

DAEMONS = (
    "AssetDaemon",
    "BackfillDaemon",
    "EventLogConsumerDaemon",  # which tries failed runs again
    "QueuedRunCoordinatorDaemon",
    "SchedulerDaemon",
    "SensorDaemon",
)
"""Dagster's names of the parts that ask a code server; each logs under its name."""


def main() -> None:
    """Run it until a signal ends it."""
    for name in DAEMONS:
        logging.getLogger(f"dagster.daemon.{name}").addFilter(is_news)
    [command] = entry_points(group="console_scripts", name="dagster-daemon")
    command.load()()


def is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of the log says more than that a code location cannot be loaded."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "DagsterCodeLocationLoadError"


if __name__ == "__main__":
    main()
