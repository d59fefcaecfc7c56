"""Decide about rows and days kept from readers: show, replay or discard quarantined rows, accept held days.

Acknowledge broken files and warnings: they ask for no look until they change, or until a time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar, cast

from platform_assets.engine.ingest.aside import QuarantineError, chosen
from platform_assets.engine.pending import landed_files
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, states_around
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.planning.day_states import Blocked, DayState, Held
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.rows_aside import AsideRow, AsideSelection
from platform_assets.planning.selection import Request
from platform_assets.planning.steps import Step
from platform_assets.progress import OnProgress, no_progress
from platform_assets.quality.findings import ACCEPTABLE, Check
from platform_assets.records.code_version import TiedTo
from platform_assets.records.decisions import Acknowledgement, QuarantineDecision
from platform_assets.records.history import ArrivalRecord, DayRecord, Hold, hold_of_each_day
from platform_assets.sources.compression import ContentError
from platform_assets.sources.landing import NOT_AS_LISTED, Problem
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.rewriting import line_numbers
from platform_assets.sources.text import EncodingError

if TYPE_CHECKING:
    from platform_assets.engine.refresh import RefreshResult
    from platform_assets.spark.session.on_demand import SparkOnDemand

_SHOWN = 5


def masked_row(platform: Platform, row: AsideRow) -> tuple[str, Mapping[str, str]]:
    """Return why a row was set aside and its values as delivered, masked for people.

    If its raw table has sensitive columns, these and undeclared values are masked, and the reason is reduced to its
    class of error.
    """
    contract = platform.catalogue[row.table]
    source = contract if contract.source else platform.catalogue[contract.inputs[0].table]
    # Behind the name of a column that has a path may be an object, with sensitive values in other places of it.
    plain = {name for column in source.columns if not column.sensitive and not column.path for name in column.names}
    try:
        fields = json.loads(row.payload, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):  # a line that could not be read
        fields = {"_line": row.payload} if row.payload else {}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    if not any(column.sensitive for column in source.columns):
        return row.reason, texts
    masked = {name: text if name in plain else platform.masking.masked(text) for name, text in texts.items()}
    return row.error if row.payload else row.reason, masked


def lines(platform: Platform, rows: Iterable[AsideRow]) -> dict[AsideRow, int]:
    """Return the line in its file where each refused row begins, for unchanged text files."""
    by_file: defaultdict[tuple[str, str], dict[int, AsideRow]] = defaultdict(dict)
    for row in rows:
        if row.number is not None:
            by_file[row.table, row.arrival][row.number] = row
    found: dict[AsideRow, int] = {}
    for (table, path), numbers in by_file.items():
        record = platform.ledger.arrival(table, path)
        file = landed_files(platform, platform.catalogue[table], [path])[0].get(path)
        is_same = record and file and (file.size, file.modified_ns) == (record.size, record.modified_ns)
        if file and is_same and file.format != "parquet" and file.stored is None:
            with suppress(*NOT_AS_LISTED, ContentError, EncodingError, LimitError):
                limits, contract = Limits.of(platform.settings), platform.catalogue[table]
                found |= {numbers[n]: line for n, line in line_numbers(file, numbers, limits, contract)}
    return found


def replay_quarantined(
    platform: Platform,
    spark: SparkOnDemand,
    selection: AsideSelection,
    author: Author,
    progress: OnProgress = no_progress,
) -> RefreshResult:
    """Recompute the days of quarantined rows of a silver table, and first their stale inputs.

    Raw has these rows already: waiting files stay for the next refresh.
    """
    from platform_assets.engine.refresh import refresh  # and Spark, without which the others answer at once

    days = frozenset(row.day for row in chosen(platform, selection, everything=selection.arrival is not None))
    if stops := LakeSnapshot.now(platform).stopped.get(selection.table or ""):
        raise QuarantineError(
            f"Nothing was replayed: {stops.reason}.", f"{stops.overruled_by} says how to close it; replay then."
        )
    request = Request(tables=frozenset({selection.table or ""}), days=days, by_person=True, takes=False)
    plan = plan_steps(platform, request)
    if not any(step.table == selection.table for step in plan.steps):
        raise QuarantineError(
            f"There is nothing to replay of {selection}: neither the rows nor the rules, the code or the reference "
            f"data that {selection.table} is made from have changed since.",
            "Correct a rule or the rows first; `platform-assets status quarantine --rows` says which rules they break.",
        )
    return refresh(platform, spark, author, progress, request=request, plan=plan)


def discard(platform: Platform, selection: AsideSelection, author: Author) -> tuple[AsideRow, ...]:
    """Discard quarantined rows: they are kept, and shown only by `status quarantine --all`."""
    rows = chosen(platform, selection)
    signature = author.signature(datetime.now(UTC))
    for table, arrival, day, error in sorted({(row.table, row.arrival, row.day, row.error) for row in rows}):
        platform.ledger.decide(QuarantineDecision("discard", table, arrival, day, error, **signature))
    return rows


@dataclass(frozen=True)
class Acceptance:
    """Held days that a person is about to accept.

    Args:
        holds: all holds of each day, by day, including days held only because records tie them to one of them.
        made_from: fingerprint of each day that was looked at and is accepted.
    """

    table: str
    holds: Mapping[date, tuple[Hold, ...]]
    made_from: Mapping[date, str]

    @property
    def checks(self) -> frozenset[Check]:
        """Return the checks whose findings are accepted on these days."""
        every = (hold for standing in self.holds.values() for hold in standing)
        return frozenset(cast("Check", hold.gate) for hold in every if not isinstance(hold.refused, TiedTo))

    @property
    def step(self) -> Step:
        """Return the days to compute with these checks accepted."""
        return Step(self.table, tuple(self.holds))


def acceptance(platform: Platform, table: str, days: Collection[date]) -> Acceptance:
    """Return what accepting some days would publish, without doing it."""
    contract, snapshot = platform.catalogue[table], LakeSnapshot.now(platform)
    holds = list(snapshot.holds_of(contract.name))
    if not contract.inputs:
        raise PlatformError(
            f"{contract.name} holds what was delivered, so no gate holds a day of it.",
            "Name a silver or gold table; `platform-assets status` shows the days that are held.",
        )
    if stops := snapshot.stopped.get(contract.name):
        raise PlatformError(
            f"Nothing was accepted: {stops.reason}.", f"{stops.overruled_by} says how to close it; accept then."
        )
    held = {hold.day for hold in holds}
    tables, states = states_around(snapshot, contract, {*days, *held})
    made_from = fingerprints(contract, held, tables.digests, tables.calendar, tables.views)
    return accepted_together(contract.name, days, holds, states, made_from)


def accepted_together(
    table: str,
    days: Collection[date],
    holds: Collection[Hold],
    states: Mapping[date, DayState],
    made_from: Mapping[date, str],
) -> Acceptance:
    """Return the days accepted together: the requested ones, and days that records tie to them."""
    standing = {day: hold for (_, day), hold in hold_of_each_day(holds).items()}
    now = {day: state.hold for day, state in states.items() if isinstance(state, Held)}
    taken: dict[date, tuple[Hold, ...]] = {}
    refused: dict[date, str] = {}
    left = sorted(days)
    while left:
        day = left.pop(0)
        if day in taken or day in refused:
            continue
        if day not in standing:
            refused[day] = "is not held"
        elif now.get(day, standing[day]).is_of_good_content:  # a gate may have refused it since
            refused[day] = "was rolled back by a person, and no gate holds it"
        elif isinstance(state := states.get(day), Blocked):
            refused[day] = f"is held, and cannot be computed now: it waits for {state.table} {state.day}"
        elif day not in now:
            refused[day] = "is held, but would now become something that no gate has seen: `refresh` tries it again"
        elif never := [
            hold
            for hold in _of_the_same(now[day], holds)
            if not isinstance(hold.refused, TiedTo) and hold.gate not in ACCEPTABLE
        ]:
            refused[day] = f"is held by {never[0].gate}, and what that finds cannot be accepted: {never[0].reason}"
        else:
            hold, taken[day] = now[day], _of_the_same(now[day], holds)
            left += [hold.refused.day] if isinstance(hold.refused, TiedTo) else []
            left += [other for other, tied in now.items() if tied.refused == TiedTo(day)]
    if refused:
        lines = [f"{table} {day} {why}" for day, why in sorted(refused.items())]
        more = f"; and {len(lines) - _SHOWN:,} more days" if len(lines) > _SHOWN else ""
        raise PlatformError(
            f"Nothing was accepted: {'; '.join(lines[:_SHOWN])}{more}.",
            f"Only findings of {' and '.join(sorted(ACCEPTABLE))} can be accepted, on days that they hold now; "
            f"`platform-assets status` shows these, docs/on-call.md says what to do about others.",
        )
    return Acceptance(table, dict(sorted(taken.items())), {day: made_from[day] for day in taken})


def _of_the_same(hold: Hold, holds: Iterable[Hold]) -> tuple[Hold, ...]:
    """Return all refusals of the same content of a day: a gate may find something after another was accepted."""
    return tuple(other for other in holds if (other.day, other.refused) == (hold.day, hold.refused))


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
