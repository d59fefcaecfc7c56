"""The command line in this process, on an installation of its own with a little published by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.engine.day_contents import loaded_empty
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import Arrival
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import FIRST, REASON, TABLE, run, state
from platform_assets_tests.support.cli.products import DAY, DAYS, RAW, SILVER, computed, publish_on_paper
from platform_assets_tests.support.shelf import day, staged_manifest

__all__ = ["run", "state"]


@pytest.fixture
def published(state: Path) -> Settings:
    """Two days of one gold table in two publications, and a file that was refused."""
    settings = load_settings()
    lake = Lake.at(settings.lake)
    arrival = Arrival(
        table="raw.transactions",
        path="transactions/2017-01-01/a[/b].csv",
        arrival_date=FIRST,
        size=1,
        sha256="0" * 64,
        modified_ns=1,
        landed=0,
        taken=0,
        refused=0,
        reason=REASON,
        notes=(),
    )
    first = staged_manifest(lake, {TABLE: {day(0): [("a", 150), ('b "[/c]", d', 1)]}})
    publish(lake, first.model_copy(update={"arrivals": (arrival,)}))
    publish(lake, staged_manifest(lake, {TABLE: {day(1): [("é", 199)]}}))
    with open_platform(settings):
        return settings


@pytest.fixture
def products(state: Path) -> Settings:
    """Three days of products, delivered and computed under today's contract, all of them empty."""
    settings = load_settings()
    assert settings.state == state, "a parameter of a test has the fixture's name, and the platform here is another"
    with open_platform(settings) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        version = platform.version(SILVER)
        parts = platform.configurations[SILVER].parts
        publish_on_paper(platform, SILVER, computed(platform, SILVER), code_version=version.code, configuration=parts)
    return settings


@pytest.fixture
def corrected(products: Settings) -> str:
    """A second publication of one day of silver; its name."""
    with open_platform(products) as platform:
        version, parts = platform.version(SILVER), platform.configurations[SILVER].parts
        again = {DAY: computed(platform, SILVER)[DAY].model_copy(update={"digest": "0-1-1-1-1"})}
        publish_on_paper(platform, SILVER, again, code_version=version.code, configuration=parts)
        return platform.ledger.current_days(SILVER)[DAY].publication
