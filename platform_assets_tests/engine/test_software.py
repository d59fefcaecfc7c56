"""Every day says which versions of Spark, Delta and this package computed it, and an upgrade makes nothing stale."""

from __future__ import annotations

import pyspark
import pytest

from platform_assets.engine import day_contents as changes
from platform_assets.engine.day_contents import loaded_empty
from platform_assets.lakehouse.releases import manifest_of, published
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.records.manifest import platform_version
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.cli.products import DAY, DAYS, RAW, SILVER, computed, publish_on_paper
from platform_assets_tests.support.history import person
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import four_days

__all__ = ["run", "state"]
"""Fixtures of the command line."""


def test_days_are_recorded_with_what_computed_them(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the module: it waits for four days to be loaded."""
    world = prepared(four_days)
    with world.open() as platform:
        manifests = [manifest_of(platform.lake, name) for _, name in published(platform.lake)]
    software = [change.software for one in manifests for change in one.tables]
    expected = {"platform": platform_version(), "spark": pyspark.__version__, "delta": "4.4.0"}
    assert expected in software
    without_spark = {"platform": platform_version()}
    assert [one for one in software if one not in (expected, without_spark)] == []
    monkeypatch.setattr(changes, "platform_version", lambda: "99.0")
    assert world.refresh().steps == ()


def test_why_says_it_of_a_day_and_of_one_that_was_put_back(run: Run) -> None:
    with open_platform(load_settings()) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        first = {"platform": "1.0", "spark": "4.2.0", "delta": "4.4.0"}
        publish_on_paper(platform, SILVER, computed(platform, SILVER), software=first)
        publish_on_paper(platform, SILVER, {DAY: computed(platform, SILVER)[DAY]}, software={"platform": "2.0"})
        assert "computed with platform-assets 2.0\n" in run("why", SILVER, str(DAY)).out
        newest = platform.ledger.current_days(SILVER)[DAY].publication
        rollback(platform, chosen_publications(platform, newest), person("wrong"))
    assert "computed with platform-assets 1.0, Spark 4.2.0, Delta 4.4.0\n" in run("why", SILVER, str(DAY)).out
    assert run("why", SILVER, str(DAY), "--json").json["computed_with"] == first
