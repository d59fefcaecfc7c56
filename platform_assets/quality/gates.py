"""Gates of a day: its contract, keys and rules, no row lost, and figures equal to other tables' or settled ones."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, InvalidOperation, localcontext

from platform_assets.contracts import Amount, Contract, Reconciliation, Rule, Settled
from platform_assets.contracts.checks import Tolerance
from platform_assets.contracts.rules import RuleCount
from platform_assets.quality.findings import Checked, Finding, Masking, checked
from platform_assets.quality.sides import Pair, difference
from platform_assets.records.differences import EXAMPLES, Difference, Differences, Figure, Moves, Sum
from platform_assets.words import counted

Keys = Sequence[Sequence[object]]
"""A few keys of rows, in order."""


@dataclass(frozen=True)
class RowBalance:
    """Balance of the raw rows of one day: `raw == kept + superseded + voided + quarantined + withdrawn`.

    Args:
        raw: delivered rows, without tombstones.
        kept: rows in silver.
        superseded: rows with a newer version of their key, on this day or another.
        voided: rows that deleted their key.
        quarantined: rows that broke a rule.
        withdrawn: rows of withdrawn arrivals.
    """

    raw: int
    kept: int
    superseded: int
    voided: int
    quarantined: int
    withdrawn: int = 0

    def __str__(self) -> str:
        return (
            f"{self.raw:,} raw rows = {self.kept:,} kept + {self.superseded:,} superseded + {self.voided:,} voided + "
            f"{self.quarantined:,} quarantined" + (f" + {self.withdrawn:,} withdrawn" if self.withdrawn else "")
        )


def contract_findings(
    contract: Contract,
    day: date,
    nulls: Mapping[str, int],
    repeated: int,
    masking: Masking,
    *,
    without: Mapping[str, Keys] | None = None,
    twice: Keys = (),
) -> tuple[Finding, ...]:
    """Return findings for forbidden nulls and duplicate keys, each with a few keys of such rows."""
    faults: list[tuple[str, str, str, str, int, Keys]] = []
    for column, count in nulls.items():
        lack, few = f"{counted(count, 'row')} without", (without or {}).get(column, ())
        what, expected = f"{lack} {column}, which may not be null", f"a value of {column} in every row"
        faults.append((what, expected, lack, f"rows_without_{column}", count, few))
    if repeated:
        key = ", ".join(contract.row_key)
        keys = f"{counted(repeated, 'key')} ({key}) with more than one row"
        faults.append((keys, f"one row per key ({key})", keys, "repeated_keys", repeated, twice))
    findings: list[Finding] = []
    for what, expected, actual, name, count, few in faults:
        examples = tuple(masking.shown_key(contract, contract.row_key, key) for key in few)
        message = f"{contract.name} on {day}: {what}{_first(examples)}"
        findings.append(Finding("contract", day, "block", message, expected, actual, examples, {name: count}))
    return tuple(findings)


def tie_finding(contract: Contract, day: date, root: date) -> Finding:
    """Return a finding for a day that is right but must not be published without another one."""
    return Finding(
        check="conservation",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: records moved between this day and {root}, which is held; published alone, "
        "they would be counted twice or not at all",
        expected=f"{root} published together with it",
        actual=f"{root} held",
    )


def conservation_findings(
    contract: Contract,
    day: date,
    row_balance: RowBalance,
    masking: Masking,
    *,
    expected: int,
    raw_recorded: int,
    quarantine_staged: int,
    missing: Keys = (),
    extra: Keys = (),
) -> tuple[Finding, ...]:
    """Return findings for rows lost or gained between raw and silver.

    Args:
        row_balance: balance of the rows; `kept` is the staged number.
        expected: rows that must stay, counted from the keys alone.
        missing: a few expected keys that are missing.
        extra: a few unexpected keys.
    """
    keys = [f"lost: {masking.shown_key(contract, contract.key, key)}" for key in missing]
    keys += [f"not expected: {masking.shown_key(contract, contract.key, key)}" for key in extra]
    comparisons = (
        ("raw rows read", row_balance.raw, "recorded at ingest", raw_recorded, ()),
        ("rows staged", row_balance.kept, "keys that stay", expected, tuple(keys)),
        ("rows staged for quarantine", quarantine_staged, "rows that broke a rule", row_balance.quarantined, ()),
    )
    return tuple(
        Finding(
            check="conservation",
            day=day,
            severity="block",
            message=f"{contract.name} on {day}: {found:,} {what}, but {wanted:,} {against}{_first(examples)}",
            expected=f"{wanted:,} {against}",
            actual=f"{found:,} {what}",
            examples=examples,
            numbers={what.replace(" ", "_"): found, against.replace(" ", "_"): wanted},
        )
        for what, found, against, wanted, examples in comparisons
        if found != wanted or examples  # adopted rows may be as many, and others
    )


def _first(examples: Sequence[str]) -> str:
    return f"; first {examples[0]}" if examples else ""


def judged_in_check(contract: Contract) -> tuple[Rule, ...]:
    """Return the rules by which a day can be refused or warned of."""
    return tuple(rule for rule in contract.rules if rule.allowed is not None)


def broken_beyond(rule: Rule, count: RuleCount) -> bool:
    """Return whether more rows of a day break a rule than it tolerates."""
    return rule.allowed is not None and not rule.allowed.allows(*count)


def rule_finding(contract: Contract, rule: Rule, day: date, count: RuleCount, examples: Sequence[str]) -> Finding:
    """Return how many rows of a day break a rule, and how many may; in examples sensitive values are masked."""
    share = f"{100 * count.broken / count.judged:.2f} %" if count.judged else "none"
    what = (
        f"{count.broken:,} of {counted(count.judged, 'row')} ({share}) break the rule {rule.name!r} ({rule.kind.text})"
    )
    limit = f"at most {rule.allowed}"
    set_aside = " and go to quarantine" if rule.quarantines else ""
    return Finding(
        check="rules",
        day=day,
        severity="warn" if rule.severity == "warn" else "block",
        message=f"{contract.name} on {day}: {what}{set_aside}; {limit} may{_first(examples)}",
        expected=f"{limit} may break {rule.name!r}",
        actual=what,
        examples=tuple(examples),
        numbers={f"{rule.name}_broken": count.broken, f"{rule.name}_judged": count.judged},
    )


def rules_checked(contract: Contract, counts: Mapping[str, RuleCount], findings: Collection[Finding]) -> Checked:
    """Return the result of the check `rules` for a day."""
    rules = judged_in_check(contract)
    broken = {rule.name: counts.get(rule.name, RuleCount()).broken for rule in rules}
    tolerated = ", ".join(f"{name} by {counted(rows, 'row')}" for name, rows in broken.items() if rows)
    passed = f"{counted(len(rules), 'rule')} kept" + (f", or broken as tolerated: {tolerated}" if tolerated else "")
    return checked("rules", findings, passed, {f"{name}_broken": rows for name, rows in broken.items()})


@dataclass(frozen=True)
class MovedKeys:
    """Records that moved into or out of the computed keys since the other rows were computed.

    Args:
        source: table of the records.
        examples: a few of them, as people may see them.
        others: a few of the other keys.
        unknown: why the moves are unknown; empty if known.
    """

    source: str
    records: int = 0
    examples: Sequence[str] = ()
    others: Sequence[str] = ()
    unknown: str = ""


def moved_keys_finding(contract: Contract, day: date, moved: MovedKeys) -> Finding:
    """Return a finding for a day whose computed and copied rows would count records twice or not at all; it blocks."""
    if moved.unknown:
        what, then = f"whether records of {moved.source} moved between keys is not known: {moved.unknown}", ""
    else:
        what = f"{counted(moved.records, 'record')} of {moved.source} moved between these keys and others"
        then = f"; name {' and '.join(moved.others)}, too, or" if moved.others else ";"
    first = f", first {moved.examples[0]}" if moved.examples else ""
    todo = f"{then or ';'} compute the day whole"
    return Finding(
        check="contract",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: {what}{first}. Beside what is carried over they would count twice or not "
        f"at all{todo}",
        expected="no record moved between the computed keys and others",
        actual=what,
        examples=tuple(moved.examples),
        numbers={"records_moved": moved.records},
    )


def reconciliation_finding(
    contract: Contract, declared: Reconciliation, day: date, differences: Differences, masking: Masking
) -> Finding | None:
    """Return a finding with the differences of a day, key by key; sensitive keys and figures are masked."""
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
    return Finding(
        check="reconciliation",
        day=day,
        severity=declared.severity,
        message=f"{contract.name} on {day}: {what} not as in {declared.upstream}: {differing}{_first(examples)}",
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


def reconciled_sentence(declared: Reconciliation) -> str:
    """Return the sentence for a day without differences."""
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
    """Describe a difference as `store_id 5: net 10.00, not 12.50 (-2.50)`."""
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
    """Return the drift in the figures of a published day."""
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
    """Return whether a day is settled after deliveries up to an arrival date."""
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
    """Return the blocking finding of a settled day, and its drift if it is published.

    Args:
        moves: sums that the computation changes.
        before: drift of the published content.
        is_accepted: whether a person accepts the finding: these sums are the reference from then on.
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
    """Return a finding for a settled day rolled back to before its first publication: there are no sums to compare."""
    return Finding(
        check="settled",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: its settled figures were rolled back, so nothing says how far they move",
        expected=f"{declared} as when the day settled",
        actual="the day was rolled back to before its first publication",
    )


def _within(allowed: Tolerance, then: Decimal, now: Decimal) -> bool:
    """Return whether a figure moved at most by the amount, or by the share of the greater figure."""
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
