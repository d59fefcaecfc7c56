"""Releases and stages: `status` of both, `publish`, `admin pin`, and what `read`, `diff` and `undo` do with one."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import amounts_parts, became, comparison_json, sums_json, sums_shown
from platform_assets.cli.console import (
    UsageError,
    errors,
    opened_platform,
    platform_to_look,
    say,
    selected,
    without_numpy,
)
from platform_assets.cli.held_view import DayWarning
from platform_assets.cli.options import only_one
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import OpenStage
from platform_assets.engine.state.planner import plan_steps
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.lakehouse.releases import release as release_of
from platform_assets.operations.lineage.amount_changes import (
    AmountChanges,
    DayDifference,
    changed_amounts,
    changed_days,
)
from platform_assets.operations.lineage.plan_report import kept_lines
from platform_assets.operations.pins import Pin, described, pinned_releases, release_number
from platform_assets.operations.pins import pin as keep
from platform_assets.operations.pins import unpin as let_go
from platform_assets.operations.plan_record import (
    filled_by,
    refuse_stage_of_a_plan,
)
from platform_assets.operations.stages.compare import StagedDay
from platform_assets.operations.stages.compare import compare as compared
from platform_assets.operations.stages.store import all_stages, of_other_code, opened_stage
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.selection import BY_PERSON, shown_keys
from platform_assets.planning.windows import which
from platform_assets.planning.windows import which as days_shown
from platform_assets.records.decisions import signed
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.report import Cell, Facts, Heading, Note, Part, Report, Table, picked
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.stages.stages import StagePublished

_CURRENT = "current"
_SHOWN = 20
_FILES_SHOWN = 5
_rows, _bytes = attrgetter("rows"), attrgetter("bytes")


def _shown_release(which: str, limit: int) -> Report:
    """Show what a release changed in rows and amounts, the reason, the author, and the version of every table."""
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
        yield Facts([*_release_facts(made, pin, is_current=is_current)])
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


def _release_facts(made: PublicationRecord, pin: Pin | None, *, is_current: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield what is known of a release: what made it, who, why, and the files that it took."""
    facts = {
        "release": f"{made.release}{', the current one' if is_current else ''}",
        "pin": described(pin) if pin else "",
        "what": f"{made.what}, {made.created_at:%Y-%m-%d %H:%M:%S} UTC",
        "by": signed(made.who, made.as_user, made.on_host),
        "why": made.why,
        "run": made.run,
        "publication": made.publication,
        "commit": made.git_commit or "",
    }
    yield from ((name, [text]) for name, text in facts.items() if text)
    arrivals = [
        f"{one.kind} {one.path}: {counted(one.taken, 'row')} taken, {one.refused:,} refused"
        for one in made.arrivals[:_FILES_SHOWN]
    ]
    if len(made.arrivals) > _FILES_SHOWN:
        arrivals.append(f"and {len(made.arrivals) - _FILES_SHOWN:,} more: --json")
    if arrivals:
        yield "arrivals", arrivals


def releases_diff(
    before: str, after: str = _CURRENT, names: Sequence[str] = (), days: str | None = None, limit: int = _SHOWN
) -> Report:
    """Show which days differ between two releases, in rows and amounts, and which publications changed them."""
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
    """Remove a pin: maintenance may delete what only this release needs, once it is old enough."""
    with opened_platform() as platform:
        done = let_go(platform, release_number(platform.ledger, which), author)
    return Report([f"Release {done.release} is no longer pinned."], _pin_json(done))


def _chosen_release(platform: Platform, which: str) -> Release:
    """Return a release, even if its files are deleted: the ledger keeps its record."""
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
    """Return the sums before and after; None if the day does not exist on either side."""
    then = [count(change.before) for change in changes if change.before]
    now = [count(change.after) for change in changes if change.after]
    return sum(then) if then else None, sum(now) if now else None


def _publication_json(made: PublicationRecord) -> dict[str, Any]:
    """Return kind, author, time and reason of a publication as JSON."""
    return picked(made, "release publication created_at kind decides run who as_user on_host why git_commit")


def _pin_json(pin: Pin) -> dict[str, Any]:
    """Return a pin as JSON."""
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
    """List publications: release, time, tables and days, author, reason, pin; or show the named release in full."""
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


_HOW = ("added", "removed", "changed")


def stages(names: Sequence[str] = (), *, as_json: bool = False) -> Report:
    """List the open stages with base release, owner and content; or show the named one."""
    if name := only_one("status stages", names):
        return shown_stage(name)
    with opened_platform() as platform:
        stages, damaged = all_stages(platform.lake)
    if as_json:
        for damage in damaged.values():
            say("[red]damaged[/]", f"{damage.what} {damage.todo}", to=errors)
    parts = _stages_parts(stages, damaged.values())
    return Report(parts, [_stage_json(stage) for stage in stages], bool(damaged))


def shown_stage(name: str) -> Report:
    """Show the days of each table in a stage, why they were computed, and which failed a gate."""
    with opened_platform() as platform:
        stage = opened_stage(platform, name)
        other, again = of_other_code(platform, stage), filled_by(platform.lake, name)
    return Report(_stage_parts(stage, other, again), _stage_json(stage) | {"of_other_code": other})


def stage_diff(name: str, names: Sequence[str] = (), days: str | None = None, limit: int = 20) -> Report:
    """Compare rows, keys and sums of every staged day with the stage's base release."""
    with opened_platform() as platform:
        stage = opened_stage(platform, name)
        only = selected(platform, names, days)
        if names and not only.tables.intersection(stage.staged.days):
            holds = f"It holds days of {', '.join(stage.staged.days)}." if stage.staged.days else "It holds no day."
            raise UsageError(f"The stage {name} holds no day of {', '.join(names)}.", holds)
        with telling("comparing") as progress:
            comparison = list(compared(platform, stage, only, progress))
    data = {"release": stage.release, "days": [comparison_json(day) for day in comparison]}
    return Report(_comparison_parts(stage, comparison, limit), data)


def publish(
    name: Annotated[str, typer.Argument(metavar="STAGE", help="As `status stages` has it.")], author: Author
) -> Report:
    """Publish all days of a stage at once, in one release, and close it.

    Days that others published since, and days that read them, are computed again first.
    """
    from platform_assets.operations.stages.stages import publish_stage

    author = replace(author, run=f"stage-{name}-{os.getpid()}")
    with opened_platform() as platform:
        refuse_stage_of_a_plan(platform.lake, name)
        with computing(platform.settings, "publish", brief=True) as (spark, progress):
            done = publish_stage(platform, spark, author, name, progress)
        platform.sync()
        stale = plan_steps(platform, BY_PERSON).stale
    data = picked(done, "release days not_published", computed_again=done.again, stale=stale)
    return Report(_published_parts(name, done, stale), data, bool(done.not_published))


def drop(name: str) -> Report:
    """Close a stage and delete its files; nothing that was published is touched."""
    from platform_assets.operations.stages.stages import drop_stage

    with opened_platform() as platform:
        gone = drop_stage(platform, name)
    days: dict[str, Any] = {table: len(days) for table, days in gone.staged.days.items()} if gone else {}
    left = "" if gone else " Its staged files are unknown; `admin maintenance` finds them when they are old enough."
    return Report([f"Dropped {name}{_held_in(days)}.{left}"], {"dropped": name, "days": days})


def _stages_parts(stages: Sequence[OpenStage], damaged: Iterable[PlatformError]) -> Iterator[Part]:
    """Show content and owner of each stage."""
    if not stages:
        yield "No stage is open. `refresh --stage NAME` opens one."
    for stage in stages:
        days = sum(map(len, stage.staged.days.values()))
        of = f" of {', '.join(stage.staged.days)}, {size(_staged_bytes(stage))}," if stage.staged.days else ""
        yield Note("bold", stage.name, f"{counted(days, 'day')}{of} over release {stage.release}")
        yield Note("", "  by", f"{stage.who}, last changed {stage.changed_at:%Y-%m-%d %H:%M} UTC: {stage.why}")
    yield from (Note("red", "damaged", f"{damage.what} {damage.todo}") for damage in damaged)


def _stage_parts(stage: OpenStage, other: Mapping[str, Collection[date]], again: str) -> Iterator[Part]:
    """Show what a stage holds, and what prevents publishing it.

    Args:
        other: days that today's code would compute differently, by table.
        again: command that recomputes these days.
    """
    by = f"{stage.who}, {stage.opened_at:%Y-%m-%d %H:%M} UTC"
    yield Facts([("stage", [f"{stage.name}, over release {stage.release}"]), ("by", [by]), ("why", [stage.why])])
    rows = []
    for change in stage.staged.tables.values():
        by_reasons: dict[Reasons, list[date]] = {}
        for day in sorted(change.days):
            by_reasons.setdefault(stage.reasons.get(change.table, {}).get(day, ()), []).append(day)
        for why, days in by_reasons.items():
            written, stored = (sum(getattr(change.days[day], name) for day in days) for name in ("rows", "bytes"))
            reasons, count = ", ".join(why), f"{len(days):,}"
            rows.append((change.table, count, reasons, which(days), f"{written:,}", size(stored)))
    names = ("table", "days", "why", "which", "rows", "size")
    yield Table("Days", names, rows, ("days", "rows", "size")) if stage.staged.days else "It holds no day."
    scoped: dict[tuple[str, str], list[date]] = {}
    for table, change in stage.staged.tables.items():
        for day, content in sorted(change.days.items()):
            if content.scope is not None:
                scoped.setdefault((table, shown_keys(content.scope.keys)), []).append(day)
    for (table, keys), days in scoped.items():
        yield Note("bold", "only", f"{keys} of {table} {which(days)}; the other rows are carried over")
    yield from (Note("red", "held", f"{hold.table} {hold.day}: {hold.reason}") for hold in stage.staged.holds)
    yield from (Note("yellow", "warned", str(warning)) for warning in _warnings(stage))
    for table, old in other.items():
        yield Note("yellow", "of other code", f"{table} {which(old)}: {again} computes it again")


def _warnings(stage: OpenStage) -> Iterator[DayWarning]:
    for table, change in stage.staged.tables.items():
        yield from DayWarning.of(table, change.days)


def _comparison_parts(stage: OpenStage, days: Sequence[StagedDay], limit: int) -> Iterator[Part]:
    """Show a line for each table, then one for each day that differs."""
    rows: list[tuple[Cell, ...]] = []
    for table in dict.fromkeys(day.table for day in days):
        of_it = [day for day in days if day.table == table]
        totals: dict[str, tuple[Any, Any]] = {}
        for day in of_it:
            for name, (then, now) in day.moved.items():
                before, after = totals.get(name, (0, 0))
                totals[name] = (before + then, after + now)
        equal, pairs = sum(day.is_equal for day in of_it), [day.rows for day in of_it]
        had = became(sum(before for before, _ in pairs), sum(after for _, after in pairs))
        keys = (f"{sum(getattr(day, name) for day in of_it):,}" for name in _HOW)
        rows.append((table, f"{len(of_it):,}", f"{equal:,}", had, *keys, sums_shown(totals)))
    names = ("table", "days", "equal", "rows", "keys added", "removed", "changed", "sums")
    yield Table(f"Stage {stage.name} beside release {stage.release}", names, rows, right=names[1:-1])
    differing = [day for day in days if not day.is_equal]
    each: list[tuple[Cell, ...]] = []
    for day in differing[:limit]:
        keys = (f"{getattr(day, name):,}" for name in _HOW)
        had = became(*day.keys) if day.keys else ""
        each.append((day.table, str(day.day), became(*day.rows), had, *keys, sums_shown(day.moved)))
    names = ("table", "day", "rows", "keys", *_HOW, "sums")
    if each:
        yield Table("Days that differ", names, each, right=names[2:-1])
    if len(differing) > limit:
        yield f"and {len(differing) - limit:,} more days: --limit {len(differing)}"


def _published_parts(name: str, done: StagePublished, stale: Mapping[str, Sequence[date]]) -> Iterator[Part]:
    held = _held_in({table: len(days) for table, days in done.days.items()})
    shown = f"Release {done.release} shows the stage {name}{held}."
    yield shown if done.release is not None else "Nothing was left to publish."
    since = "others published these days, or what they read, since they were staged"
    for table, days in done.again.items():
        yield Note("yellow", "computed again", f"{table} {which(days)}: {since}")
    kept = ((table, day, why) for table, days in done.not_published.items() for day, why in sorted(days.items()))
    yield from (Note("red", "not published", line) for line in kept_lines(kept))
    for table, left in stale.items():
        yield Note("yellow", "stale", f"{table} {which(left)}: `refresh` computes {counted(len(left), 'day')}")


def _held_in(days: Mapping[str, int]) -> str:
    return " with " + ", ".join(f"{counted(count, 'day')} of {table}" for table, count in days.items()) if days else ""


def _stage_json(stage: OpenStage) -> dict[str, Any]:
    tables = {
        change.table: [
            picked(
                content,
                "rows bytes digest",
                day=day,
                only=content.scope.keys if content.scope else None,
                reasons=stage.reasons.get(change.table, {}).get(day, ()),
            )
            for day, content in sorted(change.days.items())
        ]
        for change in stage.staged.tables.values()
    }
    return picked(
        stage,
        "name release publication opened_at changed_at who why",
        bytes=_staged_bytes(stage),
        tables=tables,
        held=[picked(hold, "table day reason") for hold in stage.staged.holds],
        warnings=[warning.json() for warning in _warnings(stage)],
    )


def _staged_bytes(stage: OpenStage) -> int:
    return sum(content.bytes for change in stage.staged.tables.values() for content in change.days.values())
