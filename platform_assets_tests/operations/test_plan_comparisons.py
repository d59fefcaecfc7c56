"""Comparisons of plans beside each other, and killed: one at a time of a plan, and nothing of a dead one stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.errors import LockTimeoutError, StageError
from platform_assets.lakehouse.locks import comparison_lock
from platform_assets.operations.backfill.compare import compare_plan
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.maintenance.tasks import maintain
from platform_assets.operations.plan_record import (
    RecordError,
    becomes_of_comparison,
    comparison_stage,
    ends_of,
    is_comparison,
    refuse_comparison_at_work,
    refuse_stage_of_a_plan,
)
from platform_assets.operations.stages.stages import comparison
from platform_assets.operations.stages.store import read_stage, stage_names, write_stage
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.readings import DAY, SILVER, opened, plan, publish_all, stage

AUTHOR = Author("", "a look", "bob")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        yield platform


def killed(platform: Platform, plan_name: str) -> str:
    """What a comparison leaves that is killed; the name of its stage."""
    name, why = comparison_stage(plan_name)
    stage(platform, name, {SILVER: {DAY: ("asked for",)}})
    write_stage(platform.lake, read_stage(platform.lake, name).model_copy(update={"why": why}))
    return name


def test_what_a_killed_comparison_left_says_so_is_never_published_and_goes_with_the_next_of_any_plan(
    platform: Platform,
) -> None:
    name = killed(platform, "mend")
    assert is_comparison(platform.lake, name)
    assert "was killed: the next `platform-assets plan compare`" in becomes_of_comparison(platform.lake, name)
    assert "stage publish" not in ends_of(platform.lake, name)
    with pytest.raises(RecordError, match="of which nothing is published"):
        refuse_stage_of_a_plan(platform.lake, name)
    backfill = explain(platform, plan())
    assert not [found.what for found in backfill.obstacles if name in found.what], "it is nobody's work"
    refuse_comparison_at_work(platform.lake, name)
    with comparison(platform, "another"):
        assert stage_names(platform.lake) == ()


def test_maintenance_drops_what_a_killed_comparison_left_and_no_other_stage(platform: Platform) -> None:
    killed(platform, "mend")
    stage(platform, "compare-mine", {SILVER: {DAY: ("asked for",)}})
    maintain(platform, no_session, "stages", AUTHOR)
    assert stage_names(platform.lake) == ("compare-mine",)


def test_two_comparisons_of_a_plan_at_once_take_nothing_from_each_other(platform: Platform) -> None:
    name = killed(platform, "mend")
    with comparison_lock(platform.lake, name):  # days are laid side by side, so the stage itself is free
        assert "compares a plan in it and drops it at its end" in becomes_of_comparison(platform.lake, name)
        with pytest.raises(LockTimeoutError, match="comparison-compare-mend"):
            compare_plan(platform, no_session, plan(), AUTHOR, 1, 1)
        with pytest.raises(RecordError, match="somebody compares a plan now"):
            refuse_comparison_at_work(platform.lake, name)
        with comparison(platform, "another"):
            pass
        assert stage_names(platform.lake) == (name,), "it is at work"


def test_a_plan_of_the_longest_name_is_compared_too(platform: Platform) -> None:
    name = "a" * 58
    with comparison(platform, name):
        stage(platform, comparison_stage(name)[0], {SILVER: {DAY: ("asked for",)}})
        assert len(stage_names(platform.lake)) == 1
    assert stage_names(platform.lake) == ()


def test_a_stage_of_a_person_is_not_taken_for_a_comparison(platform: Platform) -> None:
    stage(platform, "compare-mend", {SILVER: {DAY: ("asked for",)}})
    assert not is_comparison(platform.lake, "compare-mend")
    refuse_stage_of_a_plan(platform.lake, "compare-mend")
    with pytest.raises(StageError, match="not of a comparison") as caught, comparison(platform, "mend"):
        pass
    assert "stage drop compare-mend" in caught.value.todo
