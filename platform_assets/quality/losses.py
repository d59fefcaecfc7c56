"""Loss: what is left of the rows that readers see of a day, or that a day should have brought, while too few are known.

Without it a correction could halve a young table's day, or empty it, and no check would say a word. It is only warned
of: what is left may be all that there should be, and a day alone does not tell.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.quality.baseline import Interval, Undecided
from platform_assets.quality.findings import FELL_FROM, Finding
from platform_assets.records.history import DayRecord
from platform_assets.words import counted


def rows_before(shown: DayRecord) -> int:
    """Rows to hold a day against: those that readers have, or had before a loss that it is still warned of.

    Or the next computation of a halved day would be held against its half, and end the warning.
    """
    return shown.figures.get(FELL_FROM, shown.rows)


def is_loss(rows: int, before: int) -> bool:
    """Whether none or fewer than half are left; one row more or less says nothing, as where history judges."""
    return 2 * (rows + 1) < before or rows == 0 < before


def not_missed(withdrawn: int, came: int) -> int:
    """Of the rows that people took out of what a day is made from, those that nobody need miss.

    None where others came at the same time: in their place, as far as anybody can tell, and then all should be back.
    """
    return max(withdrawn, 0) if came <= 0 else 0


def loss_finding(
    contract: Contract, day: date, rows: int, before: int, unjudged: Undecided, *, gone: int = 0
) -> Finding | None:
    """A warning of a day that lost more than half of its rows.

    Args:
        before: as `rows_before` gives them.
        gone: rows of `before` that are gone from what the day is made from; whoever took them out knows of it, or is
            told of it there.
    """
    kept = max(before - gone, 0)
    if not is_loss(rows, kept):
        return None
    fell = f"rows fell from {before:,} to {rows:,} with too little history to judge"
    expected = "at least half of the rows that readers had"
    if gone:
        expected = f"at least half of {kept:,} rows; {gone:,} are gone from what it is made from"
    return Finding(
        check="volume",
        day=day,
        severity="warn",
        message=f"{contract.name} on {day}: {fell} ({unjudged.why}); expected: {expected}",
        expected=expected,
        actual=fell,
        numbers={"rows": rows, FELL_FROM: before},
    )


def scant_finding(
    contract: Contract, day: date, rows: int, beside: Interval | Undecided, unjudged: Undecided
) -> Finding | None:
    """A warning of a day that came with many others and has fewer than half of the rows that are usual among them.

    What comes at once is no measure of itself, or a fault of all of it would be one. But half a delivery among whole
    ones can be told.

    Args:
        beside: what is usual among the days that are computed with it.
    """
    if isinstance(beside, Undecided) or beside.side(rows) >= 0 or not is_loss(rows, beside.middle):
        return None
    fewer = f"{counted(rows, 'row')}, fewer than half of what is usual among the days that came with it"
    return Finding(
        check="volume",
        day=day,
        severity="warn",
        message=f"{contract.name} on {day}: {fewer}; {beside}; with too little history to judge ({unjudged.why})",
        expected=f"{beside}, of days that came with it",
        actual=counted(rows, "row"),
        numbers={"rows": rows},
    )


def with_rows_before(finding: Finding, rows: int, shown: DayRecord | None) -> Finding:
    """What volume found of a day, with how many rows it had before where it lost most of them.

    The next computation may be one of all days, which has no others to find it by again.
    """
    if shown is None or not is_loss(rows, before := rows_before(shown)):
        return finding
    return replace(finding, numbers={**finding.numbers, FELL_FROM: before})
