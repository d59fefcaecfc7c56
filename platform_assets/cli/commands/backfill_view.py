"""How a backfill looks before it is applied, while it is, and after: for people, and for programs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from platform_assets.cli.console import console, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.plan_view import plan_grid, plan_json
from platform_assets.operations.backfill.files import line_of
from platform_assets.operations.backfill.pages import facts, staged_share, standing
from platform_assets.operations.plan_record import OVER, BackfillRecord, plan_of, read_record
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.key_scope import shown_keys
from platform_assets.visible import visible
from platform_assets.words import counted, lasting, size

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.planning.backfill.pace import Standing
    from platform_assets.records.history import PublicationRecord

_EVERY_S = 1.0
_LINE_EVERY_S = 10.0
"""Where each line stays: often enough to see that it goes on."""


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
        "rollout": [vars(step) for step in backfill.steps],
        "up_to_date": backfill.up_to_date,
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
            "unknown": cost.unknown,
        },
        "code": {table: version.code for table, version in backfill.versions.items()},
        "protected": {
            table: {str(day): why for day, why in days.items()} for table, days in backfill.protected.items()
        },
        "narrowed": [vars(found) for found in backfill.narrowed],
        "stale_afterwards": backfill.exposed,
        "exposures": backfill.told,
        "obstacles": [vars(obstacle) for obstacle in backfill.obstacles],
        "approval": vars(backfill.consent),
    }


def _rollout_grid(backfill: Backfill) -> Any:
    grid = new_grid("Rollout", ("named days", "days of tables", "tables"), right=("named days", "days of tables"))
    for step in backfill.steps:
        of = ", ".join(f"{table} {len(days):,}" for table, days in step.days.items())
        grid.add_row(f"{step.share} %", f"{step.count:,}", of)
    return grid


def print_records(records: Sequence[BackfillRecord], waits: Mapping[str, Sequence[str]]) -> None:
    """A line for each, and what each waits for below it."""
    if not records:
        console.print("No plan was applied yet. `plan apply FILE` applies one.", highlight=False, soft_wrap=True)
    for record in records:
        say(f"[bold]{record.name}[/]", standing(record))
        for sentence in waits[record.name]:
            say("  [yellow]waits[/]", sentence)


def print_unbegun(backfill: Backfill, waits: Sequence[str]) -> None:
    """A plan that nobody has applied yet, and what keeps it."""
    file = backfill.file
    say(f"[bold]{file.name}[/]", f"not begun: {counted(backfill.plan.days, 'day')} of tables, hash {backfill.hash}")
    for sentence in waits or ("Nothing keeps it: `platform-assets plan apply FILE`.",):
        say("  ", sentence)


def print_record(record: BackfillRecord, waits: Sequence[str] = (), now: Standing | None = None) -> None:
    """Where one stands, what it waits for, and what happened."""
    say(f"[bold]{record.name}[/]", standing(record, now))
    say("  why", f"{record.file.reason} ({record.file.owner})")
    if record.file.only is not None:
        say("  only", f"rows of {shown_keys(record.file.only)}; the others are carried over")
    if record.runs:
        say("  runs", ", ".join(record.runs))
    for sentence in waits:
        say("  [yellow]waits[/]", sentence)
    for event in record.events:
        by = f" ({event.who})" if event.who else ""
        say("  ", f"{event.at:%Y-%m-%d %H:%M:%S}  {event.what}{by}")


def record_json(record: BackfillRecord) -> dict[str, Any]:
    """The same for programs."""
    return record.model_dump(mode="json") | {"days": record.days, "staged_share": staged_share(record)}


def recomputed_json(head: PublicationRecord, *, rolled_back: bool) -> dict[str, Any]:
    """A publication that recomputed days, and of which plan; of none, where nobody planned it.

    Args:
        head: of the publication.
        rolled_back: whether that plan was rolled back since.
    """
    return {
        "release": head.release,
        "at": f"{head.created_at:%Y-%m-%d %H:%M:%S}",
        "plan": plan_of(head.run),
        "rolled_back": rolled_back,
        "publication": head.publication,
        "run": head.run,
        "who": head.who,
        "why": head.why,
    }


def watch_plan(platform: Platform, name: str) -> None:
    """Tell how a plan goes on until it is over, or nobody applies it any more."""
    from rich.live import Live

    from platform_assets.operations.backfill.staged import standing_of
    from platform_assets.operations.backfill.waiting import is_at_work

    if not console.is_terminal:
        said, at = "", 0.0
        while True:
            record = read_record(platform.lake, name)
            at_work = is_at_work(platform, record)
            line = watched_line(record, standing_of(platform, record))
            if line != said and (time.monotonic() - at >= _LINE_EVERY_S or not at_work):
                said, at = line, time.monotonic()
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            if not at_work:
                return
            time.sleep(_EVERY_S)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            record = read_record(platform.lake, name)
            live.update(_watched(record, standing_of(platform, record)), refresh=True)
            if not is_at_work(platform, record):
                return
            time.sleep(_EVERY_S)


def watched_line(record: BackfillRecord, now: Standing) -> str:
    """How far a plan is, on a line."""
    return f"{record.name} {record.state}: {', '.join(f'{what} {said}' for what, said in _figures(record, now))}"


def _watched(record: BackfillRecord, now: Standing) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_row("", ProgressBar(total=max(now.days, 1), completed=now.done, width=40))
    for what, said in _figures(record, now):
        table.add_row(what, said)
    last = record.events[-1].what if record.events else ""
    return Group(
        Text(f"{record.name} {record.state}", style="bold"),
        table,
        Text(visible(last), overflow="ellipsis", no_wrap=True),
    )


def _figures(record: BackfillRecord, now: Standing) -> list[tuple[str, str]]:
    figures = [("staged", f"{now.staged:,} of {now.days:,} days")]
    if now.left_alone:
        figures.append(("need nothing", counted(now.left_alone, "day")))
    figures += [("rate", f"{now.days_per_minute:,.1f} days a minute"), ("took", lasting(now.seconds))]
    if record.state not in OVER:
        figures.append(("left", f"about {lasting(now.seconds_left)}"))
    figures.append(("written", size(now.bytes)))
    if now.money is not None:
        figures.append(("cost", f"{now.money:,.2f}"))
    return figures
