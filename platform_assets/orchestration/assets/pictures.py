"""What a published day shows beside its figures: charts of the days up to it and a preview of its rows.

Read from the current release without Spark, and only of the newest days of a step: Dagster keeps a copy with every
event.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from decimal import Decimal

import dagster as dg

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.amounts import amounts
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.reading import dataset, read_arrow
from platform_assets.orchestration.assets.chart import MOST_DAYS, Chart
from platform_assets.orchestration.assets.events import Metadata, with_pictures
from platform_assets.orchestration.shown import markdown, table_row
from platform_assets.quality.baseline import History, Interval
from platform_assets.quality.seasonality import rhythm_of

_PREVIEW_ROWS = 10
_DAYS_WITH_CHARTS = 31


def illustrated(platform: Platform, contract: Contract, metadata: Mapping[date, Metadata]) -> dict[date, Metadata]:
    """The same with charts of rows for the newest days, and for the newest of a gold table its amount and some rows.

    Args:
        platform: where the days are published.
        contract: of their table.
        metadata: of every published day.
    """
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
    # Whoever published the day may have code with other columns than the process that shows it.
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
    history = History(recorded, rhythm_of(platform.catalogue, contract.name, platform.calendar))
    # Raw days come as they are delivered, and are not held for their number.
    judged = [] if contract.layer == "raw" else window(days, recorded)
    intervals = {day: history.usual(day) for day in judged}
    usual = {day: (usual.low, usual.high) for day, usual in intervals.items() if isinstance(usual, Interval)}
    title = f"rows of {contract.name}"
    return {day: markdown(Chart(title, "rows", recorded, day, usual).markdown()) for day in days if day in recorded}


def _amounts(platform: Platform, contract: Contract, newest: date) -> Metadata:
    """The last amount that a contract declares, which is what its rows come down to."""
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
    """Those days of a table that the charts about some days show."""
    reach = timedelta(days=MOST_DAYS)
    return sorted(other for other in among if any(day - reach < other <= day for day in days))


def _sums(platform: Platform, contract: Contract, column: str, days: list[date]) -> dict[date, float]:
    totals = dict.fromkeys(days, Decimal(0))
    grouped = read_arrow(platform.lake, contract.name, days, [DAY, column]).group_by(DAY).aggregate([(column, "sum")])
    for row in grouped.to_pylist():
        totals[row[DAY]] = row[f"{column}_sum"] or Decimal(0)
    return {day: float(total) for day, total in totals.items()}
