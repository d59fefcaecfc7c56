"""What is measured of a day follows from what was counted of it, and nothing is made up where nothing was."""

from __future__ import annotations

import pytest

from platform_assets.quality.metrics import day_metrics, percentile_95

SILVER = {"raw": 1010, "withdrawn": 10, "keys": 990, "quarantined": 20}


@pytest.mark.parametrize(
    ("rows", "figures", "metrics"),
    [
        (970, SILVER, {"duplicates_per_1000": 10.0, "quarantined_share": 0.02}),
        (0, dict.fromkeys(SILVER, 0), {"duplicates_per_1000": 0.0, "quarantined_share": 0.0}),
        (970, SILVER | {"raw": 1510, "replaced": 500}, {"duplicates_per_1000": 10.0, "quarantined_share": 0.02}),
        (12, {"lag_days": 5, "tombstones": 2}, {"lag_of_arrival_days": 0.5}),
        (0, {"lag_days": 0}, {"lag_of_arrival_days": 0.0}),
        (5, {}, {}),
    ],
)
def test_metrics_of_a_day(rows: int, figures: dict[str, int], metrics: dict[str, float]) -> None:
    assert day_metrics(rows, figures) == metrics


@pytest.mark.parametrize(("values", "found"), [([], None), ([3.0], 3.0), (list(range(101)), 95.0), ([1.0, 2.0], 1.95)])
def test_the_95th_percentile(values: list[float], found: float | None) -> None:
    assert percentile_95(values) == found
