"""A stage that is opened by name: nobody sees it, another process goes on with it, it is published whole or dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.snapshot import OpenStage
from platform_assets.engine.state.planner import plan_steps
from platform_assets.engine.step.stage import Stage
from platform_assets.lakehouse.errors import DamagedStageError, LockTimeoutError, StageError, UnknownStageError
from platform_assets.lakehouse.locks import open_stage_lock
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.stages import stages as named_stage
from platform_assets.operations.stages.compare import StagedDay, compare
from platform_assets.operations.stages.stages import StagePublished, drop_stage, publish_stage, refresh_stage
from platform_assets.operations.stages.store import (
    opened_stage,
    read_stage,
    stage_names,
    without_other_code,
    write_stage,
)
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets_tests.support.history import DAILY, DAYS, LATEST, RETAIL, correct, four_days
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

DAY = date.fromisoformat(DAYS[1])
SILVER, GOLD, MONTH = "silver.transactions", "gold.daily_sales", "gold.sales_month_to_date"


def corrected_in_raw(lakes: Lakes, domain: str = DAILY) -> World:
    """Four days, loaded; a correction of the second is in raw and in nothing else."""
    world = lakes.again(four_days, domain)
    correct(world, DAYS[1], "correction")
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue["raw.transactions"], Author("ingest", "a test"))
    return world


def with_stage(lakes: Lakes, domain: str = DAILY) -> World:
    """What the correction reaches is staged."""
    world = lakes.again(corrected_in_raw, domain)
    staged(world)
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(corrected_in_raw)


def no_spark() -> SparkSession:
    raise AssertionError("nothing has to be computed")


def staged(
    world: World, request: Request = BY_PERSON, spark: Callable[[], SparkSession] | None = None
) -> RefreshResult:
    with world.open() as platform:
        return refresh_stage(platform, spark or (lambda: world.spark), Author("s", "to try"), "trial", request=request)


def stage_of(world: World) -> OpenStage:
    with world.open() as platform:
        return opened_stage(platform, "trial")


def published(world: World, spark: Callable[[], SparkSession] = no_spark) -> StagePublished:
    with world.open() as platform:
        return publish_stage(platform, spark, Author("p", "it is right"), "trial")


def compared(world: World) -> dict[tuple[str, date], StagedDay]:
    with world.open() as platform:
        return {(one.table, one.day): one for one in compare(platform, opened_stage(platform, "trial"))}


def stale(world: World) -> dict[str, tuple[date, ...]]:
    with world.open() as platform:
        return {step.table: step.days for step in plan_steps(platform, BY_PERSON).steps}


def release(world: World) -> int:
    with world.open() as platform:
        return current_release(platform.lake).number


def total(rows: Iterable[dict[str, Any]], column: str) -> Decimal:
    return sum((row[column] for row in rows), Decimal())


@pytest.mark.proof
@pytest.mark.parametrize("domain", [DAILY, RETAIL], ids=["daily", "retail"])
def test_nobody_sees_a_stage_until_it_is_published_whole_without_spark(prepared: Prepared, domain: str) -> None:
    """Stages two tables, or four; the first of the module, it also waits for what the others copy."""
    world = prepared(corrected_in_raw, domain)
    before, number, was_stale = world.digests(), release(world), stale(world)
    done = staged(world)
    assert {step.table: tuple(step.published) for step in done.steps} == was_stale
    assert (world.digests(), release(world), stale(world)) == (before, number, was_stale)

    days = compared(world)
    silver, gold = days[SILVER, DAY], days[GOLD, DAY]
    assert (silver.rows, silver.keys, silver.changed, silver.added, silver.removed) == ((5, 5), (5, 5), 1, 0, 0)
    then, now = gold.moved["net"]
    assert Decimal(now) - Decimal(then) == Decimal("96.50")
    assert total(world.rows(GOLD, DAYS[1]), "net") == total(world.rows(SILVER, DAYS[1]), "sales_value")

    shown = published(world)
    assert (shown.release, shown.days, shown.again) == (number + 1, was_stale, {})
    assert not stale(world)
    assert total(world.rows(GOLD, DAYS[1]), "net") == gold.sums["net"][1]
    with world.open() as platform:
        assert stage_names(platform.lake) == ()
        assert [json.loads(entry.content)["kind"] for entry in platform.ledger.decision_chain()] == ["stage"]


@pytest.mark.proof
def test_another_process_goes_on_where_one_died(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Stage.step

    def dies_before_gold(stage: Stage, *args: Any, **named: Any) -> Any:
        if args[1].table.startswith("gold"):
            raise KeyboardInterrupt
        return step(stage, *args, **named)

    monkeypatch.setattr(Stage, "step", dies_before_gold)
    with pytest.raises(KeyboardInterrupt):
        staged(world)
    monkeypatch.undo()
    assert set(stage_of(world).staged.days) == {SILVER}
    assert {done.table.partition(".")[0] for done in staged(world).steps} == {"gold"}
    assert staged(world, spark=no_spark).steps == ()
    assert published(world).again == {}
    assert not stale(world)


@pytest.mark.proof
@pytest.mark.parametrize("theirs", [DAYS[1], DAYS[2]], ids=["the_same_day", "another_day"])
def test_days_that_others_published_meanwhile_are_computed_again(prepared: Prepared, theirs: str) -> None:
    world = prepared(with_stage, RETAIL)
    correct(world, theirs, "theirs", LATEST, "7.00")
    only = Request(frozenset([SILVER]), frozenset([date.fromisoformat(theirs)]), by_person=True)
    with world.open() as platform:
        refresh(platform, lambda: world.spark, Author("daily", "a test"), request=only)
    done = published(world, lambda: world.spark)
    again = {table: [str(day) for day in days] for table, days in done.again.items()}
    if theirs == DAYS[1]:
        assert again[SILVER] == [DAYS[1]]
    else:
        assert SILVER not in again
        assert GOLD not in again
        assert theirs in again["gold.household_28d"]
        assert stale(world)[GOLD] == (date.fromisoformat(theirs),), "what was not staged is left for a refresh"
        world.refresh()
    assert not stale(world)
    for day in DAYS:
        assert total(world.rows(GOLD, day), "net") == total(world.rows(SILVER, day), "sales_value")
    assert total(world.rows(SILVER, theirs), "sales_value") == 17


@pytest.mark.proof
def test_a_stage_of_other_code_is_refused_by_name_and_computed_again(prepared: Prepared) -> None:
    """Gold is computed again, and tried before, because its code is new."""
    world = prepared(with_stage, RETAIL)
    held = stage_of(world).staged.days
    with world.open() as platform:
        platform.code_versions[GOLD] = "other"
        with pytest.raises(StageError, match=f"holds days of {GOLD} that other code"):
            publish_stage(platform, no_spark, Author("p", "a test"), "trial")
        assert set(held) - set(without_other_code(platform, opened_stage(platform, "trial")).staged.days) == {
            GOLD,
            MONTH,
        }
        done = refresh_stage(platform, lambda: world.spark, Author("s", "a test"), "trial")
        assert DAY in next(step for step in done.steps if step.table == GOLD).published
        publish_stage(platform, no_spark, Author("p", "a test"), "trial")
        assert platform.ledger.current_days(GOLD)[DAY].code_version == "other"
        assert platform.ledger.current_days(SILVER)[DAY].code_version != "other"


@pytest.mark.proof
def test_who_died_between_publishing_and_closing_has_published(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = prepared(with_stage)

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(named_stage, "forget_stage", dies)
    with pytest.raises(KeyboardInterrupt):
        published(world)
    monkeypatch.undo()
    number = release(world)
    assert published(world).release == number == release(world)
    with world.open() as platform:
        assert stage_names(platform.lake) == ()


@pytest.mark.proof
def test_what_cannot_be_gone_on_with_is_named(world: World, prepared: Prepared) -> None:
    """Waits once for a lock that somebody else holds."""
    with world.open() as platform, pytest.raises(UnknownStageError, match="There is no stage 'trial'"):
        publish_stage(platform, no_spark, Author("p", "a test"), "trial")
    world = prepared(with_stage)
    with world.open() as platform:
        with pytest.raises(UnknownStageError) as error:
            opened_stage(platform, "trail")
        assert "Did you mean trial" in error.value.todo
        stage = read_stage(platform.lake, "trial")
        with open_stage_lock(platform.lake, "trial"), pytest.raises(LockTimeoutError):
            staged(world)

        write_stage(platform.lake, stage.model_copy(update={"publication": "20170101T000000000000Z-00000000"}))
        with pytest.raises(StageError, match="which this lake does not have"):
            publish_stage(platform, no_spark, Author("p", "a test"), "trial")
        write_stage(platform.lake, stage)

        file = platform.lake.table_path(SILVER) / stage.staged.of(SILVER)[DAY].files[0].path
        content = on_disk(file).read_bytes()
        on_disk(file).write_bytes(content[:-1])
        with pytest.raises(DamagedStageError, match=file.name):
            publish_stage(platform, no_spark, Author("p", "a test"), "trial")

        written = platform.lake.open_stages_path / "trial.json"
        on_disk(written).write_bytes(on_disk(written).read_bytes()[:100])
        with pytest.raises(DamagedStageError, match="The stage trial is damaged"):
            staged(world)
        assert drop_stage(platform, "trial") is None
        assert stage_names(platform.lake) == ()
