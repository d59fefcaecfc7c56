"""What people decided, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from platform_assets.cli.console import console, escape
from platform_assets.cli.grids import new_grid
from platform_assets.planning.windows import which
from platform_assets.records.chain import Entry
from platform_assets.records.decisions import (
    CircuitDecision,
    Decision,
    LateDecision,
    LiftDecision,
    MessageDecision,
    PinDecision,
    PlanDecision,
    QuarantineDecision,
    from_content,
    signed,
)


def print_decisions(entries: Sequence[Entry], more: int) -> None:
    """A row for each decision; one that cannot be read shows what lies in its place.

    Args:
        entries: in the order in which they are shown.
        more: how many are not.
    """
    names = ("number", "when (UTC)", "decision", "about", "by", "why")
    grid = new_grid("Decisions", names, right=("number",), whole=("number", "when (UTC)", "decision"))
    for entry in entries:
        try:
            decision = from_content(entry.content)
        except ValueError:
            grid.add_row(str(entry.number), "", "[red]unreadable[/]", escape(entry.content), "", "")
            continue
        by = signed(decision.who, decision.as_user, decision.on_host)
        cells = (f"{decision.created_at:%Y-%m-%d %H:%M:%S}", decision.kind, _about(decision), by, decision.reason)
        grid.add_row(str(entry.number), *map(escape, cells))
    console.print(grid)
    if more:
        console.print(f"{more:,} older ones: --limit {len(entries) + more}", highlight=False, soft_wrap=True)


def decision_json(entry: Entry) -> dict[str, Any]:
    """An entry of the chain; what it says is `decision`, or as text `content` where that is none."""
    try:
        from_content(entry.content)
    except ValueError:
        return {"number": entry.number, "chain": entry.chain, "decision": None, "content": entry.content}
    return {"number": entry.number, "chain": entry.chain, "decision": json.loads(entry.content)}


def _about(decision: Decision) -> str:
    match decision:
        case LateDecision():
            return f"{decision.table} {decision.day}, {decision.arrival}"
        case QuarantineDecision():
            return f"{decision.table} {decision.day}, {decision.error}, {decision.arrival}"
        case PinDecision():
            return f"{decision.publication} as {decision.name}" if decision.name else decision.publication
        case PlanDecision():
            return f"{decision.plan}, {decision.hash}"
        case LiftDecision():
            return f"{decision.table} {which(decision.days)}, {decision.publication}"
        case CircuitDecision():
            return f"{decision.scope} until {decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else decision.scope
        case MessageDecision():
            return f"{decision.message} for {decision.target}"
        case _:
            return decision.publication
