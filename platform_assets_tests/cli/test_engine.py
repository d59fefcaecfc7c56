"""Which engine computes a table, as commands tell it."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from platform_assets_tests.support.cli.commands import Run, run, state

__all__ = ["run", "state"]

COMPUTED = {
    "silver.transactions", "silver.products", "gold.household_28d", "gold.daily_sales", "gold.sales_month_to_date",
}  # fmt: skip


def test_nothing_is_computed_by_sail_unless_it_is_asked_for(run: Run) -> None:
    listed = run("engine", "list", "--json").json["tables"]
    assert {row["table"] for row in listed} == COMPUTED
    assert {(row["engine"], row["why"]) for row in listed} == {("spark", "PLATFORM_ENGINE is spark")}
    assert run("status", "--json").json["computed_by_spark"] == {}


def test_what_spark_computes_though_sail_was_asked_for_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_ENGINE", "sail")
    assert run("status", "--json").json["computed_by_spark"] == dict.fromkeys(COMPUTED, "it was not verified")
    said = run("status").out
    assert (
        "Spark computes gold.daily_sales: it was not verified; `platform-assets engine verify gold.daily_sales`" in said
    )
    assert "gold.daily_sales" in run("engine", "list").out


def test_a_spark_connect_server_is_not_for_sail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_ENGINE", "sail")
    monkeypatch.setenv("PLATFORM_SPARK_REMOTE", "sc://127.0.0.1:1")
    listed = run("engine", "list", "--json").json["tables"]
    assert {row["why"] for row in listed} == {
        "Sail works beside a Spark of this machine, not beside a Spark Connect server"
    }
    refused = run("engine", "verify", "gold.daily_sales")
    assert refused.code == 3
    assert "Sail cannot compute gold.daily_sales" in refused.err


def test_days_to_compare_are_named_and_raw_tables_are_none(run: Run) -> None:
    assert run("engine", "compare", "gold.daily_sales").code == 2
    refused = run("engine", "verify", "raw.transactions")
    assert refused.code == 3
    assert "raw.transactions has no transform" in refused.err


def test_doctor_starts_it_and_says_where_it_cannot_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    monkeypatch.setenv("PLATFORM_ENGINE", "sail")
    assert "starts, with 3g of memory at most" in " ".join(run("doctor").out.split())
    monkeypatch.setenv("PLATFORM_SAIL_MEMORY", "20m")
    assert "Sail does not start" in " ".join(run("doctor").out.split())
