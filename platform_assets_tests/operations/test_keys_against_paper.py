"""Plans of some keys against paper: these keys are what is true now, all others what was published.

The tables on paper reconcile nothing, so that no gate of theirs stands in for what the engine has to see to.
"""

from __future__ import annotations

from typing import Any

import pytest

from platform_assets.cli.commands.audit import life_json
from platform_assets.engine.late.approvals import approve
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.backfill.afterwards import cancel, note_proof, prove, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain, unmatched_keys
from platform_assets.operations.backfill.report import record_report
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.operations.backfill.standing import backfill_report
from platform_assets.operations.lineage.day_history import life_of
from platform_assets.operations.plan_record import BackfillRecord, pause, unpause
from platform_assets.planning.backfill.backfill import Narrowed
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.rows_aside import LateSelection
from platform_assets.report import markdown
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.registers import (
    DAYS,
    LATE,
    STORE_DAYS,
    STORE_SPANS,
    Line,
    applied,
    five_stores,
    golds,
    plan,
    take,
)
from platform_assets_tests.support.stores import DAYS as SALE_DAYS
from platform_assets_tests.support.stores import GOLD, STORES, author, correct, twenty_stores
from platform_assets_tests.support.world import World


@pytest.mark.proof
def test_a_line_that_moved_between_keys_is_seen_and_both_together_are_right(prepared: Prepared) -> None:
    found = prepared(five_stores)
    found.deliver(Line(101, 1, "B", amount=7), Line(211, 2, "A", amount=9))
    before = golds(found)
    with found.world.open() as platform:
        take(found, platform)
        assert found.contradicts(STORE_DAYS, DAYS[0], ["A"])
        assert found.contradicts(STORE_SPANS, DAYS[2], ["A"])
        assert not found.contradicts(STORE_SPANS, DAYS[4], ["A"])
        with pytest.raises(StoppedError, match="6 days did not pass") as stopped:
            applied(found, platform, plan(["A"], tables=[STORE_DAYS, STORE_SPANS]))
        assert stopped.value.lines[-2] == (
            f"{STORE_DAYS} 2017-01-01: held: {STORE_DAYS} on 2017-01-01: 1 record of silver.lines moved between these "
            "keys and others, first line 101 from store A to store B. Beside what is carried over they would count "
            "twice or not at all; name store B, too, or compute the day whole"
        )
        cancel(platform, "some", author())
        assert golds(found) == before
        applied(found, platform, plan(["A", "B"], "both"))
        found.check()


@pytest.mark.proof
def test_rows_that_are_approved_while_a_plan_of_keys_stands_still_come_in_with_the_next(prepared: Prepared) -> None:
    found = prepared(five_stores)
    found.deliver(Line(101, 1, "A", amount=7))
    late = found.deliver(Line(996, 1, "A", amount=1), Line(995, 1, "B", amount=2), arrival=LATE)

    def halt(now: Any) -> None:
        if now.finished and now.phase == "computing":
            pause(platform.lake, "some", "lunch")

    with found.world.open() as platform:
        take(found, platform)
        with pytest.raises(StoppedError, match="it was paused"):
            applied(found, platform, plan(["A"]), progress=halt)
        unpause(platform.lake, "some")
        approve(platform, lambda: found.world.spark, LateSelection(arrival=late), author())
        found.waiting.remove(late)
        take(found, platform)
        platform.sync()
        with pytest.raises(StoppedError, match="has changed since"):
            applied(found, platform, plan(["A"]))
        found.check()
        cancel(platform, "some", author())
        applied(found, platform, plan(["A"]))
        found.check()


@pytest.mark.proof
def test_of_what_the_rest_was_made_from_nothing_is_left_so_nobody_can_tell_what_moved(prepared: Prepared) -> None:
    found = prepared(five_stores)
    with found.world.open() as platform:
        then = LakeSnapshot.now(platform).files("silver.lines")[DAYS[0]]
        found.deliver(Line(101, 1, "A", amount=7))
        take(found, platform)
        for file in then:
            on_disk(platform.lake.table_path("silver.lines") / file.path).unlink()
        with pytest.raises(StoppedError, match="1 day did not pass") as stopped:
            applied(found, platform, plan(["A"], tables=[STORE_DAYS]))
        assert "is not known: the inputs of the rest of the day no longer exist" in stopped.value.lines[-1]
        cancel(platform, "some", author())
    found.refresh()
    found.check()


DEPARTMENTS = 2


def plan_of_stores(stores: list[int], name: str = "stores", **fields: Any) -> PlanFile:
    said = {
        "name": name,
        "reason": "their tills were set up wrong",
        "owner": "ada",
        "tables": [GOLD],
        "days": {"range": f"{SALE_DAYS[0]}..{SALE_DAYS[-1]}"},
        "downstream": False,
        "only": {"store_id": list(map(str, stores))},
        "rollout": [100],
    }
    return PlanFile.model_validate(said | fields)


def applied_to(world: World, platform: Platform, file: PlanFile, **more: Any) -> BackfillRecord:
    return apply(platform, lambda: world.spark, file, author(), **more)


@pytest.mark.proof
def test_a_plan_of_some_keys_is_explained_applied_recorded_and_undone(
    prepared: Prepared,
) -> None:
    world, stores = prepared(twenty_stores), [330, 337]
    correct(world, [(SALE_DAYS[0], 330, 1), (SALE_DAYS[3], 337, 0)])
    before = world.digests()[GOLD]
    with world.open() as platform:
        file = plan_of_stores(stores)
        found = explain(platform, file)
        rows = len(SALE_DAYS) * DEPARTMENTS
        assert found.narrowed == (Narrowed(GOLD, len(SALE_DAYS), rows * len(stores), rows * len(STORES)),)
        assert found.hash != explain(platform, plan_of_stores([330])).hash, "the keys are approved, too"
        assert [step.table for step in found.plan.steps] == [GOLD]
        said = "\n".join(markdown(backfill_report(found).parts))
        assert "16 of 160 rows (10.0 %) of 4 days that were looked at; 144 are not computed" in said
        [nothing] = explain(platform, plan_of_stores([330, 331_0])).obstacles
        assert nothing.what == "No row of gold.daily_sales has store_id=3310, on 4 days that were looked at."
        assert nothing.todo.startswith("The nearest are 331, ")
        assert not nothing.blocks
        assert unmatched_keys(platform, plan_of_stores([330, 331_0])) == (nothing,), "as a new plan tells"
        record = applied_to(world, platform, file)
        now = world.digests()[GOLD]
        assert {day for day in SALE_DAYS if now[day] != before[day]} == {SALE_DAYS[0], SALE_DAYS[3]}
        page = markdown(record_report(platform, record).parts)
        assert "Only rows of `store_id=330,337`; the others were carried over." in page
        assert life_json(life_of(platform, GOLD, SALE_DAYS[0])[-1][1])["only"] == {"store_id": ("330", "337")}
        proved = prove(platform, lambda: world.spark, record)
        assert "store_id=330,337" in note_proof(platform, record, proved).events[-1].what, "why it cannot be proved"
        roll_back(platform, "stores", author())
        assert world.digests()[GOLD] == before


@pytest.mark.proof
@pytest.mark.parametrize(
    ("before", "after"),
    [([330], [330, 337]), ([330], None), (None, [330, 337])],
    ids=["more keys", "whole days", "some keys"],
)
def test_a_plan_that_is_edited_computes_the_keys_that_its_file_has_now(
    prepared: Prepared, before: list[int] | None, after: list[int] | None
) -> None:
    world = prepared(twenty_stores)
    correct(world, [(SALE_DAYS[0], 330, 0)])

    def file(stores: list[int] | None) -> PlanFile:
        return plan_of_stores(stores) if stores else plan_of_stores([330], only=None)

    def halt(now: Any) -> None:
        if now.finished and now.phase == "computing":
            pause(platform.lake, "stores", "lunch")

    with world.open() as platform:
        with pytest.raises(StoppedError, match="it was paused"):
            applied_to(world, platform, file(before), progress=halt)
        unpause(platform.lake, "stores")
        assert applied_to(world, platform, file(after)).state == "published"
        only = life_json(life_of(platform, GOLD, SALE_DAYS[0])[-1][1]).get("only")
        assert only == ({"store_id": tuple(map(str, after))} if after else None)
