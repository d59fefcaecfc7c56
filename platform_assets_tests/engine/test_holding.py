"""What a gate said of a day in a stage is said of the content it had there, not of what others made of it since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.circuits import CircuitOpenError
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute_step, refresh
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step import compute as computing
from platform_assets.engine.step import stage as staging
from platform_assets.engine.step.holds import write_holds
from platform_assets.operations.breaker import freeze
from platform_assets.operations.opening import open_platform
from platform_assets.operations.stages.stages import publish_stage, refresh_stage
from platform_assets.operations.stages.store import opened_stage
from platform_assets.planning.steps import Step
from platform_assets.records.code_version import Attempt, Version
from platform_assets.records.history import ROLL_BACK, Hold
from platform_assets.settings import load_settings
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import TILLS, no_session
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.orchestration.readings import SENSORS
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World, sale

RAW, SILVER = "raw.transactions", "silver.transactions"
ODD = date(2017, 1, 17)


def lines(number: int) -> list[dict[str, object]]:
    return [sale(100 * number + n, 1, f"2017-01-{number:02}") for n in range(10)]


def a_day_without_rows(lakes: Lakes) -> World:
    """Sixteen days that are all alike, in silver; of the seventeenth a file without rows is in raw, and no more."""
    world = lakes.new(days=20, domains=TILLS)
    for number in range(1, 17):
        world.deliver_rows("transactions", f"2017-01-{number:02}", "a.jsonl", lines(number))
    world.refresh()
    world.deliver_rows("transactions", str(ODD), "a.jsonl", [])
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("ingest", "a test"))
    return world


def accepted(world: World) -> None:
    """A person finds the day to be right, though it is unusual."""
    with world.open() as platform:
        step, author = Step(SILVER, (ODD,)), Author("person", "the shop was closed")
        done = recompute_step(platform, no_session, step, author, accept=["volume"])
        assert set(done.published) == {ODD}


def mended(world: World) -> None:
    """The rows of the day come, and the next tick publishes them."""
    world.deliver_rows("transactions", str(ODD), "b.jsonl", lines(ODD.day))
    [step] = world.refresh().steps
    assert set(step.published) == {ODD}


def holds(world: World) -> list[tuple[date, str]]:
    with world.open() as platform:
        return [(hold.day, hold.gate) for hold in platform.ledger.holds(SILVER)]


def test_of_a_hold_and_a_publication_of_the_same_day_one_finds_the_other(tmp_path: Path) -> None:
    """Whichever comes first; nobody needs Spark for it."""
    table, day = "silver.readings", ODD
    settings = load_settings(
        state=tmp_path / "state", domains=SENSORS, calendar_first=day, calendar_last=day, today=day
    )
    with open_platform(settings) as platform:
        for name in ("raw.readings", table):
            publish(platform, name, [day], 1)
        refused = Hold(table, day, Attempt("mark", Version("code")), "volume", "too few rows", "r", datetime.now(UTC))
        before = LakeSnapshot.now(platform)
        publish(platform, table, [day], 2)
        assert write_holds(before, [refused], {}, ()) == (refused,)
        assert not platform.ledger.holds()

        assert write_holds(LakeSnapshot.now(platform), [refused], {}, ()) == ()
        put_back = replace(refused, gate=ROLL_BACK, refused=Attempt("other", Version("code")))
        platform.ledger.hold([put_back])
        write_holds(LakeSnapshot.now(platform), [], {table: [day]}, ())
        assert platform.ledger.holds() == (put_back,), "a person put it back, and nobody overruled that"
        write_holds(LakeSnapshot.now(platform), [], {table: [day]}, [put_back])
        assert not platform.ledger.holds()


@pytest.mark.proof
@pytest.mark.parametrize("others", [accepted, mended])
def test_who_publishes_a_stage_holds_no_day_that_is_good_by_now(
    prepared: Prepared, others: Callable[[World], None]
) -> None:
    """The day is held in the stage; others publish it; then the stage is published."""
    world = prepared(a_day_without_rows)

    def spark() -> SparkSession:
        return world.spark

    with world.open() as platform:
        refresh_stage(platform, spark, Author("s", "to try"), "trial")
        assert [hold.day for hold in opened_stage(platform, "trial").staged.holds] == [ODD]
    others(world)
    assert holds(world) == []
    before = world.digests()[SILVER]
    with world.open() as platform:
        publish_stage(platform, spark, Author("p", "it is right"), "trial")
    assert world.digests()[SILVER] == before
    assert holds(world) == [], "what readers see of the day has passed its gates, or a person accepted it"
    assert not world.refresh().steps, "nothing is stale"


@pytest.mark.proof
def test_who_refreshes_holds_no_day_that_a_person_accepted_meanwhile(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same within one refresh: between the gate and the end of it somebody accepts the day."""
    world = prepared(a_day_without_rows)
    once_at(monkeypatch, staging, "stage.before_publish", lambda: accepted(world))
    with world.open() as platform:
        refresh(platform, lambda: world.spark, Author("tick", "a tick"))
    assert holds(world) == [], "a person accepted it"


def test_what_a_gate_refused_counts_though_a_freeze_keeps_the_good_days_of_its_batch_from_being_published(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One asset run of two days: a person freezes the table while it is at work."""
    world, good = prepared(a_day_without_rows), date(2017, 1, 18)
    world.deliver_rows("transactions", str(good), "a.jsonl", lines(good.day))
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("ingest", "a test"))
        once_at(monkeypatch, computing, "gate.decided", lambda: freeze(platform, SILVER, Author("person", "wrong")))
        step, release = Step(SILVER, (ODD, good)), platform.current_release().number
        with pytest.raises(CircuitOpenError, match="frozen"):
            recompute_step(platform, lambda: world.spark, step, Author("run", "a test"))
        assert platform.current_release().number == release
        verdicts = platform.ledger.verdicts.of([SILVER])[SILVER]
        assert [(each.run, each.day, *each.failed) for each in verdicts] == [("run", ODD, "volume")]


def test_what_a_gate_refused_counts_in_a_stage_of_a_plan_and_not_in_one_of_a_person(prepared: Prepared) -> None:
    world = prepared(a_day_without_rows)
    with world.open() as platform:
        for name, is_plans in (("trial", False), ("plan-mend", True)):
            done = refresh_stage(platform, lambda: world.spark, Author(name, "a test"), name, is_plans=is_plans)
            assert {day for step in done.steps for day in step.held} == {ODD}
        verdicts = platform.ledger.verdicts.of([SILVER])[SILVER]
        assert [(each.run, each.day, *each.failed) for each in verdicts] == [("plan-mend", ODD, "volume")]
