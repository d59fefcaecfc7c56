"""Show how days differ, column by column and key by key: of a plan beside the release, of two engines, of a stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from platform_assets.cli.changes_view import became
from platform_assets.planning.windows import which
from platform_assets.report import Heading, Part, Points, Report, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.backfill.compare import Comparison, PlanTable
    from platform_assets.operations.stages.compare import ColumnBeside, Example, Spread, StagedDay

_COLUMNS = ("column", "keys changed", "nulls", "distinct", "lowest", "highest", "mean")


def compared(comparison: Comparison) -> Report:
    """Report a plan beside the release: tables, each column that differs with how its values spread, then examples."""
    from platform_assets.operations.stages.compare import QUANTILES

    data = picked(
        comparison,
        "name release failed as_before",
        after=comparison.what,
        equal=comparison.is_equal,
        tables=[
            picked(
                table,
                "table columns examples",
                equal=table.is_equal,
                code={"before": table.code[0], "after": table.code[1]},
                days=[comparison_json(day) for day in table.days],
                quantiles=QUANTILES,
            )
            for table in comparison.tables
        ],
    )

    def parts() -> Iterator[Part]:
        yield Heading(f"Plan {comparison.name}, compared")
        yield Points([*_heads(comparison)])
        for table in comparison.tables:
            yield Points([_of_table(table)])
            yield from columns_parts(table.table, table.columns, table.examples)

    return Report(parts(), data, not comparison.is_equal)


def columns_parts(table: str, columns: Iterable[ColumnBeside], examples: Iterable[Example]) -> Iterator[Part]:
    """Show each column that differs with how its values spread on both sides, then keys that differ."""
    if rows := [_cells(column) for column in columns if column.changed or column.before != column.after]:
        from platform_assets.operations.stages.compare import QUANTILES

        at = "/".join(f"{q:.0%}".removesuffix("%") for q in QUANTILES) + " %"  # where the last column has a value
        names = (*_COLUMNS, at)
        yield Table(f"Columns of {table}", names, rows, right=("keys changed",), quoted=names)
    if lines := [_said(example) for example in examples]:
        yield Points(lines, quoted=True)


def comparison_json(day: StagedDay) -> dict[str, Any]:
    """Return a compared day for programs."""
    pairs = {"rows": day.rows, "keys": day.keys, **{f"sum of {name}": pair for name, pair in day.sums.items()}}
    sides = {name: {"before": pair[0], "after": pair[1]} for name, pair in pairs.items() if pair}
    return picked(day, "table day added removed changed", equal=day.is_equal, **sides)


def _heads(comparison: Comparison) -> Iterator[str]:
    yield (
        f"Before is release {comparison.release}, after is {comparison.what}: "
        f"{'nothing differs' if comparison.is_equal else 'they differ'}."
    )
    for table, failed in comparison.failed.items():
        for day, why in sorted(failed.items()):
            yield f"{table} {day} did not pass the gates of its contract, so there is nothing to compare: {why}"
    for table, days in comparison.as_before.items():
        yield f"{counted(len(days), 'day')} of {table} ({which(days)}) not computed: nothing that they read differs."


def _of_table(table: PlanTable) -> str:
    days, (old, new) = table.days, table.code
    equal = sum(day.is_equal for day in days)
    keys = ", ".join(f"{sum(getattr(day, how) for day in days):,} {how}" for how in ("added", "removed", "changed"))
    rows = became(sum(day.rows[0] for day in days), sum(day.rows[1] for day in days))
    which_days = f"{counted(len(days), 'day')} ({which([day.day for day in days])})"
    code = f"code {', '.join(old) or 'none'} → {new}"
    return f"{table.table}: {which_days}, {equal:,} equal; rows {rows}; keys {keys}; {code}"


def _cells(column: ColumnBeside) -> tuple[str, ...]:
    before, after = column.before, column.after
    return (
        column.name,
        f"{column.changed:,}",
        *(
            _beside(*(getattr(side, name) if side else None for side in (before, after)))
            for name in ("nulls", "distinct", "lowest", "highest", "mean")
        ),
        _beside(_quantiles(before), _quantiles(after)),
    )


def _beside(before: object, after: object) -> str:
    then, now = _text(before), _text(after)
    return now if then == now else f"{then} → {now}"


def _quantiles(side: Spread | None) -> str | None:
    return "/".join(map(_text, side.quantiles)) if side and side.quantiles else None


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:,.4g}"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def _said(example: Example) -> str:
    what = "; ".join(f"{name} {_text(then)} → {_text(now)}" for name, (then, now) in example.values.items())
    return f"{example.how} {example.day}: {example.key}" + (f": {what}" if what else "")
