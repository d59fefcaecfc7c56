"""The demo's last word: what there is, what changed, where to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from platform_assets.cli.commands.demo_story import SALES, Story, print_story
from platform_assets.cli.console import console, escape, say
from platform_assets.cli.grids import new_grid
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.late_queue import LateCounts
from platform_assets.words import counted

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
    late, snapshot, refused = late_counts(platform), LakeSnapshot.now(platform), platform.ledger.refused_rows()
    for contract in platform.catalogue:
        days = platform.ledger.current_days(contract.name).values()
        aside = sum(day.figures.get("quarantined", 0) for day in days)
        if contract.source is not None:
            aside = refused.get(contract.name, 0)
        rows = sum(day.delivered for day in days)
        loaded = len(snapshot.digests(contract.name))
        waits = late.get(contract.name, LateCounts())
        summaries.append(TableSummary(contract.name, loaded, rows, aside, waits.waiting, waits.ahead))
    return summaries


def day_to_look_at(platform: Platform) -> date | None:
    """A day that is there and has rows, some way into the year where so much was built; None if there is none."""
    days = sorted(day for day, record in platform.ledger.current_days(SALES).items() if record.rows)
    return days[min(len(days), _DAYS_IN) - 1] if days else None


def print_summary(
    tables: Sequence[TableSummary],
    phases: Sequence[Phase],
    seconds: float,
    day: date | None = None,
    story: Story | None = None,
) -> None:
    """The whole demo at a glance.

    Args:
        seconds: that all of it took.
        day: to name in commands that show one; they are left out without.
        story: of the correction, where one was taken.
    """
    counts = ("days", "rows", "aside")
    grid = new_grid("The platform now", ("table", *counts), right=counts, whole=("table",))
    for summary in tables:
        aside = f"{summary.set_aside:,}" if summary.set_aside else ""
        grid.add_row(summary.table, f"{summary.days:,}", f"{summary.rows:,}", aside)
    console.print(grid)
    for phase in (phase for phase in phases if phase.files or phase.changed):
        done = f"{counted(phase.files, 'file')} landed, {counted(sum(phase.changed.values()), 'day')} of tables written"
        say(f"[bold]{phase.name}:[/]", f"{done}, {phase.seconds:.1f} s", wrap=True)
    if not any(count for phase in phases for count in phase.changed.values()):
        console.print("[green]Nothing to do:[/] every file was taken before and no day is stale.")
    if late := sum(summary.late for summary in tables):
        console.print(
            f"{counted(late, 'row')} came too late to be taken unasked: platform-assets late list", soft_wrap=True
        )
    if ahead := sum(summary.ahead for summary in tables):
        console.print(f"{counted(ahead, 'row', 'wait')} for the day to come: platform-assets late list", soft_wrap=True)
    if story:
        print_story(story)
    console.print()
    console.print(
        f"Done in {seconds:.1f} s. Where to look next, each after `uv run platform-assets`:",
        highlight=False,
        soft_wrap=True,
    )
    of_a_day = (
        (f"why {SALES} {day}", "what a day was made from, back to the files"),
        (f"read {SALES} --day {day}", "rows as readers see them"),
    )
    for command, shows in (
        *([(f"release diff {story.before} {story.after}", "what the correction changed")] if story else ()),
        *(of_a_day if day else ()),
        ("status", "what is loaded, missing, stale, held, set aside"),
        ("stale", "which days are no longer what they would be now, and why"),
        ("read quarantine.transactions", "rows that broke a rule, and why"),
        ("up", "the Dagster UI, on loopback"),
    ):
        say(f"  {escape(command)}", f"({shows})")
