"""A correction of a few days asks Spark for what only Spark can do: each query costs a young JVM half a second."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from platform_assets.engine.refresh import RefreshResult
from platform_assets.spark.compare import in_files
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.queries import asked
from platform_assets_tests.support.world import World, product, sale

CORRECTED = ("2017-01-05", "2017-01-12")


def corrected(lakes: Lakes) -> World:
    """Two weeks of sales, and a correction of two days, on each of which a row is in quarantine."""
    world = lakes.new(days=14)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "TEA")])
    for number in range(1, 15):
        day = f"2017-01-{number:02}"
        bad = [sale(9000 + number, 1, day, quantity=-1)] if day in CORRECTED else []
        rows = [sale(100 * number + n, 1, day, household_id=1 + n % 3) for n in range(9)]
        world.deliver_rows("transactions", day, f"{day}.jsonl", rows + bad)
    world.refresh()
    for day in CORRECTED:
        dearer = {"sales_value": "3.50", "updated_at": f"{day}T11:00:00Z"}
        world.deliver_rows(
            "transactions", "2017-01-14", f"c-{day}.jsonl", [sale(100 * int(day[-2:]), 1, day, **dearer)]
        )
    return world


def outcome(result: RefreshResult) -> dict[str, Any]:
    """What a refresh found and published, but for where it lies."""
    return {
        step.table: (
            {day: (content.digest, content.figures, content.warnings) for day, content in step.published.items()},
            step.changes,
            dict(step.checks),
        )
        for step in result.steps
    }


def test_a_correction_of_two_days_is_a_query_for_each_table_and_few_more(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done once more with Spark alone, which finds the same."""
    world = prepared(corrected)
    with asked(world.spark) as few:
        found = outcome(world.refresh())
    assert {table: len(days) for table, (days, *_) in found.items()} == {
        "silver.transactions": 2, "gold.daily_sales": 2, "gold.household_28d": 10, "gold.sales_month_to_date": 10
    }  # fmt: skip
    changed = {table: changes[date(2017, 1, 5)].changed for table, (_, changes, _) in found.items()}
    assert changed == dict.fromkeys(changed, 1)
    assert few.queries <= 8, few.plans  # one of them names the input of a table in SQL, and runs no job
    assert few.jobs <= 9

    monkeypatch.setattr(in_files, "MOST_BYTES", -1)
    world = prepared(corrected)
    with asked(world.spark) as many:
        assert outcome(world.refresh()) == found
    assert many.queries > 2 * few.queries - 2
