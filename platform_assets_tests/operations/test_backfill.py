"""A wrong rule is corrected by a plan: explained, approved, staged, stopped, gone on with, published, undone."""

from __future__ import annotations

from decimal import Decimal

import pytest

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.afterwards import cancel, note_proof, prove, prove_sample, roll_back
from platform_assets.operations.backfill.explain import approve, explain
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError
from platform_assets.operations.backfill.standing import stage_of
from platform_assets.operations.plan_record import pause, read_record, refuse_stage_of_a_plan, unpause, write_record
from platform_assets.operations.stages.stages import drop_stage, refresh_stage
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.selection import Request
from platform_assets.progress import Progress
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.tills import DAYS, Shop, eight_days, expected, nth, paused_at, plan

PLANTED = ('F.sum("paid")', 'F.sum(F.col("paid") / 10)')


@pytest.fixture
def shop(prepared: Prepared) -> Shop:
    return prepared(eight_days)


def test_a_wrong_rule_is_corrected_by_a_plan(shop: Shop) -> None:
    file = plan(approvals={"above_days": 5})
    with shop.on(PLANTED) as platform:
        before = shop.world.digests()["gold.tills"]
        found = explain(platform, file)
        assert [step.share for step in found.steps] == [25, 100]
        assert found.steps[0].days["gold.tills"] == (nth(1), nth(DAYS))
        assert found.consent.needed == 1
        with pytest.raises(BackfillError, match=f"needs 1 approval of {found.hash} and has 0"):
            shop.apply(platform, file)
        with pytest.raises(PlatformError, match="owns the plan"):
            approve(platform, file, found.hash, Author("", "mine", "ada"))
        approve(platform, file, found.hash, Author("", "looked", "bob"))
        with pytest.raises(StoppedError, match="at 25 % 1 gate of the plan failed") as stopped:
            shop.apply(platform, file)
        assert "sum of paid of 2 staged days 372.00 before and 18.60 after, 95.00 % apart" in stopped.value.what
        assert read_record(platform.lake, "discount").state == "stopped"
        assert shop.world.digests()["gold.tills"] == before, "readers see nothing of it"
    said: list[str] = []
    with shop.on() as platform:
        mended = explain(platform, file)
        assert mended.hash != found.hash, "other code needs an approval of its own"
        with pytest.raises(BackfillError, match="needs 1 approval"):
            shop.apply(platform, file)
        with pytest.raises(PlatformError, match="now, not"):
            approve(platform, file, found.hash, Author("", "looked", "bob"))
        approve(platform, file, mended.hash, Author("", "looked again", "bob"))
        record = shop.apply(platform, file, report=said.append)
        assert (record.state, record.done) == ("published", 2)
        assert [shop.seen(platform, n) for n in range(1, DAYS + 1)] == [expected(n) for n in range(1, DAYS + 1)]
        assert sum("passed" in sentence for sentence in said) == 4
        assert stage_names(platform.lake) == ()
        assert platform.ledger.publication(record.publication).release == record.release  # type: ignore[union-attr]
        proved = prove(platform, lambda: shop.world.spark, record)
        assert sum(len(table.of("equal")) for table in proved) >= DAYS
        assert not any(table.of("different") for table in proved)
        assert "computed once more and equal" in note_proof(platform, record, proved).events[-1].what
        with pytest.raises(BackfillError, match="applied before: published in release"):
            shop.apply(platform, file)
        with pytest.raises(BackfillError, match="cannot be cancelled"):
            cancel(platform, "discount", Author("", "no", "bob"))
        back, done = roll_back(platform, "discount", Author("", "the other rule was right", "bob"))
        assert back.state == "rolled back"
        write_record(platform.lake, record)  # as who dies now leaves it
        again, nothing = roll_back(platform, "discount", Author("", "the other rule was right", "bob"))
        assert again.events[-1].what == back.events[-1].what, "there is nothing more to undo"
        assert done is not None
        assert set(done.days) == {day.table for day in platform.ledger.publication(record.publication).days}  # type: ignore[union-attr]
        assert nothing is None
        with pytest.raises(BackfillError, match="is rolled back already, by bob in release"):
            roll_back(platform, "discount", Author("", "once more", "bob"))
        assert shop.world.digests()["gold.tills"] == before
        whats = [event.what for event in back.events]
        assert whats.index("25 % staged, gates passed") < whats.index("100 % staged, gates passed")


def test_a_plan_that_is_paused_goes_on_without_computing_again(shop: Shop) -> None:
    computed: list[Progress] = []

    def note(now: Progress) -> None:
        if now.phase == "computing" and now.table == "gold.tills" and now.finished:
            computed.append(now)

    def interrupt(now: Progress) -> None:
        note(now)
        if computed:
            pause(platform.lake, "discount", "lunch")

    with shop.on() as platform:
        with pytest.raises(StoppedError, match="it was paused"):
            shop.apply(platform, plan(), progress=interrupt)
        stopped, staged = read_record(platform.lake, "discount"), stage_of(platform, "discount")
        assert stopped.state == "paused"
        assert staged is not None
        assert stopped.bytes == sum(day.bytes for day in staged.staged.of("gold.tills").values()) > 0
        with pytest.raises(StoppedError, match="backfill resume discount"):
            shop.apply(platform, plan())
        unpause(platform.lake, "discount")
        computed.clear()
        shop.apply(platform, plan(), progress=note)
        assert sum(now.done for now in computed) == DAYS - 2
        assert shop.seen(platform, 3) == expected(3)


@pytest.mark.proof
def test_a_stage_that_is_dropped_while_a_plan_is_applied_leaves_no_day_out(shop: Shop) -> None:
    with shop.on() as platform:

        def drop(sentence: str) -> None:
            if sentence.startswith("25 %") and stage_names(platform.lake):
                drop_stage(platform, "plan-discount")

        before = shop.world.digests()
        with pytest.raises(StoppedError, match=r"2 days that it had staged are gone, first gold\.tills"):
            shop.apply(platform, plan(gates=[plan().gates[0].model_dump()]), report=drop)
        assert shop.world.digests() == before
        record = shop.apply(platform, plan(gates=[plan().gates[0].model_dump()]))
        assert (record.state, record.left_alone) == ("published", 0)
        assert [shop.seen(platform, n) for n in range(1, DAYS + 1)] == [expected(n) for n in range(1, DAYS + 1)]


@pytest.mark.proof
def test_days_that_an_arrival_touched_and_a_second_plan_over_the_same_days(shop: Shop) -> None:
    with shop.on() as platform:
        touched = plan(days={"touched_by": {"arrival": f"sales/{nth(3)}/a.jsonl"}}, rollout=[100])
        found = explain(platform, touched)
        assert set(found.days) <= {nth(n) for n in range(1, DAYS + 1)}
        assert nth(3) in found.days

        def watch(now: Progress) -> None:
            if now.finished:
                pause(platform.lake, "discount", "lunch")

        with pytest.raises(StoppedError):
            shop.apply(platform, plan(), progress=watch)
        with pytest.raises(PlatformError, match="is filled by the plan discount"):
            refuse_stage_of_a_plan(platform.lake, "plan-discount")
        refuse_stage_of_a_plan(platform.lake, "plan-nothing")
        refuse_stage_of_a_plan(platform.lake, "discount")
        second = explain(platform, plan(name="second"))
        assert "The plan discount comes to" in second.blocking[0].what
        cancel(platform, "discount", Author("", "given up", "bob"))
        assert stage_names(platform.lake) == ()
        assert not explain(platform, plan(name="second")).blocking


GOLD, STAGE = "gold.tills", "plan-discount"


class DiedError(Exception):
    """Whoever applied it is gone."""


@pytest.mark.proof
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
        assert overtaken.endswith(f"overtaken since it was staged: {GOLD} {nth(3)}")
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
        assert f"undo stage:{STAGE}" in caught.value.todo
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
