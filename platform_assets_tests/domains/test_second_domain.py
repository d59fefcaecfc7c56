"""A domain is one folder: a very different one runs without a change to the platform."""

from __future__ import annotations

from decimal import Decimal

import pytest

from platform_assets_tests.support.world import MakeWorld


@pytest.mark.proof
def test_sensor_readings_flow_to_gold_and_a_late_one_is_taken(make_world: MakeWorld) -> None:
    """Two refreshes of three tables."""
    world = make_world(days=9, domains="platform_assets_tests.support.domains.sensors")
    for day in range(1, 10):
        stamp = f"2017-01-{day:02d}T06:00:00+01:00"
        rows = [f"north,{stamp},{day}.50", f"south,{stamp},-300.00"]
        world.deliver(
            "readings", f"2017-01-{day:02d}", "r.csv", "\n".join(["sensor,measured_at,celsius", *rows]) + "\n"
        )
    world.refresh()
    week = world.rows("gold.sensor_week", "2017-01-09")
    assert week == [
        {
            "sensor": "north",
            "readings": 7,
            "coldest": Decimal("3.50"),
            "warmest": Decimal("9.50"),
            "event_date": week[0]["event_date"],
        }
    ]
    assert len(world.rows("quarantine.readings")) == 9

    world.deliver_rows(
        "readings",
        "2017-01-09",
        "late.jsonl",
        [
            {"sensor": "north", "measured_at": "2017-01-02T09:00:00Z", "celsius": "-4.00"},
            {"sensor": "north", "measured_at": "2017-01-02T05:00:00Z", "celsius": "2.75"},
        ],
    )
    result = world.refresh()
    gold = next(step for step in result.steps if step.table == "gold.sensor_week")
    assert {day.day for day in gold.published} == set(range(2, 9))
    corrected = [row["celsius"] for row in world.rows("silver.readings", "2017-01-02")]
    assert sorted(corrected) == [Decimal("-4.00"), Decimal("2.75")]
