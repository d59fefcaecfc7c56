"""Show what a person should look at: held days, days with warnings, and files that could not be ingested."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.planning.windows import as_named
from platform_assets.quality.findings import ACCEPTABLE
from platform_assets.records.history import ArrivalRecord, DayRecord
from platform_assets.records.manifest import Arrival, DayContent, Warned
from platform_assets.report import Note, Part, picked
from platform_assets.sources.landing import Problem
from platform_assets.words import alike, counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.held_days import HeldDay, WarnedDay


_SHOWN = 5
ALL = "platform-assets status warnings"


def held_parts(held: Iterable[HeldDay], *, of: str | None = None, in_short: bool = False) -> Iterator[Part]:
    """Show a red line for each held day, and below it possible causes.

    Args:
        of: table of the request; a day of another table may cause the hold.
        in_short: whether a few lines stand for all, so that they do not hide other news.
    """
    from platform_assets.operations.lineage.held_days import together, withdrawals

    shown = tuple(held)
    groups = together(shown)
    first_groups = groups[:_SHOWN] if in_short else groups
    for days in first_groups:
        first = days[0].hold
        through = "held through" if of not in (None, first.table) else "held"
        yield Note("red", through, _line(days))
        # New arrivals on days that are only tied to another are not what holds them; they are named at that day.
        commands = () if len(days) > 1 and days[0].is_tied else withdrawals(days)
        if commands:
            yield "  New since then; what should not have come is taken out with (a command may name several)"
            yield from (f"  {command}" for command in commands)
    if more := sum(map(len, groups[len(first_groups) :])):
        yield Note("red", "held", f"{counted(more, 'more day')}; `platform-assets status stale` names them")
    yield from _what_ends_it_parts(shown)


def _what_ends_it_parts(held: Sequence[HeldDay]) -> Iterator[Part]:
    """Say when held days are tried again, how else they are published, and what ends a rollback."""
    lasting = [day for day in held if any(hold.lasts for hold in day.holds)]
    put_back = [day for day in held if day.is_put_back and day not in lasting]
    refused = [day for day in held if not day.is_put_back]
    if refused:
        yield "A held day is tried again once its input or code changes; docs/on-call.md says what to do."
    if any(day.hold.gate == "contract" for day in refused):
        yield "What breaks a contract the table's own function can have made, too: look at it beside what came."
    odd = [day for day in refused if day.hold.gate in ACCEPTABLE and not day.undelivered]
    if free := [day for day in odd if not day.is_stopped]:
        yield f"Right, only unusual? `platform-assets accept {_days_option(free)} --reason … --by …` publishes it."
    for table in sorted({day.hold.table for day in odd if day.is_stopped}):
        yield f"Nothing of {table} can be accepted with its circuit open: `platform-assets status circuits {table}`."
    for table in sorted({day.undelivered for day in refused if day.undelivered}):
        yield (
            f"Nothing was delivered yet for {table} on such a day: the file that brings it ends that. "
            "`delivers=Weekdays(…)` or `EveryDays(…)` in its contract says on which days rows are expected, "
            "`closed_days` on which none are."
        )
    if put_back:
        yield (
            "A day that was rolled back stays so until its input or code changes; `platform-assets refresh "
            f"{_days_option(put_back)} --force` would end the rollback at once."
        )
    if lasting:
        yield (
            "A day that was rolled back until it is lifted waits for a person, also with new data: "
            f"`platform-assets undo rollback:{_days_option(lasting)} --reason … --by …` has it computed again."
        )


def _days_option(held: Sequence[HeldDay]) -> str:
    return f"{held[0].hold.table} --days {held[0].hold.day}" if len(held) == 1 else "TABLE --days DAY"


def _line(days: Sequence[HeldDay]) -> str:
    first = days[0]
    if len(days) == 1:
        return f"{first.hold.table} {first.hold.day} {first.sentence}"
    spans = as_named([day.hold.day for day in days])
    more = f" and {len(spans) - _SHOWN:,} more ranges" if len(spans) > _SHOWN else ""
    named = f"{first.hold.table}, {counted(len(days), 'day')}: {','.join(spans[:_SHOWN])}{more}"
    return f"{named}; each for the like of {first.hold.day}, {first.sentence}"


def held_json(day: HeldDay) -> dict[str, Any]:
    """Return a held day as JSON."""
    older, shown, by = day.older, day.shown, day.shown_by
    return picked(
        day.hold,
        "table day gate reason",
        since=day.since,
        held_before=older and picked(older.hold, "gate reason", since=older.since),
        readers_see=shown and by and {"rows": shown.delivered, "release": by.release, "published": by.created_at},
        new_arrivals=[arrival.path for arrival in day.arrivals],
        changed=day.changed,
    )


class DayWarning(NamedTuple):
    """A finding of a gate about a published day."""

    table: str
    day: date
    warned: Warned

    def __str__(self) -> str:
        return f"{self.table} {self.day} {self.warned}"

    @classmethod
    def of(cls, table: str, days: Mapping[date, DayContent] | Mapping[date, DayRecord]) -> Iterator[Self]:
        """Yield the warnings of some days of a table, the newest day first."""
        for day in sorted(days, reverse=True):
            yield from (cls(table, day, warned) for warned in days[day].warnings)

    def json(self) -> dict[str, Any]:
        """Return a warning as JSON."""
        return {"table": self.table, "day": self.day, **self.warned.model_dump()}


def warnings_parts(warnings: Sequence[DayWarning], stage: str | None) -> Iterator[Part]:
    """Show how many days were published or staged with warnings, and the first of these."""
    if not warnings:
        return
    days = len({(warning.table, warning.day) for warning in warnings})
    done = f"{'was' if days == 1 else 'were'} {'staged' if stage else 'published'} with warnings"
    command = f"platform-assets status stages {stage}" if stage else ALL
    yield Note("yellow", "warned", f"{counted(days, 'day')} {done}; `{command}` shows all:")
    yield from (f"  {warning}" for warning in warnings[:_SHOWN])
    if (more := len(warnings) - _SHOWN) > 0:
        yield f"  and {counted(more, 'more warning')}"


def warned_tables_parts(warned: Iterable[DayRecord]) -> Iterator[Part]:
    """Show a line for each table with days published with warnings, and the command with details."""
    by_table: dict[str, list[DayRecord]] = {}
    for record in warned:
        by_table.setdefault(record.table, []).append(record)
    for table, records in by_table.items():
        newest = records[0]
        gates = Counter(gate for record in records for gate in {each.gate for each in record.warnings})
        counts = ", ".join(f"{count:,} by {gate}" for gate, count in gates.most_common())
        last = f"published last: {newest.day} {newest.warnings[0]}"
        yield Note("yellow", "warned", f"{table}: {counted(len(records), 'day')} with warnings ({counts}); {last}")
    if by_table:
        yield f"  `{ALL}` shows all; `why TABLE DAY` also what came with it"


def warned_days_parts(warned: Sequence[DayRecord]) -> Iterator[Part]:
    """Show a line for each warning, in the given order."""
    for record in warned:
        yield from (Note("yellow", "warned", str(each)) for each in DayWarning.of(record.table, {record.day: record}))
    if not warned:
        yield Note("green", "No warnings:", "as far as gates could judge the days readers see, they found nothing")
        yield "  except accepted findings: `why TABLE DAY` and `status decisions` show them."
        yield "  Where history is too short, volume looks only for days that lost more than half of their rows."


def warnings_json(warned: Iterable[DayRecord]) -> list[dict[str, Any]]:
    """Return warnings as JSON."""
    return [
        warning.json() | {"publication": record.publication}
        for record in warned
        for warning in DayWarning.of(record.table, {record.day: record})
    ]


def warned_day_parts(day: WarnedDay) -> Iterator[Part]:
    """Show the findings about a day, and below them possible causes."""
    from platform_assets.operations.lineage.held_days import withdrawals

    record = day.record
    since = f" since {day.since.created_at:%Y-%m-%d %H:%M} UTC, release {day.since.release}" if day.since else ""
    for warned in record.warnings:
        yield Note("yellow", "warned", f"{record.table} {record.day}{since}: {warned}")
    if commands := withdrawals([day]):
        yield "  New with that; what should not have come is taken out with"
        yield from (f"  {command}" for command in commands)
    yield "  Readers see the day: a warning keeps nothing back. docs/on-call.md says what to do."


def warned_json(day: WarnedDay | None) -> dict[str, Any] | None:
    """Return the findings as JSON; None if no gate warned."""
    if day is None:
        return None
    return {
        "warnings": day.record.warnings,
        "since": day.since and day.since.created_at,
        "release": day.since and day.since.release,
        "new_arrivals": [arrival.path for arrival in day.arrivals],
    }


_MOST = 8

_MOST_TOLD = 1 << 16
"""Most files remembered as reported; the oldest are forgotten first."""


def left_parts(
    problems: Sequence[Problem], refused: Sequence[Arrival], as_before: int = 0, just_shown: int = 0
) -> Iterator[Part]:
    """Show files of the landing area that are in no table and need a person.

    Args:
        refused: files without an ingested row.
        as_before: number of further files that an earlier command reported.
        just_shown: number of files that the same command already showed.
    """
    lines = refused_lines({file.path: file.reason or "" for file in refused})
    yield from (Note("red", "refused", line) for line in lines)
    yield from (Note("yellow", "not taken", line) for line in not_taken_lines(problems))
    if as_before:
        lists = f"`platform-assets status files` lists {'it' if as_before == 1 else 'each'} with its reason"
        yield Note("yellow", "not taken", f"{counted(as_before, 'file')} reported by an earlier refresh: {lists}")
    count = len(refused) + len(problems) + just_shown
    if count > 1 and not as_before:
        yield (
            f"In all {counted(count, 'file')} of the landing area in no table: `platform-assets status files` lists "
            "each with its reason."
        )


def refused_lines(refused: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for all files that were refused whole for the same kind of reason."""
    return alike(refused.items(), _MOST)


def not_taken_lines(problems: Collection[Problem]) -> Iterator[str]:
    """Yield one line for all files that cannot be ingested for the same kind of reason."""
    return alike(((problem.path, problem.message) for problem in problems), _MOST)


def growing_lines(growing: Sequence[Problem]) -> Iterator[str]:
    """Yield one line for all files that still grow, with the waiting time; one for files that wait alike."""
    resting = [problem for problem in growing if problem.rests_in_s is not None]
    if resting:
        wait_s = max(1, math.ceil(max(problem.rests_in_s or 0.0 for problem in resting)))
        more, them = (f" and {counted(len(resting) - 1, 'other file')}", "them") if len(resting) > 1 else ("", "it")
        yield (
            f"{resting[0].path}{more} changed a moment ago and may still grow: a refresh takes {them} in {wait_s} s if "
            "there is no further change"
        )
    yield from alike(((problem.path, problem.message) for problem in growing if problem.rests_in_s is None), _MOST)


def refused_json(refused: Sequence[Arrival]) -> list[dict[str, str | None]]:
    """Return refused files as JSON."""
    return [picked(file, "table path reason") for file in refused]


def by_spark_parts(tables: Mapping[str, str]) -> Iterator[Part]:
    """Show a line for each table that Spark computes, with the reason and what to do."""
    for table, why in tables.items():
        yield Note("", "Spark computes", f"{table}: {why}; `platform-assets admin verify --admit {table}`")


def left_anew_parts(
    state: Path, problems: Sequence[Problem], refused: Sequence[ArrivalRecord], already: Sequence[ArrivalRecord] = ()
) -> Iterator[Part]:
    """Report files that no earlier refresh reported, count the others, and remember all in the state folder.

    Args:
        refused: files without an ingested row.
        already: files that this refresh has already reported.
    """
    file = located(state / "told.json")
    before: list[str] = []
    with suppress(OSError, LakeError, ValueError):
        before = [*map(str, json.loads(file.read() or b"[]"))]
    left = {_mark(one.path, one.message): one for one in problems}
    stay = {_of_refused(one): one for one in refused}
    known = {*before}
    yield from left_parts(
        [one for mark, one in left.items() if mark not in known],
        [one for mark, one in stay.items() if mark not in known],
        len(known.intersection([*left, *stay])),
        len({*map(_of_refused, already)} - {*stay}),
    )
    now = {*left, *stay, *map(_of_refused, already)}
    kept = [*(mark for mark in before if mark not in now), *sorted(now)][-_MOST_TOLD:]
    if now - known:
        with suppress(OSError, LakeError):
            file.replace(json.dumps(kept).encode())


def _of_refused(file: ArrivalRecord) -> str:
    return _mark(file.path, file.sha256, file.reason or "")


def _mark(*parts: str) -> str:
    """Return a hash that stands for a file: names and reasons may quote a value that must be erased."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
