"""Plans of some keys against paper: these keys are what is true now, all others what was published, and no line twice.

The tables reconcile nothing, so that no gate of theirs stands in for what the engine has to see to.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from platform_assets.engine.late.approvals import approve
from platform_assets.engine.late.withdrawals import withdraw
from platform_assets.engine.platform import Platform
from platform_assets.engine.refresh import refresh
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.backfill.afterwards import cancel, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.pausing import pause, unpause
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.late_queue import LateSelection
from platform_assets.planning.selection import Request
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.registers import (
    DAYS,
    GOLDS,
    LATE,
    STORE_DAYS,
    STORE_MONTHS,
    STORE_SPANS,
    STORES,
    Line,
    Registers,
    five_stores,
)
from platform_assets_tests.support.stores import author

CLOSED = "platform_assets_tests.support.domains.registers_closed"


def plan(stores: Collection[str], name: str = "some", tables: Collection[str] = GOLDS, **fields: Any) -> PlanFile:
    said = {
        "name": name,
        "reason": "their tills were set up wrong",
        "owner": "ada",
        "tables": list(tables),
        "days": {"range": f"{DAYS[0]}..{DAYS[-1]}"},
        "downstream": False,
        "only": {"store": list(stores)},
        "rollout": [100],
    }
    return PlanFile.model_validate(said | fields)


def applied(found: Registers, platform: Platform, file: PlanFile, **more: Any) -> BackfillRecord:
    record = apply(platform, lambda: found.world.spark, file, author(), **more)
    assert record.state == "published"
    assert file.only is not None
    found.now_true(file.tables, sorted(file.days.named() or ()), file.only["store"])
    return record


def take(found: Registers, platform: Platform) -> None:
    """What was delivered, up to silver: gold is stale."""
    request = Request(frozenset(["silver.lines", "silver.goods"]), by_person=True)
    refresh(platform, lambda: found.world.spark, author(), request=request)


def golds(found: Registers) -> dict[str, Any]:
    digests = found.world.digests()
    return {table: digests[table] for table in GOLDS}


def test_keys_of_all_kinds_are_what_is_true_and_all_others_what_was_published(prepared: Prepared) -> None:
    """Corrected, voided, without a store, of another category; in scope and out of it."""
    found = prepared(five_stores)
    found.deliver(Line(131, 1, 'x"y', amount=9), Line(141, 1, "O'Neil, 3", voided=True), Line(999, 4, "A ", amount=2))
    found.deliver(Line(111, 1, "B", amount=7), Line(121, 1, "A\u0308", amount=-5), Line(998, 4, "A", amount=3))
    found.deliver(Line(151, 1, 'x"y', amount=11), Line(231, 2, None))  # no store before, and none now
    found.categorise(2, 3, "another")
    with found.world.open() as platform:
        take(found, platform)
        applied(found, platform, plan(['x"y', "O'Neil, 3", "A ", "nobody's"], rollout=[40, 100]))
        found.check()
        applied(found, platform, plan(["A", "\u00c4"], "others", [STORE_DAYS, STORE_SPANS], batch_days=2))
        found.check()
    found.refresh()
    found.check()


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


def test_a_line_that_moved_and_came_back_is_no_move(prepared: Prepared) -> None:
    found = prepared(five_stores)
    with found.world.open() as platform:
        found.deliver(Line(101, 1, "B", amount=7))
        take(found, platform)
        found.deliver(Line(101, 1, "A", amount=8))
        take(found, platform)
        applied(found, platform, plan(["A"]))
        found.check()


def test_a_line_that_moves_after_an_earlier_plan_of_its_key_is_seen_too(prepared: Prepared) -> None:
    """The rest was made before the line came; only the rows of the earlier plan count it."""
    found, tables = prepared(five_stores), [STORE_DAYS]
    with found.world.open() as platform:
        found.deliver(Line(997, 1, "A", amount=7))
        take(found, platform)
        applied(found, platform, plan(["A"], "first", tables))
        found.deliver(Line(997, 1, "B", amount=7))
        take(found, platform)
        assert found.contradicts(STORE_DAYS, DAYS[0], ["B"])
        with pytest.raises(StoppedError, match="1 day did not pass") as stopped:
            applied(found, platform, plan(["B"], "second", tables))
        assert "line 997 from store A to store B" in stopped.value.lines[-1]
        cancel(platform, "second", author())
        applied(found, platform, plan(["A", "B"], "third", tables))
        found.check()


def test_a_plan_of_keys_that_was_rolled_back_stays_so_and_is_computed_whole_when_asked_for(prepared: Prepared) -> None:
    found = prepared(five_stores)
    found.deliver(Line(101, 1, "A", amount=7), Line(112, 1, "B", amount=8))
    before = golds(found)
    with found.world.open() as platform:
        take(found, platform)
        applied(found, platform, plan(["A"]))
        roll_back(platform, "some", author())
        assert golds(found) == before
        found.world.refresh()
        assert golds(found) == before, "the next refresh does not undo it"
    found.world.recompute(GOLDS, DAYS)
    found.now_true(GOLDS, DAYS)
    found.check()


def test_rows_that_are_approved_while_a_plan_of_keys_stands_still_come_in_with_the_next(prepared: Prepared) -> None:
    found = prepared(five_stores)
    found.deliver(Line(101, 1, "A", amount=7))
    late = found.deliver(Line(996, 1, "A", amount=1), Line(995, 1, "B", amount=2), arrival=LATE)

    def halt(now: Any) -> None:
        if now.finished and now.phase == "computing":
            pause(platform.lake, "some", "lunch")

    with found.world.open() as platform:
        take(found, platform)
        with pytest.raises(StoppedError, match="somebody paused it"):
            applied(found, platform, plan(["A"]), progress=halt)
        unpause(platform.lake, "some")
        approve(platform, lambda: found.world.spark, LateSelection(arrival=late), author())
        found.waiting.remove(late)
        take(found, platform)
        platform.sync()
        with pytest.raises(StoppedError, match="is another one now"):
            applied(found, platform, plan(["A"]))
        found.check()
        cancel(platform, "some", author())
        applied(found, platform, plan(["A"]))
        found.check()


def test_a_day_that_came_out_as_it_was_is_not_computed_whole_by_a_plan_of_keys_when_others_change(
    prepared: Prepared,
) -> None:
    """Nothing is said of its keys once it is published; until then it is a day of some keys, as the others are."""
    found, file = prepared(five_stores), plan(["A"], tables=[STORE_DAYS])
    found.deliver(Line(101, 1, "A", amount=7))

    def halt(now: Any) -> None:
        if now.finished and now.phase == "computing":
            pause(platform.lake, "some", "lunch")

    with found.world.open() as platform:
        take(found, platform)
        with pytest.raises(StoppedError, match="somebody paused it"):
            applied(found, platform, file, progress=halt)
        unpause(platform.lake, "some")
        found.deliver(Line(311, 3, "B", amount=7))
        take(found, platform)
        platform.sync()
        with pytest.raises(StoppedError, match=f"{STORE_DAYS} of 2017-01-03.* is another one now"):
            applied(found, platform, file)
        found.check()
        cancel(platform, "some", author())
        applied(found, platform, file)
        found.check()


def test_a_plan_of_keys_over_closed_days_needs_its_override_and_leaves_the_others_closed(prepared: Prepared) -> None:
    found = prepared(five_stores)
    found.deliver(Line(101, 1, "A", amount=7), Line(111, 1, "B", amount=7), Line(301, 3, "A", amount=8))
    with found.world.open() as platform:
        take(found, platform)
    closed = replace(found.world, settings=found.world.settings.model_copy(update={"domains": (CLOSED,)}))
    days = f"{DAYS[0]}..{DAYS[1]}"
    with closed.open() as platform:
        with pytest.raises(BackfillError, match="protected"):
            applied(found, platform, plan(["A"]))
        found.check()
        override = {"days": days, "reason": "the auditor asked for store A"}
        applied(found, platform, plan(["A"], override_protected=override))
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
        assert "is not known: what the rest of the day was made from is not there any more" in stopped.value.lines[-1]
        cancel(platform, "some", author())
    found.refresh()
    found.check()


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1, 7))
def test_any_history_and_any_plans_of_keys_are_as_on_paper(prepared: Prepared, seed: int) -> None:
    found, draw = prepared(five_stores), random.Random(seed)
    late: list[str] = []
    stopped = 0
    for turn in range(6):
        _happen(found, draw, late)
        tables = draw.sample(GOLDS, draw.randint(1, 3))
        stores = draw.sample(STORES, draw.randint(1, 3))
        with found.world.open() as platform:
            take(found, platform)
            before, content = golds(found), found.copied_paper()
            file = plan(stores, f"turn-{turn}", tables, rollout=draw.choice([[100], [40, 100]]))
            torn = [
                (table, day)
                for table in set(tables) & {STORE_DAYS, STORE_SPANS}
                for day in DAYS
                if found.contradicts(table, day, stores)
            ]
            if torn:
                with pytest.raises(StoppedError, match="did not pass the gates"):
                    applied(found, platform, file)
                cancel(platform, file.name, author())
                assert golds(found) == before
                stopped += 1
            else:
                applied(found, platform, file)
                found.check()
                if draw.random() < 0.3:
                    roll_back(platform, file.name, author())
                    found.content, found.counted = content
                    assert golds(found) == before
                    found.world.recompute(GOLDS, DAYS)
                    found.now_true(GOLDS, DAYS)
            found.check()
        if draw.random() < 0.2:
            found.refresh()
            found.check()
    found.refresh()
    found.check()
    by_plans = golds(found)
    found.world.recompute(GOLDS, DAYS)
    assert golds(found) == by_plans


def _happen(found: Registers, draw: random.Random, late: list[str]) -> None:
    """Corrections, moves, voids, bad rows, other categories; late rows, some approved later; withdrawals."""
    lines = [
        Line(
            number := 100 * draw.randint(1, len(DAYS)) + 10 * draw.randint(0, 5) + draw.randint(1, 4),
            draw.choice([number // 100] * 4 + [draw.randint(1, len(DAYS))]),
            _store(draw, number),
            good=draw.randint(1, 3),
            amount=draw.choice([None, -1, *range(1, 9)]),
            voided=draw.random() < 0.15,
        )
        for _ in range(draw.randint(1, 4))
    ]
    arrival = LATE if draw.random() < 0.2 else None
    path = found.deliver(*lines, **({"arrival": arrival} if arrival else {}))
    if arrival:
        late.append(path)
    elif late and draw.random() < 0.5:
        chosen = late.pop()
        with found.world.open() as platform:
            take(found, platform)
            approve(platform, lambda: found.world.spark, LateSelection(arrival=chosen), author())
        found.waiting.remove(chosen)
    if draw.random() < 0.2:
        found.categorise(draw.randint(1, 2), draw.randint(1, len(DAYS)), draw.choice(["c1", "c2", "c3"]))
    if draw.random() < 0.2:
        with found.world.open() as platform:
            take(found, platform)
            if path not in found.waiting:
                withdraw(platform, lambda: found.world.spark, [path], author())
                found.gone.add(path)


def _store(draw: random.Random, number: int) -> str | None:
    """Mostly where the line was."""
    at = number // 10 % 10
    stays = STORES[at] if at < len(STORES) else None
    return stays if draw.random() < 0.8 else draw.choice([*STORES, None])


def test_a_month_of_days_is_computed_of_some_keys_as_its_days_are(prepared: Prepared) -> None:
    found = prepared(five_stores)
    found.deliver(Line(111, 1, "B", amount=7), Line(101, 1, "A", amount=8))
    with found.world.open() as platform:
        take(found, platform)
        applied(found, platform, plan(["B"], "month", [STORE_MONTHS]))
        found.check()
        applied(found, platform, plan(["B"], "days", [STORE_DAYS]))
        found.check()
        applied(found, platform, plan(["A", "B"], "month-again", [STORE_MONTHS]))
        found.check()
