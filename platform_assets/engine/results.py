"""What the engine reports back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from platform_assets.lakehouse.manifest import Arrival, DayContent
from platform_assets.quality.gates import Breach
from platform_assets.sources.landing import Problem

Progress = Callable[[str, int, int], None]
"""Told (table, days done, days in all) after every batch."""


def no_progress(table: str, done: int, total: int) -> None:
    """For callers that show nothing."""


@dataclass(frozen=True)
class StepResult:
    """What a step did with the days of one table.

    Args:
        table: the table.
        published: the new content of each published day.
        held: breaches by day; these days keep their last good content.
        blocked: days left out because an input was never loaded or is held, with the reason.
        seconds: wall time.
    """

    table: str
    published: dict[date, DayContent] = field(default_factory=dict)
    held: dict[date, tuple[Breach, ...]] = field(default_factory=dict)
    blocked: dict[date, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Rows of the published days."""
        return sum(content.rows for content in self.published.values())

    def __add__(self, other: StepResult) -> StepResult:
        return StepResult(
            self.table,
            self.published | other.published,
            self.held | other.held,
            self.blocked | other.blocked,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class IngestResult:
    """What an ingest took.

    Args:
        table: the raw table.
        arrivals: files taken or refused.
        published: the new content of those days.
        growing: files left for later.
        problems: files that cannot be taken, and why.
        missing: days asked for that no arrival was delivered for.
        seconds: wall time.
    """

    table: str
    arrivals: tuple[Arrival, ...] = ()
    published: dict[date, DayContent] = field(default_factory=dict)
    growing: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: tuple[date, ...] = ()
    seconds: float = 0.0

    @property
    def changed(self) -> tuple[date, ...]:
        """Days with new content, oldest first."""
        return tuple(sorted(self.published))
