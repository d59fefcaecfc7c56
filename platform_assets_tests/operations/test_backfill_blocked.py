"""Days that can be computed no more since a plan began keep it from being published without them. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.readings import DAYS, GOLD, RAW, SILVER, opened, plan, put_back, stage


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish(platform, RAW, DAYS, 1)
        publish(platform, SILVER, DAYS[1:], 1)
        yield platform


FILE = plan(tables=[GOLD], days={"list": [str(DAYS[0]), str(DAYS[8])]}, policy="recompute")


def begun(platform: Platform) -> str:
    """A plan over two days of gold; the publication of what one of them reads."""
    first = publish(platform, SILVER, DAYS[:1], 1)
    publish(platform, GOLD, DAYS, 1)
    write_record(platform.lake, BackfillRecord.new(explain(platform, FILE)))
    return first


def stopped(platform: Platform) -> StoppedError:
    """What the plan says; nobody sees anything of it."""
    before = platform.current_release()
    with pytest.raises(StoppedError) as error:
        apply(platform, no_session, FILE, Author("apply", "a plan", "ada"))
    assert platform.current_release() == before
    return error.value


def test_a_day_that_reads_what_is_gone_since_is_named_and_nothing_is_published_without_it(platform: Platform) -> None:
    put_back(platform, begun(platform))
    stage(platform, "plan-mend", {GOLD: {DAYS[8]: ("asked for",)}})
    said = stopped(platform)
    assert f"1 day of {GOLD} cannot be computed any more ({DAYS[0]})" in said.what
    assert f"{SILVER} on {DAYS[0]} is not there" in said.what
    assert "plan cancel mend" in said.todo


def test_a_staged_day_that_reads_what_is_gone_since_keeps_the_others_from_being_published(platform: Platform) -> None:
    first = begun(platform)
    stage(platform, "plan-mend", {GOLD: {DAYS[0]: ("asked for",), DAYS[8]: ("asked for",)}})
    put_back(platform, first)
    assert str(DAYS[0]) in str(stopped(platform))
