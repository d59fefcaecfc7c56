"""`reload`: take the deliveries of a raw table anew, by the contract as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.console import opened_platform
from platform_assets.cli.options import DryRun
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.engine.platform import Author
from platform_assets.planning.windows import which
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.reload import Reload

_REFUSED_SHOWN = 5


def reload(
    table: Annotated[str, typer.Argument(help="A raw table, for example raw.transactions.")],
    author: Author | None,
    dry_run: DryRun = False,
) -> Report:
    """Take all deliveries of a raw table anew, by its contract as it is now; what is made from it begins anew, too."""
    from platform_assets.operations.reload import planned_reload
    from platform_assets.operations.reload import reload as take_anew

    with opened_platform() as platform, telling("reload") as progress:
        if author is None:
            done = planned_reload(platform, table, progress)
        else:
            with session_on_demand(platform.settings, progress) as spark:
                done = take_anew(platform, spark, table, author, progress)
    needs = done.taken is not None and any(arrival.reason for arrival in done.taken.arrivals)
    taken = done.taken and {
        "arrivals": [picked(one, "path landed taken refused late erased reason") for one in done.taken.arrivals],
        "days": sorted(done.taken.published),
    }
    data = picked(done, "table files release before days", rows_before=done.rows, taken=taken)
    return Report(_parts(done), data, needs)


def _parts(done: Reload) -> Iterator[Part]:
    rows = [(table, which(days), f"{done.rows[table]:,}") for table, days in done.days.items()]
    title = "Would begin anew" if done.taken is None else "Began anew"
    yield Table(title, ("table", "days", "rows before"), rows, right=("rows before",), whole=("table",))
    if done.taken is None:
        yield (
            f"{counted(done.files, 'file')} of {done.table} would be taken anew. Until the refresh after that, readers "
            f"would see nothing of these days; release {done.before} would still show them. Nothing was changed: this "
            "was a dry run."
        )
        return
    arrivals = done.taken.arrivals
    taken, refused, late = (sum(getattr(one, of) for one in arrivals) for of in ("taken", "refused", "late"))
    days = f"{counted(taken, 'row')} in {counted(len(done.taken.published), 'day')}"
    of_table = f"{counted(len(arrivals), 'file')} of {done.table} taken anew"
    yield f"{of_table}: {days}, {refused:,} refused, {late:,} waiting."
    whole = [arrival for arrival in arrivals if arrival.reason is not None]
    yield from (Note("red", "refused", f"{arrival.path}: {arrival.reason}") for arrival in whole[:_REFUSED_SHOWN])
    if len(whole) > _REFUSED_SHOWN:
        yield f"and {len(whole) - _REFUSED_SHOWN:,} more files: `platform-assets status`."
    yield f"The next refresh computes what reads them. Release {done.before} shows everything as it was."
