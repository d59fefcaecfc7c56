"""Tables in terminals of any width."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from platform_assets.cli.grids import Grid
from platform_assets.report import Mark, Table

NAMES = ("table", "newest", "rows", "why")
ROWS = [
    ("silver.transactions", "2017-05-30", "1,604,228", "a path/that/is/long/enough/to/be/folded/somewhere.parquet"),
    ("gold.daily_sales", "2017-05-30", "87,544", ""),
]


def printed(width: int, rows: Sequence[tuple[str, ...]] = ROWS) -> str:
    grid = Grid(Table("Tables", NAMES, rows, right=("rows",), whole=("table", "newest")))
    out = StringIO()
    Console(file=out, width=width, highlight=False).print(grid)
    return out.getvalue()


@given(st.integers(28, 200))
def test_no_number_and_no_name_is_ever_cut(width: int) -> None:
    text = printed(width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for value in (value for row in ROWS for value in row[:3]):
        assert value in text
    assert "…" not in text
    if width >= 100:
        assert "silver.transactions  2017-05-30  1,604,228" in text


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_word_is_broken_while_rows_can_stand_upright(width: int) -> None:
    """Also not in a column that may be folded between words."""
    rows = [("gold.sales_month_to_date", "2017-05-30", "20261125T020817654619Z-7e2a455b", "why " * 9)] * 2
    grid = Grid(Table("Made by", ("table", "day", "publication", "why"), rows))
    out = StringIO()
    Console(file=out, width=width, highlight=False).print(grid)
    assert set(out.getvalue().split()) >= set(" ".join(rows[0]).split())
    assert all(len(line.rstrip()) <= width for line in out.getvalue().splitlines())


@given(st.integers(20, 200))
def test_no_line_ends_in_blanks(width: int) -> None:
    assert all(line == line.rstrip() for line in printed(width).splitlines())


def test_where_columns_do_not_fit_the_first_stands_above_the_others() -> None:
    assert printed(40, ROWS[1:]).splitlines() == [
        "Tables",
        "",
        " table",
        "   newest        rows  why",
        " ─────────────────────────",
        " gold.daily_sales",
        "   2017-05-30  87,544",
        "",
    ]


def test_rows_in_turn_of_one_first_value_have_it_above_them_once() -> None:
    names, figures = ("table", "day", "figures"), "sum of net 1 → 2"
    rows = [("gold.daily_sales", day, figures) for day in ("2017-05-30", "2017-05-31")]
    grid = Grid(Table("Days", names, [*rows, ("gold.weekly_sales", "2017-05-31", figures)], whole=names))

    def shown(width: int) -> list[str]:
        out = StringIO()
        Console(file=out, width=width).print(grid)
        return [line.strip() for line in out.getvalue().splitlines()[5:]]

    day = "2017-05-30  sum of net 1 → 2"
    later = day.replace("-30", "-31")
    assert shown(34) == ["gold.daily_sales", day, later, "gold.weekly_sales", later, ""]
    assert shown(28)[:3] == ["gold.daily_sales", "2017-05-30  sum of net 1", "→ 2"], "folded rather than upright"


def test_narrow_terminals_get_a_line_for_each_value_that_there_is() -> None:
    lines = printed(24, ROWS[1:]).splitlines()
    assert lines == ["Tables", "table   gold.daily_sales", "newest  2017-05-30", "rows    87,544", ""]


def test_values_of_several_lines_and_with_styles_stay_in_their_column() -> None:
    rows = [("a", ("net 1", "gross 22"), Mark("3", "red")), ("b",)]
    grid = Grid(Table("Sums", ("table", "sums", "rows"), rows, right=("rows",)))
    out = StringIO()
    Console(file=out, width=80, force_terminal=True, color_system="standard").print(grid)
    assert out.getvalue().splitlines()[4:] == [" a      net 1        \x1b[31m3\x1b[0m", "        gross 22", " b", ""]


@pytest.mark.parametrize("width", [20, 200])
def test_a_table_without_rows_is_its_headings(width: int) -> None:
    assert printed(width, []).split()[1 : 1 + len(NAMES)] == list(NAMES)
