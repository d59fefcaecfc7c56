"""What is in the way of a backfill, or a backfill is in the way of: told beforehand, with how it is ended. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import StillNeededError
from platform_assets.lakehouse.horizon import Cut, Horizon, write_horizon
from platform_assets.operations.backfill.afterwards import cancel
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import line_of, new_plan, plan_at
from platform_assets.operations.deletion import deletions_asked_for, usage
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.operations.stages.store import (
    open_stages,
    opened_stage,
    read_stage,
    refuse_other_code,
    refuse_undeclared,
    write_stage,
)
from platform_assets.planning.backfill.backfill import Obstacle
from platform_assets.records.history import StagedDays
from platform_assets_tests.support.days_on_paper import (
    DAY,
    DAYS,
    GOLD,
    SILVER,
    correct,
    opened,
    plan,
    publish,
    publish_all,
    put_back,
    stage,
)
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.places import on_disk


def begun(platform: Platform, name: str, **fields: Any) -> None:
    """Another plan, which has staged its days."""
    file = plan(name=name, **fields)
    write_record(platform.lake, BackfillRecord.new(explain(platform, file)))
    stage(platform, f"plan-{name}", {file.tables[0]: dict.fromkeys(file.days.named_days() or (), ("asked for",))})


def test_a_plan_that_has_staged_nothing_yet_is_in_the_way_of_the_days_it_comes_to(platform: Platform) -> None:
    for name, days in (("other", [str(DAYS[7])]), ("elsewhere", [str(DAYS[0])])):
        file = plan(name=name, days={"list": days})
        write_record(platform.lake, BackfillRecord.new(explain(platform, file)))
    [other] = told(platform)[True]
    assert other.what == "The plan other comes to 1 day of the same tables."
    assert "Finish or cancel it first" in other.todo


def test_what_is_in_the_way_is_told_with_the_line_of_its_field(platform: Platform, tmp_path: Path) -> None:
    begun(platform, "other")
    place = tmp_path / "mine.yaml"
    new_plan(plan(), place)
    days = 1 + next(n for n, line in enumerate(place.read_text().splitlines()) if line.startswith("days:"))
    with pytest.raises(PlatformError) as refused, plan_at(place) as file:
        apply(platform, no_session, file, Author("", "a test"))
    assert refused.value.what == (
        f"{place}, line {days}: The plan mend cannot begin: days: The plan other comes to 1 day of the same tables."
    )
    assert line_of(place, ("days",)) == days
    [other] = [obstacle for obstacle in told(platform)[True] if "other" in obstacle.what]
    assert other.sentence == f"days: {other.what}"


def told(platform: Platform) -> dict[bool, list[Obstacle]]:
    """What is in the way, and what somebody should know."""
    obstacles = explain(platform, plan()).obstacles
    return {blocks: [obstacle for obstacle in obstacles if obstacle.blocks == blocks] for blocks in (True, False)}


UNKNOWN = "It is unknown whether it has days of the same tables."


@pytest.mark.parametrize(
    ("torn", "blocks"),
    [(["a-trial"], True), (["plan-other"], True), (["_plans/other"], True), (["plan-other", "_plans/other"], False)],
)
def test_what_cannot_be_read_is_named_and_its_plan_is_in_the_way_of_the_days_that_are_known_of_it(
    platform: Platform, torn: list[str], blocks: bool
) -> None:
    stage(platform, "a-trial", {GOLD: {DAYS[0]: ("asked for",)}})
    begun(platform, "other")
    begun(platform, "elsewhere", days={"list": [str(DAYS[0])]})
    for name in torn:
        file = on_disk(platform.lake.plans_path if name.startswith("_plans/") else platform.lake.open_stages_path)
        file /= f"{name.removeprefix('_plans/')}.json"
        file.write_bytes(file.read_bytes()[:40])
    obstacles = told(platform)
    in_the_way = [obstacle.what for obstacle in obstacles[True]]
    assert in_the_way == ["The plan other comes to 1 day of the same tables."] * blocks
    damaged = [obstacle for obstacle in obstacles[False] if obstacle.what.endswith(UNKNOWN)]
    assert len(damaged) == len(torn)
    assert all("undo stage:" in obstacle.todo or "undo backfill:" in obstacle.todo for obstacle in damaged)


Refused = Callable[[Platform, str], object]
GONE = "silver.gone"


@pytest.fixture
def two_stages(tmp_path: Path) -> Iterator[Platform]:
    """With a person's stage, and that of a plan which was interrupted."""
    with opened(tmp_path / "state") as two_stages:
        publish_all(two_stages)
        publish(two_stages, SILVER, [DAY], 2, filed=True)
        backfill = explain(two_stages, plan())
        write_record(two_stages.lake, BackfillRecord.new(backfill))
        for name in ("plan-mend", "try"):
            stage(two_stages, name, {SILVER: {DAY: ("asked for",)}})
        yield two_stages


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


def torn_stage(platform: Platform, name: str) -> None:
    on_disk(platform.lake.open_stages_path / f"{name}.json").write_text("{")
    read_stage(platform.lake, name)


@pytest.mark.parametrize(
    "refuses", [over_another_release, over_what_was_erased, of_no_domain, of_other_code, torn_stage]
)
def test_what_a_stage_is_refused_for_says_how_it_is_given_up(two_stages: Platform, refuses: Refused) -> None:
    with pytest.raises(PlatformError) as of_a_person:
        refuses(two_stages, "try")
    assert "`platform-assets undo stage:try`" in of_a_person.value.todo
    with pytest.raises(PlatformError) as of_a_plan:
        refuses(two_stages, "plan-mend")
    assert "`platform-assets undo backfill:mend --reason …`" in of_a_plan.value.todo
    assert all(command not in of_a_plan.value.todo for command in ("undo stage:", "refresh --stage"))
    assert cancel(two_stages, "mend", Author("", "as it was told", "bob")).state == "cancelled"
    assert not (two_stages.lake.open_stages_path / "plan-mend.json").exists()


def test_a_deletion_that_a_stage_is_in_the_way_of_names_it_and_what_ends_it(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as two_stages:
        publish_all(two_stages)
        made = correct(two_stages)
        write_record(two_stages.lake, BackfillRecord.new(explain(two_stages, plan())))
        stage(two_stages, "plan-mend", {SILVER: {DAY: ("asked for",)}})
        put_back(two_stages, made)
        none = timedelta(0)
        found = usage(two_stages.lake, none, lambda: [one.release for one in open_stages(two_stages.lake)])
        with pytest.raises(StillNeededError, match="which lies under the open stage plan-mend, needs 1") as caught:
            deletions_asked_for(two_stages.lake, found, made, none, none)
        assert (
            "End its plan first: `platform-assets backfill apply FILE`, or `undo backfill:mend --reason …`."
            in caught.value.todo
        )
