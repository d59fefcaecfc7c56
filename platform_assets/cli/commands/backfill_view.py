"""How a backfill looks before it is applied: for people, and for programs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from platform_assets.cli.console import console, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.plan_view import plan_grid, plan_json
from platform_assets.operations.backfill.files import line_of
from platform_assets.operations.backfill.pages import facts
from platform_assets.planning.backfill.backfill import Backfill


def print_backfill(backfill: Backfill, at: Path) -> None:
    """All that somebody wants to know who is to approve it, and the command that comes next.

    Args:
        at: where its file lies.
    """
    file = backfill.file
    say(f"[bold]{file.name}[/]", f"{file.reason} ({file.owner})")
    if backfill.plan.steps:
        console.print(plan_grid(backfill.plan))
        console.print(_rollout_grid(backfill))
    for line in facts(backfill):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for obstacle in backfill.obstacles:
        place = f"line {line_of(at, obstacle.field)}, " if obstacle.field else ""
        say("[red]in the way[/]" if obstacle.blocks else "[yellow]mind[/]", f"{place}{obstacle.told} {obstacle.todo}")
    say("[bold]hash[/]", backfill.hash)
    if not backfill.blocking:
        say("[bold]next[/]", _next(backfill, shlex.quote(str(at))))


def _next(backfill: Backfill, file: str) -> str:
    if not backfill.consent.is_there:
        return f"`platform-assets plan approve {file} --hash {backfill.hash} --reason … --by …`"
    enough = "it is approved" if backfill.consent.needed else "nobody has to approve it"
    return f"{enough}: `platform-assets plan apply {file}`"


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
            "start_s": round(cost.experience.start_s, 1),
            "step_s": round(cost.experience.step_s, 1),
            "job_s": round(cost.experience.job_s, 1),
            "backfills": cost.experience.runs,
            "core_hours": round(cost.core_hours, 3),
            "money": None if cost.money is None else str(cost.money),
            "unknown": list(cost.unknown),
        },
        "code": {table: version.code for table, version in backfill.versions.items()},
        "protected": {
            table: {str(day): why for day, why in days.items()} for table, days in backfill.protected.items()
        },
        "narrowed": [vars(found) for found in backfill.narrowed],
        "stale_afterwards": list(backfill.exposed),
        "exposures": {name: list(tables) for name, tables in backfill.told.items()},
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
