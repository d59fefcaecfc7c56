"""A plan that is edited between two sittings publishes what it comes to now, and nothing that it came to before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.readings import DAY, DAYS, SILVER, STAGED, digest, opened, plan, publish_all, stage

AUTHOR = Author("apply", "a plan", "ada")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        yield platform


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
