"""Plans as pages that hold all that they need: one file each, no script, nothing from elsewhere, escaped throughout."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html import escape
from io import StringIO
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from platform_assets.operations.backfill.files import written
from platform_assets.operations.backfill.pages import facts
from platform_assets.operations.backfill.report import DayChange, Report, TableReport
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.verdicts import Number
from platform_assets.planning.windows import which
from platform_assets.records.manifest import STAGED
from platform_assets.visible import visible
from platform_assets.words import counted, lasting, size

_BEFORE, _AFTER = "#8a5a00", "#0b57d0"
_MANY = 100
"""Days from which on marks would hide each other."""
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_BESIDES = re.compile(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
"""What Matplotlib says of itself, and a style for the whole page that the picture stands in."""
_MOST_PLOTS = 3
"""Columns of a table that are plotted; what its gates look at first."""


def before_and_after(title: str, values: Mapping[date, tuple[Number | None, Number]]) -> str:
    """Return two lines by day: before is dashed with open circles, after is whole with filled squares.

    Args:
        title: what is shown, and of what; also the picture's name for whoever does not see it.
        values: before and after, by day; None before where there was nothing.
    """
    from matplotlib import rc_context
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.figure import Figure

    days = sorted(values)
    at = date2num(days)
    before = [float("nan") if values[day][0] is None else float(values[day][0] or 0) for day in days]
    after = [float(values[day][1]) for day in days]
    size, width = (5.0, 1.6) if len(days) <= _MANY else (0.0, 1.2)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(7.2, 2.3), layout="constrained")
        axes = figure.subplots()
        axes.plot(at, before, "o--", color=_BEFORE, mfc="white", ms=size, lw=width, label="before")
        axes.plot(at, after, "s-", color=_AFTER, ms=size, lw=width, label="after")
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylim(bottom=min(0.0, *axes.get_ylim()))
        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.yaxis.set_major_formatter("{x:,.10g}")
        axes.grid(axis="y", alpha=0.3)
        axes.legend(loc="best", fontsize=8, framealpha=0.9)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    svg = _BESIDES.sub("", _PROLOGUE.sub("", out.getvalue()))
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}, before and after" ', 1)


@dataclass(frozen=True)
class Cell:
    """One day of a calendar.

    Args:
        sign: a few characters that say it without colour.
        shade: from 0, as nothing, to 4.
        says: all of it, in words.
    """

    sign: str
    shade: int
    says: str


@dataclass(frozen=True)
class Month:
    """A row of a calendar: a cell for each day of a month, None for days that are not in it."""

    name: str
    cells: tuple[Cell | None, ...]


def record_html(report: Report) -> str:
    """Return the record of a backfill: why, who, what, at what price, before and after, and how to do it again."""
    tables = [
        {
            "of": table,
            "months": _months({day.day: _change(day, table.measure) for day in table.days}),
            "plots": [*_plots(table)],
        }
        for table in report.tables
    ]
    return rendered("record.html", report=report, record=report.record, tables=tables)


def backfill_html(backfill: Backfill) -> str:
    """Return what a plan comes to, to be looked at before it is approved."""
    of_table: defaultdict[str, dict[date, Cell]] = defaultdict(dict)
    for at, step in enumerate(backfill.steps):
        shade = 4 - round(3 * at / max(len(backfill.steps) - 1, 1))
        for table, days in step.days.items():
            for day in days:
                of_table[table][day] = Cell(str(step.share), shade, f"{day}: staged at {step.share} %")
    calendars = {table: _months(days) for table, days in of_table.items()}
    plan = written(backfill.file)
    return rendered("explained.html", backfill=backfill, facts=[*facts(backfill)], calendars=calendars, plan=plan)


def _plots(table: TableReport) -> Iterator[Markup]:
    """Made of names of tables and columns and of numbers alone."""
    moved = sorted(
        (name for name, (was, now) in table.sums.items() if was != now), key=lambda name: name != table.measure
    )
    for column in ("", *moved[:_MOST_PLOTS]):
        values = table.plotted(column)
        if len(values) > 1 and any(before != after for before, after in values.values()):
            what = f"sum of {column}" if column else "rows"
            yield Markup(before_and_after(f"{table.table}: {what}", values))  # noqa: S704


def _change(day: DayChange, measure: str) -> Cell:
    what = f"the sum of {measure}" if measure and day.figures else "rows"
    if day.is_new:
        return Cell("new", 4, f"{day.day}: never computed before")
    if day.is_equal:
        return Cell("=", 0, f"{day.day}: came out as it was")
    percent = day.percent(measure)
    if not percent:
        return Cell("≠", 1, f"{day.day}: other content, {what} as before")
    shade = 2 if percent < 1 else 3 if percent < 10 else 4
    return Cell(_short(percent), shade, f"{day.day}: {what} {percent:.2f} % apart")


def _short(percent: Decimal) -> str:
    """Return a number for a small cell."""
    if percent < Decimal("0.1"):
        return "<.1"
    return f"{percent:.1f}" if percent < 10 else f"{percent:.0f}" if percent < 1000 else ">999"


def _months(cells: Mapping[date, Cell]) -> list[Month]:
    by_month: defaultdict[tuple[int, int], dict[int, Cell]] = defaultdict(dict)
    for day, cell in cells.items():
        by_month[day.year, day.month][day.day] = cell
    return [
        Month(f"{year}-{month:02}", tuple(of.get(day) for day in range(1, monthrange(year, month)[1] + 1)))
        for (year, month), of in sorted(by_month.items())
    ]


def rendered(template: str, **values: Any) -> str:
    """Return a page from a template, escaped, of which nothing acts."""
    environment = Environment(
        loader=PackageLoader("platform_assets.operations.backfill"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    filters: dict[str, Callable[..., str]] = {
        "which": which,
        "counted": counted,
        "lasting": lasting,
        "size": size,
        "number": lambda number: f"{number:,}",
        "moment": lambda at: f"{at:%Y-%m-%d %H:%M:%S}",
        "signed": _signed,
        "versions": lambda read: ", ".join("staged with it" if one == STAGED else str(one) for one in read),
    }
    environment.filters.update(filters)
    return environment.get_template(template).render(**values)


def _signed(pair: Iterable[Decimal | int]) -> str:
    """Return by how much the second differs from the first."""
    before, after = pair
    difference = after - before
    percent = f" ({difference / before:+.2%})" if before else ""
    return f"{difference:+,}{percent}" if difference else "0"


def _shown(value: object) -> object:
    """Return what people wrote so that it acts nowhere and hides nothing: what cannot be seen is shown by its name."""
    return visible(value, breaks=True) if type(value) is str else value
