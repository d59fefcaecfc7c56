"""Charts of the days up to a published one, and a preview of its rows, next to its figures.

Read from the current release without Spark, and only for the newest days of a step: Dagster keeps a copy with every
event.

Dagster's pages show Markdown of up to 1,000 characters in place, and hide longer text behind a link. A bitmap would
never fit, so the chart is a few strokes of SVG within the Markdown. It does not depend on colour: the usual range is an
area, the past a line, the day in question a ring; grey and blue show on white and on black.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

import dagster as dg

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.table import amounts
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.reading import dataset, read_arrow
from platform_assets.orchestration.assets.events import Metadata, markdown, table_row, with_pictures
from platform_assets.quality.baseline import Interval, RowHistory, rhythm_of

_PREVIEW_ROWS = 10
_DAYS_WITH_CHARTS = 31

MOST_CHARACTERS = 999
MOST_DAYS = 28
_WIDTH, _TOP, _BOTTOM, _HEIGHT = 532, 20, 99, 116
_ESCAPED = str.maketrans({"<": "%3C", ">": "%3E", "#": "%23"})
"""What neither Markdown nor an address may hold."""


def with_charts(platform: Platform, contract: Contract, metadata: Mapping[date, Metadata]) -> dict[date, Metadata]:
    """Add charts of rows to the newest days, and an amount and some rows to the newest day of a gold table."""
    shown = dict(metadata)
    newest = sorted(metadata)[-_DAYS_WITH_CHARTS:]
    for day, chart in _rows(platform, contract, newest).items():
        more = {}
        if contract.layer == "gold" and day == newest[-1]:
            more = _amounts(platform, contract, day) | {"preview": _preview(platform, contract, day)}
        shown[day] = with_pictures(metadata[day], {"rows by day": chart} | more)
    return shown


def _preview(platform: Platform, contract: Contract, day: date) -> dg.MetadataValue:
    sensitive = {column.name for column in contract.columns if column.sensitive}
    masked = platform.masking.masked
    rows = dataset(platform.lake, contract.name, [day])
    # The process that published the day may have had code with other columns than this one.
    there = [column for column in contract.columns if column.name in rows.schema.names]
    records = [
        table_row({name: masked(value) if name in sensitive else _shown(value) for name, value in row.items()})
        for row in rows.head(_PREVIEW_ROWS, columns=[column.name for column in there]).to_pylist()
    ]
    columns = [dg.TableColumn(column.name, column.type, column.description) for column in there]
    return dg.MetadataValue.table(records, dg.TableSchema(columns=columns))


def _shown(value: object) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _rows(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, dg.MetadataValue]:
    recorded = {day: record.rows for day, record in platform.ledger.current_days(contract.name).items()}
    history = RowHistory(recorded, rhythm_of(platform.catalogue, contract.name, platform.calendar))
    # Raw days come as they are delivered, and are not held for their number.
    judged = [] if contract.layer == "raw" else window(days, recorded)
    intervals = {day: history.usual(day) for day in judged}
    usual = {day: (usual.low, usual.high) for day, usual in intervals.items() if isinstance(usual, Interval)}
    title = f"rows of {contract.name}"
    return {day: markdown(Chart(title, "rows", recorded, day, usual).markdown()) for day in days if day in recorded}


def _amounts(platform: Platform, contract: Contract, newest: date) -> Metadata:
    """Chart the last amount that a contract declares, usually the table's main one."""
    decimals = [name for name in amounts(contract) if contract.column(name).digits]
    if not decimals:
        return {}
    amount = decimals[-1]
    if amount not in dataset(platform.lake, contract.name, [newest]).schema.names:
        return {}
    days = window([newest], platform.ledger.current_days(contract.name))
    sums = _sums(platform, contract, amount, days)
    chart = Chart(f"sum of {amount} of {contract.name}", amount, sums, newest)
    return {f"sum of {amount} by day": markdown(chart.markdown())}


def window(days: Collection[date], among: Collection[date]) -> list[date]:
    """Return the days of a table that the charts about some days show."""
    reach = timedelta(days=MOST_DAYS)
    return sorted(other for other in among if any(day - reach < other <= day for day in days))


def _sums(platform: Platform, contract: Contract, column: str, days: list[date]) -> dict[date, float]:
    totals = dict.fromkeys(days, Decimal(0))
    grouped = read_arrow(platform.lake, contract.name, days, [DAY, column]).group_by(DAY).aggregate([(column, "sum")])
    for row in grouped.to_pylist():
        totals[row[DAY]] = row[f"{column}_sum"] or Decimal(0)
    return {day: float(total) for day, total in totals.items()}


@dataclass(frozen=True)
class Chart:
    """A series by day.

    Args:
        marked: the day that the chart is about, which is its last.
        usual: smallest and greatest usual value, of days that have them.
    """

    title: str
    unit: str
    values: Mapping[date, float]
    marked: date
    usual: Mapping[date, tuple[float, float]] = field(default_factory=dict)

    def markdown(self) -> str:
        """Draw the four weeks up to the day; fewer days if that many do not fit."""
        usual = "; grey area: usual" if self.usual else ""
        says = f"**{self.title}** by day, UTC; ring: {self.marked}{usual}\n\n"
        for days in range(MOST_DAYS, 1, -1):
            svg = self._svg(days).translate(_ESCAPED)
            text = f"{says}![chart](<data:image/svg+xml,{svg}>)"
            if len(text) <= MOST_CHARACTERS:
                return text
        return says + _short(self.values[self.marked])

    def _svg(self, count: int) -> str:
        first = self.marked - timedelta(days=count - 1)
        shown = {day: value for day, value in sorted(self.values.items()) if first <= day <= self.marked}
        usual = {day: edges for day, edges in sorted(self.usual.items()) if first <= day <= self.marked}
        top = max([*shown.values(), *(high for _, high in usual.values())], default=0.0) or 1.0
        bottom = min(0.0, *shown.values())
        step = _WIDTH // count

        def x(day: date) -> int:
            return (day - first).days * step + step // 2

        def y(value: float) -> int:
            return round(_BOTTOM - (value - bottom) / (top - bottom) * (_BOTTOM - _TOP))

        area = "".join(f"M{x(day)} {y(low)}V{y(high)}" for day, (low, high) in usual.items())
        line = "".join(  # broken where a day is missing
            f"{' ' if day - timedelta(days=1) in shown else 'M'}{x(day)} {y(value)}" for day, value in shown.items()
        )
        ring = f"M{x(self.marked) - 5} {y(self.values[self.marked])}a5 5 0 1 0 10 0 5 5 0 1 0-10 0"
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{_HEIGHT}' fill='gray' font-size='11'>"
            f"<text y='11'>{_short(top)} {self.unit}</text>"
            f"<path d='{area}' stroke='gray' stroke-width='{step}' opacity='.3'/>"
            f"<path d='M0 {_BOTTOM}H{_WIDTH}{line}{ring}' fill='none' stroke='#38f'/>"
            f"<text y='{_HEIGHT - 2}'>{_short(bottom)}; {first:%-d %b}</text>"
            f"<text x='{_WIDTH}' y='{_HEIGHT - 2}' text-anchor='end'>{self.marked:%-d %b}</text></svg>"
        )


def _short(value: float) -> str:
    """Return a number with four digits at most, with k, M or G."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= factor:
            return f"{value / (1e3 if letter == 'k' else factor):,.4g}{letter}"
    return f"{value:,.4g}"
