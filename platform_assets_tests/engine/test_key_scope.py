"""Rows of some keys computed alone: the day is as if all of it had been, or stays stale and says why."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from platform_assets.contracts.rules import quarantine_table
from platform_assets.domains.retail.transforms import gold
from platform_assets.engine.platform import Platform
from platform_assets.engine.refresh import refresh
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, scoped_plan, states_around
from platform_assets.engine.step.inputs import StepInputs
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.lineage.provenance import explain
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.operations.stages.store import opened_stage
from platform_assets.operations.verify import verify
from platform_assets.planning.configuration import Configuration
from platform_assets.planning.day_states import Stale
from platform_assets.planning.selection import Request, ScopeError, Selection
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.spark.windows import History
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.stores import (
    DAYS,
    GOLD,
    SILVER,
    SOLD,
    STORES,
    author,
    correct,
    published,
    request_of,
    scoped,
    twenty_stores,
)
from platform_assets_tests.support.world import World


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(twenty_stores)


@pytest.mark.proof
def test_no_more_is_read_and_computed_than_the_keys(world: World) -> None:
    """Announced from the plan that was executed: three of twenty stores are 15 % of the rows."""
    with world.open() as platform:
        contract, snapshot = platform.catalogue[GOLD], LakeSnapshot.now(platform)
        request = request_of(platform, STORES[:3], DAYS[:1])
        for scope, rows in ((None, len(STORES) * SOLD), (request.keys, 3 * SOLD)):
            frame: Any = StepInputs(world.spark, contract, snapshot, scope).prepare(DAYS[:1]).frame
            frame.collect()
            plan = frame._jdf.queryExecution().executedPlan()
            lines = plan.toString().splitlines()
            [scan] = [text for text in lines if "FileScan" in text and "basket_id" in text]
            assert ("PushedFilters" in scan and "In(store_id" in scan) == (scope is not None), scan
            assert _rows_to_transform(plan) == rows
        [step] = scoped(platform, world, STORES[:3], DAYS[:1]).steps
        assert step.read[SILVER].days == step.read[SILVER].files == 1
        assert {step.table for step in opened_stage(platform, "keys").staged.tables.values()} <= {
            GOLD,
            quarantine_table(GOLD),
        }


def _rows_to_transform(plan: Any) -> int:
    """What filters let through of the only scan that has baskets; of a scan without filters, all of it."""
    for node in _nodes(plan):
        text = str(node.nodeName())
        if text == "Filter" and "basket_id" in node.output().mkString(","):
            return int(node.metrics().apply("numOutputRows").value())
    [scan] = [n for n in _nodes(plan) if str(n.nodeName()).startswith("Scan") and "basket" in n.output().mkString()]
    return int(scan.metrics().apply("numOutputRows").value())


def _nodes(plan: Any) -> list[Any]:
    found, reached = [], [plan]
    while reached:
        node = reached.pop()
        found.append(node)
        for inner in ("executedPlan", "plan"):  # adaptive plans and their stages hide what they run
            with suppress(Exception):
                reached.append(getattr(node, inner)())
        children = node.children()
        reached += [children.apply(at) for at in range(children.size())]
    return found


@pytest.mark.proof
def test_a_day_of_which_only_some_keys_have_new_code_stays_stale_through_code_and_says_so(world: World) -> None:
    with world.open() as platform:
        platform.code_versions[GOLD] = "other"
        before = platform.ledger.current_days(GOLD)
        scoped(platform, world, [330], DAYS[:1])
        digests = published(platform, world)
        assert digests == {day: record.digest for day, record in before.items()}
        contract, release = platform.catalogue[GOLD], LakeSnapshot.now(platform)
        explained = explain(platform, contract, DAYS[0])
        assert isinstance(explained.state, Stale)
        assert explained.reasons == ("code",)
        assert explained.scope is not None
        assert (explained.scope.keys, explained.scope.rows) == ({"store_id": ("330",)}, 2)
        made_before = before[DAYS[0]].code_version
        for code in ("other", made_before):  # neither all of it is of the new code nor of the old one
            platform.code_versions[GOLD] = code
            assert isinstance(explain(platform, contract, DAYS[0]).state, Stale)
        mixed = platform.ledger.current_days(GOLD)
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.current_days(GOLD) == mixed
        with private_folder(platform.lake) as folder:
            only = Selection(frozenset([GOLD]), frozenset(DAYS[:1]))
            [found] = verify(platform, lambda: world.spark, only, folder)
        assert found.days[0].verdict == "not verifiable"
        assert "store_id=330" in found.days[0].reason
        assert release.days(GOLD)[DAYS[0]].reads == before[DAYS[0]].reads
        refresh(platform, lambda: world.spark, author(), request=Request(frozenset([GOLD]), by_person=True))
        assert explain(platform, contract, DAYS[0]).scope is None
        assert explain(platform, contract, DAYS[0]).reasons == ()


@pytest.mark.proof
def test_a_corrected_day_stays_stale_through_data_though_nothing_else_was_corrected(world: World) -> None:
    correct(world, [(DAYS[0], 330, 1)])
    with world.open() as platform:
        scoped(platform, world, [330], DAYS[:1])
        published(platform, world)
        found = explain(platform, platform.catalogue[GOLD], DAYS[0])
        assert found.reasons == ("upstream content",), "that no other store was corrected, nobody has shown"
        digest = platform.ledger.current_days(GOLD)[DAYS[0]].digest
        refresh(platform, lambda: world.spark, author())
        record = platform.ledger.current_days(GOLD)[DAYS[0]]
        assert record.digest == digest
        assert explain(platform, platform.catalogue[GOLD], DAYS[0]).reasons == ()


@pytest.mark.proof
def test_a_day_that_is_what_it_would_be_stays_so(world: World) -> None:
    with world.open() as platform:
        before = platform.ledger.current_days(GOLD)[DAYS[0]]
        scoped(platform, world, [330], DAYS[:1])
        published(platform, world)
        now = platform.ledger.current_days(GOLD)[DAYS[0]]
        assert (now.digest, now.fingerprint, now.made_by) == (before.digest, before.fingerprint, before.made_by)
        assert explain(platform, platform.catalogue[GOLD], DAYS[0]).scope is None


def test_days_whose_rest_cannot_be_carried_over_are_refused_before_anything_starts(world: World) -> None:
    def refused(platform: Platform, request: Request, says: str) -> None:
        assert request.keys is not None
        with pytest.raises(ScopeError, match=says) as caught:
            scoped_plan(LakeSnapshot.now(platform), request, request.keys)
        assert caught.value.todo

    with world.open() as platform:
        request = request_of(platform, [330])
        refused(platform, Request(frozenset(), frozenset(DAYS), keys=request.keys), "of tables and days")
        silver = Request(frozenset([SILVER]), frozenset(DAYS), keys=request.keys)
        refused(platform, silver, f"{SILVER} does not promise")
        outside = request_of(platform, [330], [date(2017, 1, 9)])
        refused(platform, outside, "is no day of the calendar")
        parts = platform.configurations[GOLD].parts
        platform.configurations[GOLD] = Configuration(parts | {"rules": {"another": "true"}})
        refused(platform, request, "under another contract")
        platform.configurations[GOLD] = Configuration(parts)
        platform.code_versions[GOLD] = "other"
        [fingerprint] = [
            state.fingerprint
            for state in states_around(LakeSnapshot.now(platform), platform.catalogue[GOLD], DAYS[:1])[1].values()
            if isinstance(state, Stale)
        ]
        attempt = Attempt(fingerprint, platform.version(GOLD))
        platform.ledger.hold([Hold(GOLD, DAYS[0], attempt, "volume", "half of it", "r", datetime.now(UTC))])
        refused(platform, request, "is held")


@pytest.mark.proof
def test_a_staged_day_is_not_mixed_any_further_nor_computed_again_behind_its_readers_back(world: World) -> None:
    correct(world, [(DAYS[0], 330, 1)])
    with world.open() as platform:
        scoped(platform, world, [330], DAYS[:1])
        with pytest.raises(ScopeError, match="is in the stage already"):
            scoped(platform, world, [331], DAYS[:1])
        refresh(platform, lambda: world.spark, author())
        with pytest.raises(ScopeError, match="has changed since"):
            publish_stage(platform, lambda: world.spark, author(), "keys")


@pytest.mark.proof
def test_new_code_reaches_the_rows_of_the_keys_and_no_others_and_is_rolled_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(transactions: DataFrame, products: History) -> DataFrame:
        made = _DAILY_SALES(transactions, products)
        return made.withColumn("gross", (F.col("gross") + 1).cast("decimal(18,2)"))

    before = world.rows(GOLD, str(DAYS[0]))
    monkeypatch.setattr(gold, "daily_sales", other)
    with world.open() as platform:
        platform.code_versions[GOLD] = "other"
        then = platform.ledger.current_days(GOLD)[DAYS[0]]
        scoped(platform, world, [330, 331], DAYS[:1])
        published(platform, world)
        in_scope = {330, 331}
        expected = [row | {"gross": row["gross"] + (row["store_id"] in in_scope)} for row in before]
        assert world.rows(GOLD, str(DAYS[0])) == expected
        publication = platform.ledger.current_days(GOLD)[DAYS[0]].publication
        rollback(platform, chosen_publications(platform, publication), author())
        now = platform.ledger.current_days(GOLD)[DAYS[0]]
        assert (now.digest, now.fingerprint, now.made_by) == (then.digest, then.fingerprint, then.made_by)
        request = Request(frozenset([GOLD]), by_person=True)
        [step] = plan_steps(platform, request).steps
        assert DAYS[0] not in step.days, "the same code makes neither these rows nor all of them again"


def _of_all_stores(transactions: DataFrame, products: History) -> DataFrame:
    """Looks at other stores, in a column that nothing is reconciled by."""
    every = F.sum("gross").over(Window.partitionBy("event_date")).cast("decimal(18,2)")
    return _DAILY_SALES(transactions, products).withColumn("gross", every)


def _with_a_stranger(transactions: DataFrame, products: History) -> DataFrame:
    made = _DAILY_SALES(transactions, products)
    return made.unionByName(made.withColumn("store_id", F.lit(999).cast("long")))


_DAILY_SALES = gold.daily_sales


@pytest.mark.proof
@pytest.mark.parametrize(
    ("transform", "says"),
    [
        pytest.param(_with_a_stranger, "came out with a row of store_id=999", id="rows_of_other_keys"),
        pytest.param(_of_all_stores, "has other content", id="other_content"),
    ],
)
def test_a_promise_that_is_seen_to_be_broken_stages_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Any, says: str
) -> None:
    monkeypatch.setattr(gold, "daily_sales", transform)
    if transform is _of_all_stores:
        world.recompute([GOLD], DAYS[:1])
    with world.open() as platform:
        with pytest.raises(ScopeError, match=says):
            scoped(platform, world, [330], DAYS[:1])
        assert not opened_stage(platform, "keys").staged.days
