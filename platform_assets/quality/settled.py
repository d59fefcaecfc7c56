"""Settled figures: how far the sums of a day are from what they were when it settled, and whether that is too far.

What they were then is not kept. What is kept, with every day that moved since, is by how much: its *drift*, with the
figures in its manifest. So nothing is kept of days that did not move, rows that an erasure takes out move no drift, and
a rollback brings the drift of then with the content of then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Context, Decimal, InvalidOperation, localcontext

from platform_assets.contracts import Contract, Settled
from platform_assets.contracts.checks import Tolerance
from platform_assets.quality.findings import Finding, Masking
from platform_assets.quality.sides import Pair, difference
from platform_assets.records.differences import EXAMPLES, Moves, Sum
from platform_assets.words import counted

MOST = 1_000
"""Sums of a day whose drift is kept. If more of them move, the day is held, however little each moves."""

_PREFIX = "drift "
_EXACT = Context(prec=100, traps=[InvalidOperation])


Drift = Mapping[Sum, Decimal]
"""By how much sums of a day are more than when it settled; those that did not move are left out."""


def is_drift(name: str) -> bool:
    """Return whether a figure of a day is part of its drift."""
    return name.startswith(_PREFIX)


def drift_of(figures: Mapping[str, int]) -> dict[Sum, Decimal]:
    """Return the drift that the figures of a published day hold."""
    drift = {}
    for name, digits in figures.items():
        if is_drift(name):
            column, by, key, places = json.loads(name.removeprefix(_PREFIX))
            drift[Sum(column, tuple(by), tuple(key))] = Decimal(digits).scaleb(-places, _EXACT)
    return drift


def as_figures(drift: Drift) -> dict[str, int]:
    """Return drift as figures of a day: whole numbers, their decimal places in their names."""
    figures = {}
    for each, moved in drift.items():
        places = max(0, -int(moved.as_tuple().exponent))
        name = json.dumps([each.column, each.by, each.key, places], separators=(",", ":"))
        figures[_PREFIX + name] = int(moved.scaleb(places, _EXACT))
    return figures


def is_settled(declared: Settled, day: date, newest: date | None) -> bool:
    """Return whether a day is settled once deliveries up to an arrival date were taken."""
    return newest is not None and (newest - day).days > declared.after_days


def settled_finding(
    contract: Contract,
    declared: Settled,
    day: date,
    moves: Moves,
    before: Drift,
    masking: Masking,
    *,
    is_accepted: bool = False,
) -> tuple[Finding | None, dict[Sum, Decimal]]:
    """Return what blocks a settled day, and its drift if it is published.

    Args:
        moves: sums that the computation changes.
        before: drift of what readers see.
        is_accepted: whether a person accepts what blocks: just these sums count as they are from then on.
    """
    mine = {each: moved for each, moved in before.items() if each.by == declared.by and each.column in declared.sums}
    drift, beyond = dict(mine), dict[Sum, Pair]()
    with localcontext(_EXACT):
        for each, (shown, now) in moves.pairs.items():
            then = (shown or Decimal(0)) - mine.get(each, Decimal(0))
            drift[each] = (now or Decimal(0)) - then
            if not _within(declared.allowed, then, now or Decimal(0)):
                beyond[each] = (None if shown is None and each not in mine else then, now)
    drift = {each: moved for each, moved in drift.items() if moved}
    many = max(moves.keys, len(drift))
    if not beyond and many <= MOST:
        return None, drift
    examples = _examples(contract, beyond, masking)
    found = f"{many:,} sums, each within its limit"
    expected = f"at most {MOST:,} of them may move"
    if beyond:
        found = examples[0] + (f" and {counted(len(beyond) - 1, 'more sum')}" if len(beyond) > 1 else "")
        expected = f"{f'at most {declared.allowed}' if declared.tolerance else 'none'} allowed"
    finding = Finding(
        check="settled",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: settled figures moved: {found}; {expected}",
        expected=f"{declared} as when the day settled, {expected}",
        actual=f"{counted(len(beyond) or many, 'sum')} moved",
        examples=examples[:EXAMPLES],
        numbers={"settled_sums_moved": len(beyond) or many},
    )
    if is_accepted:
        drift = {each: moved for each, moved in drift.items() if beyond and each not in beyond}
    return finding, drift


def rolled_back_finding(contract: Contract, declared: Settled, day: date) -> Finding:
    """Block a settled day that was rolled back to before it was first published: its sums are not there to compare."""
    return Finding(
        check="settled",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: its settled figures were rolled back, so nothing says how far they move",
        expected=f"{declared} as when the day settled",
        actual="the day was rolled back to before its first publication",
    )


def _within(allowed: Tolerance, then: Decimal, now: Decimal) -> bool:
    """Return whether a figure moved no further than the amount, or than the share of the greater figure."""
    moved, greater = abs(now - then), max(abs(then), abs(now))
    return moved <= allowed.absolute or moved * 100 <= allowed.percent * greater


def _examples(contract: Contract, beyond: Mapping[Sum, Pair], masking: Masking) -> tuple[str, ...]:
    """Describe sums that moved too far, the farthest first, as `store_id 5: net 100.00 became 120.00 (+20.00)`."""
    by_distance: dict[str, Decimal] = {}
    for each, (then, now) in sorted(beyond.items(), key=str):
        was, became = ("nothing" if figure is None else f"{figure:,}" for figure in (then, now))
        key = f"{masking.shown_key(contract, each.by, each.key)}: " if each.by else ""
        said = f"{key}{each.column} {was} became {became} ({difference(now or 0, then or 0)})"
        by_distance[said] = abs(_EXACT.subtract(now or Decimal(0), then or Decimal(0)))
    return tuple(sorted(by_distance, key=lambda said: -by_distance[said]))
