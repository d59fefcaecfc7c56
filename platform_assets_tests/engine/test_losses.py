"""Every row delivered is somewhere, and only once; what a day lost without its inputs is pointed out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.domains.retail.transforms import gold
from platform_assets.engine.late.approvals import withdraw
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


DAY = "2017-01-01"
LATER = f"{DAY}T12:00:00Z"
SAME_INSTANT = f"{DAY}T10:05:00Z"


def figures(world: World, table: str = "silver.transactions") -> dict[str, int]:
    """Of the first day."""
    with world.open() as platform:
        return next(iter(platform.ledger.current_days(table).values())).figures


def test_raw_is_silver_superseded_voided_and_quarantined_through_every_correction(make_world: MakeWorld) -> None:
    """Every kind of correction, delivered in turn."""
    world = make_world(days=1, domains=TILLS)
    rows = [
        sale(1, 1, DAY),
        sale(1, 1, DAY),
        sale(2, 1, DAY),
        sale(2, 1, DAY, updated_at=LATER, sales_value="3.00"),
        sale(3, 1, DAY),
        sale(3, 1, DAY, updated_at=LATER, voided=True),
        sale(4, 1, DAY, quantity=-1),
        sale(5, 1, DAY, sales_value=None),
        # A void and a record of one instant: the row hash decides, the same way in both counts.
        sale(6, 1, DAY, updated_at=SAME_INSTANT),
        sale(6, 1, DAY, updated_at=SAME_INSTANT, voided=True),
        sale(7, 1, DAY, updated_at=SAME_INSTANT, sales_value="8.00"),
        sale(7, 1, DAY, updated_at=SAME_INSTANT, voided=True, sales_value="8.00"),
    ]
    world.deliver_rows("transactions", DAY, "a.jsonl", rows)
    result = world.refresh()
    [arrival] = result.ingests[0].arrivals
    assert (arrival.landed, arrival.taken, arrival.refused) == (12, 12, 0)
    found = figures(world)
    left = len(world.rows("silver.transactions"))
    assert found["raw"] == 12 == left + found["superseded"] + found["voided"] + found["quarantined"]
    assert found["quarantined"] == 2
    assert {row["basket_id"] for row in world.rows("silver.transactions")} >= {1, 2}
    reasons = sorted(row["_reason"] for row in world.rows("quarantine.transactions"))
    assert reasons == ["quantity_in_range", "sales_value_in_range"]

    # A broken correction leaves the older good version; a good one of a broken row enters.
    corrections = [sale(1, 1, DAY, updated_at=LATER, store_id=0), sale(4, 1, DAY, updated_at=LATER)]
    world.deliver_rows("transactions", DAY, "b.jsonl", corrections)
    world.refresh()
    by_basket = {row["basket_id"]: row for row in world.rows("silver.transactions")}
    assert by_basket[1]["store_id"] == 7
    assert by_basket[4]["quantity"] == 1
    reasons = sorted(row["_reason"] for row in world.rows("quarantine.transactions"))
    assert reasons == ["quantity_in_range", "sales_value_in_range", "store_known"]

    before = world.digests()
    again = world.refresh()
    assert not again.steps
    assert not any(ingest.arrivals or ingest.published for ingest in again.ingests)
    assert world.digests() == before


@pytest.mark.proof
def test_a_first_day_of_which_little_is_good_is_published_with_a_warning_until_it_is_delivered_in_order(
    make_world: MakeWorld,
) -> None:
    """A day without history has no usual volume: only its own rows can tell."""
    world = make_world(days=2, domains=TILLS)
    broken = [sale(n, 1, DAY, store_id=0) for n in range(1, 10)]
    world.deliver_rows("transactions", DAY, "a.jsonl", [*broken, sale(10, 1, DAY)])
    [step] = world.refresh().steps
    day = date.fromisoformat(DAY)
    [warning] = step.checks[day].findings
    assert (warning.check, warning.severity, day in step.published) == ("contract", "warn", True)
    assert "of 9 of 10 keys every row is in quarantine, more than 10 %" in warning.message
    assert refresh_report(RefreshResult((), (step,)), 1.0, None).data["warnings"] == [
        {
            "table": "silver.transactions",
            "day": day,
            "gate": "contract",
            "found": "of 9 of 10 keys every row is in quarantine",
            "expected": "at most 10 % of the keys without a row that keeps the rules",
        }
    ]

    mended = [sale(n, 1, DAY, updated_at=LATER) for n in range(1, 10)]
    world.deliver_rows("transactions", DAY, "b.jsonl", mended)
    [step] = world.refresh().steps
    assert not step.checks[day].findings
    assert not step.published[day].warnings
    found = figures(world)
    assert (found["quarantined"], found["keys"], found["keys_quarantined"]) == (9, 10, 0)
