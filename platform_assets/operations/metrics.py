"""Metrics of tables: what the newest days of each are like, from what the ledger keeps of them. No JVM."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.quality.findings import day_metrics, percentile_95, share

DAYS = 28
"""Newest days of a table, and newest recomputations, that metrics are about."""


def table_metrics(snapshot: LakeSnapshot, newest: Mapping[str, date | None]) -> dict[str, dict[str, object]]:
    """Return the metrics of tables, for programs, which know days as text.

    Args:
        newest: day of each table; tables without one have no metrics.

    Returns:
        By table the metrics and seconds of its `days`; of a raw table the `refused_share` of the rows that arrived on
        each date; what 95 of 100 do not exceed: `lag_of_arrival_days_p95` of these days, and `duration_s_p95` of the
        newest recomputations, without the start of Spark; None where nothing is known.
    """
    ledger = snapshot.platform.ledger
    took: dict[str, list[float]] = {table: [] for table in newest}
    for timing in ledger.timings.of(newest):
        took[timing.table].append(timing.seconds)
    found: dict[str, dict[str, object]] = {}
    for table, last in newest.items():
        if last is None:
            continue
        among = [last - timedelta(days) for days in reversed(range(DAYS))]
        records = ledger.current_days(table, at=snapshot.number, among=among).values()
        days = {str(each.day): day_metrics(each.rows, each.figures) | {"seconds": each.seconds} for each in records}
        lags = [of_day["lag_of_arrival_days"] for of_day in days.values() if "lag_of_arrival_days" in of_day]
        found[table] = {
            "days": days,
            "refused_share": {
                str(on): share(*rows) for on, rows in ledger.counts.refused(table, since=among[0]).items()
            },
            "lag_of_arrival_days_p95": percentile_95(lags),
            "duration_s_p95": percentile_95(took[table][-DAYS:]),
        }
    return found
