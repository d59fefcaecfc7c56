"""Who publishes a day that a gate had refused, as a person accepted it, may die before it lifts the hold. No Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from platform_assets.engine.pending import waiting as all_that_waits
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import readiness
from platform_assets.operations.opening import open_platform
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.settings import load_settings
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import DAILY

RAW, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.daily_sales"
DAYS = [date(2017, 1, 1) + timedelta(days=n) for n in range(8)]
DAY = DAYS[7]


def test_what_reads_an_accepted_day_follows_though_who_accepted_it_died_before_lifting_the_hold(tmp_path: Path) -> None:
    settings = load_settings(
        state=tmp_path / "sales", domains=DAILY, calendar_first=DAYS[0], calendar_last=DAY, today=DAY
    )
    with open_platform(settings) as platform:
        for table in (RAW, "raw.products", SILVER, "silver.products", GOLD):
            publish(platform, table, DAYS, 1)
        publish(platform, RAW, [DAY], 2)
        snapshot = LakeSnapshot.now(platform)
        made = fingerprints(platform.catalogue[SILVER], [DAY], {RAW: snapshot.digests(RAW)}, platform.calendar, {})[DAY]
        mark = Attempt(made, platform.version(SILVER))
        platform.ledger.hold([Hold(SILVER, DAY, mark, "volume", "too few rows", "r", datetime.now(UTC))])
        # Published by somebody who accepted it, and who was killed at "gate.before_holds"
        publish(platform, SILVER, [DAY], 2)
    with open_platform(settings) as platform:
        assert platform.ledger.current_days(SILVER)[DAY].fingerprint == made
        state = readiness(platform.catalogue[GOLD], [DAY], LakeSnapshot.now(platform))
        assert state.blocked == {}
        assert DAY in all_that_waits(platform, 100).stale.get(GOLD, {})


def test_a_hold_of_other_rows_stays_when_a_day_is_published(tmp_path: Path) -> None:
    """A gate refused newer rows than those that were just published."""
    settings = load_settings(
        state=tmp_path / "sales", domains=DAILY, calendar_first=DAYS[0], calendar_last=DAY, today=DAY
    )
    with open_platform(settings) as platform:
        for table in (RAW, "raw.products", SILVER, "silver.products", GOLD):
            publish(platform, table, DAYS, 1)
        other = Attempt("of other rows", platform.version(SILVER))
        platform.ledger.hold([Hold(SILVER, DAY, other, "volume", "too few rows", "r", datetime.now(UTC))])
        publish(platform, RAW, [DAY], 2)
        publish(platform, SILVER, [DAY], 2)
        assert [hold.refused for hold in platform.ledger.holds(SILVER)] == [other]
