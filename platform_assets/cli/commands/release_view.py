"""How a release and the difference of two look: for people, and for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from platform_assets.cli.amounts_view import became, print_unread, sums_json, sums_shown
from platform_assets.cli.console import console, escape
from platform_assets.cli.grids import new_grid
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.windows import which
from platform_assets.records.decisions import signed
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import AmountChanges
    from platform_assets.operations.lineage.release_diff import DayDifference
    from platform_assets.operations.pins import Pin

_FILES_SHOWN = 5
_rows, _bytes = attrgetter("rows"), attrgetter("bytes")


def print_release(
    release: Release,
    made: PublicationRecord,
    changes: Sequence[DayDifference],
    pin: Pin | None,
    limit: int,
    *,
    is_current: bool,
) -> None:
    """A release for people: where it comes from, what it changed, what it shows."""
    from platform_assets.operations.pins import described

    facts = {
        "release": f"{release.number}{', the current one' if is_current else ''}",
        "pin": described(pin) if pin else "",
        "what": f"{made.what}, publication {made.publication}, {made.created_at:%Y-%m-%d %H:%M:%S} UTC",
        "by": f"{signed(made.who, made.as_user, made.on_host)}, run {made.run}",
        "why": made.why,
        "commit": made.git_commit or "",
    }
    for name, text in facts.items():
        if text:
            console.print(f"[bold]{name:8}[/] {escape(text)}", highlight=False, soft_wrap=True)
    for arrival in made.arrivals[:_FILES_SHOWN]:
        text = f"{arrival.kind} {arrival.path}: {counted(arrival.taken, 'row')} taken, {arrival.refused:,} refused"
        console.print(f"[bold]arrival [/] {escape(text)}", highlight=False, soft_wrap=True)
    if len(made.arrivals) > _FILES_SHOWN:
        console.print(f"         and {len(made.arrivals) - _FILES_SHOWN:,} more: --json")
    console.print()
    _print_changes(
        changes, limit, f"What differs from release {release.number - 1}" if release.number else "First content"
    )
    same = {(day.table, day.day) for day in made.days} - {(change.table, change.day) for change in changes}
    if same:
        tables = sorted({table for table, _ in same})
        shown = "; ".join(f"{table} {which([day for name, day in same if name == table])}" for table in tables)
        console.print(f"Published with the content they had: {shown}", highlight=False, soft_wrap=True)
    grid = new_grid("Versions it shows", ("table", "version"), right=("version",))
    for table, version in release.versions.items():
        grid.add_row(table, str(version))
    console.print(grid)
    if changes:
        console.print(_in_all(changes), highlight=False, soft_wrap=True)


def print_diff(
    before: Release,
    after: Release,
    changes: Sequence[DayDifference],
    amounts: AmountChanges,
    heads: Sequence[PublicationRecord],
    limit: int,
) -> None:
    """The difference of two releases for people."""
    if not changes:
        console.print(f"Releases {before.number} and {after.number} show the same there.", highlight=False)
        return
    _print_changes(changes, limit, f"From release {before.number} to {after.number}", amounts)
    print_unread(amounts)
    grid = new_grid("Made by", ("release", "publication", "kind", "by", "run", "why"), right=("release",))
    for head in heads:
        cells = (str(head.release), head.publication, head.what, head.who, head.run, head.why)
        grid.add_row(*map(escape, cells))
    console.print(grid)


def _print_changes(
    changes: Sequence[DayDifference], limit: int, title: str, amounts: AmountChanges | None = None
) -> None:
    if not changes:
        console.print("No day differs from the release before.")
        return
    counts = ("days", "rows", "bytes")
    named = ("amounts",) if amounts and amounts.by_day else ()
    sums = new_grid(title, ("table", "days", "which", "rows", "bytes", *named), right=counts, whole=("table", *named))
    for table in sorted({change.table for change in changes}):
        of_it = [change for change in changes if change.table == table]
        rows, stored = became(*_total(of_it, _rows)), became(*_total(of_it, _bytes), size)
        days = [change.day for change in of_it]
        told = [sums_shown(amounts.of(table, days))] if amounts and named else []
        sums.add_row(table, f"{len(of_it):,}", which(days), rows, stored, *told)
    console.print(sums)
    figures = [_figures(change, amounts) for change in changes[:limit]]
    # Of most corrections none differs, and a column of nothing would only ask what it is for.
    last = ("figures", "by releases") if any(figures) else ("by releases",)
    grid = new_grid("Day by day", ("table", "day", "rows", "bytes", *last), ("rows", "bytes"), last)
    for change, counted_anew in zip(changes, figures, strict=False):
        cells = [change.table, str(change.day), became(*_total([change], _rows))]
        cells += [became(*_total([change], _bytes), size), *([counted_anew] if any(figures) else [])]
        grid.add_row(*cells, ", ".join(map(str, change.releases)))
    console.print(grid)
    if len(changes) > limit:
        console.print(
            f"and {len(changes) - limit:,} more days: --limit {len(changes)}", highlight=False, soft_wrap=True
        )


def _in_all(changes: Collection[DayDifference]) -> str:
    """What all of it comes to, on a line."""
    of = f"{counted(len({change.table for change in changes}), 'table')}, {counted(len(changes), 'day')}"
    return f"In all {of}; rows {became(*_total(changes, _rows))}, bytes {became(*_total(changes, _bytes), size)}"


def _figures(change: DayDifference, amounts: AmountChanges | None) -> str:
    """The sums of a day that differ, then what was counted."""
    moved = amounts.of(change.table, [change.day]) if amounts else {}
    counts = [f"{name} {became(*pair)}" for name, pair in change.figures.items() if any(pair)]
    return "\n".join(filter(None, [sums_shown(moved), *counts]))


def _total(changes: Collection[DayDifference], count: Callable[[DayRecord], int]) -> tuple[int | None, int | None]:
    """Before and after; None where no day is there at all."""
    then = [count(change.before) for change in changes if change.before]
    now = [count(change.after) for change in changes if change.after]
    return sum(then) if then else None, sum(now) if now else None


def release_json(
    release: Release,
    made: PublicationRecord,
    changes: Sequence[DayDifference],
    pin: Pin | None,
    paths: Mapping[str, str],
    *,
    is_current: bool,
) -> dict[str, Any]:
    """A release for programs; the tables with all that plain Delta readers need."""
    names = ("table", "path", "kind", "taken", "refused", "late", "erased", "reason")
    return {
        **publication_json(made),
        "current": is_current,
        "pin": pin_json(pin) if pin else None,
        "tables": {table: {"version": version, "path": paths[table]} for table, version in release.versions.items()},
        "changes": [_change_json(change) for change in changes],
        "arrivals": [{name: getattr(arrival, name) for name in names} for arrival in made.arrivals],
    }


def diff_json(
    before: Release,
    after: Release,
    changes: Sequence[DayDifference],
    amounts: AmountChanges,
    heads: Sequence[PublicationRecord],
) -> dict[str, Any]:
    """The difference of two releases for programs."""
    return {
        "before": before.number,
        "after": after.number,
        "changes": [
            _change_json(change) | {"sums": sums_json(amounts.of(change.table, [change.day]))} for change in changes
        ],
        "amounts_not_told": dict(amounts.unread),
        "publications": [publication_json(head) for head in heads],
    }


def publication_json(made: PublicationRecord) -> dict[str, Any]:
    """Who published what kind of thing, when and why."""
    names = ("release", "publication", "created_at", "kind", "decides", "run", "who", "as_user", "on_host", "why")
    return {name: getattr(made, name) for name in (*names, "git_commit")}


def pin_json(pin: Pin) -> dict[str, Any]:
    """A pin for programs."""
    return vars(pin) | {"name": pin.name or None}


def _change_json(change: DayDifference) -> dict[str, Any]:
    return {
        "table": change.table,
        "day": change.day,
        "before": _day_json(change.before),
        "after": _day_json(change.after),
        "releases": list(change.releases),
    }


def _day_json(day: DayRecord | None) -> dict[str, Any] | None:
    names = ("digest", "rows", "bytes", "files", "figures", "publication")
    return {name: getattr(day, name) for name in names} if day else None
