"""Releases: `status releases`, the difference of two for `diff`, `admin pin`, and the end of a pin for `undo`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Annotated, Any

import typer

from platform_assets.cli.changes_view import amounts_parts, became, sums_json, sums_shown
from platform_assets.cli.console import opened_platform, platform_to_look, selected, without_numpy
from platform_assets.cli.options import only_one
from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.lakehouse.releases import release as release_of
from platform_assets.operations.lineage.amount_changes import (
    AmountChanges,
    DayDifference,
    changed_amounts,
    changed_days,
)
from platform_assets.operations.pins import Pin, described, pinned_releases, release_number
from platform_assets.operations.pins import pin as keep
from platform_assets.operations.pins import unpin as let_go
from platform_assets.planning.windows import which as days_shown
from platform_assets.records.decisions import signed
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.report import Cell, Facts, Heading, Part, Report, Table, picked
from platform_assets.words import counted, size

_CURRENT = "current"
_SHOWN = 20
_FILES_SHOWN = 5
_rows, _bytes = attrgetter("rows"), attrgetter("bytes")


def _shown_release(which: str, limit: int) -> Report:
    """Show what a release changed, in rows and amounts, why and by whom, and the version of every table in it."""
    with opened_platform() as platform, without_numpy():
        release = _chosen_release(platform, which)
        if release.number < 0:
            return Report(["Nothing was published yet."], None)
        before = release_of(platform.lake, release.number - 1) if release.number else Release()
        changes = changed_days(platform, before, release)
        amounts = changed_amounts(platform, before, release, changes)
        made = platform.ledger.publication(
            next(name for name, number in platform.ledger.indexed().items() if number == release.number)
        )
        assert made is not None
        is_current = release.number == current_release(platform.lake).number
        pin = pinned_releases(platform.ledger, as_far_as_readable=True).get(release.number)
        paths = {table: str(platform.lake.table_path(table)) for table in release.versions}
    data = {
        **_publication_json(made),
        "current": is_current,
        "pin": _pin_json(pin) if pin else None,
        "tables": {table: {"version": version, "path": paths[table]} for table, version in release.versions.items()},
        **_changes_json(changes, amounts),
        "arrivals": [picked(one, "table path kind taken refused late erased reason") for one in made.arrivals],
    }

    def parts() -> Iterator[Part]:
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
        arrivals = [
            f"{one.kind} {one.path}: {counted(one.taken, 'row')} taken, {one.refused:,} refused"
            for one in made.arrivals[:_FILES_SHOWN]
        ]
        if len(made.arrivals) > _FILES_SHOWN:
            arrivals.append(f"and {len(made.arrivals) - _FILES_SHOWN:,} more: --json")
        entries = [(name, [text]) for name, text in facts.items() if text]
        yield Facts([*entries, *([("arrivals", arrivals)] if arrivals else [])])
        yield ""
        if changes:
            title = f"What differs from release {release.number - 1}" if release.number else "First content"
            yield from _changes_parts(changes, amounts, limit, title)
        else:
            yield "No day differs from the release before."
        same = {(day.table, day.day) for day in made.days} - {(change.table, change.day) for change in changes}
        if same:
            by_table = groupby(sorted(same), key=itemgetter(0))
            had = "; ".join(f"{table} {days_shown([day for _, day in some])}" for table, some in by_table)
            yield f"Published with the content they had: {had}"
        versions = [(table, str(version)) for table, version in release.versions.items()]
        yield Table("Versions it shows", ("table", "version"), versions, right=("version",))
        if changes:
            yield _in_all(changes)

    return Report(parts(), data)


def releases_diff(
    before: str, after: str = _CURRENT, names: Sequence[str] = (), days: str | None = None, limit: int = _SHOWN
) -> Report:
    """Show which days differ between two releases, in rows and amounts, and which publications made the difference."""
    with opened_platform() as platform, without_numpy():
        old, new = _chosen_release(platform, before), _chosen_release(platform, after)
        changes = changed_days(platform, old, new, selected(platform, names, days))
        amounts = changed_amounts(platform, old, new, changes)
        shown = {number for change in changes for number in change.releases}
        by_number = {number: name for name, number in platform.ledger.indexed().items() if number in shown}
        heads = [head for number in sorted(shown) if (head := platform.ledger.head(by_number[number]))]
    data = {
        "before": old.number,
        "after": new.number,
        **_changes_json(changes, amounts),
        "publications": [_publication_json(head) for head in heads],
    }

    def parts() -> Iterator[Part]:
        if not changes:
            yield f"Releases {old.number} and {new.number} show the same there."
            return
        yield from _changes_parts(changes, amounts, limit, f"From release {old.number} to {new.number}")
        yield Heading("Made by")
        made = "{0.what} by {0.who}: {0.why}", "publication {0.publication}, run {0.run}"
        yield Facts([(str(head.release), [line.format(head) for line in made]) for head in heads], right=True)
        yield ""
        yield _in_all(changes)

    return Report(parts(), data)


def pin(
    which: Annotated[str, typer.Argument(metavar="RELEASE", help="Its number, or a publication.")],
    author: Author,
    name: Annotated[str | None, typer.Option(help="A name by which it can be read, too.")] = None,
) -> Report:
    """Keep a release readable until it is unpinned: maintenance deletes none of its files."""
    with opened_platform() as platform:
        done = keep(platform, _chosen_release(platform, which).number, author, name)
    name = f" as {done.name}" if done.name else ""
    return Report([f"Release {done.release} is pinned{name}: it stays readable until it is unpinned."], _pin_json(done))


def unpin(which: str, author: Author) -> Report:
    """Let maintenance delete what only this release needs, once it is old enough."""
    with opened_platform() as platform:
        done = let_go(platform, release_number(platform.ledger, which), author)
    return Report([f"Release {done.release} is no longer pinned."], _pin_json(done))


def _chosen_release(platform: Platform, which: str) -> Release:
    """Return a release, also one whose files are deleted: the ledger knows it for ever."""
    if which == _CURRENT:
        return current_release(platform.lake)
    return release_of(platform.lake, release_number(platform.ledger, which))


def _changes_parts(changes: Sequence[DayDifference], amounts: AmountChanges, limit: int, title: str) -> Iterator[Part]:
    by_table: defaultdict[str, list[DayDifference]] = defaultdict(list)
    for change in changes:
        by_table[change.table].append(change)
    days = {table: [change.day for change in of_it] for table, of_it in by_table.items()}
    sums = [
        (table, f"{len(of_it):,}", days_shown(days[table]), became(*_total(of_it, _rows)))
        for table, of_it in by_table.items()
    ]
    yield Table(title, ("table", "days", "which", "rows"), sums, ("days", "rows"), ("table",))
    yield from amounts_parts(amounts, days)
    figures = [
        (
            *sums_shown(amounts.of(change.table, [change.day])),
            *(f"{name} {became(*pair)}" for name, pair in change.figures.items() if any(pair)),
        )
        for change in changes[:limit]
    ]
    # A column of nothing, or of the same in every row, would only ask what it is for.
    last: tuple[str, ...] = ("figures",) if any(figures) else ()
    last += ("by releases",) if len({change.releases for change in changes}) > 1 else ()
    rows: list[tuple[Cell, ...]] = []
    for change, counted_anew in zip(changes, figures, strict=False):
        cells: dict[str, Cell] = {"figures": counted_anew, "by releases": (", ".join(map(str, change.releases)),)}
        became_rows = became(*_total([change], _rows))
        rows.append((change.table, str(change.day), became_rows, *(cells[name] for name in last)))
    yield Table("Day by day", ("table", "day", "rows", *last), rows, ("rows",), ("table", "day", *last))
    if len(changes) > limit:
        yield f"and {len(changes) - limit:,} more days: --limit {len(changes)}"


def _in_all(changes: Collection[DayDifference]) -> str:
    of = f"{counted(len({change.table for change in changes}), 'table')}, {counted(len(changes), 'day')}"
    return f"In all {of}; rows {became(*_total(changes, _rows))}, bytes {became(*_total(changes, _bytes), size)}"


def _total(changes: Collection[DayDifference], count: Callable[[DayRecord], int]) -> tuple[int | None, int | None]:
    """Return the sums before and after; None where no day is there at all."""
    then = [count(change.before) for change in changes if change.before]
    now = [count(change.after) for change in changes if change.after]
    return sum(then) if then else None, sum(now) if now else None


def _publication_json(made: PublicationRecord) -> dict[str, Any]:
    """Return who published what kind of thing, when and why."""
    return picked(made, "release publication created_at kind decides run who as_user on_host why git_commit")


def _pin_json(pin: Pin) -> dict[str, Any]:
    """Return a pin for programs."""
    return vars(pin) | {"name": pin.name or None}


def _changes_json(changes: Sequence[DayDifference], amounts: AmountChanges) -> dict[str, Any]:
    names = "digest rows bytes files figures publication"
    shown = [
        picked(
            change,
            "table day releases",
            before=change.before and picked(change.before, names),
            after=change.after and picked(change.after, names),
            sums=sums_json(amounts.of(change.table, [change.day])),
        )
        for change in changes
    ]
    return {"changes": shown, "amounts_not_told": amounts.unread}


def releases(names: Sequence[str] = (), limit: int = _SHOWN, *, pinned: bool = False) -> Report:
    """List publications: release, time, tables and days, author, reason, pin; or show all of the one that is named."""
    if which := only_one("status releases", names):
        return _shown_release(which, limit)
    with platform_to_look() as platform:
        pins = pinned_releases(platform.ledger, as_far_as_readable=True)
        names = [name for name, number in platform.ledger.indexed().items() if number in pins or not pinned]
        shown = [record for name in names[: -limit - 1 : -1] if (record := platform.ledger.publication(name))]
    data = [
        _publication_json(record)
        | {"days": _days(record), "pin": _pin_json(kept) if (kept := pins.get(record.release)) else None}
        for record in shown
    ]
    nothing = "No release is pinned." if pinned else "Nothing was published yet."

    def parts() -> Iterator[Part]:
        entries = []
        for record in shown:
            mark = "  pinned" if record.release in pins else ""
            what = f"{record.created_at:%Y-%m-%d %H:%M:%S}  {record.what} by {record.who}: {record.why}{mark}"
            days = ", ".join(f"{table} {counted(count, 'day')}" for table, count in _days(record).items())
            by = f"publication {record.publication}, run {record.run}"
            entries.append((str(record.release), (what, days or "no days", by)))
        yield Facts(entries, right=True)
        yield from (f"Release {pin.release} is {described(pin)}" for pin in pins.values())
        if len(names) > len(shown):
            yield f"{len(names) - len(shown):,} older ones: --limit {len(names)}"

    return Report(parts() if shown else [nothing], data)


def _days(record: PublicationRecord) -> dict[str, int]:
    return dict(Counter(day.table for day in record.days))
