"""Deliveries: whether what a source delivered on a date could be read, and is all accounted for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.quality.findings import Checked, Finding, Numbers, checked
from platform_assets.quality.repairs import remedy
from platform_assets.records.manifest import Arrival
from platform_assets.words import counted

_EXAMPLES = 5


def delivery_checks(
    contract: Contract, arrivals: Iterable[Arrival], days: Collection[date]
) -> dict[date, tuple[Checked, ...]]:
    """Return what the checks say of the arrivals of each arrival date.

    A refused row never enters raw, and a file whose rows do not add up is refused whole, so nothing here blocks.

    Args:
        days: the days that exist; a delivery after the last of them belongs to none.

    Returns:
        The contract check and conservation for every such date on which something was delivered.
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
    told = [f"{' and '.join(what)} refused"] if what else []
    told += [f"{counted(late, 'row', 'wait')} in the late queue"] if late else []
    summary = ", ".join(told)
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
