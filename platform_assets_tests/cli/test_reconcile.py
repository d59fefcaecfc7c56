"""`reconcile` says with its exit code whether two sides agree, as text, as JSON and as a page."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import DAYS, four_days

__all__ = ["run", "state"]

GOLD = "gold.daily_sales"


def test_the_command_names_days_figures_and_keys(
    prepared: Prepared, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a loaded lake, with the session of this process."""
    world = prepared(four_days)
    values = {"STATE": world.settings.state, "DOMAINS": DAILY, "CALENDAR_LAST": DAYS[-1], "TODAY": DAYS[-1]}
    for name, value in values.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    with world.open() as platform:
        now = platform.current_release().number
    assert (same := run("reconcile", GOLD, f"{GOLD}@{now}")).code == 0
    assert "they agree" in same.out

    rows = pl.DataFrame(read_arrow(Lake.at(world.settings.lake), GOLD))
    rows.with_columns(units=pl.col("units") + (pl.col("event_date").cast(pl.String) == DAYS[1])).write_csv(
        copy := tmp_path / "copy.csv"
    )
    page = tmp_path / "page.html"
    told = run("reconcile", GOLD, str(copy), "--drill", "--html", str(page))
    assert told.code == 1
    assert f"different {DAYS[1]}: store_id 7, department MEAT: units 5, not 6 (-1)" in told.out
    assert [DAYS[1], "different", "units", "5", "6", "-1"] in [line.split() for line in told.out.splitlines()]
    assert "units 5, not 6 (-1)" in page.read_text()
    found = run("reconcile", GOLD, str(copy), "--tolerance", "1", "--json")
    assert (found.code, found.json["agree"], found.json["differing"][0]["outcome"]) == (0, True, "within tolerance")
    refused = run("reconcile", GOLD, str(copy), "--by", "shop", "--json")
    assert (refused.code, "'shop', to compare by, is no column in" in refused.err) == (2, True)
