"""Comparisons that contracts declare are checks in Dagster: scheduled, with a severity each, their figures charted."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.orchestration.build import build_definitions
from platform_assets.settings import SettingsError
from platform_assets_tests.support.own_domain import PACKAGE, deliver_sales, importable, write_domain
from platform_assets_tests.support.world import MakeWorld

DECLARED = """reconciles=(Reconciliation("silver.sales", ("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)),),
                comparisons=(Comparison("ledger", "{folder}", severity="block"),
                             Comparison("known", "{folder}", tolerance="0.01, 1 key"),
                             Comparison("silver", "silver.sales", by=("till",)),
                             Comparison("lost", "{folder}/nowhere")))"""
BEFORE = 'reconciles=(Reconciliation("silver.sales", ("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)),))'


def test_each_declared_comparison_is_a_check_with_a_severity_of_its_own_and_figures_to_chart(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    """One refresh, then one run of the job that the schedule starts, in this process."""
    world = make_world(days=2, domains=PACKAGE, settle_s=0)
    copy = tmp_path / "ledger"
    copy.mkdir()
    changes = (("Amount, Column,", "Amount, Column, Comparison,"), (BEFORE, DECLARED.format(folder=copy)))
    with importable(write_domain(tmp_path / "home", contracts=changes)):
        for day in ("2017-01-01", "2017-01-02"):
            deliver_sales(world.settings.landing_folder, day, 3)
        world.refresh()
        rows = pl.DataFrame(read_arrow(Lake.at(world.settings.lake), "gold.tills"))
        other = pl.when(till=2).then(pl.lit("9.25")).otherwise("paid").cast(rows.schema["paid"])
        first = pl.col("event_date") == pl.date(2017, 1, 1)
        pl.concat([rows.filter(~first), rows.filter(first).with_columns(paid=other)]).write_parquet(copy / "a.parquet")

        definitions = build_definitions(world.settings)
        schedule = definitions.resolve_schedule_def("comparisons")
        assert (schedule.job_name, schedule.cron_schedule) == ("compare", "0 5 * * *")
        assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
        with pytest.raises(SettingsError, match="reconcile_cron is 'never'"):
            build_definitions(world.settings.model_copy(update={"reconcile_cron": "never"}))
        done = definitions.resolve_job_def("compare").execute_in_process()
        found = {one.check_name: one for one in done.get_asset_check_evaluations()}

    verdicts = {name: (one.passed, one.severity.value) for name, one in found.items()}
    assert verdicts == {
        "comparison_ledger": (False, "ERROR"),
        "comparison_known": (True, "WARN"),
        "comparison_silver": (True, "WARN"),
        "comparison_lost": (False, "WARN"),
    }
    figures = {name: value.value for name, value in found["comparison_ledger"].metadata.items()}
    assert figures["keys different"] == figures["days different"] == 1
    assert (figures["rows left"], figures["paid, left less right"]) == (6, -8.0)
    assert "different 2017-01-01: till 2: paid 1.25, not 9.25 (-8.00); brought by" in str(figures["keys"])
    assert "no golden copy at" in str(found["comparison_lost"].description)
