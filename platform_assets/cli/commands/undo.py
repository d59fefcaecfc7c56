"""`undo` for everything that can be undone, and `admin reload`, which ingests all of a raw table again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import rollback_parts, sums_json
from platform_assets.cli.commands.audit import put_back
from platform_assets.cli.commands.release import drop, shown_stage, unpin
from platform_assets.cli.console import UsageError, opened_platform, parse_days, without_numpy
from platform_assets.cli.options import (
    By,
    Cascade,
    Days,
    DryRun,
    ReasonButDry,
    UntilLifted,
    call_with,
    decided_by,
    only_one,
)
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing, session_on_demand
from platform_assets.engine.late.queue import Reached, named_arrivals, reached_by, standing_records
from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import did_you_mean
from platform_assets.operations.backfill.standing import record_json
from platform_assets.operations.lineage.amount_changes import AmountChanges
from platform_assets.operations.pins import pinned_releases, release_number
from platform_assets.operations.plan_record import backfill_names, read_record
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.windows import day_range, which
from platform_assets.progress import meanwhile
from platform_assets.records.history import LASTING, PublicationRecord
from platform_assets.records.manifest import Arrival
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.reload import Reload
    from platform_assets.operations.rollback import Rollback


_KINDS = {
    "publication": "rolls days back: exactly those of a publication are again as before it, and held",
    "release": "rolls days back: exactly those that a release changed are again as before it, and held",
    "run": "rolls days back: exactly those that a run published are again as before it, and held",
    "since": "rolls days back: all that was published after a release is again as in it, and held",
    "backfill": "rolls the days of a backfill back; one that was not published is given up, and its stage deleted",
    "arrival": "withdraws arrivals: tables are computed as if they had never come",
    "stage": "drops a stage: what it holds is deleted, nothing that readers see changes",
    "rollback": "lifts a rollback: days that it keeps until lifted are computed again",
    "pin": "ends a pin: maintenance may delete what only this release needs",
    "foreign": "returns a table to the release: commits of another tool are undone",
}
"""What undoing each kind of thing does; the kinds are written before a name, as `run:NAME`."""
_ROLLBACKS = ("publication", "release", "run", "since")


def undo(
    what: Annotated[
        list[str],
        typer.Argument(metavar="WHAT", help=f"A name, or KIND:NAME where it could be several: {', '.join(_KINDS)}."),
    ],
    days: Days = None,
    cascade: Cascade = False,
    until_lifted: UntilLifted = False,
    dry_run: DryRun = False,
    reason: ReasonButDry = None,
    by: By = None,
) -> Report:
    """Undo a publication, release, run, backfill, arrivals, a stage, a rollback or a pin; --dry-run shows what it does.

    docs/undo.md has a table of what to type.
    """
    kind, names = _kind_of_all(what)
    given: dict[str, Any] = {"days": days, "cascade": cascade, "until_lifted": until_lifted, "dry_run": dry_run}
    if kind != "stage":
        given["author"] = decided_by(reason or ("a dry run" if dry_run else None), by)
    if kind == "arrival":
        given["arrivals"] = names
    elif kind in _ROLLBACKS:
        given |= {"kind": kind, "name": only_one("undo", names)}
    else:
        given["name"] = only_one("undo", names)
    one: dict[str, Callable[..., Report]] = {**dict.fromkeys(_ROLLBACKS, _roll_back), "arrival": _withdraw}
    one |= {"backfill": _backfill, "stage": _stage, "rollback": _lift, "pin": _pin, "foreign": _foreign}
    done = call_with(f"undo {kind}:…", one[kind], given)
    head = Note("bold", "dry run" if dry_run else "undo", f"{kind}: this {_KINDS[kind]}.")
    return replace(done, parts=[head, *done.parts])


def _kind_of_all(what: Sequence[str]) -> tuple[str, list[str]]:
    """Return the common kind of the names, and the names without it."""
    kinds, names = [], []
    for word in what:
        kind, colon, name = word.partition(":")
        kinds.append(kind if colon and kind in _KINDS else _kind_of(word))
        names.append(name if colon and kind in _KINDS else word)
    if len(set(kinds)) > 1:
        raise UsageError(f"These are different kinds: {', '.join(dict.fromkeys(kinds))}.", "Undo one after the other.")
    return kinds[0], names


def _kind_of(word: str) -> str:
    if "/" in word:
        return "arrival"
    if word.isdecimal():
        return "release"
    with opened_platform() as platform:
        ledger = platform.ledger
        indexed = ledger.indexed()
        pins = pinned_releases(ledger, as_far_as_readable=True).values()
        known: dict[str, Collection[str]] = {
            "publication": indexed,
            "run": {head.run for name in indexed if (head := ledger.head(name))},
            "backfill": backfill_names(platform.lake),
            "stage": stage_names(platform.lake),
            "pin": [pin.name for pin in pins if pin.name],
            "rollback": {hold.table for hold in ledger.holds() if hold.lasts},
        }
    found = [kind for kind, names in known.items() if word in names]
    if len(found) != 1:
        those = " or ".join(f"{kind}:{word}" for kind in found)
        what = f"{word!r} could be {those}." if found else f"There is nothing of the name {word!r} to undo."
        near = did_you_mean(word, {name for names in known.values() for name in names})
        raise UsageError(
            what,
            "Name one of them."
            if found
            else f"{near}`status releases`, `status stages`, `status "
            "backfills` and `why TABLE DAY` name what there is.",
        )
    return found[0]


def _roll_back(
    kind: str,
    name: str,
    author: Author,
    days: str | None = None,
    *,
    cascade: bool = False,
    until_lifted: bool = False,
    dry_run: bool = False,
) -> Report:
    """Return exactly the days of a publication, run, or since a release to their earlier content, and hold them."""
    from platform_assets.operations.rollback import rollback, rolled_back_amounts

    author = replace(author, decides=LASTING if until_lifted else "")
    with opened_platform() as platform, without_numpy():
        only = None if days is None else parse_days(days, platform.settings)
        chosen = _chosen(platform, kind, name)
        lasting = [hold for hold in platform.ledger.holds() if hold.lasts]
        with telling("undo") as progress:
            done = rollback(platform, chosen, author, days=only, cascade=cascade, dry_run=dry_run, progress=progress)
            with meanwhile(progress, "summing what changes"):
                amounts = rolled_back_amounts(platform, done)
    return Report(rollback_parts(done, amounts, lasts=until_lifted, ends=lasting), _json(done, amounts))


def _chosen(platform: Platform, kind: str, name: str) -> tuple[PublicationRecord, ...]:
    if kind == "run":
        return chosen_publications(platform, run=name)
    if kind == "publication":
        return chosen_publications(platform, name)
    number = release_number(platform.ledger, name)
    if kind == "since":
        return chosen_publications(platform, to=number)
    of_it = [each for each, at in platform.ledger.indexed().items() if at == number]
    return chosen_publications(platform, next(iter(of_it), name))


def _lift(name: str, author: Author, days: str | None = None, *, dry_run: bool = False) -> Report:
    from platform_assets.operations.rollback import lift_rollbacks

    author = replace(author, decides="rollback lifted")
    with opened_platform() as platform:
        only = None if days is None else parse_days(days, platform.settings)
        lifted = lift_rollbacks(platform, name, only, author, dry_run=dry_run)
    mark = "would be lifted" if dry_run else "lifted"
    lines = [Note("", mark, f"{hold.table} {hold.day}, {hold.reason}") for hold in lifted]
    then = "Nothing was changed." if dry_run else "The next refresh computes what came since."
    return Report([*lines, then], [picked(hold, "table day reason") for hold in lifted])


def _backfill(
    name: str, author: Author, *, cascade: bool = False, until_lifted: bool = False, dry_run: bool = False
) -> Report:
    """Roll back a published backfill, or cancel an unpublished one."""
    from platform_assets.cli.commands.backfill import cancel, take_back

    with opened_platform() as platform:
        record = read_record(platform.lake, name)
    if record.state in ("published", "rolled back", "publishing"):
        if dry_run:
            return _roll_back("publication", record.publication, author, cascade=cascade, dry_run=True)
        return take_back(name, author, cascade=cascade, until_lifted=until_lifted)
    if cascade or until_lifted:
        what = f"The backfill {name} is {record.state}, not published."
        raise UsageError(what, "Leave out --cascade and --until-lifted: no day is rolled back.")
    if dry_run:
        would = f"{name} is {record.state}; it would be cancelled and its stage deleted."
        return Report([f"{would} Nothing was changed: this was a dry run."], record_json(record))
    return cancel(name, author)


def _stage(name: str, *, dry_run: bool = False) -> Report:
    if not dry_run:
        return drop(name)
    shown = shown_stage(name)
    return replace(shown, parts=[*shown.parts, "Nothing was changed: this was a dry run."])


def _pin(name: str, author: Author, *, dry_run: bool = False) -> Report:
    if not dry_run:
        return unpin(name, author)
    with opened_platform() as platform:
        number = release_number(platform.ledger, name)
    return Report([f"Release {number} would no longer be pinned. Nothing was changed."], {"release": number})


def _foreign(name: str, author: Author, *, dry_run: bool = False) -> Report:
    if dry_run:
        raise UsageError("What another tool did cannot be tried.", "`admin audit` shows it; leave out --dry-run.")
    return put_back(name, author)


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


def _withdraw(arrivals: Sequence[str], author: Author, *, dry_run: bool = False) -> Report:
    """Recompute every table as if arrivals had never come, all or none; the next refresh computes their days.

    Args:
        arrivals: files below the landing root, also as 'folder/2017-03-31/*.csv', or later arrivals made from them,
            such as approved rows.
    """
    with opened_platform() as platform:
        paths = named_arrivals(platform, arrivals)
        if dry_run:
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

        with computing(platform.settings, "undo") as (spark, progress):
            done = take_back(platform, spark, paths, author, progress)
    data, lines = [], []
    for one in done:
        arrivals = [str(arrival.origin) for arrival in one.arrivals]
        data.append(picked(one, "table rows", arrivals=arrivals, days=sorted(one.published)))
        of_what = paths[0] if len(paths) == 1 else counted(len(arrivals), "arrival")
        changed = f"{counted(len(one.published), 'day')} changed."
        lines.append(f"{counted(one.rows, 'row')} of {of_what} taken out of {one.table}; {changed}")
    return Report([*lines, "The next refresh recomputes what reads them."], data)


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
    """Ingest all deliveries of a raw table again by its present contract; tables computed from it start again too."""
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
