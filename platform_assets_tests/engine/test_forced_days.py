"""`--force` is for the days named: days that are only needed for them, and that a person put back, stay put back."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Rule
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets.records.history import ROLL_BACK
from platform_assets_tests.support.domains import windows
from platform_assets_tests.support.history import WINDOWS, person
from platform_assets_tests.support.world import MakeWorld, World, sale

SILVER = "silver.transactions"
DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
DEAR = 100


def run(world: World, name: str, request: Request) -> None:
    """A refresh as a run of some name."""
    with world.open() as platform:
        refresh(platform, lambda: world.spark, Author(name, "a test"), request=request)


def baskets(world: World, day: str) -> set[int]:
    return {row["basket_id"] for row in world.rows(SILVER, day)}


@pytest.mark.proof
def test_days_that_are_put_back_stay_so_where_another_day_is_forced(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong rule is computed and rolled back; then the third day is asked for, with the window that it reads."""
    world = make_world(days=3, domains=WINDOWS)
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(number, 1, day)])
    world.deliver_rows("transactions", DAYS[0], "dear.jsonl", [sale(DEAR, 1, DAYS[0], sales_value="900.00")])
    world.refresh()
    assert baskets(world, DAYS[0]) == {0, DEAR}

    raw, _, *others = windows.TABLES
    strict = replace(SILVER_TRANSACTIONS, rules=(Rule("cheap", "sales_value < 100", "A rule that is wrong."),))
    monkeypatch.setattr(windows, "DOMAIN", replace(windows.DOMAIN, tables=(raw, strict, *others)))
    run(world, "strict", BY_PERSON)
    assert baskets(world, DAYS[0]) == {0}
    with world.open() as platform:
        rollback(platform, chosen_publications(platform, run="strict"), person("the rule is wrong"))
    assert baskets(world, DAYS[0]) == {0, DEAR}

    third = frozenset({date.fromisoformat(DAYS[2])})
    run(world, "third", Request(days=third, by_person=True, force=True))
    with world.open() as platform:
        held = {str(hold.day) for hold in platform.ledger.holds(SILVER) if hold.gate == ROLL_BACK}
    assert baskets(world, DAYS[0]) == {0, DEAR}, "the first day was not named, and a person had put it back"
    assert DAYS[0] in held
