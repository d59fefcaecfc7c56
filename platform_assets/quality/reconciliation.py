"""Reconciliation: a table and the one it was made from have the same keys and the same figures."""

from __future__ import annotations

import re
from datetime import date

from platform_assets.contracts import Amount, Contract, Reconciliation
from platform_assets.quality.findings import Finding
from platform_assets.quality.masking import Masking
from platform_assets.quality.sides import difference
from platform_assets.records.differences import Difference, Differences, Figure


def reconciliation_finding(
    contract: Contract, declared: Reconciliation, day: date, differences: Differences, masking: Masking
) -> Finding | None:
    """Return what differs on a day, key by key; sensitive keys, and figures made of sensitive columns, are masked."""
    if differences.differing <= declared.allowed.keys:
        return None
    what = f"{_amounts(declared)} by {', '.join(declared.by)}" if declared.by else _amounts(declared)
    kinds = (
        (differences.missing, f"only in {declared.upstream}"),
        (differences.extra, f"only in {contract.name}"),
        (differences.unequal, "with other figures"),
    )
    differing = ", ".join(f"{count:,} {kind}" for count, kind in kinds if count)
    differing = f"of {differences.keys:,} keys {differing}" if declared.by else differing
    if totals := _totals(contract, declared, differences, masking):
        differing = f"{differing}; {totals}" if declared.by else totals
    examples = tuple(_described(contract, declared, difference, masking) for difference in differences.examples)
    first = f"; first {examples[0]}" if examples else ""
    return Finding(
        check="reconciliation",
        day=day,
        severity=declared.severity,
        message=f"{contract.name} on {day}: {what} not as in {declared.upstream}: {differing}{first}",
        expected=f"{what} as in {declared.upstream}",
        actual=differing,
        examples=examples,
        numbers={
            "keys": differences.keys,
            "missing": differences.missing,
            "extra": differences.extra,
            "unequal": differences.unequal,
        },
    )


def reconciled(declared: Reconciliation) -> str:
    """Return what to say of a day on which nothing differs."""
    keys = f" for each {', '.join(declared.by)}" if declared.by else ""
    allowed = f", within {declared.allowed}" if declared.tolerance else ""
    return f"{_amounts(declared)} as in {declared.upstream}{keys}{allowed}"


def _amounts(declared: Reconciliation) -> str:
    return ", ".join(amount.name for amount in declared.amounts)


def _totals(contract: Contract, declared: Reconciliation, differences: Differences, masking: Masking) -> str:
    """Return both figures of the whole day and their difference, as `in all net 20.00, not 25.00 (-5.00)`."""
    pairs = zip(declared.amounts, differences.ours, differences.theirs, strict=False)
    shown = [_pair(contract, amount, here, there, masking) for amount, here, there in pairs if here != there]
    return f"in all {', '.join(shown)}" if shown else ""


def _pair(contract: Contract, amount: Amount, here: Figure, there: Figure, masking: Masking) -> str:
    # A figure can be the sensitive value itself, as a sum over the one row of a key is.
    hide = _is_sensitive(contract, amount)
    by = None if hide else difference(here, there)
    shown = f"{amount.name} {_shown(here, hide, masking)}, not {_shown(there, hide, masking)}"
    return f"{shown} ({by})" if by else shown


def _is_sensitive(contract: Contract, amount: Amount) -> bool:
    sensitive = {column.name for column in contract.columns if column.sensitive}
    return bool(sensitive & set(re.findall(r"\w+", amount.ours)))


def _described(contract: Contract, declared: Reconciliation, difference: Difference, masking: Masking) -> str:
    """As `store_id 5: net 10.00, not 12.50 (-2.50)`."""
    key = masking.shown_key(contract, declared.by, difference.key)
    ours, theirs = difference.ours, difference.theirs
    parts = []
    for n, amount in enumerate(declared.amounts):
        if ours is None or theirs is None:
            figures = ours or theirs or ()
            parts.append(f"{amount.name} {_shown(figures[n], _is_sensitive(contract, amount), masking)}")
        elif ours[n] != theirs[n]:
            parts.append(_pair(contract, amount, ours[n], theirs[n], masking))
    only = declared.upstream if ours is None else contract.name if theirs is None else None
    return f"{key or 'the day'}: {f'only in {only}, ' if only else ''}{', '.join(parts)}"


def _shown(figure: Figure, hide: bool, masking: Masking) -> str:
    return masking.masked(figure) if hide or figure is None else f"{figure:,}"
