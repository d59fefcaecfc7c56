"""`admin adopt`: a Delta table of another tool becomes one of the platform, by copy, proved day by day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import opened_platform, parse_days
from platform_assets.cli.options import Days, DryRun, TableName
from platform_assets.cli.session import computing
from platform_assets.contracts import DAY
from platform_assets.engine.platform import Author
from platform_assets.planning.windows import which
from platform_assets.report import Note, Part, Report, Table
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.adoption import Adoption

_DAYS_SHOWN = 31


def adopt(
    table: TableName,
    author: Author | None,
    path: Annotated[str, typer.Argument(help="Folder or URL of a Delta table, which is only read.")],
    day: Annotated[
        str,
        typer.Option("--on", metavar="COLUMN", help="Its date or timestamp with the day; not for raw."),
    ] = DAY,
    days: Days = None,
    leave_out: Annotated[
        str, typer.Option("--leave-out", metavar="COLUMN,…", help="Columns of it that are not copied.")
    ] = "",
    replaces: Annotated[
        bool, typer.Option("--replace", help="Also days that are there already; not for raw tables.")
    ] = False,
    dry_run: DryRun = False,
) -> Report:
    """Copy a Delta table into a table of the platform, and prove each day by count and checksum.

    A raw table takes the rows as deliveries. Days of a silver or gold table pass their gates and are published at once.
    Exit code 1: a day of a raw table is not as in the original.
    """
    from platform_assets.operations.adoption import Wish, planned_adoption
    from platform_assets.operations.adoption import adopt as adopted

    with opened_platform() as platform:
        chosen = None if days is None else parse_days(days, platform.settings)
        left_out = tuple(name.strip() for name in leave_out.split(",") if name.strip())
        wish = Wish(table, path, day, chosen, left_out, replaces)
        with computing(platform.settings, "adopt") as (spark, progress):
            if author is None:
                done = planned_adoption(platform, spark, wish, progress)
            else:
                author = replace(author, run=f"adopt-{table}-{datetime.now(UTC):%Y%m%dT%H%M%S}")
                done = adopted(platform, spark, wish, author, progress)
    return Report(_parts(done), _json(done), bool(done.undo and done.differing))


def _parts(done: Adoption) -> Iterator[Part]:
    source, rows = done.source, sum(digest.rows for digest in done.there.values())
    yield Note("bold", "original", f"{source}, Delta table {source.table_id}")
    features = ", ".join(source.features) or "none named"
    yield Note("", "  has", f"features: {features}; partitioned by {', '.join(source.partitioned_by) or 'nothing'}")
    yield Note("", "  gives", f"{counted(rows, 'row')} of {which(done.there)}")
    if done.without_rows:
        text = f"{which(done.without_rows)} have no row there, and are not adopted"
        yield Note("yellow", "no rows", text)
    shown = done.differing if done.undo and done.differing else tuple(done.there)
    names = ("day", "rows there", "rows here", "checksum")
    lines = [
        (
            str(day),
            f"{done.there[day].rows:,}",
            f"{done.here[day].rows:,}" if day in done.here else "",
            "" if not done.undo else "other" if day in done.differing else "equal",
        )
        for day in shown[:_DAYS_SHOWN]
    ]
    yield Table(f"Days of {done.table}", names, lines, right=names[1:3])
    if len(shown) > _DAYS_SHOWN:
        yield f"and {counted(len(shown) - _DAYS_SHOWN, 'more day')}: --json has all."
    if not done.undo:
        yield "Nothing was changed."
        return
    if done.differing:
        yield Note("red", "other", f"{which(done.differing)}: `status` quarantine, late and files say why")
    else:
        yield Note("green", "proved", f"{counted(len(done.there), 'day')} have the original's count and checksum")
    yield f"Release {done.release} has {done.table}; `undo '{done.undo}' --reason …` takes it back."


def _json(done: Adoption) -> dict[str, Any]:
    source = done.source
    return {
        "table": done.table,
        "original": {
            "place": source.place,
            "table_id": source.table_id,
            "version": source.version,
            "features": source.features,
            "partitioned_by": source.partitioned_by,
        },
        "days": [
            {"day": day, "rows": digest.rows, "checksum": str(digest), "here": str(done.here.get(day, ""))}
            for day, digest in done.there.items()
        ],
        "without_rows": done.without_rows,
        "differing": done.differing if done.undo else [],
        "release": done.release,
        "undo": done.undo,
    }
