"""What is said of records that moved between keys that are computed and keys that are carried over."""

from __future__ import annotations

from datetime import date

import pytest

from platform_assets.domains.retail.contracts import DAILY_SALES
from platform_assets.quality.findings import ACCEPTABLE
from platform_assets.quality.gates import MovedKeys, moved_keys_finding

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
