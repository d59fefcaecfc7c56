"""Acknowledged findings: they need no look until they change, or until a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TypeVar

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.records.decisions import Acknowledgement
from platform_assets.records.history import ArrivalRecord, DayRecord
from platform_assets.sources.landing import Problem

Finding = Problem | ArrivalRecord | DayRecord
"""A file that cannot be taken, one that was refused, or a day that was published with warnings."""
F = TypeVar("F", Problem, ArrivalRecord, DayRecord)


def name_and_mark(finding: Finding) -> tuple[str, str]:
    """Return the name of a finding's subject, and a hash of the finding, which may quote a value."""
    name, parts = f"{finding.table} {finding.day}" if isinstance(finding, DayRecord) else finding.path, [""]
    match finding:
        case Problem():
            parts = [finding.message]
        case ArrivalRecord():
            parts = [finding.sha256, finding.reason or ""]
        case DayRecord():
            parts = [str(each) for each in finding.warnings]
    return name, sha256("\0".join(parts).encode()).hexdigest()[:16]


def in_force(decisions: Iterable[Acknowledgement], now: datetime) -> dict[tuple[str, str], Acknowledgement]:
    """Return the valid acknowledgements by name and mark: the newest of each, until its time.

    Args:
        decisions: oldest first.
    """
    newest = {(each.finding, each.mark): each for each in decisions}
    return {found: each for found, each in newest.items() if each.until is None or now < each.until}


@dataclass(frozen=True)
class Acknowledged:
    """The acknowledgements in force."""

    standing: Mapping[tuple[str, str], Acknowledgement] = field(default_factory=dict)

    @classmethod
    def now(cls, platform: Platform) -> Acknowledged:
        """Read the acknowledgements from the chain of decisions."""
        decisions = platform.ledger.decisions(Acknowledgement, as_far_as_readable=True)
        return cls(in_force(decisions, datetime.now(UTC)))

    def of(self, finding: Finding) -> Acknowledgement | None:
        """Return the acknowledgement of a finding in its present form."""
        return self.standing.get(name_and_mark(finding))

    def without(self, findings: Iterable[F]) -> tuple[F, ...]:
        """Return the findings that no person acknowledged."""
        return tuple(finding for finding in findings if self.of(finding) is None)


def acknowledge(
    platform: Platform,
    findings: Collection[Finding],
    names: Collection[str],
    author: Author,
    *,
    days: Collection[date] | None = None,
    until: datetime | None = None,
) -> tuple[Acknowledgement, ...]:
    """Record that a person looked at findings.

    Args:
        findings: all present findings.
        names: paths of files, patterns of paths, or tables for days with warnings.
        days: only these days of tables.

    Raises:
        PlatformError: no finding has such a name, or the time is over.
    """
    now = datetime.now(UTC)
    if until is not None and until <= now:
        raise PlatformError(
            f"{until:%Y-%m-%d %H:%M} UTC is over.", "Give --until a time to come, in UTC, or leave it out."
        )
    chosen: dict[tuple[str, str], None] = {}  # of one file several, if tables share its folder
    for name in names:
        met = dict.fromkeys(name_and_mark(each) for each in findings if _is_meant(name, each, days))
        if not met:
            near = did_you_mean(name, {name_and_mark(each)[0].partition(" ")[0] for each in findings})
            raise PlatformError(
                f"There is no finding of {name!r}.", f"{near}`status files` and `status warnings` show them."
            )
        chosen |= met
    made = tuple(Acknowledgement("acknowledgement", *each, until, **author.signature(now)) for each in chosen)
    for decision in made:
        platform.ledger.decide(decision)
    return made


def _is_meant(name: str, finding: Finding, days: Collection[date] | None) -> bool:
    if isinstance(finding, DayRecord):
        return finding.table == name and (days is None or finding.day in days)
    return days is None and (finding.path == name or fnmatchcase(finding.path, name))
