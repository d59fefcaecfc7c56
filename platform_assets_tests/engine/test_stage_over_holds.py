"""What a stage computed over a hold, which was known then, it publishes whatever else others publish. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.stage import Stage
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import DayRecord, Hold, StagedDays
from platform_assets.records.manifest import DayContent, TableChange
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets_tests.support.days_on_paper import (
    DAY,
    DAYS,
    GOLD,
    RAW,
    SILVER,
    correct,
    digest,
    opened,
    publish,
    publish_all,
    put_back,
)
from platform_assets_tests.support.history import no_session

FORCED = "0-2-0-0-0"


def forced_into_a_stage(platform: Platform, bad: DayRecord) -> Stage:
    """As `Stage.step(..., forced=[DAY])` leaves it: the day, and the holds that were known and overruled."""
    stage, contract = Stage(platform, Author("forced", "it was right after all")), platform.catalogue[SILVER]
    snapshot = LakeSnapshot.now(platform)
    base = tuple(file.path for file in files_at(platform.lake, SILVER, snapshot.version(SILVER)).get(DAY, ()))
    content = DayContent(files=(), base=base, digest=FORCED, rows=0, bytes=0, fingerprint=bad.fingerprint)
    change = TableChange(
        table=SILVER,
        schema_string=spark_schema(contract).json(),
        days={DAY: content},
        reads=snapshot.reads([RAW]),
        code_version=platform.code_versions[SILVER],
        configuration=platform.configurations[SILVER].parts,
    )
    stage.results[SILVER] = StepResult(SILVER, {DAY: content}, reasons={DAY: ("asked for",)})
    known = [hold for hold in platform.ledger.holds(SILVER) if hold.day == DAY]
    stage.staged = StagedDays().with_days([change], over=known)
    return stage


def nobody(platform: Platform) -> None:
    """Nobody publishes in between."""


def others(platform: Platform) -> None:
    """Somebody publishes a day of another table, which has nothing to do with it."""
    publish(platform, GOLD, [DAYS[0]], 5)


@pytest.mark.parametrize("meanwhile", [nobody, others])
def test_a_day_that_is_forced_over_a_rollback_is_published_whatever_else_others_publish(
    tmp_path: Path, meanwhile: Callable[[Platform], None]
) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        wrong = correct(platform)
        bad = platform.ledger.current_days(SILVER)[DAY]
        put_back(platform, wrong)
        assert platform.ledger.holds(SILVER)
        stage = forced_into_a_stage(platform, bad)
        meanwhile(platform)
        stage.publish(no_session)
        assert digest(platform) == FORCED
        assert platform.ledger.holds(SILVER) == ()


@pytest.mark.parametrize("meanwhile", [nobody, others])
def test_a_day_that_passed_the_gate_that_had_held_it_is_published_whatever_else_others_publish(
    tmp_path: Path, meanwhile: Callable[[Platform], None]
) -> None:
    """By force: the same input, and by now it is usual."""
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        wrong = correct(platform)
        bad = platform.ledger.current_days(SILVER)[DAY]
        put_back(platform, wrong)
        [known] = platform.ledger.holds(SILVER)
        platform.ledger.drop([known])
        by_gate = Hold(
            SILVER, DAY, Attempt(bad.fingerprint, platform.version(SILVER)), "volume", "few", "r", datetime.now(UTC)
        )
        platform.ledger.hold([by_gate])
        stage = forced_into_a_stage(platform, bad)
        meanwhile(platform)
        stage.publish(no_session)
        assert digest(platform) == FORCED


def test_a_day_that_somebody_rolled_back_again_since_is_not_published(tmp_path: Path) -> None:
    """The same refusal, renewed since the day was forced."""
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        wrong = correct(platform)
        bad = platform.ledger.current_days(SILVER)[DAY]
        put_back(platform, wrong)
        stage = forced_into_a_stage(platform, bad)
        platform.ledger.hold([replace(hold, created_at=datetime.now(UTC)) for hold in platform.ledger.holds(SILVER)])
        others(platform)
        stage.publish(no_session)
        assert digest(platform) == "0-1-0-0-0"
