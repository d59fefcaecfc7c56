"""A plan of some keys: what they are afterwards is what a full recompute makes of them, and it is on record."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from platform_assets.cli.commands.audit import life_json
from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.afterwards import note_proof, prove, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain, unmatched_keys
from platform_assets.operations.backfill.pages import backfill_report
from platform_assets.operations.backfill.report import record_report
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.operations.lineage.day_history import life_of
from platform_assets.operations.plan_record import BackfillRecord, pause, unpause
from platform_assets.planning.backfill.backfill import Narrowed
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.report_pages import markdown
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.stores import DAYS, GOLD, SOLD, STORES, author, correct, twenty_stores
from platform_assets_tests.support.world import World

DEPARTMENTS = 2


def plan(stores: list[int], name: str = "stores", **fields: Any) -> PlanFile:
    said = {
        "name": name,
        "reason": "their tills were set up wrong",
        "owner": "ada",
        "tables": [GOLD],
        "days": {"range": f"{DAYS[0]}..{DAYS[-1]}"},
        "downstream": False,
        "only": {"store_id": list(map(str, stores))},
        "rollout": [100],
    }
    return PlanFile.model_validate(said | fields)


def applied(world: World, platform: Platform, file: PlanFile, **more: Any) -> BackfillRecord:
    return apply(platform, lambda: world.spark, file, author(), **more)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(1, 6))
def test_any_corrections_of_some_keys_by_plans_are_the_full_recompute(
    prepared: Prepared, tmp_path: Path, seed: int
) -> None:
    """Round after round other stores are corrected, some of them again, and a plan computes these alone."""
    world, draw = prepared(twenty_stores), random.Random(seed)
    for number in range(3):
        stores = draw.sample(STORES, draw.randint(1, 5))
        correct(
            world,
            {
                (day, store, draw.randrange(SOLD))
                for day in draw.sample(DAYS, draw.randint(1, len(DAYS)))
                for store in draw.sample(stores, draw.randint(1, len(stores)))
            },
            again=number,
        )
        with world.open() as platform:
            record = applied(world, platform, plan(stores, f"round-{number}", rollout=[50, 100]))
            assert record.state == "published"
    by_keys = world.digests()[GOLD]
    copy = world.copied_to(tmp_path / "whole")
    copy.recompute([GOLD], DAYS)
    assert copy.digests()[GOLD] == by_keys


def test_a_plan_of_some_keys_is_explained_applied_recorded_and_undone(
    prepared: Prepared,
) -> None:
    world, stores = prepared(twenty_stores), [330, 337]
    correct(world, [(DAYS[0], 330, 1), (DAYS[3], 337, 0)])
    before = world.digests()[GOLD]
    with world.open() as platform:
        file = plan(stores)
        found = explain(platform, file)
        rows = len(DAYS) * DEPARTMENTS
        assert found.narrowed == (Narrowed(GOLD, len(DAYS), rows * len(stores), rows * len(STORES)),)
        assert found.hash != explain(platform, plan([330])).hash, "the keys are approved, too"
        assert [step.table for step in found.plan.steps] == [GOLD]
        said = "\n".join(markdown(backfill_report(found).parts))
        assert "16 of 160 rows (10.0 %) of 4 days that were looked at; 144 are not computed" in said
        [nothing] = explain(platform, plan([330, 331_0])).obstacles
        assert nothing.what == "No row of gold.daily_sales has store_id=3310, on 4 days that were looked at."
        assert nothing.todo.startswith("The nearest are 331, ")
        assert not nothing.blocks
        assert unmatched_keys(platform, plan([330, 331_0])) == (nothing,), "as a new plan tells"
        record = applied(world, platform, file)
        now = world.digests()[GOLD]
        assert {day for day in DAYS if now[day] != before[day]} == {DAYS[0], DAYS[3]}
        page = markdown(record_report(platform, record).parts)
        assert "Only rows of `store_id=330,337`; the others were carried over." in page
        assert life_json(life_of(platform, GOLD, DAYS[0])[-1][1])["only"] == {"store_id": ("330", "337")}
        proved = prove(platform, lambda: world.spark, record)
        assert "store_id=330,337" in note_proof(platform, record, proved).events[-1].what, "why it cannot be proved"
        roll_back(platform, "stores", author())
        assert world.digests()[GOLD] == before


@pytest.mark.proof
def test_a_plan_whose_keys_do_not_stay_apart_stops_and_says_how_to_go_on(prepared: Prepared) -> None:
    world = prepared(twenty_stores)
    correct(world, [(DAYS[0], 330, 1)])

    def somebody_corrects(now: Any) -> None:
        if now.finished and now.phase == "computing":
            pause(platform.lake, "stores", "lunch")

    with world.open() as platform:
        file = plan([330])
        with pytest.raises(StoppedError, match="somebody paused it"):
            applied(world, platform, file, progress=somebody_corrects)
        unpause(platform.lake, "stores")
        correct(world, [(DAYS[0], 330, 2)], again=1)
        platform.sync()
        with pytest.raises(StoppedError, match="is another one now") as stopped:
            applied(world, platform, file)
        assert "plan cancel stores" in stopped.value.todo


@pytest.mark.parametrize(
    ("before", "after"),
    [([330], [330, 337]), ([330], None), (None, [330, 337])],
    ids=["more keys", "whole days", "some keys"],
)
def test_a_plan_that_is_edited_computes_the_keys_that_its_file_has_now(
    prepared: Prepared, before: list[int] | None, after: list[int] | None
) -> None:
    world = prepared(twenty_stores)
    correct(world, [(DAYS[0], 330, 0)])

    def file(stores: list[int] | None) -> PlanFile:
        return plan(stores) if stores else plan([330], only=None)

    def halt(now: Any) -> None:
        if now.finished and now.phase == "computing":
            pause(platform.lake, "stores", "lunch")

    with world.open() as platform:
        with pytest.raises(StoppedError, match="somebody paused it"):
            applied(world, platform, file(before), progress=halt)
        unpause(platform.lake, "stores")
        assert applied(world, platform, file(after)).state == "published"
        only = life_json(life_of(platform, GOLD, DAYS[0])[-1][1]).get("only")
        assert only == ({"store_id": tuple(map(str, after))} if after else None)
