"""`rollback`, `withdraw`, `reload`: put days back, take deliveries out again, or take all of a table anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import rollback_parts, sums_json
from platform_assets.cli.console import UsageError, opened_platform, parse_days, without_numpy
from platform_assets.cli.options import By, Cascade, Days, DryRun, Reason, UntilLifted, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing, session_on_demand
from platform_assets.engine.late.queue import Reached, named_arrivals, reached_by, standing_records
from platform_assets.engine.platform import Author
from platform_assets.operations.lineage.amount_changes import AmountChanges
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.windows import day_range, which
from platform_assets.progress import meanwhile
from platform_assets.records.history import LASTING
from platform_assets.records.manifest import Arrival, Decides
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.reload import Reload
    from platform_assets.operations.rollback import Rollback


def rollback(
    publication: Annotated[str | None, typer.Argument(help="As `releases` or `why` name it.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Everything that this run published.")] = None,
    to: Annotated[int | None, typer.Option("--to", help="Everything published after this release.")] = None,
    lift: Annotated[
        str | None, typer.Option("--lift", metavar="TABLE", help="End what keeps days of this table until lifted.")
    ] = None,
    days: Days = None,
    cascade: Cascade = False,
    until_lifted: UntilLifted = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    by: By = None,
) -> Report:
    """Put exactly the days of a publication, a run or since a release back as they were, and hold them there."""
    if sum(given is not None for given in (publication, run, to, lift)) != 1 or (lift and (cascade or until_lifted)):
        raise UsageError(
            "Name what to roll back: a publication, --run RUN or --to RELEASE, one of them; or only a table to --lift.",
            "`platform-assets releases` lists all three.",
        )
    decides: Decides = "rollback lifted" if lift else LASTING if until_lifted else ""
    author = replace(decided_by(reason or ("a dry run" if dry_run else None), by), decides=decides)
    from platform_assets.operations.rollback import lift_rollbacks, rolled_back_amounts
    from platform_assets.operations.rollback import rollback as roll_back

    with opened_platform() as platform, without_numpy():
        only = None if days is None else parse_days(days, platform.settings)
        if lift is not None:
            lifted = lift_rollbacks(platform, lift, only, author, dry_run=dry_run)
            mark = "would be lifted" if dry_run else "lifted"
            lines = [Note("", mark, f"{hold.table} {hold.day}, {hold.reason}") for hold in lifted]
            then = "Nothing was changed." if dry_run else "The next refresh computes what came since."
            return Report([*lines, then], [picked(hold, "table day reason") for hold in lifted])
        chosen = chosen_publications(platform, publication, run, to)
        lasting = [hold for hold in platform.ledger.holds() if hold.lasts]
        with telling("rollback") as progress:
            done = roll_back(platform, chosen, author, days=only, cascade=cascade, dry_run=dry_run, progress=progress)
            with meanwhile(progress, "summing what changes"):
                amounts = rolled_back_amounts(platform, done)
    return Report(rollback_parts(done, amounts, lasts=until_lifted, ends=lasting), _json(done, amounts))


def _json(done: Rollback, amounts: AmountChanges) -> dict[str, Any]:
    return {
        "publications": [record.publication for record in done.publications],
        "release": done.release,
        "days": [
            {
                "table": table,
                "day": day,
                "digest": {"before": undone.digest, "after": back.digest if back else None},
                "rows": {"before": undone.rows, "after": back.rows if back else None},
                "sums": sums_json(amounts.of(table, [day])),
            }
            for (table, day), (undone, back) in sorted(done.records.items())
        ],
        "amounts_not_told": dict(amounts.unread),
        "raw": list(done.raw),
        "stale": {
            table: [day for start, end in spans for day in day_range(start, end)] for table, spans in done.stale.items()
        },
    }


_SHOWN = 10

_DAYS = ("table", "days", "which")
_STALE = "Stale through it, at most"

_NAMED = "Files below the landing root, also as 'folder/2017-03-31/*.csv', or what entered later of some."


def withdraw(
    arrivals: Annotated[list[str], typer.Argument(metavar="ARRIVAL…", help=_NAMED)],
    author: Author | None,
    dry_run: DryRun = False,
) -> Report:
    """Have every table computed as if arrivals had never come, all or none; the next refresh mends their days."""
    with opened_platform() as platform:
        paths = named_arrivals(platform, arrivals)
        if author is None:
            chosen = standing_records(platform, paths)
            reached = {table: reached_by(platform, some) for table, some in chosen.items()}
            data = [
                {
                    "table": table,
                    "arrivals": [part.path for part in some],
                    "rows": sum(part.taken for part in some),
                    "days": sorted(reached[table].days),
                    "stale": {name: sorted(days) for name, days in reached[table].stale.items()},
                }
                for table, some in chosen.items()
            ]
            return Report(_chosen_parts(chosen, reached), data)
        from platform_assets.engine.late.approvals import withdraw as take_back

        with computing(platform.settings, "withdraw") as (spark, progress):
            done = take_back(platform, spark, paths, author, progress)
    data, lines = [], []
    for one in done:
        arrivals = [str(arrival.origin) for arrival in one.arrivals]
        data.append(picked(one, "table rows", arrivals=arrivals, days=sorted(one.published)))
        of_what = paths[0] if len(paths) == 1 else counted(len(arrivals), "arrival")
        changed = f"{counted(len(one.published), 'day')} changed."
        lines.append(f"{counted(one.rows, 'row')} of {of_what} taken out of {one.table}; {changed}")
    return Report([*lines, "The next refresh mends what reads them."], data)


def _chosen_parts(parts: Mapping[str, Sequence[Arrival]], reached: Mapping[str, Reached]) -> Iterator[Part]:
    for table, some in parts.items():
        rows = counted(sum(part.taken for part in some), "row")
        yield Note("", "would be taken out", f"of {table}: {rows} of {counted(len(some), 'arrival')}")
        for part in some[:_SHOWN]:
            yield f"  {part.path}: {counted(part.taken, 'row')}"
        if len(some) > _SHOWN:
            yield f"  and {len(some) - _SHOWN:,} more: --json names them"
    yield from _reached_parts(reached)
    yield "Nothing was changed: this was a dry run."


def _reached_parts(reached: Mapping[str, Reached]) -> Iterator[Part]:
    by_table: dict[str, frozenset[date]] = {}
    for of_it in reached.values():
        for name, days in of_it.stale.items():
            by_table[name] = by_table.get(name, frozenset()) | days
    changed = {table: of_it.days for table, of_it in reached.items() if of_it.days}
    for title, of_tables in (("Days that it changes", changed), (_STALE, by_table)):
        rows = [(table, f"{len(days):,}", which(days)) for table, days in of_tables.items()]
        if rows:
            yield Table(title, _DAYS, rows, right=("days",))
    for table, of_it in reached.items():
        if of_it.days and of_it.moves_within_days:
            away = counted(of_it.moves_within_days, "day")
            moved = f"where one of these rows replaced a row of another day, up to {away} away"
            yield Note("", "also", f"{moved}, that day of {table} changes, too, and so do the days that read it")


_REFUSED_SHOWN = 5


def reload(
    table: Annotated[str, typer.Argument(help="A raw table, for example raw.transactions.")],
    author: Author | None,
    dry_run: DryRun = False,
) -> Report:
    """Ingest all deliveries of a raw table again, by its present contract; tables made from it begin again, too."""
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
    return Report(_reloaded_parts(done), data, needs)


def _reloaded_parts(done: Reload) -> Iterator[Part]:
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
