"""What others have staged is told before a backfill begins, also where a part of it cannot be read. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import line_of, new_plan, plan_at
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.planning.backfill.backfill import Obstacle
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.readings import DAYS, GOLD, opened, plan, publish_all, stage


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        yield platform


def begun(platform: Platform, name: str, **fields: Any) -> None:
    """Another plan, which has staged its days."""
    file = plan(name=name, **fields)
    write_record(platform.lake, BackfillRecord.new(explain(platform, file)))
    stage(platform, f"plan-{name}", {file.tables[0]: dict.fromkeys(file.days.named() or (), ("asked for",))})


def test_a_plan_that_has_staged_nothing_yet_is_in_the_way_of_the_days_it_comes_to(platform: Platform) -> None:
    for name, days in (("other", [str(DAYS[7])]), ("elsewhere", [str(DAYS[0])])):
        file = plan(name=name, days={"list": days})
        write_record(platform.lake, BackfillRecord.new(explain(platform, file)))
    [other] = told(platform)[True]
    assert other.what == "The plan other comes to 1 day of the same tables."
    assert "Finish or cancel it first" in other.todo


def test_a_plan_that_has_staged_nothing_and_whose_record_cannot_be_read_is_named(platform: Platform) -> None:
    write_record(platform.lake, BackfillRecord.new(explain(platform, plan(name="broken"))))
    torn(platform, "_plans/broken")
    obstacles = told(platform)
    assert obstacles[True] == []
    [broken] = [obstacle for obstacle in obstacles[False] if "broken" in obstacle.what]
    assert broken.what.startswith("The record of the plan broken is damaged")
    assert broken.what.endswith("Whether it comes to days of the same tables cannot be told.")


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
    assert other.told == f"days: {other.what}"


def torn(platform: Platform, *names: str) -> None:
    """What is written of stages or, with the folder, of plans is cut short."""
    for name in names:
        file = on_disk(platform.lake.plans_path if name.startswith("_plans/") else platform.lake.open_stages_path)
        file /= f"{name.removeprefix('_plans/')}.json"
        file.write_bytes(file.read_bytes()[:40])


def told(platform: Platform) -> dict[bool, list[Obstacle]]:
    """What is in the way, and what somebody should know."""
    obstacles = explain(platform, plan()).obstacles
    return {blocks: [obstacle for obstacle in obstacles if obstacle.blocks == blocks] for blocks in (True, False)}


def test_a_stage_that_cannot_be_read_is_named_and_hides_no_other(platform: Platform) -> None:
    stage(platform, "a-trial", {GOLD: {DAYS[0]: ("asked for",)}})
    begun(platform, "other")
    torn(platform, "a-trial")
    obstacles = told(platform)
    assert [obstacle.what for obstacle in obstacles[True]] == ["The plan other comes to 1 day of the same tables."]
    [damaged] = [obstacle for obstacle in obstacles[False] if "damaged" in obstacle.what]
    assert damaged.what.startswith("The stage a-trial is damaged")
    assert damaged.what.endswith("Whether it has days of the same tables cannot be told.")
    assert "stage drop a-trial" in damaged.todo


def test_a_plan_whose_stage_cannot_be_read_is_in_the_way_of_the_days_it_comes_to(platform: Platform) -> None:
    begun(platform, "other")
    begun(platform, "elsewhere", days={"list": [str(DAYS[0])]})
    torn(platform, "plan-other", "plan-elsewhere")
    obstacles = told(platform)
    [same] = obstacles[True]
    assert same.what.startswith("The stage plan-other is damaged")
    assert same.what.endswith("The plan other, which fills it, comes to 1 day of the same tables.")
    [elsewhere] = [obstacle for obstacle in obstacles[False] if "damaged" in obstacle.what]
    assert elsewhere.what.endswith("The plan elsewhere, which fills it, comes to none of these days.")


def test_a_plan_whose_record_cannot_be_read_is_in_the_way_of_the_days_it_has_staged(platform: Platform) -> None:
    begun(platform, "broken")
    begun(platform, "elsewhere", days={"list": [str(DAYS[0])]})
    begun(platform, "other")
    torn(platform, "_plans/broken", "_plans/elsewhere")
    other, broken = told(platform)[True]
    assert broken.what.startswith(
        "The stage plan-broken has 1 day of the same tables staged, and the record of the plan broken is damaged"
    )
    assert "stage drop plan-broken" in broken.todo
    assert other.what == "The plan other comes to 1 day of the same tables."


def test_where_neither_can_be_read_nobody_can_tell(platform: Platform) -> None:
    begun(platform, "other")
    torn(platform, "plan-other", "_plans/other")
    obstacles = told(platform)
    assert obstacles[True] == []
    assert any(obstacle.what.endswith("days of the same tables cannot be told.") for obstacle in obstacles[False])
