"""Results of the engine: of an ingest, of a step, and days that others published meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import Any

from platform_assets.engine.platform import Platform
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.windows import Read
from platform_assets.quality.findings import DayChecks, Finding
from platform_assets.records.differences import DayChange
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.records.manifest import Arrival, DayContent, Warned
from platform_assets.sources.landing import Problem

_BY_DAY = ("published", "held", "blocked", "checks", "changes", "notes", "reasons", "before")
"""What a step's result has of each day."""


@dataclass(frozen=True)
class StepResult:
    """Result of a step for the days of one table. Every day is published, held, blocked or up to date.

    Args:
        held: why days keep their last good content, most serious first. A day that was refused before, and would be the
            same, is not tried again: it has the reason of its hold, and no `checks`.
        blocked: days left out because an input was never loaded or is held, with the reason and what to do.
        up_to_date: days that were skipped because they would not change.
        checks: result of every check for each staged day, published or held.
        changes: changes of rows of published days that had other rows before.
        notes: remarks about a day's inputs: those that count with their last good content.
        before: records of the published days before, where they existed.
    """

    table: str
    published: dict[date, DayContent] = field(default_factory=dict)
    held: dict[date, tuple[Finding, ...]] = field(default_factory=dict)
    blocked: dict[date, str] = field(default_factory=dict)
    up_to_date: frozenset[date] = frozenset()
    checks: dict[date, DayChecks] = field(default_factory=dict)
    changes: dict[date, DayChange] = field(default_factory=dict)
    notes: dict[date, tuple[str, ...]] = field(default_factory=dict)
    reasons: dict[date, Reasons] = field(default_factory=dict)
    read: dict[str, Read] = field(default_factory=dict)
    seconds: float = 0.0
    before: dict[date, DayRecord] = field(default_factory=dict)

    @property
    def unchanged(self) -> frozenset[date]:
        """Return published days with an unchanged digest: they keep their files, and readers see nothing new."""
        return frozenset(day for day in self.before.keys() & self.published.keys() if self.published[day].keeps_files)

    @property
    def newly_quarantined(self) -> dict[date, int]:
        """Return how many more rows of published days broke a rule than before."""
        now = {day: content.figures.get("quarantined", 0) for day, content in self.published.items()}
        then = {day: record.figures.get("quarantined", 0) for day, record in self.before.items()}
        return {day: new for day, rows in now.items() if (new := rows - then.get(day, 0)) > 0}

    def newly_warned(self, day: date) -> tuple[Warned, ...]:
        """Return findings about a published day that its former content did not have."""
        then = {(each.gate, each.found) for each in self.before[day].warnings} if day in self.before else set()
        return tuple(each for each in self.published[day].warnings if (each.gate, each.found) not in then)

    @property
    def rows(self) -> int:
        """Return the rows of the published days."""
        return sum(content.rows for content in self.published.values())

    @property
    def days(self) -> int:
        """Return how many days are done."""
        return len(self.published) + len(self.held) + len(self.blocked) + len(self.up_to_date)

    @property
    def not_published(self) -> dict[date, str]:
        """Return days that keep their content, each with the reason in a sentence or two."""
        held = {
            day: "held: " + "; ".join(finding.message for finding in findings) for day, findings in self.held.items()
        }
        return held | self.blocked

    def without(self, days: Collection[date]) -> StepResult:
        """Return the result without some days."""
        if not days:
            return self
        rest: dict[str, Any] = {
            name: {day: outcome for day, outcome in getattr(self, name).items() if day not in days} for name in _BY_DAY
        }
        return replace(self, up_to_date=self.up_to_date.difference(days), **rest)

    def __add__(self, other: StepResult) -> StepResult:
        both: dict[str, Any] = {name: getattr(self, name) | getattr(other, name) for name in (*_BY_DAY, "up_to_date")}
        tables = self.read | other.read
        read = {table: self.read.get(table, Read()) + other.read.get(table, Read()) for table in tables}
        return replace(self, read=read, seconds=self.seconds + other.seconds, **both)


@dataclass(frozen=True)
class IngestResult:
    """Result of an ingest.

    Args:
        due: waiting rows that entered because their day has come.
        missing: requested days that their source has not delivered.
    """

    table: str
    arrivals: tuple[Arrival, ...] = ()
    published: dict[date, DayContent] = field(default_factory=dict)
    due: tuple[Arrival, ...] = ()
    growing: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: tuple[date, ...] = ()
    seconds: float = 0.0

    @property
    def changed(self) -> tuple[date, ...]:
        """Return days with new content, oldest first."""
        return tuple(sorted(self.published))


@dataclass(frozen=True)
class PublishedMeanwhile:
    """Days of a table that another process published meanwhile."""

    table: str
    days: int
    by: PublicationRecord


def published_meanwhile(
    platform: Platform, since: int, run: str, days: Mapping[str, Collection[date] | None]
) -> tuple[PublishedMeanwhile, ...]:
    """Return who else published days that a run had planned.

    Args:
        run: planning run, whose own publications do not count.
    """
    head_of = cache(platform.ledger.head)
    others: list[PublishedMeanwhile] = []
    for table, among in days.items():
        records = platform.ledger.current_days(table, among=among).values()
        counts = Counter(record.publication for record in records)
        for publication, count in counts.items():
            head = head_of(publication)
            if head is not None and head.release > since and head.run != run:
                others.append(PublishedMeanwhile(table, count, head))
    return tuple(others)
