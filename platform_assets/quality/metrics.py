"""Metrics of days: shares and rates of what was counted of a day, in one place for all that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import quantiles

from platform_assets.records.history import delivered_rows

LAG = "lag_days"
"""The figure of a raw day that says by how many days its rows arrived after it, added up; of those ahead of it none.

Days of before this was counted do not have it.
"""

MISMATCHES = "mismatches"
"""The figure of a day that says of how many keys it has other amounts than the tables that it reconciles with."""


def day_metrics(rows: int, figures: Mapping[str, int]) -> dict[str, float]:
    """Return the metrics of a day, as far as its figures say something.

    Returns:
        `duplicates_per_1000`: rows beyond the first of their key, of 1,000 delivered rows; `quarantined_share` of the
        delivered rows; `lag_of_arrival_days`: how many days after their day rows arrived, on average; `mismatches`.
    """
    metrics: dict[str, float] = {name: float(figures[name]) for name in (MISMATCHES,) if name in figures}
    if "raw" in figures and "keys" in figures:
        delivered = figures["raw"] - figures.get("withdrawn", 0) - figures.get("replaced", 0)
        metrics["duplicates_per_1000"] = share(delivered - figures["keys"], delivered, 1000)
        metrics["quarantined_share"] = share(figures.get("quarantined", 0), delivered)
    if LAG in figures:
        metrics["lag_of_arrival_days"] = share(figures[LAG], delivered_rows(rows, figures))
    return metrics


def share(part: int, whole: int, of: int = 1) -> float:
    """Return what part of a whole something is, times `of`; of nothing none."""
    return round(of * part / whole, 6) if whole > 0 else 0.0


def percentile_95(values: Sequence[float]) -> float | None:
    """Return the value that 95 of 100 do not exceed; None without any."""
    if len(values) < 2:
        return values[0] if values else None
    return round(quantiles(values, n=20, method="inclusive")[-1], 3)
