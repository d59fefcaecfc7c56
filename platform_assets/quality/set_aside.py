"""Rows set aside: of a day in quarantine, of a file refused at parsing. Many of them are worth a warning.

A day that has never been loaded has no usual volume, and nothing else would say that hardly anything of it is there.
What is counted of a day are its keys without any good row on it, not rows: records that are delivered again in order
are counted no more, though the rows that they had first stay in quarantine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.quality.findings import Finding
from platform_assets.records.manifest import Arrival

FAULT = re.compile(r"([^:]+): (?:\S+ is )?([^:;]+)")
"""A fault as `spark.raw.parsing` writes it: a column or `broken line`, what is wrong, and mostly a value after it."""


def much_refused(contract: Contract, arrival: Arrival) -> bool:
    """Return whether more of a file's rows than the raw table's contract leaves unsaid were refused at parsing."""
    return _is_much(contract, arrival.refused, arrival.landed)


def quarantine_finding(contract: Contract, day: date, figures: Mapping[str, int]) -> Finding | None:
    """Return a finding of a silver day if of more of its keys than its contract leaves unsaid no row is good.

    It is a warning, and beyond `most_aside_percent` it keeps the day unpublished.

    Args:
        figures: of that day alone: `keys` and `keys_quarantined`; neither, of a table that sets nothing aside.
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
        message=f"{contract.name} on {day}: {quarantined(figures)}, more than {most} %; {todo}",
        expected=f"at most {most} % of the keys without a row that keeps the rules",
        actual=quarantined(figures),
        numbers={"keys": keys, "keys_quarantined": bad},
    )


def error_class(reason: str) -> str:
    """Return what a row was refused for without its values: of several faults, the first."""
    what = FAULT.match(reason)
    return f"{what[1]}: {what[2]}" if what else reason.partition(":")[0]


def quarantined(figures: Mapping[str, int]) -> str:
    """Return how much of a day is in quarantine, in words."""
    return f"of {figures['keys_quarantined']:,} of {figures['keys']:,} keys every row is in quarantine"


def _is_much(contract: Contract, aside: int, whole: int) -> bool:
    return 100 * aside > contract.checks.aside_percent * whole
