"""How a plan beside the release looks: for people, for a pull request, and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from platform_assets.cli.amounts_view import became
from platform_assets.cli.commands.stage_view import comparison_json
from platform_assets.cli.console import console, escape
from platform_assets.cli.grids import new_grid
from platform_assets.operations.backfill.compare import Comparison, TableBeside
from platform_assets.operations.stages.compare import QUANTILES, ColumnBeside, Example, Spread
from platform_assets.planning.windows import which
from platform_assets.visible import as_code
from platform_assets.words import counted

_AT = "/".join(f"{q:.0%}".removesuffix("%") for q in QUANTILES) + " %"
"""At which parts of all values the last column has one."""
_COLUMNS = ("column", "keys changed", "nulls", "distinct", "lowest", "highest", "mean", _AT)


def print_compared(comparison: Comparison) -> None:
    """Tables, then each column that differs with how its values spread, then examples."""
    for line in _heads(comparison):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for table in comparison.tables:
        for line in _of_table(table):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        print_columns(table.table, table.columns, table.examples)


def print_columns(table: str, columns: Iterable[ColumnBeside], examples: Iterable[Example]) -> None:
    """Each column that differs with how its values spread on both sides, then keys that differ."""
    if differing := [column for column in columns if _differs(column)]:
        grid = new_grid(f"Columns of {table}", _COLUMNS, right=("keys changed",))
        for column in differing:
            grid.add_row(*map(escape, _cells(column)))
        console.print(grid)
    for example in examples:
        console.print(f"  {_said(example)}", markup=False, highlight=False, soft_wrap=True)


def compared_markdown(comparison: Comparison) -> list[str]:
    """The same as the lines of a comment of a pull request."""
    lines = [f"## Plan {comparison.name}, compared", "", *(f"- {line}" for line in _heads(comparison))]
    for table in comparison.tables:
        lines += ["", f"### {table.table}", "", *(f"- {line}" for line in _of_table(table))]
        if differing := [column for column in table.columns if _differs(column)]:
            lines += ["", f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}"]
            lines += [f"| {' | '.join(as_code(cell) if cell else '' for cell in _cells(one))} |" for one in differing]
        if table.examples:
            lines += ["", *(f"- {as_code(_said(example))}" for example in table.examples)]
    return lines


def compared_json(comparison: Comparison) -> dict[str, Any]:
    """The same for programs."""
    return {
        "name": comparison.name,
        "release": comparison.release,
        "after": comparison.what,
        "equal": comparison.is_equal,
        "tables": [
            {
                "table": table.table,
                "equal": table.is_equal,
                "code": {"before": list(table.code[0]), "after": table.code[1]},
                "days": [comparison_json(day) for day in table.days],
                "columns": [asdict(column) for column in table.columns],
                "quantiles": list(QUANTILES),
                "examples": [asdict(example) for example in table.examples],
            }
            for table in comparison.tables
        ],
        "failed": {
            table: {str(day): why for day, why in of_table.items()} for table, of_table in comparison.failed.items()
        },
        "as_before": {table: list(map(str, days)) for table, days in comparison.as_before.items()},
    }


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


def _of_table(table: TableBeside) -> Iterator[str]:
    days, (old, new) = table.days, table.code
    equal = sum(day.is_equal for day in days)
    keys = ", ".join(f"{sum(getattr(day, how) for day in days):,} {how}" for how in ("added", "removed", "changed"))
    rows = became(sum(day.rows[0] for day in days), sum(day.rows[1] for day in days))
    yield (
        f"{table.table}: {counted(len(days), 'day')} ({which([day.day for day in days])}), {equal:,} equal; "
        f"rows {rows}; keys {keys}; code {', '.join(old) or 'none'} → {new}"
    )


def _differs(column: ColumnBeside) -> bool:
    return bool(column.changed) or column.before != column.after


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
