"""`why`: the chain of a published day, back to the files that were delivered and the code that read them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.tree import Tree

from platform_assets.cli.console import EXIT_LOOK, console, escape, parse_day, platform_to_look, print_json, say
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.cli.options import AsJson, OneDay, TableName
from platform_assets.cli.plan_view import cause
from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.lineage.provenance import Difference, Explanation, Origin, explain
from platform_assets.planning.day_states import Blocked, DayState, Held
from platform_assets.planning.key_scope import shown_keys
from platform_assets.planning.windows import which
from platform_assets.quality.set_aside import quarantined
from platform_assets.records.code_version import Version, shown_commits
from platform_assets.records.history import ArrivalRecord, Hold, PublicationRecord
from platform_assets.records.manifest import Scope
from platform_assets.words import counted

_SOFTWARE = {"platform": "platform-assets", "spark": "Spark", "delta": "Delta"}
_SHOWN = 5
"""Files, publications and differing days that a list names."""


def why(
    table: TableName,
    day: OneDay,
    diff: Annotated[bool, typer.Option("--diff", help="Show what differs now from what the day was made of.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a day was made from, by which run and code, back to the files; exit code 1 if it is stale or held."""
    with platform_to_look() as platform:
        contract = platform.catalogue[table]
        explanation = explain(platform, contract, parse_day(day, platform.settings))
        held = held_days(platform, _keeping(explanation))
    if as_json:
        print_json(_json(explanation, held, diff=diff))
    else:
        _print(explanation, held, diff=diff)
    if explanation.reasons or explanation.origin is None or held or _is_bereft(explanation.state):
        raise typer.Exit(EXIT_LOOK)


def _print(explanation: Explanation, held: Collection[HeldDay], *, diff: bool) -> None:
    name = f"{explanation.table} {explanation.day}"
    if explanation.origin is None:
        _print_without_content(explanation, name, held)
        return
    _print_state(explanation, name, held)
    if explanation.scope:
        say("[yellow]in part[/]", _scope(explanation.scope))
    console.print(_tree(explanation.origin, explanation.software))
    if diff:
        _print_differences(explanation)


def _keeping(explanation: Explanation) -> tuple[Hold, ...]:
    """The holds that keep the day from becoming what its inputs say: its own, or those of a day that it reads.

    Of a stale day its own are left out: it is tried again, and may come out otherwise.
    """
    if isinstance(explanation.state, Held) or explanation.now is None or explanation.origin is None:
        own = explanation.held if not explanation.reasons else ()
    else:
        own = ()
    if isinstance(explanation.state, Blocked) and explanation.state.hold is not None:
        return (*own, explanation.state.hold)
    return own


def _is_bereft(state: DayState) -> bool:
    return isinstance(state, Blocked) and not state.is_there


def _print_state(explanation: Explanation, name: str, held: Collection[HeldDay]) -> None:
    if explanation.reasons:
        say("[yellow]stale[/]", f"{name}: {', '.join(explanation.reasons)}")
    elif _is_bereft(explanation.state):
        say("[yellow]out of date[/]", f"{name}: made from more than is there")
    elif explanation.now is not None and not held:
        say("[green]up to date[/]", name)
    print_held(held, of=explanation.table)
    if isinstance(explanation.state, Blocked):
        say("[yellow]cannot be computed[/]", cause(explanation.state))


def _print_without_content(explanation: Explanation, name: str, held: Collection[HeldDay]) -> None:
    """Why readers see nothing of a day: what it lacks or what holds it, else that its turn has not come."""
    lacking = [f"{table} has never been loaded for {day}" for table, day in explanation.lacking.items()]
    if isinstance(explanation.state, Blocked) and explanation.state.is_there:
        lacking.append(cause(explanation.state))
    print_held(held, of=explanation.table)
    if explanation.held and not lacking and not explanation.reasons:
        return
    if explanation.now is None:
        say(
            "[yellow]never loaded[/]",
            f"{name}: nothing was taken for it so far; `platform-assets status` shows what waits",
        )
    else:
        say("[yellow]never computed[/]", f"{name}: {'; '.join(lacking) or 'its inputs are there, a refresh takes it'}")


def _tree(origin: Origin, software: Mapping[str, str] = MappingProxyType({})) -> Tree:
    """A table, the days of it that were read, who made them and with what, and below it what they come from."""
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
            tree.add(f"[yellow]{quarantined(record.figures)}[/]: `read {quarantine_table(origin.table)}` shows them")
        if "files_read" in record.figures:
            files, days = record.figures["files_read"], record.figures["days_read"]
            tree.add(f"read {counted(files, 'file')} of {counted(days, 'day')} of its inputs, as executed")
    elif origin.days:
        rows = sum(record.rows for record in origin.days.values())
        tree.add(f"{counted(rows, 'row')}, digests together {_together(origin)}")
    if software:
        tree.add(
            f"computed with {', '.join(f'{_SOFTWARE.get(name, name)} {version}' for name, version in software.items())}"
        )
    for head in origin.publications[:_SHOWN]:
        tree.add(_publication(head))
    if len(origin.publications) > _SHOWN:
        tree.add(f"and {counted(len(origin.publications) - _SHOWN, 'older publication')}")
    if origin.arrivals is None:
        tree.add("files: too many days to name them; ask for a single day of this table")
    for arrival in (origin.arrivals or ())[:_SHOWN]:
        tree.add(_file(arrival))
    if len(origin.arrivals or ()) > _SHOWN:
        tree.add(f"and {counted(len(origin.arrivals or ()) - _SHOWN, 'more file')}")
    for read in origin.inputs:
        tree.add(_tree(read))
    return tree


def _scope(scope: Scope) -> str:
    return (
        f"computed last, only {shown_keys(scope.keys)} ({counted(scope.rows, 'row')}); the other rows are from before, "
        "so that the day stays stale until it is computed whole"
    )


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
    if arrival.kind in ("approval", "due"):
        return f"[green]{arrival.kind}[/] {escape(arrival.path)}: {taken} from {escape(arrival.origin or '')}"
    parts = [f"{rows:,} {name}" for name, rows in (("refused", arrival.refused), ("erased", arrival.erased)) if rows]
    others = f" of {arrival.landed:,}, {', '.join(parts)}" if parts else ""
    return f"[green]file[/] {escape(arrival.path)}: {taken}{others}, sha256 {arrival.sha256[:12]}"


def _together(origin: Origin) -> str:
    text = "|".join(f"{day}={record.digest}" for day, record in origin.days.items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _print_differences(explanation: Explanation) -> None:
    if explanation.then is not None and explanation.now is not None:
        for name in ("code", "configuration"):
            then, now = getattr(explanation.then, name), getattr(explanation.now, name)
            if then != now:
                say(f"[yellow]{name}[/]", f"was {then or 'not recorded'}, is {now}")
    for change in explanation.changes:
        say("[yellow]contract changed[/]", str(change))
    for difference in explanation.differences[:_SHOWN]:
        say(
            "[yellow]input[/]",
            f"{difference.table} {difference.day}: was {difference.then or 'not there'}, "
            f"is {difference.now or 'not there'}",
        )
    if len(explanation.differences) > _SHOWN:
        console.print(f"and {len(explanation.differences) - _SHOWN:,} more days of inputs")
    if not (explanation.differences or explanation.changes or explanation.reasons):
        console.print("Nothing differs from what the day was made of.")


def _json(explanation: Explanation, held: Collection[HeldDay], *, diff: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "table": explanation.table,
        "day": explanation.day,
        "stale": list(explanation.reasons),
        "blocked": _blocked(explanation.state),
        "held": [{name: getattr(hold, name) for name in _OF_A_HOLD} for hold in explanation.held],
        "held_by": [held_json(day) for day in held],
        "never_loaded": {table: str(day) for table, day in explanation.lacking.items()},
        "computed_with": dict(explanation.software),
        "only": dict(explanation.scope.keys) if explanation.scope else None,
        "origin": None if explanation.origin is None else _origin_json(explanation.origin),
    }
    if diff:
        shown["diff"] = {
            "version": {"then": _version(explanation.then), "now": _version(explanation.now)},
            "contract": [change.what for change in explanation.changes],
            "inputs": [_difference(difference) for difference in explanation.differences],
        }
    return shown


def _blocked(state: DayState) -> dict[str, Any] | None:
    if not isinstance(state, Blocked):
        return None
    return {"reads": state.table, "day": state.day, "is_there": state.is_there, "cause": cause(state)}


def _version(version: Version | None) -> dict[str, str] | None:
    return None if version is None else vars(version)


def _difference(difference: Difference) -> dict[str, Any]:
    return {"table": difference.table, "day": difference.day, "then": difference.then, "now": difference.now}


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {
        "table": origin.table,
        "window": origin.window,
        "days_before_calendar": origin.before_calendar,
        "version": origin.version,
        "days": [
            {
                "day": record.day,
                "digest": record.digest,
                "rows": record.rows,
                "fingerprint": record.fingerprint,
                "code_version": record.code_version,
                "configuration": record.configuration,
                "git_commit": record.git_commit,
                "publication": record.publication,
                "figures": record.figures,
            }
            for record in origin.days.values()
        ],
        "publications": [{name: getattr(head, name) for name in _OF_A_PUBLICATION} for head in origin.publications],
        "files": None
        if origin.arrivals is None
        else [{name: getattr(file, name) for name in _OF_A_FILE} for file in origin.arrivals],
        "inputs": [_origin_json(read) for read in origin.inputs],
    }


_OF_A_HOLD = ("gate", "reason", "run", "created_at")
_OF_A_PUBLICATION = ("publication", "release", "created_at", "kind", "run", "who", "why", "git_commit")
_OF_A_FILE = ("path", "kind", "origin", "arrival_date", "sha256", "taken", "refused", "erased", "publication")
