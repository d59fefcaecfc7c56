"""How a backfill looks before it is applied: for people, for a pull request, and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from platform_assets.cli.console import console, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.plan_view import plan_grid, plan_json, size
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.windows import which
from platform_assets.visible import as_code
from platform_assets.words import counted


def print_backfill(backfill: Backfill) -> None:
    """All that somebody wants to know who is to approve it."""
    file = backfill.file
    say(f"[bold]{file.name}[/]", f"{file.reason} ({file.owner})")
    if backfill.plan.steps:
        console.print(plan_grid(backfill.plan))
        console.print(_rollout_grid(backfill))
    for line in _facts(backfill):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for obstacle in backfill.obstacles:
        say("[red]in the way[/]" if obstacle.blocks else "[yellow]mind[/]", f"{obstacle.what} {obstacle.todo}")
    say("[bold]hash[/]", backfill.hash)


def backfill_markdown(backfill: Backfill) -> list[str]:
    """The same as the lines of a comment of a pull request."""
    file = backfill.file
    lines = [f"## Backfill {file.name}", "", as_code(file.reason), ""]
    lines += ["| table | days | why | which |", "| --- | ---: | --- | --- |"]
    for step in backfill.plan.steps:
        for reasons, days in step.by_reasons.items():
            lines.append(f"| {step.table} | {len(days):,} | {', '.join(reasons)} | {which(days)} |")
    lines += ["", "| rollout | days of tables |", "| ---: | --- |"]
    for rolled in backfill.steps:
        of = ", ".join(f"{table} {len(days):,}" for table, days in rolled.days.items())
        lines.append(f"| {rolled.share} % | {of} |")
    lines += ["", *(f"- {line}" for line in _facts(backfill))]
    for obstacle in backfill.obstacles:
        lines.append(f"- **{'in the way' if obstacle.blocks else 'mind'}**: {obstacle.what} {obstacle.todo}")
    return [*lines, "", f"Hash `{backfill.hash}`, over release {backfill.release}."]


def backfill_json(backfill: Backfill) -> dict[str, Any]:
    """The same for programs."""
    cost = backfill.price
    return {
        "name": backfill.file.name,
        "hash": backfill.hash,
        "release": backfill.release,
        "file": backfill.file.model_dump(mode="json", exclude_none=True),
        "plan": plan_json(backfill.plan),
        "rollout": [
            {"share": step.share, "days": {table: list(map(str, days)) for table, days in step.days.items()}}
            for step in backfill.steps
        ],
        "up_to_date": {table: list(map(str, days)) for table, days in backfill.up_to_date.items()},
        "price": {
            "rows": cost.rows,
            "bytes": cost.bytes,
            "seconds": round(cost.seconds, 1),
            "between": [round(end, 1) for end in cost.between] if cost.between else None,
            "publications": cost.publications,
            "core_hours": round(cost.core_hours, 3),
            "money": None if cost.money is None else str(cost.money),
            "unknown": list(cost.unknown),
        },
        "stale_afterwards": list(backfill.exposed),
        "obstacles": [vars(obstacle) for obstacle in backfill.obstacles],
        "approval": {
            "needed": backfill.consent.needed,
            "because": list(backfill.consent.because),
            "given": list(backfill.consent.given),
        },
    }


def _rollout_grid(backfill: Backfill) -> Any:
    grid = new_grid("Rollout", ("named days", "days of tables", "tables"), right=("named days", "days of tables"))
    for step in backfill.steps:
        of = ", ".join(f"{table} {len(days):,}" for table, days in step.days.items())
        grid.add_row(f"{step.share} %", f"{step.count:,}", of)
    return grid


def _facts(backfill: Backfill) -> Iterator[str]:
    yield f"About {_cost(backfill.price)}."
    for table, days in backfill.up_to_date.items():
        yield f"Not computed: {counted(len(days), 'day')} of {table} ({which(days)}), up to date."
    if backfill.exposed:
        yield f"Stale afterwards, because they read it: {', '.join(backfill.exposed)}."
    gates = [
        f"{gate.table} {gate.metric}{f' of {gate.column}' if gate.column else ''} within {gate.tolerance_percent} %"
        for gate in backfill.file.gates
    ]
    yield f"Gates besides those of the contracts: {'; '.join(gates) or 'none'}."
    consent = backfill.consent
    if consent.needed:
        given = f"{len(consent.given)} given ({', '.join(consent.given)})" if consent.given else "none given"
        yield f"Needs {counted(consent.needed, 'approval')}, because {' and '.join(consent.because)}; {given}."


def _cost(cost: Price) -> str:
    parts = [f"{counted(cost.rows, 'row')}, {size(cost.bytes)}, {_time(cost.seconds)}"]
    if cost.between:
        parts.append(f"between {_time(cost.between[0])} and {_time(cost.between[1])} in four of five cases")
    if cost.core_hours:
        parts.append(f"{cost.core_hours:,.2f} core-hours")
    if cost.money is not None:
        parts.append(f"{cost.money:,} in money")
    rests = f" (by {counted(cost.publications, 'publication')} of the least known table)" if cost.publications else ""
    return "; ".join(parts) + rests


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
