"""How stages look: for people, and for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.cli.amounts_view import became, sums_shown
from platform_assets.cli.console import console, escape, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.held_view import DayWarning
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.planning.key_scope import shown_keys
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.windows import which
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.stages.compare import Number, StagedDay
    from platform_assets.operations.stages.stages import StagePublished


def print_stages(stages: Sequence[OpenStage], becomes: Mapping[str, str]) -> None:
    """Two lines for each stage: what it holds, and whose it is; a third for one that goes by itself.

    Args:
        stages: that are open.
        becomes: what becomes of those of comparisons, by name.
    """
    if not stages:
        console.print("No stage is open. `refresh --stage NAME` opens one.", highlight=False, soft_wrap=True)
    for stage in stages:
        days = sum(map(len, stage.staged.days.values()))
        of = f" of {', '.join(stage.staged.days)}, {size(_bytes(stage))}," if stage.staged.days else ""
        say(f"[bold]{stage.name}[/]", f"{counted(days, 'day')}{of} over release {stage.release}")
        say("  by", f"{stage.who}, last changed {stage.changed_at:%Y-%m-%d %H:%M} UTC: {stage.why}")
        if stage.name in becomes:
            say("  passing", becomes[stage.name])


def print_stage(stage: OpenStage, other: Mapping[str, Collection[date]], again: str) -> None:
    """What a stage holds, and what keeps it from being published.

    Args:
        stage: that is shown.
        other: its days that today's code would make differently, by table.
        again: the command that computes these again.
    """
    facts = {
        "stage": f"{stage.name}, over release {stage.release}",
        "by": f"{stage.who}, {stage.opened_at:%Y-%m-%d %H:%M} UTC",
        "why": stage.why,
    }
    for name, text in facts.items():
        console.print(f"[bold]{name:6}[/] {escape(text)}", highlight=False, soft_wrap=True)
    grid = new_grid("Days", ("table", "days", "why", "which", "rows", "size"), right=("days", "rows", "size"))
    for change in stage.staged.tables.values():
        by_reasons: dict[Reasons, list[date]] = {}
        for day in sorted(change.days):
            by_reasons.setdefault(stage.reasons.get(change.table, {}).get(day, ()), []).append(day)
        for why, days in by_reasons.items():
            rows, stored = (sum(getattr(change.days[day], name) for day in days) for name in ("rows", "bytes"))
            grid.add_row(change.table, f"{len(days):,}", ", ".join(why), which(days), f"{rows:,}", size(stored))
    console.print(grid if stage.staged.days else "It holds no day.")
    for table, by_keys in _scoped(stage).items():
        for keys, days in by_keys.items():
            say("[bold]only[/]", f"{keys} of {table} {which(days)}; the other rows are carried over")
    for hold in stage.staged.holds:
        say("[red]held[/]", f"{hold.table} {hold.day}: {hold.reason}")
    for warning in _warnings(stage):
        say("[yellow]warned[/]", str(warning))
    for table, old in other.items():
        say(
            "[yellow]of other code[/]",
            f"{table} {which(old)}: {again} computes it again",
        )


def _warnings(stage: OpenStage) -> Iterator[DayWarning]:
    """What gates found of days that the stage holds."""
    for table, change in stage.staged.tables.items():
        yield from DayWarning.of(table, change.days)


def print_comparison(stage: OpenStage, days: Sequence[StagedDay], limit: int) -> None:
    """A line for each table, then one for each day that differs."""
    sums = new_grid(
        f"Stage {stage.name} beside release {stage.release}",
        ("table", "days", "equal", "rows", "keys added", "removed", "changed", "sums"),
        right=("days", "equal", "rows", "keys added", "removed", "changed"),
    )
    for table in dict.fromkeys(day.table for day in days):
        of_it = [day for day in days if day.table == table]
        rows = (sum(day.rows[0] for day in of_it), sum(day.rows[1] for day in of_it))
        totals: dict[str, tuple[Number, Number]] = {}
        for day in of_it:
            for name, (then, now) in day.moved.items():
                before, after = totals.get(name, (0, 0))
                totals[name] = (_plus(before, then), _plus(after, now))
        sums.add_row(
            table,
            f"{len(of_it):,}",
            f"{sum(day.is_equal for day in of_it):,}",
            became(*rows),
            *(f"{sum(getattr(day, name) for day in of_it):,}" for name in ("added", "removed", "changed")),
            sums_shown(totals),
        )
    console.print(sums)
    differing = [day for day in days if not day.is_equal]
    if not differing:
        return
    grid = new_grid(
        "Days that differ",
        ("table", "day", "rows", "keys", "added", "removed", "changed", "sums"),
        right=("rows", "keys", "added", "removed", "changed"),
    )
    for day in differing[:limit]:
        grid.add_row(
            day.table,
            str(day.day),
            became(*day.rows),
            became(*day.keys) if day.keys else "",
            *(f"{getattr(day, name):,}" for name in ("added", "removed", "changed")),
            sums_shown(day.moved),
        )
    console.print(grid)
    if len(differing) > limit:
        console.print(f"and {len(differing) - limit:,} more days: --limit {len(differing)}", highlight=False)


def print_published(name: str, done: StagePublished, stale: Mapping[str, Sequence[date]]) -> None:
    """Which release shows a stage, what was computed again for it, and what is stale now."""
    held = held_in({table: len(days) for table, days in done.days.items()})
    shown = (
        f"Release {done.release} shows the stage {name}{held}."
        if done.release is not None
        else "Nothing was left to publish."
    )
    console.print(shown, markup=False, highlight=False, soft_wrap=True)
    for table, days in done.again.items():
        say(
            "[yellow]computed again[/]",
            f"{table} {which(days)}: others published these days, or what they read, since they were staged",
        )
    for table, reasons in done.not_published.items():
        for day, reason in sorted(reasons.items()):
            say("[red]not published[/]", f"{table} {day}: {reason}")
    for table, left in stale.items():
        say("[yellow]stale[/]", f"{table} {which(left)}: `refresh` computes {counted(len(left), 'day')}")


def held_in(days: Mapping[str, int]) -> str:
    """Half a sentence: with how many days of which tables."""
    return " with " + ", ".join(f"{counted(count, 'day')} of {table}" for table, count in days.items()) if days else ""


def stage_json(stage: OpenStage) -> dict[str, Any]:
    """A stage for programs."""
    return {
        **{name: getattr(stage, name) for name in ("name", "release", "publication", "opened_at", "changed_at")},
        "who": stage.who,
        "why": stage.why,
        "bytes": _bytes(stage),
        "tables": {
            change.table: [
                {
                    "day": day,
                    "rows": content.rows,
                    "bytes": content.bytes,
                    "digest": content.digest,
                    "only": content.scope.keys if content.scope else None,
                    "reasons": list(stage.reasons.get(change.table, {}).get(day, ())),
                }
                for day, content in sorted(change.days.items())
            ]
            for change in stage.staged.tables.values()
        },
        "held": [{"table": hold.table, "day": hold.day, "reason": hold.reason} for hold in stage.staged.holds],
        "warnings": [warning.json() for warning in _warnings(stage)],
    }


def comparison_json(day: StagedDay) -> dict[str, Any]:
    """A compared day for programs."""
    pairs = {"rows": day.rows, "keys": day.keys, **{f"sum of {name}": pair for name, pair in day.sums.items()}}
    return {
        "table": day.table,
        "day": day.day,
        "equal": day.is_equal,
        **{name: getattr(day, name) for name in ("added", "removed", "changed")},
        **{name: {"before": pair[0], "after": pair[1]} for name, pair in pairs.items() if pair},
    }


def published_json(done: StagePublished, stale: Mapping[str, Collection[date]]) -> dict[str, Any]:
    """A published stage for programs."""
    return {
        "release": done.release,
        "days": done.days,
        "computed_again": done.again,
        "not_published": {
            table: {str(day): reason for day, reason in reasons.items()}
            for table, reasons in done.not_published.items()
        },
        "stale": stale,
    }


def _scoped(stage: OpenStage) -> dict[str, dict[str, list[date]]]:
    """The days of which only some keys were computed, by table and keys."""
    scoped: dict[str, dict[str, list[date]]] = {}
    for table, change in stage.staged.tables.items():
        for day, content in sorted(change.days.items()):
            if content.scope is not None:
                scoped.setdefault(table, {}).setdefault(shown_keys(content.scope.keys), []).append(day)
    return scoped


def _bytes(stage: OpenStage) -> int:
    return sum(content.bytes for change in stage.staged.tables.values() for content in change.days.values())


def _plus(total: Number, other: Number) -> Number:
    return total + other  # type: ignore[operator]
