"""Whatever a plan's stage is refused for, or in the way of, says how the plan is ended. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import StageError, StillNeededError, UnknownStageError
from platform_assets.lakehouse.horizon import Cut, Horizon, write_horizon
from platform_assets.operations.backfill.afterwards import cancel
from platform_assets.operations.backfill.compare import compare_plan
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.maintenance.deletion import deletions_asked_for, usage
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.operations.stages.store import (
    open_stages,
    opened_stage,
    read_stage,
    refuse_other_code,
    refuse_undeclared,
    write_stage,
)
from platform_assets.records.staged_days import StagedDays
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.readings import DAY, SILVER, correct, opened, plan, publish_all, put_back, stage

Refused = Callable[[Platform, str], object]
GONE = "silver.gone"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """With a person's stage, and that of a plan which was interrupted."""
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        publish(platform, SILVER, [DAY], 2, filed=True)
        backfill = explain(platform, plan())
        write_record(platform.lake, BackfillRecord.new(backfill))
        for name in ("plan-mend", "try"):
            stage(platform, name, {SILVER: {DAY: ("asked for",)}})
        yield platform


def over_another_release(platform: Platform, name: str) -> None:
    write_stage(platform.lake, read_stage(platform.lake, name).model_copy(update={"publication": "of another lake"}))
    opened_stage(platform, name)


def over_what_was_erased(platform: Platform, name: str) -> None:
    after = platform.current_release().number + 1
    write_horizon(
        platform.lake, Horizon(before=after, cut=Cut(before=after, publication="of an erasure")), lambda: None
    )
    opened_stage(platform, name)


def of_no_domain(platform: Platform, name: str) -> None:
    found = read_stage(platform.lake, name)
    change = found.staged.tables[SILVER].model_copy(update={"table": GONE})
    refuse_undeclared(platform, found.model_copy(update={"staged": StagedDays(tables={GONE: change})}))


def of_other_code(platform: Platform, name: str) -> None:
    found = read_stage(platform.lake, name)
    change = found.staged.tables[SILVER].model_copy(update={"code_version": "other"})
    refuse_other_code(platform, found.model_copy(update={"staged": StagedDays(tables={SILVER: change})}))


def torn(platform: Platform, name: str) -> None:
    on_disk(platform.lake.open_stages_path / f"{name}.json").write_text("{")
    read_stage(platform.lake, name)


@pytest.mark.parametrize("refuses", [over_another_release, over_what_was_erased, of_no_domain, of_other_code, torn])
def test_what_a_stage_is_refused_for_says_how_it_is_given_up(platform: Platform, refuses: Refused) -> None:
    with pytest.raises(PlatformError) as of_a_person:
        refuses(platform, "try")
    assert "`platform-assets stage drop try`" in of_a_person.value.todo
    with pytest.raises(PlatformError) as of_a_plan:
        refuses(platform, "plan-mend")
    assert "`platform-assets plan cancel mend`" in of_a_plan.value.todo
    assert all(command not in of_a_plan.value.todo for command in ("stage drop", "refresh --stage"))
    assert cancel(platform, "mend", Author("", "as it was told", "bob")).state == "cancelled"
    assert not (platform.lake.open_stages_path / "plan-mend.json").exists()


def test_a_stage_that_is_not_there_is_opened_by_its_plan(platform: Platform) -> None:
    (platform.lake.open_stages_path / "plan-mend.json").remove()
    with pytest.raises(UnknownStageError, match="There is no stage 'plan-mend'") as caught:
        opened_stage(platform, "plan-mend")
    assert "`platform-assets plan apply FILE` opens one" in caught.value.todo


def test_a_deletion_that_a_stage_is_in_the_way_of_names_it_and_what_ends_it(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        made = correct(platform)
        write_record(platform.lake, BackfillRecord.new(explain(platform, plan())))
        stage(platform, "plan-mend", {SILVER: {DAY: ("asked for",)}})
        put_back(platform, made)
        none = timedelta(0)
        found = usage(platform.lake, none, lambda: [one.release for one in open_stages(platform.lake)])
        with pytest.raises(StillNeededError, match="which lies under the open stage plan-mend, needs 1") as caught:
            deletions_asked_for(platform.lake, found, made, none, none)
        assert "End its plan first: `platform-assets plan apply FILE`, or `plan cancel mend`." in caught.value.todo


def test_a_comparison_drops_no_stage_of_a_person(platform: Platform) -> None:
    stage(platform, "compare-other", {SILVER: {DAY: ("asked for",)}})
    (platform.lake.open_stages_path / "plan-mend.json").remove()
    cancel(platform, "mend", Author("", "another one is compared", "bob"))
    with pytest.raises(StageError, match="The stage compare-other is there already") as caught:
        compare_plan(platform, no_session, plan(name="other"), Author("", "a look", "bob"), 1, 1)
    assert "stage drop compare-other" in caught.value.todo
    assert read_stage(platform.lake, "compare-other").staged.days == {SILVER: (DAY,)}
