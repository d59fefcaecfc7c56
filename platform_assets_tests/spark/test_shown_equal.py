"""Sail computes what was shown to come out as Spark computes it, on odd values of every type, and nothing else."""

from __future__ import annotations

import json
import os
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts.checks import EXACT
from platform_assets.domains.retail.sample import Simulation
from platform_assets.domains.retail.sample.landing import land
from platform_assets.operations.engines import why_refused
from platform_assets.settings import Settings
from platform_assets.spark.compare.row_diff import within_sql
from platform_assets.spark.sail import equal_list
from platform_assets.spark.sail.session import sail_session, stop_sail
from platform_assets.spark.sail.shown_equal import refused_expressions
from platform_assets_tests.support.frames import rows_as_frame
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.probes import SCHEMA, odd_row
from platform_assets_tests.support.two_engines import PROBES, TwoEngines, in_turn, listed, odd_file, planned, write
from platform_assets_tests.support.world import World

LIST = Path(equal_list.__file__).with_name("shown_equal.json")

SAMPLE = (
    "length(s)", "trim(s)", "upper(s)", "lower(s)", "s LIKE p", "replace(s, t, 'xy')", "s || t", "contains(s, t)",
    "s < t", "s = t", "s <=> t", "coalesce(s, t)", "nullif(s, t)", "if(b, s, t)", "s IN (t)", "l > m", "i = l",
    "d > i", "d <=> e", "day >= day2", "at < at2", "x < y", "x = y", "coalesce(d, e)", "greatest(d, e)",
    "least(l, m)", "d + e", "d - e", "d * e", "CASE WHEN b THEN d WHEN c THEN e END", "CAST(d AS string)",
    "CAST(l AS string)", "CAST(day AS string)", "CAST(at AS date)", "try_cast(s AS int)", "year(day)",
    "last_day(day)", "hour(at)", "date_diff(day, day2)", "b AND c", "NOT b", "d BETWEEN e AND f",
)  # fmt: skip
DIFFER = (
    "h * h", "w * f", "nvl(d, e)", "ifnull(d, 0)", "zeroifnull(d)", "bround(d, 1)", "day - day2", "l + m", "i * j",
    "d / e", "s = 1", "initcap(s)", "s RLIKE '[0-9]'", "to_date(s)", "CAST(at AS bigint)", "xxhash64(d)",
    "timestamp_seconds(q)",
    "avg(d)", "approx_count_distinct(s)", "percentile_approx(d, 0.5)", "mode(s)", "stddev(d)", "max_by(d, i)",
    "sum(d) OVER (ORDER BY day RANGE BETWEEN 6 PRECEDING AND CURRENT ROW)", "parse_url(s, 'HOST')", "pi()",
)  # fmt: skip
"""What comes out otherwise or is not shown by samples, and what no probe has."""


def test_what_was_not_shown_to_come_out_alike_is_refused_by_name(spark: SparkSession) -> None:
    odd = rows_as_frame(spark, [odd_row(n) for n in range(3)], SCHEMA)
    assert not [text for text in DIFFER if not refused_expressions(odd.selectExpr(text))]
    (why,) = refused_expressions(odd.selectExpr("nvl(d, e) AS v"))
    assert why == (
        "it has Nvl(decimal, decimal) decimal, as in nvl(d, e), which was not shown to come out alike on Spark 4.2.0 "
        "and Sail 0.7.2"
    )
    assert refused_expressions(odd.select("s").intersectAll(odd.select("t")))
    assert not refused_expressions(odd.selectExpr("coalesce(d, e) AS v").distinct())
    sums = odd.selectExpr("CAST(d AS decimal(28,2)) AS ours", "CAST(e AS decimal(22,2)) AS theirs")
    exact = within_sql("ours", "theirs", EXACT, [field.dataType for field in sums.schema])
    assert not refused_expressions(sums.selectExpr(exact)), "then no table with a reconciliation could be computed"


def three_days(lakes: Lakes) -> World:
    """Return the sample of three days as Spark computes it."""
    world = lakes.new(days=3)
    land(Simulation(days=3), world.settings.landing_folder, date(2017, 1, 3))
    world.refresh()
    return world


@pytest.mark.proof
def test_the_shipped_tables_are_made_of_what_was_shown(prepared: Prepared) -> None:
    world = prepared(three_days)
    with world.open() as platform:
        computed = [contract for contract in platform.catalogue if contract.inputs]
        assert {table.name: why_refused(platform, lambda: world.spark, table) for table in computed} == {
            table.name: "" for table in computed
        }


def test_a_sample_of_the_list_comes_out_alike(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    both = TwoEngines(spark, lambda: sail_session(settings), odd_file(spark, tmp_path))
    assert not [probe for probe, is_equal in both.alike("expressions of a row", SAMPLE).items() if not is_equal]
    stop_sail()


def test_the_page_has_the_figures_of_the_list() -> None:
    rows = [
        f"| {kind} | {tried:,} | {alike:,} |" for kind, (tried, alike) in json.loads(LIST.read_text())["probes"].items()
    ]
    page = Path("docs/engines.md").read_text("utf-8")
    assert not [row for row in rows if row not in page], rows


def test_other_versions_than_those_of_the_list_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not list(equal_list.other_versions())
    monkeypatch.setattr(equal_list, "EQUAL", equal_list.EQUAL._replace(spark="4.1.0"))
    assert list(equal_list.other_versions()) == [
        "what comes out alike was shown with Spark 4.1.0, and 4.2.0 is installed"
    ]


@pytest.mark.proof
@pytest.mark.timeout(3000)
def test_the_list_has_what_comes_out_alike_and_refuses_the_rest(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """With WRITE_SHOWN it writes the list anew, which takes some minutes."""
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    both = TwoEngines(spark, lambda: sail_session(settings), odd_file(spark, tmp_path))
    outcome: dict[str, dict[str, bool]] = {}
    for kind, probes in PROBES.items():
        outcome[kind] = {}
        for some in in_turn(kind, probes):
            outcome[kind] |= both.alike(kind, some)
    stop_sail()
    assert not both.gone
    odd = spark.read.schema(SCHEMA).parquet(both.path)
    used = {(kind, probe): planned(odd, kind, probe) for kind, probes in PROBES.items() for probe in probes}
    found = listed(outcome, used)
    if "WRITE_SHOWN" in os.environ:
        write(found, LIST)
    assert found == json.loads(LIST.read_text("utf-8")), "WRITE_SHOWN=1 writes the list anew"
    every = {f"{name}{rest}" for name, forms in found["expressions"].items() for rest in forms}
    assert not [
        probe
        for (kind, probe), uses in used.items()
        if not outcome[kind][probe] and all(every.intersection(use.forms) for use in uses)
    ]
