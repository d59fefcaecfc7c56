"""A correction from its landing to its end: what is stale and why, what a refresh does, where a day comes from."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyspark
import pytest

from platform_assets.contracts import Catalogue, Rule
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import outlook, reasons_now
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World, product, sale

DAYS = 40
SPAN = 28
NOTHING_STALE = {
    "tables": [],
    "contract_changes": {},
    "cannot_be_computed": [],
    "held": [],
    "bereft": [],
    "protected": [],
    "waiting_files": 0,
}
"""Days of gold.household_28d that a day of sales reaches."""

__all__ = ["run", "state"]
"""Fixtures of the command line."""


def day(number: int) -> date:
    return date.fromordinal(date(2017, 1, 1).toordinal() + number - 1)


def numbers(days: Any) -> set[int]:
    return {(found - date(2017, 1, 1)).days + 1 for found in days}


def forty_days(lakes: Lakes) -> World:
    """Forty days of sales, of two products."""
    world = lakes.new(days=DAYS)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(n, "2017-01-01", "MEAT") for n in (1, 2)])
    for number in range(1, DAYS + 1):
        rows = [sale(number, n, str(day(number))) for n in (1, 2)]
        world.deliver_rows("transactions", str(day(number)), "t.jsonl", rows)
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(forty_days)


def take_files(world: World) -> None:
    """Ingest and compute nothing, as a run that dies after its first tables."""
    with world.open() as platform:
        for contract in platform.catalogue:
            if contract.source is not None:
                ingest(platform, lambda: world.spark, contract, Author("dead", "a test"))


def looked(world: World) -> Plan:
    with world.open() as platform:
        return outlook(platform).everything


def days_and_reasons(plan: Plan) -> dict[str, dict[tuple[str, ...], set[int]]]:
    return {step.table: {reasons: numbers(days) for reasons, days in step.by_reasons.items()} for step in plan.steps}


def correct(world: World, number: int, **changes: Any) -> None:
    """One line of a day, delivered again on the last day."""
    late = {"updated_at": f"{day(DAYS)}T00:00:00Z", "sales_value": "9.00"} | changes
    world.deliver_rows("transactions", str(day(DAYS)), f"c{number}.jsonl", [sale(number, 1, str(day(number)), **late)])


@pytest.mark.proof
def test_a_correction_on_two_days_is_named_mended_and_explained(
    run: Run, state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way a person goes: ten commands, one of which starts a Spark of its own and computes seventy days."""
    for name in ("CALENDAR_LAST", "TODAY"):
        monkeypatch.setenv(f"PLATFORM_{name}", str(day(DAYS)))
    world = lakes.copy(state, forty_days)

    def told(*args: str) -> tuple[int, Any]:
        said = run(*args)
        assert said.code in (0, 1), said.err
        return said.code, said.json if "--json" in args else said.out

    assert told("stale", "--json") == (0, NOTHING_STALE)
    correct(world, 2)
    correct(world, 35)
    code, found = told("stale", "--json")
    assert (code, found["tables"], found["waiting_files"]) == (0, [], 2)
    take_files(world)

    code, found = told("stale", "--json")
    stale = {table["table"]: table["ranges"] for table in found["tables"]}
    assert code == 1
    corrected = {"reasons": ["correction"], "waits_for_a_person": False}
    reached = {"reasons": ["upstream content"], "waits_for_a_person": False}
    assert stale == {
        "silver.transactions": [{"first": str(day(n)), "last": str(day(n)), **corrected} for n in (2, 35)],
        "gold.daily_sales": [{"first": str(day(n)), "last": str(day(n)), **reached} for n in (2, 35)],
        "gold.household_28d": [
            {"first": str(day(2)), "last": str(day(29)), **reached},
            {"first": str(day(35)), "last": str(day(DAYS)), **reached},
        ],
        "gold.sales_month_to_date": [
            {"first": str(day(2)), "last": str(day(31)), **reached},
            {"first": str(day(35)), "last": str(day(DAYS)), **reached},
        ],
    }
    _, text = told("stale", "gold.daily_sales", "--days", f"{day(1)}..{day(3)}")
    assert "2017-01-02" in text
    assert "2017-02-04" not in text
    assert "Jan   ·u·" in text

    before = world.digests()
    code, explained = told("refresh", "--explain", "--json")
    assert (code, explained["plan"]["days"]) == (0, 2 + 2 + 34 + 36)
    assert explained["plan"]["estimate"]["rows"] > 0
    assert world.digests() == before
    refreshed = run_apart("refresh", "--json")
    assert refreshed.code == 0, refreshed.err
    done = refreshed.json
    assert done["plan"] == explained["plan"]
    counts = {table["table"]: table["days"] for table in found["tables"]}
    assert done["result"]["published"] == counts
    assert done["result"]["struck"] == {}
    changed = {
        table: {day for day, digest in days.items() if before[table][day] != digest}
        for table, days in world.digests().items()
    }
    assert {table: numbers(days) for table, days in changed.items() if days} == {
        "silver.transactions": {2, 35},
        "gold.daily_sales": {2, 35},
        "gold.household_28d": {*range(2, 30), *range(35, DAYS + 1)},
        "gold.sales_month_to_date": {*range(2, 32), *range(35, DAYS + 1)},
    }
    assert told("stale", "--json")[1]["tables"] == []
    assert told("refresh", "--json")[1]["plan"]["days"] == 0

    code, chain = told("why", "gold.daily_sales", str(day(2)), "--diff", "--json")
    assert (code, chain["stale"], chain["diff"]["inputs"]) == (0, [], [])
    silver = next(read for read in chain["origin"]["inputs"] if read["table"] == "silver.transactions")
    [raw] = silver["inputs"]
    assert {file["path"] for file in raw["files"]} == {
        f"transactions/{day(2)}/t.jsonl",
        f"transactions/{day(DAYS)}/c2.jsonl",
    }
    assert chain["origin"]["publications"][0]["why"] == "refresh"
    assert chain["origin"]["publications"][0]["run"].startswith("refresh-")
    assert [found["digest"] for found in silver["days"]] == [world.digests()["silver.transactions"][day(2)]]
    software = chain["computed_with"]
    assert (set(software), software["spark"]) == ({"platform", "spark", "delta"}, pyspark.__version__)
    _, text = told("why", "gold.daily_sales", str(day(2)), "--diff")
    made = f"computed with platform-assets {software['platform']}, Spark {software['spark']}"
    for said in ("up to date", "code version", made, f"transactions/{day(DAYS)}/c2.jsonl", "Nothing differs"):
        assert said in text


@pytest.mark.proof
def test_each_kind_of_change_is_called_by_its_name(world: World) -> None:
    late = {"updated_at": f"{day(DAYS)}T00:00:00Z"}
    moved = sale(5, 1, str(day(5)), **late, transaction_timestamp=f"{day(9)}T10:00:00Z")
    world.deliver_rows("transactions", str(day(DAYS)), "moved.jsonl", [moved])
    world.deliver_rows("products", str(day(30)), "p.jsonl", [product(1, str(day(30)), "DELI")])
    take_files(world)
    found = days_and_reasons(looked(world))
    assert found["silver.transactions"] == {("moved key",): {5}, ("correction",): {9}}
    assert found["silver.products"] == {("new arrival",): {30}}
    assert found["gold.daily_sales"] == {
        ("upstream content",): {5, 9},
        ("reference data",): set(range(30, DAYS + 1)),
    }
    done = world.refresh()
    reasons = {step.table: step.reasons for step in done.steps}
    assert reasons["silver.transactions"] == {day(5): ("moved key",), day(9): ("correction",)}
    assert reasons["gold.daily_sales"][day(5)] == ("upstream content",)
    assert reasons["gold.daily_sales"][day(30)] == ("reference data",)
    assert looked(world).steps == ()


@pytest.mark.proof
def test_a_correction_that_changes_nothing_strikes_what_reads_it(world: World) -> None:
    """The first of the module: it waits for a lake of five tables."""
    repeated = sale(7, 1, str(day(7)), updated_at=f"{day(7)}T10:05:00Z")
    world.deliver_rows("transactions", str(day(DAYS)), "again.jsonl", [repeated])
    take_files(world)
    assert set(days_and_reasons(looked(world))) == {
        "silver.transactions", "gold.daily_sales", "gold.household_28d", "gold.sales_month_to_date",
    }  # fmt: skip
    done = world.refresh()
    assert [(step.table, set(step.published)) for step in done.steps] == [("silver.transactions", {day(7)})]
    assert {table: numbers(days) for table, days in done.struck.items()} == {
        "gold.daily_sales": {7},
        "gold.household_28d": set(range(7, 7 + SPAN)),
        "gold.sales_month_to_date": set(range(7, 32)),
    }


def with_rule(platform: Platform, expression: str) -> Platform:
    """The platform with another rule for sales."""
    rule = Rule("mended", expression, "For the test.")
    [domain] = platform.catalogue.domains
    tables = tuple(
        replace(table, description="reworded", rules=(*table.rules, rule))
        if table.name == "silver.transactions"
        else table
        for table in TABLES
    )
    return replace(platform, catalogue=Catalogue.of([replace(domain, tables=tables)]))


def by(world: World, platform: Platform, request: Request) -> RefreshResult:
    return refresh(platform, lambda: world.spark, Author("test", "a test"), request=request)


@pytest.mark.proof
def test_days_stale_through_a_rule_wait_for_a_person_and_say_what_changed(world: World) -> None:
    with world.open() as opened:
        platform = with_rule(opened, "sales_value < 1000")
        found = outlook(platform)
        assert found.automatic.steps == ()
        assert days_and_reasons(found.everything)["silver.transactions"] == {
            ("configuration",): set(range(1, DAYS + 1))
        }
        [change] = found.changes["silver.transactions"]
        assert str(change) == "rule 'mended' added (sales_value < 1000): another content, its days are stale"
        assert by(world, platform, Request()).steps == ()

        some = by(
            world, platform, Request(frozenset({"gold.daily_sales"}), frozenset([day(3), day(4)]), by_person=True)
        )
        assert {step.table: set(step.published) for step in some.steps} == {"silver.transactions": {day(3), day(4)}}
        assert {table: numbers(days) for table, days in some.struck.items()} == {"gold.daily_sales": {3, 4}}
        everything = by(world, platform, BY_PERSON)
        assert numbers(everything.steps[0].published) == set(range(1, DAYS + 1)) - {3, 4}
        assert outlook(platform).everything.steps == ()
        contract = platform.catalogue["gold.daily_sales"]
        assert reasons_now(LakeSnapshot.now(platform), contract, [day(1)], asked=[day(1)]) == {day(1): ("asked for",)}
