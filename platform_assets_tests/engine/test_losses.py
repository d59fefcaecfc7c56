"""A young table's day that loses most of its rows is published with a warning, unless people took these rows out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame

from platform_assets.domains.retail.transforms import gold
from platform_assets.engine.late.withdrawals import withdraw
from platform_assets.engine.refresh import RefreshResult
from platform_assets.quality.findings import Checked
from platform_assets_tests.support.history import TILLS, WINDOWS, person
from platform_assets_tests.support.world import MakeWorld, World, sale

FIRST = date(2017, 1, 1)
SILVER, HOUSEHOLDS = "silver.transactions", "gold.household_28d"


def lines(count: int = 10, **changes: Any) -> list[dict[str, Any]]:
    """Baskets of one line each, on the first day, each of a household of its own."""
    return [sale(number, 1, str(FIRST), household_id=1 + number, **changes) for number in range(count)]


def deliver(world: World, name: str, rows: Iterable[dict[str, Any]]) -> str:
    world.deliver_rows("transactions", str(FIRST), name, rows)
    return f"transactions/{FIRST}/{name}"


def take_out(world: World, path: str) -> None:
    with world.open() as platform:
        withdraw(platform, lambda: world.spark, [path], person())


def volume(result: RefreshResult, table: str) -> Checked:
    """What volume says of the first day."""
    [step] = [step for step in result.steps if step.table == table]
    return step.checks[FIRST].checks[-1]


def warnings(world: World) -> list[str]:
    """What is told of the days that readers see."""
    with world.open() as platform:
        warned = platform.ledger.warned(platform.catalogue.names, at=platform.current_release().number)
        return [f"{record.table}: {each.found}" for record in warned for each in record.warnings]


@pytest.mark.proof
def test_a_halved_day_without_history_is_warned_of_until_its_rows_are_back(make_world: MakeWorld) -> None:
    """Five refreshes; the last after a delivery that is cut short took the place of a withdrawn one."""
    world = make_world(days=1, domains=TILLS)
    good = deliver(world, "good.jsonl", lines())
    first = volume(world.refresh(), SILVER)
    assert first.outcome == "not judged", "nothing to hold it against"
    bad = deliver(world, "bad.jsonl", lines(8, voided=True, updated_at=f"{FIRST}T12:00:00Z"))
    halved = volume(world.refresh(), SILVER)
    assert halved.outcome == "warned"
    assert "rows fell from 10 to 2 with too little history to judge (0 of 14 days of history)" in halved.sentence
    assert len(world.rows(SILVER)) == 2
    deliver(world, "more.jsonl", [sale(99, 1, str(FIRST))])
    world.refresh()
    assert warnings(world) == [f"{SILVER}: rows fell from 10 to 3 with too little history to judge"]
    take_out(world, bad)
    assert volume(world.refresh(), SILVER).outcome == "not judged"
    assert warnings(world) == []
    take_out(world, good)
    deliver(world, "again.jsonl", lines(1))
    assert "rows fell from 11 to 2" in volume(world.refresh(), SILVER).sentence


@pytest.mark.proof
def test_what_people_withdraw_is_missed_in_no_table_and_what_code_loses_is(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshes, and gold computed again."""
    world = make_world(days=1, domains=WINDOWS)
    deliver(world, "good.jsonl", lines())
    bad = deliver(world, "bad.jsonl", [line | {"basket_id": 100 + n} for n, line in enumerate(lines(40))])
    world.refresh()
    take_out(world, bad)
    result = world.refresh()
    assert [volume(result, table).outcome for table in (SILVER, HOUSEHOLDS)] == ["not judged", "not judged"]
    assert [len(world.rows(table)) for table in (SILVER, HOUSEHOLDS)] == [10, 10]

    right = gold.household_28d

    def loses_most(transactions: Any) -> DataFrame:
        return right(transactions).where("household_id < 4")

    monkeypatch.setattr(gold, "household_28d", loses_most)
    judged = volume(world.recompute([HOUSEHOLDS], [FIRST]), HOUSEHOLDS)
    assert "rows fell from 10 to 3 with too little history to judge (the days it reads reach" in judged.sentence
