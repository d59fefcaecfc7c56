"""Two plan files of one name: the second neither takes over what the first began, nor is taken for it. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.afterwards import cancel
from platform_assets.operations.backfill.files import PlanFileError, new_plan, plan_in, said_besides
from platform_assets.operations.backfill.sitting import BackfillError, Sitting, sitting_over
from platform_assets.operations.plan_record import read_record, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.readings import DAYS, opened, plan, publish_all

AUTHOR = Author("run", "a plan", "bob")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        yield platform


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Of a plan that was begun."""
    return tmp_path / "plans" / "mend.yaml"


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return tmp_path / "plans" / "2017" / "mend.yaml"


def other() -> PlanFile:
    return plan(days={"list": [str(DAYS[1])]})


def sit(platform: Platform, file: PlanFile, place: Path) -> Sitting:
    with sitting_over(platform, no_session, file, AUTHOR, place=place) as sitting:
        return sitting


def test_another_file_of_its_name_does_not_take_a_plan_over(platform: Platform, first: Path, second: Path) -> None:
    new_plan(plan(), first)
    new_plan(other(), second)
    begun = sit(platform, plan(), first).record
    assert begun.place == str(first)
    with pytest.raises(PlanFileError) as caught:
        sit(platform, other(), second)
    assert str(first) in caught.value.what
    assert str(second) in caught.value.what
    assert "another `name`" in caught.value.todo
    assert "plan cancel mend" in caught.value.todo
    assert read_record(platform.lake, "mend") == begun
    assert str(first) in said_besides(begun, other(), second)
    assert not said_besides(begun, plan(), first)
    cancel(platform, "mend", AUTHOR)
    assert sit(platform, other(), second).record.place == str(second)


def test_an_edited_a_moved_and_a_copied_file_are_the_same_plan(platform: Platform, first: Path, second: Path) -> None:
    new_plan(plan(), first)
    begun = sit(platform, plan(), first).record
    new_plan(plan(), second)
    assert sit(platform, plan(), second).record.hash == begun.hash, "a copy"
    second.unlink()
    edited = sit(platform, other(), first).record
    assert edited.hash != begun.hash
    assert edited.place == str(first)
    second.parent.mkdir(exist_ok=True)
    first.rename(second)
    assert sit(platform, plan(), second).record.place == str(second), "moved, and edited again"


def test_a_namesake_of_a_plan_that_waits_for_its_proof_is_not_taken_for_it(platform: Platform, first: Path) -> None:
    file = plan(afterwards={"verify": 1})
    record = sit(platform, file, first).record
    write_record(platform.lake, record.told("published", state="published", release=7))
    assert sit(platform, file, first).record.wants_proof
    with pytest.raises(BackfillError, match="was applied before: published in release 7"):
        sit(platform, plan(reason="another", afterwards={"verify": 1}), first)


def test_a_name_that_two_endings_share_is_not_guessed_at(tmp_path: Path) -> None:
    for ending in ("yaml", "yml"):
        new_plan(plan(), tmp_path / f"mend.{ending}")
    with pytest.raises(PlanFileError, match=r"two plans 'mend' in .*: mend\.yaml and mend\.yml"):
        plan_in(tmp_path, "mend")
    assert plan_in(tmp_path, "mend.yml").name == "mend.yml"
