"""A backfill goes on with what is there: what is gone is computed again, and what came meanwhile is judged, too."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.operations.backfill.afterwards import prove_sample
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import read_record, unpause
from platform_assets.operations.stages.stages import drop_stage, refresh_stage
from platform_assets.planning.selection import Request
from platform_assets.progress import Progress
from platform_assets_tests.support.tills import DAYS, Shop, eight_days, expected, nth, paused_at, plan
from platform_assets_tests.support.world import MakeWorld

GOLD, STAGE = "gold.tills", "plan-discount"


class DiedError(Exception):
    """Whoever applied it is gone."""


@pytest.fixture
def shop(make_world: MakeWorld, tmp_path: Path) -> Shop:
    return eight_days(make_world, tmp_path / "home")


def test_what_others_publish_meanwhile_is_held_against_the_gates_before_anybody_sees_it(shop: Shop) -> None:
    with shop.on() as platform:
        with pytest.raises(StoppedError, match="paused"):
            shop.apply(platform, plan(), report=paused_at(platform, 100))
        unpause(platform.lake, "discount")
        late = {"till": 1, "at": f"{nth(3)}T11:00:00Z", "paid": "10000"}
        shop.world.deliver_rows("sales", str(nth(3)), "late.jsonl", [late])
        request = Request(frozenset({"silver.sales"}), by_person=True)
        refresh(platform, lambda: shop.world.spark, Author("late", "a late sale"), request=request)
        before = shop.world.digests()

        def die(now: Progress) -> None:
            if now.phase == "computing" and now.table == GOLD:
                raise DiedError

        with pytest.raises(DiedError):
            shop.apply(platform, plan(), progress=die)
        staged = stage_of(platform, "discount")
        assert staged is not None
        assert len(staged.staged.of(GOLD)) == DAYS, "what is computed again is there until it is"
        for _ in range(2):
            with pytest.raises(StoppedError, match=r"at 100 % 1 gate of the plan failed: gold\.tills: sum of paid"):
                shop.apply(platform, plan())
            assert shop.world.digests() == before, "readers see nothing of it"
        events = [event.what for event in read_record(platform.lake, "discount").events]
        [overtaken] = [what for what in events if "overtaken" in what]
        assert overtaken.endswith(f"(recompute: a late sale): {GOLD} {nth(3)}")
        assert events.index(overtaken) < len(events) - 1, "it is told before the gate that it fails"
        gates = [{"table": GOLD, "metric": "sum", "column": "paid", "tolerance_percent": 1000}]
        assert shop.apply(platform, plan(gates=gates)).state == "published"
        now = [shop.seen(platform, number) for number in range(1, DAYS + 1)]
        assert now.pop(2) == expected(3) | {1: expected(3)[1] + Decimal(10_000)}
        assert now == [expected(number) for number in range(1, DAYS + 1) if number != 3]


@pytest.mark.proof
def test_a_plan_whose_stage_is_gone_computes_all_of_it_and_one_that_died_before_its_proof_is_proved(shop: Shop) -> None:
    """Two stages are filled, one of them twice."""
    with shop.on() as platform:
        request = Request(frozenset({GOLD}), frozenset({nth(3)}), by_person=True, force=True)
        refresh_stage(platform, lambda: shop.world.spark, Author("x", "y", "a stranger"), STAGE, request=request)
        with pytest.raises(BackfillError, match=f"The stage {STAGE} is there already") as caught:
            shop.apply(platform, plan())
        assert f"stage drop {STAGE}" in caught.value.todo
        drop_stage(platform, STAGE)
        with pytest.raises(StoppedError, match="paused"):
            shop.apply(platform, plan(), report=paused_at(platform, 25))
        unpause(platform.lake, "discount")
        drop_stage(platform, STAGE)
        assert shop.apply(platform, plan()).state == "published"
        assert [shop.seen(platform, n) for n in range(1, DAYS + 1)] == [expected(n) for n in range(1, DAYS + 1)]
        again = shop.apply(platform, plan())
        assert again.wants_proof
        record, proved = prove_sample(platform, lambda: shop.world.spark, again, Author("x", "y"))
        assert proved
        assert record.proved
        with pytest.raises(BackfillError, match="applied before"):
            shop.apply(platform, plan())
