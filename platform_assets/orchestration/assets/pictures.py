"""What an asset shows of its newest day: a chart of the days up to it and a preview of its rows.

Read from the current release without Spark, and only once per step: Dagster keeps a copy with every event.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from io import BytesIO

import dagster as dg

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.reading import dataset, read_arrow
from platform_assets.orchestration.assets.events import Metadata
from platform_assets.quality.masking import masked

_PREVIEW_ROWS = 10
_CHART_DAYS = 90
_INK, _LINE = "#808890", "#4f8ef7"
"""Grey and blue that both a white and a black page show; the chart's own background is transparent."""


def pictures(platform: Platform, contract: Contract, newest: date) -> Metadata:
    """A preview of a gold table's day, and a chart of rows and of its last amount per day up to it."""
    if contract.layer != "gold":
        return {}
    return {"preview": _preview(platform, contract, newest), "chart": _chart(platform, contract, newest)}


def _preview(platform: Platform, contract: Contract, day: date) -> dg.MetadataValue:
    sensitive = {column.name for column in contract.columns if column.sensitive}
    rows = dataset(platform.lake, contract.name, [day]).head(_PREVIEW_ROWS, columns=list(contract.column_names))
    records = [
        dg.TableRecord({name: masked(value) if name in sensitive else _shown(value) for name, value in row.items()})
        for row in rows.to_pylist()
    ]
    columns = [dg.TableColumn(column.name, column.type, column.description) for column in contract.columns]
    return dg.MetadataValue.table(records, dg.TableSchema(columns=columns))


def _shown(value: object) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _chart(platform: Platform, contract: Contract, newest: date) -> dg.MetadataValue:
    first = newest - timedelta(days=_CHART_DAYS - 1)
    recorded = platform.ledger.current_days(contract.name)
    days = [day for day in recorded if first <= day <= newest]
    series: dict[str, Mapping[date, float]] = {"rows": {day: float(recorded[day].rows) for day in days}}
    amounts = [column.name for column in contract.columns if column.type.startswith("decimal")]
    if amounts:
        series[amounts[-1]] = _sums(platform, contract, amounts[-1], days)
    picture = _draw(contract.name, series)
    return dg.MetadataValue.md(f"![{', '.join(series)} by day](data:image/png;base64,{picture})")


def _sums(platform: Platform, contract: Contract, column: str, days: list[date]) -> dict[date, float]:
    totals = dict.fromkeys(days, Decimal(0))
    grouped = read_arrow(platform.lake, contract.name, days, [DAY, column]).group_by(DAY).aggregate([(column, "sum")])
    for row in grouped.to_pylist():
        totals[row[DAY]] = row[f"{column}_sum"] or Decimal(0)
    return {day: float(total) for day, total in totals.items()}


def _draw(title: str, series: Mapping[str, Mapping[date, float]]) -> str:
    """A PNG, one panel per series, as base64."""
    from matplotlib.figure import Figure  # takes half a second to import
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(7, 1.5 * len(series) + 0.4), dpi=80, layout="constrained")
    figure.suptitle(f"{title} by day", color=_INK, fontsize=10)
    panels = figure.subplots(len(series), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (name, values) in zip(panels, series.items(), strict=True):
        panel.plot(list(values), list(values.values()), color=_LINE, linewidth=1.4, marker=".", markersize=3)
        panel.set_ylabel(name, color=_INK, fontsize=9)
        panel.set_ylim(bottom=min(0.0, *values.values()) if values else 0.0)
        panel.yaxis.set_major_formatter(EngFormatter(sep=""))
        panel.tick_params(colors=_INK, labelsize=8)
        panel.grid(color=_INK, alpha=0.25)
        panel.patch.set_alpha(0)
        for spine in panel.spines.values():
            spine.set_color(_INK)
    content = BytesIO()
    figure.savefig(content, format="png", transparent=True)
    return base64.b64encode(content.getvalue()).decode()
