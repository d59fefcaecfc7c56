"""What begins is one plan of its days, and takes nothing over from a plan of its name that is over. No Spark."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill import sitting as sitting_module
from platform_assets.operations.backfill.afterwards import cancel, note_proof, prove, prove_sample, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError, sitting_over, waits_for
from platform_assets.operations.erasure import planned_erasure
from platform_assets.operations.erasure_places import Request
from platform_assets.operations.plan_record import (
    BackfillRecord,
    find_record,
    is_paused,
    read_record,
)
from platform_assets.operations.stages.stages import drop_stage
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import Progress
from platform_assets_tests.support.days_on_paper import (
    DAY,
    DAYS,
    RAW,
    SILVER,
    begun,
    correct,
    digest,
    opened,
    plan,
    publish,
    put_back,
    stage,
)
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.places import on_disk

AUTHOR = Author("apply", "a plan", "ada")
BOB = Author("", "looked again", "bob")


def forgotten(platform: Platform) -> BackfillRecord:
    """A plan that was published, and whose record somebody removed then."""
    correct(platform)
    begun(platform, plan())
    record = apply(platform, no_session, plan(), AUTHOR)
    (on_disk(platform.lake.plans_path) / "mend.json").unlink()
    return record


def test_a_plan_that_is_applied_again_without_its_record_publishes_no_day_of_somebody_else(platform: Platform) -> None:
    before = forgotten(platform)
    begun(platform, plan(), as_hash=before.hash)
    stage(platform, "plan-mend", {SILVER: {DAYS[3]: ("asked for",)}}, "0-7-0-0-0")
    with pytest.raises(StoppedError, match="its stage holds 1 day outside the plan"):
        apply(platform, no_session, plan(), AUTHOR)


def test_two_plans_of_the_same_days_that_begin_together_are_one(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, explained = Barrier(2), explain

    def slowly(platform: Platform, file: PlanFile) -> Backfill:
        backfill = explained(platform, file)
        with suppress(BrokenBarrierError):  # where they wait for each other, nobody is to be met here
            both.wait(2)
        return backfill

    def begin(name: str) -> str:
        try:
            with opened(tmp_path / "state") as mine, sitting_over(mine, no_session, plan(name=name), AUTHOR):
                return "begun"
        except BackfillError as error:
            return error.what

    monkeypatch.setattr(sitting_module, "explain", slowly)
    with ThreadPoolExecutor(2) as threads:
        told = sorted(threads.map(begin, ("one", "two")))
    assert told[1] == "begun"
    assert "comes to 1 day of the same tables" in told[0]
    assert [find_record(platform.lake, name) is None for name in ("one", "two")].count(True) == 1


def test_a_pause_of_a_plan_that_is_over_does_not_stop_the_next_of_its_name(platform: Platform) -> None:
    correct(platform)
    begun(platform, plan())
    cancel(platform, "mend", BOB)
    (on_disk(platform.lake.plans_path) / "mend.pause").write_text("lunch")
    with sitting_over(platform, no_session, plan(), AUTHOR) as sitting:
        sitting_module.stop_if_paused(sitting)
        assert sitting.record.state == "staging"
    assert not is_paused(platform.lake, "mend")


def test_an_erasure_that_a_stage_is_in_the_way_of_says_what_ends_it(platform: Platform) -> None:
    correct(platform)
    wanted = Request(RAW, {"sensor": "a"})
    stage(platform, "try", {SILVER: {DAYS[0]: ("asked for",)}})
    with pytest.raises(PlatformError, match="The stage try is open") as caught:
        planned_erasure(platform, wanted)
    assert "`platform-assets publish try --reason …`, or `undo stage:try`" in str(caught.value)
    drop_stage(platform, "try")
    begun(platform, plan())
    with pytest.raises(PlatformError, match="The stage plan-mend is open") as caught:
        planned_erasure(platform, wanted)
    assert "End its plan first: `platform-assets backfill apply FILE`, or `undo backfill:mend --reason …`." in str(
        caught.value
    )


def test_a_plan_that_others_built_upon_is_rolled_back_with_what_they_made(platform: Platform) -> None:
    correct(platform)
    before = digest(platform)
    begun(platform, plan())
    apply(platform, no_session, plan(), AUTHOR)
    publish(platform, SILVER, [DAY], 7, filed=True)
    with pytest.raises(PlatformError, match=f"{SILVER} {DAY} was published again since") as refused:
        roll_back(platform, "mend", BOB)
    assert "--cascade" in refused.value.todo
    record, _ = roll_back(platform, "mend", BOB, cascade=True)
    assert (record.state, digest(platform)) == ("rolled back", before)


@pytest.mark.parametrize("undone", [True, False], ids=["put back by hand", "published again"])
def test_what_others_made_of_the_days_of_a_plan_is_no_proof_of_it(platform: Platform, *, undone: bool) -> None:
    correct(platform)
    begun(platform, plan())
    record = apply(platform, no_session, plan(), AUTHOR)
    if undone:
        put_back(platform, record.publication)
    else:
        publish(platform, SILVER, [DAY], 7, filed=True)
    proved = prove(platform, no_session, record)
    [told] = [day for table in proved for day in table.of("not verifiable")]
    assert told.reason.startswith(f"{SILVER} {DAY} was made another one since, by ")
    what = note_proof(platform, record, proved).events[-1].what
    assert what.startswith("0 days computed once more and equal; 1 cannot be: ")


def test_a_plan_that_is_interrupted_while_it_computes_says_so_and_counts_its_time(platform: Platform) -> None:
    def end(now: Progress) -> None:
        if now.phase == "computing":
            time.sleep(0.05)
            raise KeyboardInterrupt

    correct(platform)
    with pytest.raises(KeyboardInterrupt):
        apply(platform, no_session, plan(), AUTHOR, end)
    record = read_record(platform.lake, "mend")
    assert (record.state, record.events[-1].what) == ("staging", "interrupted while it computed")
    assert record.seconds >= 0.05, "it counts in the budget"
    [told] = waits_for(platform, record)
    assert "No process applies it now" in told


def test_the_proof_of_what_was_published_waits_for_the_hours_of_its_plan(platform: Platform) -> None:
    later = f"{datetime.now(UTC) + timedelta(hours=8):%H:00-%H:59}"
    file = plan(service={"hours": later}, afterwards={"verify": 1, "roll_back_on_failure": True})
    correct(platform)
    begun(platform, file)
    record = apply(platform, no_session, file, AUTHOR)
    for _ in range(2):
        with pytest.raises(StoppedError, match=f"published in release .*its proof waits for its hours, {later} UTC"):
            prove_sample(platform, no_session, record, AUTHOR)
        record = apply(platform, no_session, file, AUTHOR)
        assert record.wants_proof
    assert [event.what for event in record.events].count(f"its proof waits for its hours, {later} UTC") == 1
    [told] = waits_for(platform, record)
    assert f"Its proof waits for its hours, {later} UTC" in told
    proved = record.model_copy(update={"proved": True})
    assert waits_for(platform, proved) == ()
