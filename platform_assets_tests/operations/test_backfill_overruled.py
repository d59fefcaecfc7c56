"""What people decided since a backfill began, it does not overrule: it stands still, and says what. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from platform_assets.contracts import Catalogue, Contract, Protected
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.step import stage as stage_module
from platform_assets.lakehouse.errors import StageError
from platform_assets.operations.backfill import apply as apply_module
from platform_assets.operations.backfill.afterwards import cancel, roll_back
from platform_assets.operations.backfill.apply import apply, wants_more
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.report import record_report
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError, waits_for
from platform_assets.operations.backfill.standing import stage_of, standing
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, pause, read_record, write_record
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.selection import ProtectedDaysError
from platform_assets.progress import Progress
from platform_assets.report import markdown
from platform_assets_tests.support.days_on_paper import (
    DAY,
    DAYS,
    GOLD,
    RAW,
    SILVER,
    STAGED,
    begun,
    correct,
    digest,
    opened,
    plan,
    publish,
    put_back,
    settings_in,
    stage,
)
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.meanwhile import once_at

AUTHOR = Author("apply", "a plan", "ada")
LATER = f"{datetime.now(UTC) + timedelta(hours=8):%H:00-%H:59}"
"""Hours that do not come while a test runs."""


def declaring(platform: Platform, *tables: Contract) -> Platform:
    """The same with other contracts."""
    [domain] = platform.catalogue.domains
    return replace(platform, catalogue=Catalogue.of([replace(domain, tables=tables)]))


def closed(platform: Platform) -> Platform:
    """The same with days that are protected now."""
    raw, *others = platform.catalogue.tables
    books = Protected(DAYS[0], DAY, DAYS[-1], "the books are closed")
    return declaring(platform, replace(raw, protected=(books,)), *others)


def stopped(platform: Platform, file: PlanFile) -> StoppedError:
    """What a plan says that stands still: again when it is asked again, and nobody sees anything of it."""
    before, said = platform.current_release(), []
    for _ in range(2):
        with pytest.raises(StoppedError) as error:
            apply(platform, no_session, file, AUTHOR)
        said.append(error.value)
    assert platform.current_release() == before
    record = read_record(platform.lake, file.name)
    assert record.state == "stopped"
    assert any("It would overrule what was decided since" in sentence for sentence in waits_for(platform, record))
    return said[-1]


def test_what_a_person_puts_back_while_it_is_computed_again_is_not_brought_forward(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(platform)
    begun(platform, plan())
    stage(platform, "plan-mend", {SILVER: {DAY: ("asked for",)}})

    def wrong_and_put_back() -> None:
        publish(platform, RAW, [DAY], 3)
        put_back(platform, publish(platform, SILVER, [DAY], 3, filed=True))

    once_at(monkeypatch, stage_module, "stage.before_publish", wrong_and_put_back)
    with pytest.raises(StoppedError, match=f"Zoë put 1 day of {SILVER} back since it began") as error:
        apply(platform, no_session, plan(), AUTHOR)
    assert "undo backfill:mend" in error.value.todo
    assert digest(platform) == "0-2-0-0-0"


def test_a_plan_whose_process_died_after_it_was_published_is_rolled_back_as_cancel_says(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(platform)
    begun(platform, plan())

    def die() -> None:
        raise InterruptedError

    once_at(monkeypatch, apply_module, "plan.published", die)
    with pytest.raises(InterruptedError):
        apply(platform, no_session, plan(), AUTHOR)
    assert (read_record(platform.lake, "mend").state, digest(platform)) == ("publishing", STAGED)
    author = Author("", "no need", "bob")
    with pytest.raises(BackfillError, match="cannot be cancelled") as refused:
        cancel(platform, "mend", author)
    assert "undo backfill:mend" in refused.value.todo
    record, _ = roll_back(platform, "mend", author)
    assert (record.state, record.published_days, digest(platform)) == ("rolled back", 1, "0-2-0-0-0")


def test_days_that_turn_out_to_need_nothing_are_not_counted_as_published(platform: Platform) -> None:
    file, said = plan(downstream=True), list[str]()
    begun(platform, file, SILVER, digest=digest(platform))
    before = read_record(platform.lake, file.name)
    assert "3 days of tables, 0 B" in standing(before), "nobody knows yet"
    record = apply(platform, no_session, file, AUTHOR, report=said.append)
    assert (record.published_days, record.left_alone) == (1, 2), "what gold reads came out unchanged"
    assert said[-1] == f"Published in release {record.release}: 1 day of tables, 2 more left as they were."
    assert "1 day of tables, 2 more left as they were, 0 B" in standing(record)
    assert f"`{record.publication}`: 1 day of tables, 2 more left as they were." in "\n".join(
        markdown(record_report(platform, record).parts)
    )
    assert record.events[-1].what == said[-1].rstrip(".").replace("Published", "published")


def test_days_of_a_table_that_is_declared_no_more_are_not_published(platform: Platform) -> None:
    file = plan(downstream=True)
    begun(platform, file)
    left = declaring(platform, *(contract for contract in platform.catalogue if contract.name != GOLD))
    before = left.current_release()
    with pytest.raises(StageError, match=rf"The stage plan-mend holds 2 days of {GOLD}(?s:.*)undo backfill:mend"):
        apply(left, no_session, file, AUTHOR)
    assert left.current_release() == before


def test_days_that_are_protected_since_are_published_only_where_the_file_says_why(platform: Platform) -> None:
    begun(platform, plan())
    protecting = closed(platform)
    with pytest.raises(ProtectedDaysError, match=r"plan-mend holds 1 day of .*: the books(?s:.*)override_protected"):
        apply(protecting, no_session, plan(), AUTHOR)
    override = {"days": f"{DAY}..{DAY}", "reason": "the auditor asks for it"}
    assert apply(protecting, no_session, plan(override_protected=override), AUTHOR).state == "published"


@pytest.mark.parametrize("why", [("asked for",), ("code",), ("correction", "asked for"), ()])
def test_a_stage_is_not_published_with_days_that_are_protected_since(platform: Platform, why: Reasons) -> None:
    correct(platform)
    stage(platform, "trial", {SILVER: {DAY: why, DAYS[8]: why}})
    before, protecting = platform.current_release(), closed(platform)
    with pytest.raises(ProtectedDaysError) as error:
        publish_stage(protecting, no_session, AUTHOR, "trial")
    assert f"The stage trial holds 1 day of {SILVER} that is protected by now ({DAY}): the books" in error.value.what
    assert "undo stage:trial" in error.value.todo
    assert "override_protected" in error.value.todo
    assert platform.current_release() == before
    assert publish_stage(platform, no_session, AUTHOR, "trial").release, "while none of them was protected"


def test_a_protected_day_that_came_out_as_it_was_keeps_no_stage_from_being_published(platform: Platform) -> None:
    stage(platform, "trial", {SILVER: {DAY: ("asked for",)}}, digest(platform))
    assert publish_stage(closed(platform), no_session, AUTHOR, "trial").not_published == {}


def test_a_stage_is_published_where_data_of_its_protected_days_asked_for_them(platform: Platform) -> None:
    correct(platform)
    stage(platform, "trial", {SILVER: {DAY: ("correction",)}})
    assert publish_stage(closed(platform), no_session, AUTHOR, "trial").days == {SILVER: (DAY,)}
    assert digest(platform) == STAGED


def test_a_day_that_a_person_put_back_since_is_not_brought_forward_again(platform: Platform) -> None:
    wrong = correct(platform)
    approved = explain(platform, plan())
    begun(platform, plan())
    put_back(platform, wrong)
    said = stopped(platform, plan())
    assert f"Zoë put 1 day of {SILVER} back since it began ({DAY}), because: it was wrong" in said.what
    assert digest(platform) == "0-1-0-0-0"
    stopped(platform, plan(reason="a wrong rule, and an edited file"))
    cancel(platform, "mend", Author("", "looked again", "bob"))
    found = explain(platform, plan())
    assert found.hash != approved.hash, "who approved it did not know of that"
    assert any(f"1 day of {SILVER} was put back by a person" in one.what for one in found.obstacles)
    assert not found.blocking
    begun(platform, plan())
    assert apply(platform, no_session, plan(), AUTHOR).state == "published"


@pytest.mark.parametrize("staged", [2, 1], ids=["all staged", "some staged"])
def test_days_that_the_calendar_has_no_more_are_not_published_nor_left_out_silently(
    platform: Platform, tmp_path: Path, staged: int
) -> None:
    file = plan(days={"list": [str(DAY), str(DAYS[8])]})
    correct(platform)
    write_record(platform.lake, BackfillRecord.new(explain(platform, file)))
    stage(platform, "plan-mend", {SILVER: dict.fromkeys([DAY, DAYS[8]][:staged], ())})
    shorter = settings_in(tmp_path / "state").model_copy(update={"calendar_last": DAY, "today": DAY})
    with open_platform(shorter) as cut:
        said = stopped(cut, file)
        assert f"1 day of {SILVER} lies outside the calendar by now ({DAYS[8]})" in said.what
        assert "undo backfill:mend" in said.todo
        stage(cut, "plan-mend", {SILVER: {DAY: ()}})
        assert apply(cut, no_session, plan(), AUTHOR).published_days == 1, "the file leaves it out"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "it was paused"),
        ({"service": {"hours": LATER}}, f"it may only compute within {LATER} UTC"),
        ({"budget": {"minutes": 1}}, "the budget of 1 minutes is used up"),
    ],
    ids=["paused", "out of hours", "budget"],
)
def test_what_is_computed_again_before_it_is_published_is_within_hours_and_budget_and_can_be_paused(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], says: str
) -> None:
    correct(platform)
    file = plan(**fields)
    begun(platform, file)
    write_record(platform.lake, read_record(platform.lake, "mend").model_copy(update={"seconds": 61.0}))
    before = digest(platform)

    def others_correct_what_it_reads() -> None:
        publish(platform, RAW, [DAY], 3)
        if not fields:
            pause(platform.lake, "mend", "lunch")

    once_at(monkeypatch, stage_module, "stage.before_publish", others_correct_what_it_reads)
    with pytest.raises(StoppedError, match=says):
        apply(platform, no_session, file, AUTHOR)
    assert digest(platform) == before
    staged = stage_of(platform, "mend")
    assert staged is not None
    assert staged.staged.days == {SILVER: (DAY,)}, "it goes on with what it had"


def test_a_plan_that_has_computed_all_of_its_days_waits_for_no_budget_and_no_hours(platform: Platform) -> None:
    """Used up by its very last batch, a budget is no reason to stop: what is left costs nothing."""
    now = Progress("computing", SILVER, 0, 8, batch=8)
    assert wants_more(now)
    assert wants_more(replace(now, done=7))
    assert not wants_more(replace(now, done=8))
    assert not wants_more(replace(now, done=8, finished=True))
    correct(platform)
    file = plan(budget={"minutes": 1}, service={"hours": LATER})
    begun(platform, file)
    record = read_record(platform.lake, "mend").model_copy(update={"seconds": 61.0})
    assert any("It waits for more of a budget" in one for one in waits_for(platform, record))
    done = record.model_copy(update={"done": 1})
    write_record(platform.lake, done)
    assert waits_for(platform, done) == ("No process applies it now: `platform-assets backfill apply FILE` goes on.",)
    assert apply(platform, no_session, file, AUTHOR).state == "published"


def test_a_plan_of_which_nothing_is_staged_any_more_says_that_there_is_nothing_to_publish(platform: Platform) -> None:
    """What was stale when it was explained, somebody else computed before it did."""
    correct(platform)
    file = plan(policy="stale", days={"list": [str(DAY)]})
    publish(platform, RAW, [DAY], 3)
    write_record(platform.lake, BackfillRecord.new(explain(platform, file)))
    publish(platform, SILVER, [DAY], 3, filed=True)
    stage(platform, "plan-mend", {})
    with pytest.raises(StoppedError, match="there is nothing to publish") as error:
        apply(platform, no_session, file, AUTHOR)
    assert "undo backfill:mend" in error.value.todo


@pytest.fixture
def silver_to_come(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as silver_to_come:
        publish(silver_to_come, RAW, DAYS, 1)
        publish(silver_to_come, SILVER, DAYS[1:], 1)
        yield silver_to_come


FILE = plan(tables=[GOLD], days={"list": [str(DAYS[0]), str(DAYS[8])]}, policy="recompute")


def begun_over_gold(platform: Platform) -> str:
    """A plan over two days of gold; the publication of what one of them reads."""
    first = publish(platform, SILVER, DAYS[:1], 1)
    publish(platform, GOLD, DAYS, 1)
    write_record(platform.lake, BackfillRecord.new(explain(platform, FILE)))
    return first


def stopped_over_gold(platform: Platform) -> StoppedError:
    """What the plan says; nobody sees anything of it."""
    before = platform.current_release()
    with pytest.raises(StoppedError) as error:
        apply(platform, no_session, FILE, Author("apply", "a plan", "ada"))
    assert platform.current_release() == before
    return error.value


def test_a_day_that_reads_what_is_gone_since_is_named_and_nothing_is_published_without_it(
    silver_to_come: Platform,
) -> None:
    put_back(silver_to_come, begun_over_gold(silver_to_come))
    stage(silver_to_come, "plan-mend", {GOLD: {DAYS[8]: ("asked for",)}})
    said = stopped_over_gold(silver_to_come)
    assert f"1 day of {GOLD} cannot be computed any more ({DAYS[0]})" in said.what
    assert f"{SILVER} on {DAYS[0]} is not there" in said.what
    assert "undo backfill:mend" in said.todo


def test_a_staged_day_that_reads_what_is_gone_since_keeps_the_others_from_being_published(
    silver_to_come: Platform,
) -> None:
    first = begun_over_gold(silver_to_come)
    stage(silver_to_come, "plan-mend", {GOLD: {DAYS[0]: ("asked for",), DAYS[8]: ("asked for",)}})
    put_back(silver_to_come, first)
    assert str(DAYS[0]) in str(stopped_over_gold(silver_to_come))


def test_days_that_are_left_out_of_the_file_by_now_are_not_published(platform: Platform) -> None:
    both = plan(days={"list": [str(DAYS[5]), str(DAY)]}, policy="recompute")
    backfill = explain(platform, both)
    write_record(platform.lake, BackfillRecord.new(backfill))
    stage(platform, "plan-mend", {step.table: dict.fromkeys(step.days, ()) for step in backfill.plan.steps})
    record = apply(platform, no_session, plan(days={"list": [str(DAY)]}, policy="recompute"), AUTHOR)
    assert (record.state, record.published_days) == ("published", 1)
    assert stage_of(platform, "mend") is None
    found = platform.ledger.current_days(SILVER, among=[DAYS[5], DAY])
    assert {day: one.digest for day, one in found.items()} == {DAYS[5]: "0-1-0-0-0", DAY: STAGED}
    assert digest(platform) == STAGED
