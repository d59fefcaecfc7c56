"""Stages: `status stages`, `publish`, and what `read`, `diff` and `undo` do with one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import became, comparison_json, sums_shown
from platform_assets.cli.console import UsageError, errors, opened_platform, say, selected
from platform_assets.cli.held_view import DayWarning
from platform_assets.cli.options import only_one
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing
from platform_assets.engine.platform import Author
from platform_assets.engine.snapshot import OpenStage
from platform_assets.engine.state.planner import plan_steps
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.plan_report import kept_lines
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
from platform_assets.report import Cell, Facts, Note, Part, Report, Table, picked
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.stages.stages import StagePublished

_HOW = ("added", "removed", "changed")


def stages(names: Sequence[str] = (), *, as_json: bool = False) -> Report:
    """List the open stages: over which release each lies, whose it is, what it holds; or show the one that is named."""
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
    """Compare rows, keys and sums of every staged day with the release that the stage lies over."""
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
    """Show all days of a stage at once, in one release, and close it.

    Days that others have published since, and days that read them, are computed again first.
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
    """Close a stage and delete what lies in it; nothing that was published is touched."""
    from platform_assets.operations.stages.stages import drop_stage

    with opened_platform() as platform:
        gone = drop_stage(platform, name)
    days: dict[str, Any] = {table: len(days) for table, days in gone.staged.days.items()} if gone else {}
    left = "" if gone else " Its staged files are unknown; `admin maintenance` finds them when they are old enough."
    return Report([f"Dropped {name}{_held_in(days)}.{left}"], {"dropped": name, "days": days})


def _stages_parts(stages: Sequence[OpenStage], damaged: Iterable[PlatformError]) -> Iterator[Part]:
    """Show what each stage holds and whose it is."""
    if not stages:
        yield "No stage is open. `refresh --stage NAME` opens one."
    for stage in stages:
        days = sum(map(len, stage.staged.days.values()))
        of = f" of {', '.join(stage.staged.days)}, {size(_bytes(stage))}," if stage.staged.days else ""
        yield Note("bold", stage.name, f"{counted(days, 'day')}{of} over release {stage.release}")
        yield Note("", "  by", f"{stage.who}, last changed {stage.changed_at:%Y-%m-%d %H:%M} UTC: {stage.why}")
    yield from (Note("red", "damaged", f"{damage.what} {damage.todo}") for damage in damaged)


def _stage_parts(stage: OpenStage, other: Mapping[str, Collection[date]], again: str) -> Iterator[Part]:
    """Show what a stage holds, and what keeps it from being published.

    Args:
        other: its days that today's code would make differently, by table.
        again: the command that computes these again.
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
        bytes=_bytes(stage),
        tables=tables,
        held=[picked(hold, "table day reason") for hold in stage.staged.holds],
        warnings=[warning.json() for warning in _warnings(stage)],
    )


def _bytes(stage: OpenStage) -> int:
    return sum(content.bytes for change in stage.staged.tables.values() for content in change.days.values())
