"""What is measured of a day, told of moved records, and masked: nothing is made up, and no value shows itself."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.domains.retail.contracts import DAILY_SALES
from platform_assets.quality.findings import ACCEPTABLE, Masking, day_metrics, percentile_95
from platform_assets.quality.gates import MovedKeys, moved_keys_finding

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


MASKING = Masking(b"secret")


def test_a_masked_value_never_changes():
    assert MASKING.masked(4711) == MASKING.masked("4711") == "#f53b7228"
    assert MASKING.masked(4712) != MASKING.masked(4711)


def test_another_installation_masks_otherwise_and_shows_no_secret():
    assert Masking(b"another secret").masked(4711) != MASKING.masked(4711)
    assert "secret'" not in repr(MASKING)


@given(st.text(min_size=9))
def test_a_masked_value_does_not_show_the_value(value):
    assert value not in MASKING.masked(value)
    assert len(MASKING.masked(value)) == 9


def test_a_null_is_not_hidden():
    assert MASKING.masked(None) == "null"


DAY = date(2017, 1, 2)


FIRST = "basket_id 7 from store_id 330 to store_id 331"


ON = f"gold.daily_sales on {DAY}:"


TWICE = "Beside what is carried over they would count twice or not at all;"


@pytest.mark.parametrize(
    ("moved", "what", "todo"),
    [
        (
            MovedKeys("silver.transactions", 2, (FIRST,), ("store_id 331",)),
            f"2 records of silver.transactions moved between these keys and others, first {FIRST}.",
            "name store_id 331, too, or compute the day whole",
        ),
        (
            MovedKeys("silver.transactions", unknown="it is gone"),
            "whether records of silver.transactions moved between keys is not known: it is gone.",
            "compute the day whole",
        ),
    ],
)
def test_it_names_what_moved_and_what_to_do_and_nobody_can_accept_it(moved: MovedKeys, what: str, todo: str) -> None:
    found = moved_keys_finding(DAILY_SALES, DAY, moved)
    assert found.message == f"{ON} {what} {TWICE} {todo}"
    assert found.blocks
    assert found.check not in ACCEPTABLE
