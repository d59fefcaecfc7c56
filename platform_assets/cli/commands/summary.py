"""The demo's last word: what there is, what changed, where to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from rich.panel import Panel
from rich.table import Table

from platform_assets.cli.console import console
from platform_assets.cli.grids import new_grid
from platform_assets.engine.late.queue import late_queue
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.late_queue import rows_ahead, waiting_rows

_LOOK = "gold.daily_sales"
_DAYS_IN = 15


@dataclass(frozen=True)
class Phase:
    """What one part of the demo did.

    Args:
        name: shown in the summary.
        files: landed in it.
        changed: published days by table.
        seconds: wall time.
        failures: what the steps said that failed.
    """

    name: str
    files: int
    changed: dict[str, int]
    seconds: float
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableSummary:
    """One table after the demo.

    Args:
        days: loaded days, empty ones included.
        rows: rows readers see.
        set_aside: rows refused at parsing (raw) or quarantined by a rule (silver).
        late: rows that wait in the late queue for a decision (raw).
        ahead: rows that wait there for their day (raw).
    """

    table: str
    days: int
    rows: int
    set_aside: int
    late: int
    ahead: int


def summarise(platform: Platform) -> list[TableSummary]:
    """Figures of every table, from the ledger."""
    summaries: list[TableSummary] = []
    queue, snapshot = late_queue(platform), LakeSnapshot.now(platform)
    for contract in platform.catalogue:
        days = platform.ledger.current_days(contract.name).values()
        aside = sum(day.figures.get("quarantined", 0) for day in days)
        if contract.source is not None:
            aside = sum(arrival.refused for arrival in platform.ledger.arrivals(contract.name))
        rows = sum(day.delivered for day in days)
        loaded = len(snapshot.digests(contract.name))
        waits = [late for late in queue if late.table == contract.name]
        summaries.append(TableSummary(contract.name, loaded, rows, aside, waiting_rows(waits), rows_ahead(waits)))
    return summaries


def day_to_look_at(platform: Platform) -> date | None:
    """A day that is there and has rows, some way into the year where so much was built; None if there is none."""
    days = sorted(day for day, record in platform.ledger.current_days(_LOOK).items() if record.rows)
    return days[min(len(days), _DAYS_IN) - 1] if days else None


def print_summary(
    tables: Sequence[TableSummary], phases: Sequence[Phase], seconds: float, day: date | None = None
) -> None:
    """The whole demo at a glance.

    Args:
        tables: figures of each.
        phases: what was done.
        seconds: that all of it took.
        day: to name in commands that show one; they are left out without.
    """
    counts = ("days", "rows", "aside", *(phase.name for phase in phases))
    grid = new_grid("The platform now", ("table", *counts), right=counts, whole=("table",))
    for summary in tables:
        changed = [phase.changed.get(summary.table, 0) for phase in phases]
        cells = [f"{summary.days:,}", f"{summary.rows:,}", f"{summary.set_aside:,}" if summary.set_aside else ""]
        grid.add_row(summary.table, *cells, *(f"{count:,} days" if count else "-" for count in changed))
    console.print(grid)
    if not any(count for phase in phases for count in phase.changed.values()):
        console.print("[green]Nothing to do:[/] every file was taken before and no day is stale.")
    if late := sum(summary.late for summary in tables):
        console.print(f"{late:,} rows came too late to be taken unasked: platform-assets late list")
    if ahead := sum(summary.ahead for summary in tables):
        console.print(f"{ahead:,} rows wait for their day: platform-assets late list")
    for phase in phases:
        console.print(f"{phase.name}: {phase.files:,} files landed, {phase.seconds:.1f} s")
    looks = Table.grid(padding=(0, 2))
    of_a_day = (
        (f"why {_LOOK} {day}", "what a day was made from, back to the files"),
        (f"read {_LOOK} --day {day}", "rows as readers see them"),
    )
    for command, shows in (
        ("up", "the Dagster UI, on loopback"),
        ("status", "what is loaded, missing, stale, held, set aside"),
        ("stale", "which days are no longer what they would be now, and why"),
        *(of_a_day if day else ()),
        ("read quarantine.transactions", "rows that broke a rule, and why"),
    ):
        looks.add_row(f"uv run platform-assets {command}", f"[dim]{shows}[/]")
    console.print(Panel(looks, title=f"Done in {seconds:.1f} s. Where to look next", title_align="left", expand=False))
