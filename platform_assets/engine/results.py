"""Results of the engine: of an ingest, of a step, and days that others published in between."""

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
    """What a step did with the days of one table. Every day is published, held, blocked or up to date.

    Args:
        held: why days keep their last good content, most serious first. A day that was refused before, and would come
            out the same, is not tried again: it has the reason of its hold, and no `checks`.
        blocked: days left out because an input was never loaded or is held, with the reason and what to do.
        up_to_date: days that are what they would become, and were left alone.
        checks: what every check says of each staged day, published or held.
        changes: what became of the rows of published days that had other rows before.
        notes: what a reader of a day should know about its inputs: those that count with their last good content.
        before: what the published days were, of those that were there.
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
        """Published days that came out with the digest they had: they keep their files, and readers see nothing new."""
        return frozenset(day for day in self.before.keys() & self.published.keys() if self.published[day].keeps_files)

    @property
    def newly_quarantined(self) -> dict[date, int]:
        """Rows of published days that broke a rule, without as many as had broken one before."""
        now = {day: content.figures.get("quarantined", 0) for day, content in self.published.items()}
        then = {day: record.figures.get("quarantined", 0) for day, record in self.before.items()}
        return {day: new for day, rows in now.items() if (new := rows - then.get(day, 0)) > 0}

    def newly_warned(self, day: date) -> tuple[Warned, ...]:
        """Return what gates found of a published day and had not found of what it was."""
        then = {(each.gate, each.found) for each in self.before[day].warnings} if day in self.before else set()
        return tuple(each for each in self.published[day].warnings if (each.gate, each.found) not in then)

    @property
    def rows(self) -> int:
        """Rows of the published days."""
        return sum(content.rows for content in self.published.values())

    @property
    def days(self) -> int:
        """Return how many days it is done with."""
        return len(self.published) + len(self.held) + len(self.blocked) + len(self.up_to_date)

    @property
    def not_published(self) -> dict[date, str]:
        """Days that keep what they had, and the reason in a sentence or two."""
        held = {
            day: "held: " + "; ".join(finding.message for finding in findings) for day, findings in self.held.items()
        }
        return held | self.blocked

    def without(self, days: Collection[date]) -> StepResult:
        """Return the same without what became of some days."""
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
    """What an ingest took.

    Args:
        due: rows that had arrived too far ahead of their day and entered now that it has come.
        missing: days asked for that their source has not delivered.
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
        """Days with new content, oldest first."""
        return tuple(sorted(self.published))


@dataclass(frozen=True)
class PublishedMeanwhile:
    """Days of a table that another process published in between."""

    table: str
    days: int
    by: PublicationRecord


def published_meanwhile(
    platform: Platform, since: int, run: str, days: Mapping[str, Collection[date] | None]
) -> tuple[PublishedMeanwhile, ...]:
    """Return who else published days that a run had planned.

    Args:
        run: that planned them; what it published itself is not meant.
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
