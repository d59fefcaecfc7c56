"""Rules of a contract: what is said of a day on which more rows break one than it tolerates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

from platform_assets.contracts import Contract, Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.quality.findings import Checked, Finding, checked
from platform_assets.words import counted


def judged_in_check(contract: Contract) -> tuple[Rule, ...]:
    """Return the rules by which a day can be refused or warned of."""
    return tuple(rule for rule in contract.rules if rule.allowed is not None)


def broken_beyond(rule: Rule, count: RuleCount) -> bool:
    """Return whether more rows of a day break a rule than it tolerates."""
    return rule.allowed is not None and not rule.allowed.allows(*count)


def rule_finding(contract: Contract, rule: Rule, day: date, count: RuleCount, examples: Sequence[str]) -> Finding:
    """Say how many rows of a day break a rule, and how many may.

    Args:
        examples: of such rows, sensitive values masked.
    """
    share = f"{100 * count.broken / count.judged:.2f} %" if count.judged else "none"
    what = (
        f"{count.broken:,} of {counted(count.judged, 'row')} ({share}) break the rule {rule.name!r} ({rule.kind.text})"
    )
    limit = f"at most {rule.allowed}"
    first = f"; first {examples[0]}" if examples else ""
    set_aside = " and go to quarantine" if rule.quarantines else ""
    return Finding(
        check="rules",
        day=day,
        severity="warn" if rule.severity == "warn" else "block",
        message=f"{contract.name} on {day}: {what}{set_aside}; {limit} may{first}",
        expected=f"{limit} that breaks {rule.name!r}",
        actual=what,
        examples=tuple(examples),
        numbers={f"{rule.name}_broken": count.broken, f"{rule.name}_judged": count.judged},
    )


def rules_checked(contract: Contract, counts: Mapping[str, RuleCount], findings: Collection[Finding]) -> Checked:
    """Return what the check `rules` says of a day."""
    rules = judged_in_check(contract)
    broken = {rule.name: counts.get(rule.name, RuleCount()).broken for rule in rules}
    tolerated = ", ".join(f"{name} by {counted(rows, 'row')}" for name, rows in broken.items() if rows)
    passed = f"{counted(len(rules), 'rule')} kept" + (f", or broken as tolerated: {tolerated}" if tolerated else "")
    return checked("rules", findings, passed, {f"{name}_broken": rows for name, rows in broken.items()})
