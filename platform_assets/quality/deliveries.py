"""Deliveries: which could be read and are accounted for, what was set aside, which days are missing.

Many rows set aside need a warning: a day that has never been loaded has no usual volume, and no other check would
notice that hardly any of it is there. Keys without any good row are counted, not rows: a record that was delivered
again correctly no longer counts, though its first rows stay in quarantine.

Freshness covers the whole calendar: a table whose newest day is current can still have a hole in last month.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import PurePosixPath

from platform_assets.contracts import Contract
from platform_assets.contracts.landing import without_compression
from platform_assets.contracts.rules import quarantine_table
from platform_assets.planning.windows import Calendar, between, day_range, ranges
from platform_assets.quality.findings import Checked, Finding, Numbers, checked
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival
from platform_assets.words import counted, for_shell


def repaired_by(
    refused: ArrivalRecord, delivered: Collection[ArrivalRecord], released: Mapping[str, int]
) -> tuple[ArrivalRecord, ...]:
    """Return the files that replaced a file, by names and counts; empty if they do not replace all of it.

    These are later files of the same arrival date whose names continue its own (`till-3.csv`, `till-3-again.csv` or
    `till-3.csv.gz`), and that have as many rows as were missing. A file of another date proves nothing: with many
    sources the next day's file has the same name. Nor does one of the same name with another ending.

    Args:
        refused: a file with some or all rows in no table.
        delivered: valid files of its table.
        released: the release of every publication, which decides what is later; names follow the clocks of machines.
    """
    later = tuple(
        other
        for other in delivered
        if released[other.publication] > released[refused.publication]
        and PurePosixPath(other.path).parent == PurePosixPath(refused.path).parent
        and _goes_on(other.path, refused.path)
    )
    missing = refused.landed - refused.taken - refused.late - refused.erased
    return later if sum(other.taken + other.late for other in later) >= max(missing, 1) else ()


def remedy(refused: Collection[Arrival], delivered: int) -> str:
    """Return the remedy for refused rows of partly ingested files, with one file as an example.

    `delivered` counts the rows that came with them and with similar files.
    """
    path = max(refused, key=lambda file: file.refused).path
    stem = _stem(path)
    again = f"{stem}-again{PurePosixPath(path).name.removeprefix(stem)}"
    others = f" (and {counted(len(refused) - 1, 'other file')} likewise)" if len(refused) > 1 else ""
    # A source that cannot write a file in order at all is rarer than a contract that says something else.
    contract = (
        "correct the contract, if the files are right, and `platform-assets admin reload {table} --reason …`; or "
    )
    mostly = 2 * sum(file.refused for file in refused) > delivered
    return (contract.format(table=next(iter(refused)).table) if mostly else "") + (
        f"deliver them again in order, as {again} beside {path}{others}, or take that file out with "
        f"`platform-assets undo {for_shell(path)} --reason …`"
    )


def _goes_on(path: str, before: str) -> bool:
    """Return whether a name begins with another whole one: part-1-again with part-1, but not part-10."""
    more = _stem(path).removeprefix(_stem(before))
    is_packed = without_compression(path) == before != path
    return (more != _stem(path) and bool(more) and not more[0].isalnum()) or is_packed


def _stem(path: str) -> str:
    return PurePosixPath(without_compression(PurePosixPath(path).name)).stem


_EXAMPLES = 5


def delivery_checks(
    contract: Contract, arrivals: Iterable[Arrival], days: Collection[date]
) -> dict[date, tuple[Checked, ...]]:
    """Return the contract check and conservation of each arrival date with deliveries.

    A refused row never enters raw, and a file whose rows do not add up is refused whole, so nothing here blocks. A
    delivery after the last day belongs to none.
    """
    by_date: defaultdict[date, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        by_date[arrival.arrival_date].append(arrival)
    return {
        day: (_contract(contract, day, by_date[day]), _conservation(by_date[day]))
        for day in sorted(by_date.keys() & set(days))
    }


def _contract(contract: Contract, day: date, arrivals: Collection[Arrival]) -> Checked:
    files = [arrival for arrival in arrivals if arrival.reason is not None]
    taken = sum(arrival.taken for arrival in arrivals)
    in_part = [arrival for arrival in arrivals if arrival.refused and not arrival.reason]
    rows = sum(arrival.refused for arrival in in_part)
    late = sum(arrival.late for arrival in arrivals)
    numbers: Numbers = {
        "files": len(arrivals),
        "files refused": len(files),
        "rows": taken,
        "rows refused": rows,
        "rows waiting": late,
    }
    if not files and not rows and not late:
        sentence = f"{counted(taken, 'row')} in {counted(len(arrivals), 'file')}, every field as declared"
        return checked("contract", [], sentence, numbers)
    what = [f"{len(files):,} of {counted(len(arrivals), 'file')}"] if files else []
    landed = sum(arrival.landed for arrival in arrivals if not arrival.reason)
    what += [f"{rows:,} of {counted(landed, 'row')}"] if rows else []
    parts = [f"{' and '.join(what)} refused"] if what else []
    parts += [f"{counted(late, 'row', 'wait')} in the late queue"] if late else []
    summary = ", ".join(parts)
    examples = [f"{arrival.path} {arrival.reason}" for arrival in files]
    examples += [f"{arrival.path}: {arrival.refused:,} of {counted(arrival.landed, 'row')}" for arrival in in_part]
    examples += [f"{arrival.path}: {counted(arrival.late, 'row', 'wait')}" for arrival in arrivals if arrival.late]
    todo = f"; of refused rows: {remedy(in_part, landed)}" if in_part else ""
    finding = Finding(
        check="contract",
        day=day,
        severity="warn",
        message=f"{contract.name}, delivered on {day}: {summary}; first {examples[0]}{todo}",
        expected=f"every file and row as declared, at most {contract.restatement_window_days} days after its day and "
        f"{contract.ahead_days} before it" + (", and none of a day that is protected" if contract.protected else ""),
        actual=summary,
        examples=tuple(examples[:_EXAMPLES]),
    )
    return checked("contract", [finding], "", numbers)


def _conservation(arrivals: Collection[Arrival]) -> Checked:
    taken = [arrival for arrival in arrivals if arrival.reason is None]
    numbers: Numbers = {
        "landed": sum(arrival.landed for arrival in taken),
        "raw": sum(arrival.taken for arrival in taken),
        "refused": sum(arrival.refused for arrival in taken),
        "late": sum(arrival.late for arrival in taken),
        "erased": sum(arrival.erased for arrival in taken),
    }
    sentence = (
        f"{numbers['landed']:,} rows landed = {numbers['raw']:,} in raw + {numbers['refused']:,} refused + "
        f"{numbers['late']:,} in the late queue" + (f" + {numbers['erased']:,} erased" if numbers["erased"] else "")
    )
    return checked("conservation", [], sentence, numbers)


RANGES_SHOWN = 5


def overdue_days(
    contract: Contract, published: Collection[date], calendar: Calendar, today: date, delay_days: int = 0
) -> tuple[date, ...]:
    """Return days that should have been published by today in UTC and are not, oldest first.

    A day is due a declared number of days after itself; an empty one is published, too.
    """
    newest_due = today - timedelta(days=delay_days + contract.freshness.within_days + 1)
    due = (day for span in calendar.clip(calendar.first, newest_due) for day in day_range(*span))
    present = set(published)
    return tuple(day for day in due if day not in present and contract.expects(day))


def freshness_finding(contract: Contract, overdue: Sequence[date], delay_days: int = 0) -> Finding | None:
    """Return one finding for all overdue days: their number, and the first of them as ranges."""
    if not overdue:
        return None
    within = delay_days + contract.freshness.within_days
    spans = ranges(overdue)
    shown = spans[:RANGES_SHOWN]
    examples = tuple(between(start, end) for start, end in shown)
    hidden = len(overdue) - sum((end - start).days + 1 for start, end in shown)
    rest = f" and {counted(hidden, 'day')} more" if hidden else ""
    when = f"within {counted(within, 'day')} after it ended" if within else "when it ends"
    expected = f"every open day published {when}"
    lacking = counted(len(overdue), "day")
    return Finding(
        check="freshness",
        day=spans[0][0],
        severity=contract.checks.freshness,
        message=f"{contract.name}: {lacking} overdue: {', '.join(examples)}{rest}; expected {expected}",
        expected=expected,
        actual=f"{lacking} overdue",
        examples=examples,
        numbers={"overdue_days": len(overdue)},
    )


FAULT = re.compile(r"([^:]+): (?:\S+ is )?([^:;]+)")
"""A fault as `spark.raw.parsing` writes it: a column or `broken line`, the problem, and mostly a value after it."""


def much_refused(contract: Contract, arrival: Arrival) -> bool:
    """Return whether more of a file's rows were refused than the contract allows without a warning."""
    return _is_much(contract, arrival.refused, arrival.landed)


def quarantine_finding(contract: Contract, day: date, figures: Mapping[str, int]) -> Finding | None:
    """Return a finding for a silver day if too many of its keys have no good row.

    It is a warning; beyond `most_aside_percent` it holds the day. A table that sets nothing aside has no figures of
    keys.
    """
    keys, bad = figures.get("keys", 0), figures.get("keys_quarantined", 0)
    is_too_many = 100 * bad > contract.checks.most_aside_percent * keys
    if not (is_too_many or _is_much(contract, bad, keys)):
        return None
    most = contract.checks.most_aside_percent if is_too_many else contract.checks.aside_percent
    # Of a day that is held, the rows are not published.
    shown = f"platform-assets read {quarantine_table(contract.name)} --day {day}` shows them"
    rules = ", ".join(rule.name for rule in contract.quarantine_rules)
    todo = (
        f"correct the deliveries or the rules ({rules}), or raise `most_aside_percent`" if is_too_many else f"`{shown}"
    )
    return Finding(
        check="contract",
        day=day,
        severity="block" if is_too_many else "warn",
        message=f"{contract.name} on {day}: {quarantine_share(figures)}, more than {most} %; {todo}",
        expected=f"at most {most} % of the keys without a row that keeps the rules",
        actual=quarantine_share(figures),
        numbers={"keys": keys, "keys_quarantined": bad},
    )


def error_class(reason: str) -> str:
    """Return the reason of a refusal without values: of several faults, the first."""
    what = FAULT.match(reason)
    return f"{what[1]}: {what[2]}" if what else reason.partition(":")[0]


def quarantine_share(figures: Mapping[str, int]) -> str:
    """Return how much of a day is in quarantine, in words."""
    return f"of {figures['keys_quarantined']:,} of {figures['keys']:,} keys every row is in quarantine"


def _is_much(contract: Contract, aside: int, whole: int) -> bool:
    return 100 * aside > contract.checks.aside_percent * whole
