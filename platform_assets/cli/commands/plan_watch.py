"""`plan status --watch`: how a plan goes on, for whoever looks; a table on a terminal, lines anywhere else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from platform_assets.cli.console import console
from platform_assets.operations.plan_record import OVER, BackfillRecord, read_record
from platform_assets.visible import visible
from platform_assets.words import counted, lasting, size

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.planning.backfill.standing import Standing

_EVERY_S = 1.0
_LINE_EVERY_S = 10.0
"""Where each line stays: often enough to see that it goes on."""


def watch_plan(platform: Platform, name: str) -> None:
    """Tell how a plan goes on until it is over, or nobody applies it any more."""
    from rich.live import Live

    from platform_assets.operations.backfill.waiting import is_at_work, standing_of

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
