"""How a release and the difference of two look: for people, and for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from platform_assets.cli.amounts_view import became, print_amounts, sums_json, sums_shown
from platform_assets.cli.console import console, escape
from platform_assets.cli.grids import Entries, new_grid
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.windows import which
from platform_assets.records.decisions import signed
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import AmountChanges, DayDifference
    from platform_assets.operations.pins import Pin

_FILES_SHOWN = 5
_rows, _bytes = attrgetter("rows"), attrgetter("bytes")


def print_release(
    release: Release,
    made: PublicationRecord,
    changes: Sequence[DayDifference],
    amounts: AmountChanges,
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
        "what": f"{made.what}, {made.created_at:%Y-%m-%d %H:%M:%S} UTC",
        "by": signed(made.who, made.as_user, made.on_host),
        "why": made.why,
        "run": made.run,
        "publication": made.publication,
        "commit": made.git_commit or "",
    }
    entries = Entries(are_named=True)
    for name, text in facts.items():
        if text:
            entries.add(name, escape(text))
    if made.arrivals:
        entries.add("arrivals", *map(escape, _arrivals(made)))
    console.print(entries)
    console.print()
    title = f"What differs from release {release.number - 1}" if release.number else "First content"
    if changes:
        _print_changes(changes, amounts, limit, title)
    else:
        console.print("No day differs from the release before.")
    same = {(day.table, day.day) for day in made.days} - {(change.table, change.day) for change in changes}
    if same:
        tables = sorted({table for table, _ in same})
        shown = "; ".join(f"{table} {which([day for name, day in same if name == table])}" for table in tables)
        console.print(escape(f"Published with the content they had: {shown}"), highlight=False)
    grid = new_grid("Versions it shows", ("table", "version"), right=("version",))
    for table, version in release.versions.items():
        grid.add_row(table, str(version))
    console.print(grid)
    if changes:
        console.print(_in_all(changes), highlight=False)


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
    _print_changes(changes, amounts, limit, f"From release {before.number} to {after.number}")
    console.print("Made by", style="table.title")
    entries = Entries()
    for head in heads:
        said = (f"{head.what} by {head.who}: {head.why}", f"publication {head.publication}, run {head.run}")
        entries.add(str(head.release), *map(escape, said))
    console.print(entries)
    console.print()
    console.print(_in_all(changes), highlight=False)


def _arrivals(made: PublicationRecord) -> Iterator[str]:
    for arrival in made.arrivals[:_FILES_SHOWN]:
        yield f"{arrival.kind} {arrival.path}: {counted(arrival.taken, 'row')} taken, {arrival.refused:,} refused"
    if len(made.arrivals) > _FILES_SHOWN:
        yield f"and {len(made.arrivals) - _FILES_SHOWN:,} more: --json"


def _print_changes(changes: Sequence[DayDifference], amounts: AmountChanges, limit: int, title: str) -> None:
    by_table: defaultdict[str, list[DayDifference]] = defaultdict(list)
    for change in changes:
        by_table[change.table].append(change)
    sums = new_grid(title, ("table", "days", "which", "rows"), right=("days", "rows"), whole=("table",))
    for table, of_it in by_table.items():
        sums.add_row(table, f"{len(of_it):,}", which([one.day for one in of_it]), became(*_total(of_it, _rows)))
    console.print(sums)
    print_amounts(amounts, {table: [change.day for change in of_it] for table, of_it in by_table.items()})
    figures = [_figures(change, amounts) for change in changes[:limit]]
    # A column of nothing, or of the same in every row, would only ask what it is for.
    last: tuple[str, ...] = ("figures",) if any(figures) else ()
    last += ("by releases",) if len({change.releases for change in changes}) > 1 else ()
    grid = new_grid("Day by day", ("table", "day", "rows", *last), ("rows",), ("table", "day", *last))
    for change, counted_anew in zip(changes, figures, strict=False):
        by = ", ".join(map(str, change.releases))
        cells = {"figures": counted_anew, "by releases": by}
        grid.add_row(change.table, str(change.day), became(*_total([change], _rows)), *(cells[name] for name in last))
    console.print(grid)
    if len(changes) > limit:
        console.print(
            f"and {len(changes) - limit:,} more days: --limit {len(changes)}", highlight=False, soft_wrap=True
        )


def _in_all(changes: Collection[DayDifference]) -> str:
    """What all of it comes to, on a line."""
    of = f"{counted(len({change.table for change in changes}), 'table')}, {counted(len(changes), 'day')}"
    return f"In all {of}; rows {became(*_total(changes, _rows))}, bytes {became(*_total(changes, _bytes), size)}"


def _figures(change: DayDifference, amounts: AmountChanges) -> str:
    """The sums of a day that differ, then what was counted."""
    counts = [f"{name} {became(*pair)}" for name, pair in change.figures.items() if any(pair)]
    return "\n".join(filter(None, [sums_shown(amounts.of(change.table, [change.day])), *counts]))


def _total(changes: Collection[DayDifference], count: Callable[[DayRecord], int]) -> tuple[int | None, int | None]:
    """Before and after; None where no day is there at all."""
    then = [count(change.before) for change in changes if change.before]
    now = [count(change.after) for change in changes if change.after]
    return sum(then) if then else None, sum(now) if now else None


def release_json(
    release: Release,
    made: PublicationRecord,
    changes: Sequence[DayDifference],
    amounts: AmountChanges,
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
        "changes": _changes_json(changes, amounts),
        "amounts_not_told": dict(amounts.unread),
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
        "changes": _changes_json(changes, amounts),
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


def _changes_json(changes: Sequence[DayDifference], amounts: AmountChanges) -> list[dict[str, Any]]:
    return [
        {
            "table": change.table,
            "day": change.day,
            "before": _day_json(change.before),
            "after": _day_json(change.after),
            "releases": list(change.releases),
            "sums": sums_json(amounts.of(change.table, [change.day])),
        }
        for change in changes
    ]


def _day_json(day: DayRecord | None) -> dict[str, Any] | None:
    names = ("digest", "rows", "bytes", "files", "figures", "publication")
    return {name: getattr(day, name) for name in names} if day else None
