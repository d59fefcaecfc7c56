"""Rules of a silver and a gold table in a refresh: what is set aside, refused, warned of, and tried again."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from platform_assets.contracts import (
    Domain,
    Input,
    Rule,
    as_of,
    exists,
    in_range,
    not_null,
    one_of,
    same_day,
    unique,
)
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.planning.selection import Request
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World, product, sale

SILVER, GOLD = "silver.transactions", "gold.daily_sales"
SOLD = replace(
    SILVER_TRANSACTIONS,
    inputs=(Input("raw.transactions", same_day()), Input("silver.products", as_of())),
    rules=(
        Rule("some_sold", in_range("quantity", 1), "Something is sold.", tolerance="1 row, 10 %"),
        Rule("week_given", not_null("week"), "Weeks are known.", severity="block", where="store_id = 7"),
        Rule("known", exists("product_id", table="silver.products"), "Products are known.", severity="warn"),
        Rule("value_once", unique("sales_value", within="window"), "No value twice.", severity="warn"),
    ),
)
SALES = replace(
    DAILY_SALES,
    rules=(
        Rule("departments", one_of("department", "MEAT", "UNKNOWN"), "We sell meat.", severity="block"),
        Rule("one_department", unique("store_id"), "A store has one.", severity="warn", tolerance="1 row"),
        Rule("cheap", in_range("net", most=5), "Nothing is dear.", severity="warn", tolerance="40 %"),
    ),
)
TABLES = (RAW_TRANSACTIONS, RAW_PRODUCTS, SOLD, SILVER_PRODUCTS, SALES)
DOMAIN = Domain("ruled", TABLES, "platform_assets.domains.retail.transforms")


def day(number: int) -> date:
    return date(2017, 1, number)


def reasons(world: World, table: str) -> dict[int, str]:
    with world.open() as platform:
        return {hold.day.day: hold.reason for hold in platform.ledger.holds(table)}


def warned(world: World, table: str) -> dict[int, list[str]]:
    """What days were published with, of the check `rules`."""
    with world.open() as platform:
        days = platform.ledger.current_days(table)
        return {
            one.day: found
            for one, record in days.items()
            if (found := [each.found for each in record.warnings if each.gate == "rules"])
        }


def test_rules_of_every_severity_judge_silver_and_gold_and_are_asked_again_when_what_they_look_at_changes(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshes of one lake: by the rules of today, and by others."""
    world = make_world(days=5, domains=__name__)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "MEAT")])
    world.deliver_rows("products", "2017-01-05", "p.jsonl", [product(1, "2017-01-05", "DELI")])
    sold = {
        1: [sale(1, 1, "2017-01-01", sales_value="1.00")],
        2: [sale(2, 1, "2017-01-02", sales_value="2.00"), *(sale(n, 1, "2017-01-02", quantity=-n) for n in (21, 22))],
        3: [sale(3, 9, "2017-01-03", sales_value="9.00"), sale(4, 1, "2017-01-03", sales_value="1.00")],
        4: [sale(5, 1, "2017-01-04", week=None), sale(6, 1, "2017-01-04", week=None, store_id=8)],
        5: [sale(7, 1, "2017-01-05", sales_value="0.70"), sale(8, 1, "2017-01-05", quantity=0)],
    }
    for number, rows in sold.items():
        world.deliver_rows("transactions", f"2017-01-0{number}", "t.jsonl", rows)
    result = world.refresh()

    refused = reasons(world, SILVER)
    assert refused.keys() == {2, 4}
    assert "2 of 3 rows (66.67 %) break the rule 'some_sold' (quantity >= 1" in refused[2]
    assert "go to quarantine; at most 1 row or 10 % may; first basket_id 21, product_id 1" in refused[2]
    assert "1 of 1 row (100.00 %) break the rule 'week_given' (week IS NOT NULL); at most 0 rows may" in refused[4]
    once = "break the rule 'value_once' (unique (sales_value) within moves_within_days)"
    assert warned(world, SILVER) == {
        1: [f"1 of 1 row (100.00 %) {once}"],
        3: [
            "1 of 2 rows (50.00 %) break the rule 'known' ((product_id) exists in silver.products as of the day)",
            f"1 of 2 rows (50.00 %) {once}",
        ],
    }
    [step] = [step for step in result.steps if step.table == SILVER]
    [rules] = [check for check in step.checks[day(5)].checks if check.check == "rules"]
    assert (rules.outcome, rules.sentence) == ("passed", "4 rules kept, or broken as tolerated: some_sold by 1 row")
    [rules] = [check for check in step.checks[day(3)].checks if check.check == "rules"]
    assert [finding.examples for finding in rules.findings] == [("product_id 9",), ("sales_value 1.00",)]
    assert [row["_reason"] for row in world.rows("quarantine.transactions")] == ["some_sold"]
    assert reasons(world, GOLD).keys() == {5}
    assert "first store_id 7, department DELI" in reasons(world, GOLD)[5]
    assert warned(world, GOLD) == {3: ["1 of 2 rows (50.00 %) break the rule 'cheap' (net <= 5)"]}

    # Days that rules of before refused are tried by those of now.
    counted = (replace(SOLD.rules[0], tolerance="2 rows"), *SOLD.rules[1:])
    sells = (replace(SALES.rules[0], severity="warn"), *SALES.rules[1:])
    tables = (*TABLES[:2], replace(SOLD, rules=counted), SILVER_PRODUCTS, replace(SALES, rules=sells))
    monkeypatch.setattr(f"{__name__}.DOMAIN", replace(DOMAIN, tables=tables))
    with world.open() as platform:
        refresh(platform, lambda: world.spark, Author("test", "a test"), request=Request(by_person=True))
    assert reasons(world, SILVER).keys() == {4}
    assert not reasons(world, GOLD)
    assert "'departments'" in warned(world, GOLD)[5][0]


@pytest.mark.proof
def test_what_a_day_becomes_is_not_held_against_what_one_of_a_later_batch_is_until_then(make_world: MakeWorld) -> None:
    """Two days swap their values, and a product that was missing comes."""
    world = make_world(days=3, domains=__name__)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "MEAT")])
    for number, sold, value in ((1, 1, "1.00"), (3, 9, "9.00")):
        row = sale(number, sold, f"2017-01-0{number}", sales_value=value)
        world.deliver_rows("transactions", f"2017-01-0{number}", "t.jsonl", [row])
    world.refresh()
    assert warned(world, SILVER).keys() == {3}
    world.deliver_rows("products", "2017-01-03", "late.jsonl", [product(9, "2017-01-02", "MEAT")])
    swapped = [sale(1, 1, "2017-01-01", sales_value="9.00"), sale(3, 9, "2017-01-03", sales_value="1.00")]
    newer = [row | {"updated_at": "2017-01-03T12:00:00Z"} for row in swapped]
    world.deliver_rows("transactions", "2017-01-03", "u.jsonl", newer)
    World(world.settings.model_copy(update={"batch_days": 1, "batch_mib": 0}), world.spark).refresh()
    assert warned(world, SILVER) == {}


@pytest.mark.proof
def test_a_gold_table_with_the_name_of_a_silver_one_leaves_its_quarantine_alone(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    names = {"contracts": (('"gold.tills"', '"gold.sales"'), ("(RAW, SILVER, GOLD, WEEK)", "(RAW, SILVER, GOLD)"))}
    gold = (("def tills(sales)", "def sales(sales)"), ("return tills(", "return sales("))
    with importable(write_domain(tmp_path / "home", **names, gold=gold)):
        world = make_world(days=1, domains=PACKAGE)
        rows = [
            {"till": till, "at": "2017-01-01T02:00:00Z", "paid": paid} for till, paid in ((1, "1.00"), (2, "-1.00"))
        ]
        world.deliver_rows("sales", "2017-01-01", "sales.jsonl", rows)
        world.refresh()
        assert [row["till"] for row in world.rows("gold.sales")] == [1]
        assert [row["_reason"] for row in world.rows("quarantine.sales")] == ["paid_known"]
