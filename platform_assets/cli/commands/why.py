"""`why`: trace a published day back to the delivered files and the code that read them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.tree import Tree

from platform_assets.cli.changes_view import ended_json, ended_note
from platform_assets.cli.console import UsageError, escape, parse_day, platform_to_look, without_numpy
from platform_assets.cli.held_view import held_json, held_parts, not_taken_lines, warned_day_parts, warned_json
from platform_assets.cli.options import AsJson, OneDay, TableName
from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.user_code import column_sources
from platform_assets.operations.lineage.day_history import EndedRollback, rollback_of
from platform_assets.operations.lineage.held_days import HeldDay, WarnedDay, held_days, warned_day
from platform_assets.operations.lineage.plan_report import cause
from platform_assets.operations.lineage.provenance import (
    Difference,
    Explanation,
    NewSince,
    Origin,
    explain,
    replaced_files,
)
from platform_assets.planning.arrivals import REPLAY, UNDATED
from platform_assets.planning.day_states import Blocked, DayState, Held
from platform_assets.planning.selection import shown_keys
from platform_assets.planning.windows import which
from platform_assets.quality.deliveries import quarantine_share
from platform_assets.quality.findings import accepted_by_hand
from platform_assets.records.code_version import shown_commits
from platform_assets.records.differences import Digest
from platform_assets.records.history import ArrivalRecord, Hold, PublicationRecord
from platform_assets.report import Note, Part, Report, picked
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

_SHOWN = 5

_OF_A_DAY = "day digest rows fingerprint code_version configuration git_commit publication figures warnings"
_OF_A_PUBLICATION = "publication release created_at kind run who why git_commit"
_OF_A_FILE = "path kind origin arrival_date sha256 taken refused erased publication"
_SOFTWARE = {"platform": "platform-assets", "sail": "Sail", "spark": "Spark", "delta": "Delta"}
_BRANCHES_SHOWN = 5


@dataclass(frozen=True)
class _Besides:
    """Further parts of the report on a day, apart from its origin."""

    held: Collection[HeldDay]
    warned: WarnedDay | None
    ended: EndedRollback | None
    replaced: Collection[Problem]
    delivered: Sequence[ArrivalRecord]
    columns: Mapping[str, tuple[str, ...]]


def why(
    table: TableName,
    day: OneDay,
    diff: Annotated[bool, typer.Option("--diff", help="Show what changed since the day was computed.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Show the day's whole history instead, oldest first.")
    ] = False,
    as_json: AsJson = False,
) -> Report:
    """Show what a day was computed from, by which run and code, back to files; exit code 1 if it is stale or held."""
    if history:
        if diff:
            raise UsageError("--history and --diff show different things.", "Leave out one of them.")
        from platform_assets.cli.commands.audit import life

        return life(table, day)
    with platform_to_look() as platform, without_numpy():
        contract = platform.catalogue[table]
        explanation = explain(platform, contract, parse_day(day, platform.settings))
        keeping = _keeping(explanation)
        held = held_days(platform, [hold for hold in platform.ledger.holds() if (hold.table, hold.day) in keeping])
        replaced = replaced_files(platform, explanation.origin) if explanation.origin else ()
        record = explanation.origin.days.get(explanation.day) if explanation.origin else None
        is_asked = diff and not as_json and explanation.differences
        delivered = NewSince(platform).changes(explanation.table, explanation.day, record).arrivals if is_asked else ()
        ended = None
        if explanation.now is not None:  # else of a raw table, which is never rolled back
            ended = rollback_of(platform, explanation.table, explanation.day, stale=bool(explanation.reasons))
        columns = column_sources(platform.catalogue, contract)
        beside = _Besides(held, warned_day(platform, record) if record else None, ended, replaced, delivered, columns)
    needs = explanation.reasons or explanation.origin is None or held or _is_bereft(explanation.state)
    return Report(_parts(explanation, beside, diff=diff), _json(explanation, beside, diff=diff), bool(needs))


def _parts(explanation: Explanation, beside: _Besides, *, diff: bool) -> Iterator[Any]:
    name = f"{explanation.table} {explanation.day}"
    there = explanation.origin is not None
    yield from (_state_parts if there else _without_content_parts)(explanation, name, beside.held)
    if beside.ended:
        yield ended_note(beside.ended)
    if explanation.origin is None:
        return
    if beside.warned:
        yield from warned_day_parts(beside.warned)
    if explanation.scope:
        scope = explanation.scope
        only = f"computed last, only {shown_keys(scope.keys)} ({counted(scope.rows, 'row')}); the other rows are from "
        yield Note("yellow", "in part", f"{only}before, so that the day stays stale until it is computed whole")
    record = explanation.origin.days.get(explanation.day)
    if accepted := accepted_by_hand(record.figures if record else {}):
        what = f"by hand: what {' and '.join(accepted)} found; `why {name} --history` says who did and why"
        yield Note("", "accepted", what)
    yield from (Note("yellow", "not taken", line) for line in not_taken_lines(beside.replaced))
    made = [(name, each) for name, each in beside.columns.items() if [one.rpartition(".")[2] for one in each] != [name]]
    yield from (Note("", "column", f"{name} from {', '.join(each)}") for name, each in made if each)
    yield origin_tree(explanation.origin, explanation.software)
    if diff:
        yield from _differences_parts(explanation, beside)


def _keeping(explanation: Explanation) -> set[tuple[str, date]]:
    """Return the held days that keep the day from following its inputs: itself, or a day that it reads.

    A stale held day does not count: it is tried again, and may come out differently.
    """
    state, keeping = explanation.state, list[Hold]()
    if isinstance(state, Held) or explanation.now is None or explanation.origin is None:
        keeping += explanation.held if not explanation.reasons else ()
    if isinstance(state, Blocked) and state.hold is not None:
        keeping.append(state.hold)
    return {(hold.table, hold.day) for hold in keeping}


def _is_bereft(state: DayState) -> bool:
    return isinstance(state, Blocked) and not state.is_there


def _state_parts(explanation: Explanation, name: str, held: Collection[HeldDay]) -> Iterator[Part]:
    if explanation.reasons:
        yield Note("yellow", "stale", f"{name}: {', '.join(explanation.reasons)}")
    elif _is_bereft(explanation.state):
        yield Note("yellow", "out of date", f"{name}: made from more than is there")
    elif explanation.now is not None and not held:
        yield Note("green", "up to date", name)
    yield from held_parts(held, of=explanation.table)
    if isinstance(explanation.state, Blocked):
        yield Note("yellow", "cannot be computed", cause(explanation.state))


def _without_content_parts(explanation: Explanation, name: str, held: Collection[HeldDay]) -> Iterator[Part]:
    """Say why readers see nothing of a day: a missing input, a hold, or that it was not computed yet."""
    lacking = [f"{table} has never been loaded for {day}" for table, day in explanation.lacking.items()]
    if isinstance(explanation.state, Blocked):  # by what the first of these lacks in turn, if it is not there
        lacking[: not explanation.state.is_there] = [cause(explanation.state)]
    yield from held_parts(held, of=explanation.table)
    if explanation.held and not lacking and not explanation.reasons:
        return
    if explanation.now is None:
        nothing = "nothing was taken for it so far; `platform-assets status` shows what waits"
        yield Note("yellow", "never loaded", f"{name}: {nothing}")
    else:
        lacks = "; ".join(lacking) or "its inputs are there, a refresh takes it"
        yield Note("yellow", "never computed", f"{name}: {lacks}")


def _differences_parts(explanation: Explanation, beside: _Besides) -> Iterator[Part]:
    if explanation.then is not None and explanation.now is not None:
        for name in ("code", "configuration"):
            then, now = getattr(explanation.then, name), getattr(explanation.now, name)
            if then != now:
                yield Note("yellow", name, f"was {then or 'not recorded'}, is {now}")
    yield from (Note("yellow", "contract changed", str(change)) for change in explanation.changes)
    for difference in explanation.differences[:_SHOWN]:
        yield Note("yellow", "input", f"{difference.table} {difference.day}: {_rows_then_and_now(difference)}")
    if len(explanation.differences) > _SHOWN:
        yield f"and {len(explanation.differences) - _SHOWN:,} more days of inputs"
    for file in beside.delivered[:_SHOWN]:
        yield Note("", "delivered since", f"{file.path} ({counted(file.taken, 'row')} in all)")
    if len(beside.delivered) > _SHOWN:
        yield Note("", "delivered since", f"{counted(len(beside.delivered) - _SHOWN, 'more file')}")
    if explanation.differences:
        day = f"{explanation.differences[0].table} {explanation.differences[0].day}"
        yield f"`platform-assets why {day}` names the files that such a day is made of now."
    if not (explanation.differences or explanation.changes or explanation.reasons):
        yield "Nothing differs from what the day was made of."


def _rows_then_and_now(difference: Difference) -> str:
    """Say by how many rows a day differs; digests are for programs."""
    then, now = (None if digest is None else Digest.parse(digest).rows for digest in (difference.then, difference.now))
    if then == now and then is not None:
        return f"{counted(then, 'row')} as before, not all of them the same"
    was, is_now = ("not there" if rows is None else counted(rows, "row") for rows in (then, now))
    return f"was {was}, is {is_now}"


def _json(explanation: Explanation, beside: _Besides, *, diff: bool) -> dict[str, Any]:
    state = explanation.state
    blocked = None
    if isinstance(state, Blocked):
        blocked = picked(state, "day is_there", reads=state.table, cause=cause(state))
    shown = picked(
        explanation,
        "table day",
        stale=explanation.reasons,
        blocked=blocked,
        held=[picked(hold, "gate reason run created_at") for hold in explanation.held],
        held_by=[held_json(day) for day in beside.held],
        warned=warned_json(beside.warned),
        rollback_ended=ended_json(beside.ended) if beside.ended else None,
        replaced_files=[picked(file, "path", reason=file.message) for file in beside.replaced],
        never_loaded=explanation.lacking,
        computed_with=explanation.software,
        only=explanation.scope.keys if explanation.scope else None,
        columns=beside.columns,
        origin=explanation.origin and _origin_json(explanation.origin),
    )
    if diff:
        shown["diff"] = {
            "version": {"then": explanation.then, "now": explanation.now},
            "contract": [change.what for change in explanation.changes],
            "inputs": [picked(difference, "table day then now") for difference in explanation.differences],
        }
    return shown


def _origin_json(origin: Origin) -> dict[str, Any]:
    return picked(
        origin,
        "table window version",
        days_before_calendar=origin.before_calendar,
        days=[picked(record, _OF_A_DAY) for record in origin.days.values()],
        publications=[picked(head, _OF_A_PUBLICATION) for head in origin.publications],
        files=None if origin.arrivals is None else [picked(file, _OF_A_FILE) for file in origin.arrivals],
        inputs=[_origin_json(read) for read in origin.inputs],
    )


def origin_tree(origin: Origin, software: Mapping[str, str] = MappingProxyType({})) -> Tree:
    """Draw a table with the days that were read, their author and code, and below it its own inputs."""
    tree = Tree(_head(origin), guide_style="dim", highlight=False)
    if len(origin.days) == 1:
        [record] = origin.days.values()
        tree.add(f"{counted(record.rows, 'row')}, digest {record.digest}")
        if record.fingerprint:
            tree.add(f"fingerprint {record.fingerprint}")
            commit = f", commit {shown_commits(record.git_commit)}" if record.git_commit else ""
            configuration = record.configuration or "not recorded"
            tree.add(f"code version {record.code_version}, configuration {configuration}{commit}")
        if record.figures.get("keys_quarantined"):
            shown = f"`platform-assets read {quarantine_table(origin.table)}` shows them"
            tree.add(f"[yellow]{quarantine_share(record.figures)}[/]: {shown}")
        if "files_read" in record.figures:
            files, days = record.figures["files_read"], record.figures["days_read"]
            tree.add(f"read {counted(files, 'file')} of {counted(days, 'day')} of its inputs, as executed")
    elif origin.days:
        rows = sum(record.rows for record in origin.days.values())
        digests = "|".join(f"{day}={record.digest}" for day, record in origin.days.items())
        together = hashlib.sha256(digests.encode()).hexdigest()[:16]
        tree.add(f"{counted(rows, 'row')}, digests together {together}")
    if origin.window:  # what was found of the day itself is said above
        _add_warnings(tree, origin)
    if software:
        versions = (f"{_SOFTWARE.get(name, name)} {version}" for name, version in software.items())
        tree.add(f"computed with {', '.join(versions)}")
    for head in origin.publications[:_BRANCHES_SHOWN]:
        tree.add(_publication(head))
    if len(origin.publications) > _BRANCHES_SHOWN:
        tree.add(f"and {counted(len(origin.publications) - _BRANCHES_SHOWN, 'older publication')}")
    if origin.arrivals is None:
        tree.add("files: too many days to name them; ask for a single day of this table")
    for arrival in (origin.arrivals or ())[:_BRANCHES_SHOWN]:
        tree.add(_file(arrival))
    if (more := len(origin.arrivals or ()) - _BRANCHES_SHOWN) > 0:
        tree.add(f"and {counted(more, 'more file')}")
    for read in origin.inputs:
        tree.add(origin_tree(read))
    return tree


def _add_warnings(tree: Tree, origin: Origin) -> None:
    warned = {day: record.warnings for day, record in origin.days.items() if record.warnings}
    if len(origin.days) == 1:
        for warning in (each for warnings in warned.values() for each in warnings):
            tree.add(f"[yellow]warned[/] {escape(str(warning))}")
    elif warned:
        tree.add(f"[yellow]warned[/] of {counted(len(warned), 'day')} of these: {which(warned)}")


def _head(origin: Origin) -> str:
    days = f"{which(origin.days)} ({len(origin.days):,} days)" if len(origin.days) > 1 else which(origin.days)
    through = f" through {origin.window}" if origin.window else ""
    cut = f", cut by {counted(origin.before_calendar, 'day')} before the calendar" if origin.before_calendar else ""
    version = f", version {origin.version}" if origin.version >= 0 else ""
    return f"[bold]{origin.table}[/] {days or 'no day loaded'}{through}{cut}{version}"


def _publication(head: PublicationRecord) -> str:
    commit = f", commit {shown_commits(head.git_commit)}" if head.git_commit else ""
    return (
        f"{head.kind} {head.publication} ({head.created_at:%Y-%m-%d %H:%M} UTC, release {head.release}) by "
        f"{escape(head.who)}, run {escape(head.run)}: {escape(head.why)}{commit}"
    )


def _file(arrival: ArrivalRecord) -> str:
    if arrival.kind == "withdrawal":
        return f"[yellow]withdrawal[/] {escape(arrival.path)}: takes {escape(arrival.origin or '')} out again"
    taken = f"{counted(arrival.taken, 'row')} taken"
    if arrival.kind in ("approval", "due", "replay"):
        return f"[green]{arrival.kind}[/] {escape(arrival.path)}: {taken} from {escape(arrival.origin or '')}"
    parts = [f"{rows:,} {name}" for name, rows in (("refused", arrival.refused), ("erased", arrival.erased)) if rows]
    others = f" of {arrival.landed:,}, {', '.join(parts)}" if parts else ""
    replay = "".join(f"; {escape(note)}" for note in arrival.notes if note.startswith((REPLAY, UNDATED)))
    return f"[green]file[/] {escape(arrival.path)}: {taken}{others}, sha256 {arrival.sha256[:12]}{replay}"
