"""Rivals: versions of a key that differ, and of which nothing that the source declares says which one counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.contracts.dead_letters import SUPERSEDED
from platform_assets.quality.findings import Finding
from platform_assets.words import counted


def rivals_finding(contract: Contract, source: Contract, day: date, rivals: int, examples: Sequence[str]) -> Finding:
    """A finding of a silver day of some of whose keys an undeclared order decided which version counts.

    Args:
        contract: of the silver table.
        source: contract of the raw table.
        day: event date.
        rivals: keys of which that is so.
        examples: a few of them with the files that their versions came in, sensitive values masked.
    """
    declared = ", ".join((*source.versioned_by, "arrival date"))
    what = f"{counted(rivals, 'key')} with rivals: versions of the same {declared} and another content"
    shown = f"`platform-assets read {SUPERSEDED}{contract.table} --day {day}` shows the versions that lost"
    first = f", such as {examples[0]}" if examples else ""
    return Finding(
        check="contract",
        day=day,
        severity=contract.checks.rivals,
        message=f"{contract.name} on {day}: {what}{first}; the file by name and the row further down decided. {shown}; "
        f"declare a finer order (`updated_at`, or `order` of the source), or more of a key",
        expected=f"one content of a key for each {declared}",
        actual=f"{what}; {shown}",
        examples=tuple(examples),
        numbers={"rivals": rivals},
    )
