"""The definitions load by themselves, and a change of any asset's spec shows up in review."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import dagster as dg
import pytest

from platform_assets.contracts import Rule, exists, in_range
from platform_assets.domains.retail.contracts import DAILY_SALES, SILVER_TRANSACTIONS
from platform_assets.orchestration.assets.checks import CHECKS, check_specs
from platform_assets.orchestration.assets.events import describe_table
from platform_assets.orchestration.build import build_definitions
from platform_assets.quality.findings import Check
from platform_assets.settings import Settings
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain

SNAPSHOT = Path(__file__).with_name("asset_specs.json")


def described(definitions: dg.Definitions) -> dict[str, Any]:
    """Everything of the assets that a wiring change would alter, without what changes with code."""
    found: dict[str, Any] = {}
    for asset in definitions.get_repository_def().assets_defs_by_key.values():
        for spec in asset.specs:
            partitions = spec.partitions_def
            assert isinstance(partitions, dg.DailyPartitionsDefinition)
            found[spec.key.to_user_string()] = {
                "deps": sorted(dep.asset_key.to_user_string() for dep in spec.deps),
                "group": spec.group_name,
                "owners": list(spec.owners),
                "kinds": sorted(spec.kinds),
                "partitions": [str(partitions.start.date()), str(partitions.end and partitions.end.date())],
                "backfill": str(asset.backfill_policy and asset.backfill_policy.policy_type.value),
                "columns": [
                    f"{column.name} {column.type}" for column in spec.metadata["dagster/column_schema"].columns
                ],
                "has_code_version": spec.code_version is not None,
            }
    return dict(sorted(found.items()))


def test_the_specs_of_all_assets_are_as_reviewed(settings: Settings) -> None:
    found = described(build_definitions(settings))
    if not SNAPSHOT.is_file():
        SNAPSHOT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        pytest.fail(f"There was no snapshot; review and commit {SNAPSHOT.name}.")
    assert found == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


def test_no_two_tables_look_alike_where_dagster_shows_the_last_part_of_a_key(settings: Settings) -> None:
    keys = build_definitions(settings).get_repository_def().assets_defs_by_key
    shown = [key.path[-1] for key in keys]
    assert {"raw.transactions", "silver.transactions"} <= set(shown)
    assert len(set(shown)) == len(shown)


@pytest.mark.filterwarnings("ignore:Specifying a partitions_def")
def test_rules_that_judge_days_are_a_check_and_the_catalogue_says_what_they_do() -> None:
    rules = (
        Rule("some", in_range("lines", 1), "No store is empty.", severity="warn", tolerance="2 rows"),
        Rule("known", exists("department", table="silver.products"), "Departments are known.", severity="block"),
    )
    days = dg.DailyPartitionsDefinition("2017-01-01")
    [warns] = [spec for spec in check_specs(replace(DAILY_SALES, rules=rules[:1]), days) if spec.name == "rules"]
    [blocks] = [spec for spec in check_specs(replace(DAILY_SALES, rules=rules), days) if spec.name == "rules"]
    assert (warns.blocking, blocks.blocking) == (False, True)
    assert not [spec for spec in check_specs(SILVER_TRANSACTIONS, days) if spec.name == "rules"]
    text = describe_table(replace(DAILY_SALES, rules=rules))
    assert "published with a warning unless `some`" in text
    assert "No store is empty. At most 2 rows may break it." in text
    assert "A day is not published unless `known` (`(department) exists in silver.products as of the day`)" in text
    assert "Rows are set aside unless `week_of_year`" in describe_table(SILVER_TRANSACTIONS)


@pytest.mark.parametrize(
    ("owner", "shown"),
    [
        ("me", ["team:me"]),
        ("the till people", ["team:the till people"]),
        ("a@b.org", ["a@b.org"]),
        (" ", []),
        ("team:", []),
        ("team:till@example.org", ["team:till@example.org"]),
        ("+till@example.org", ["team:+till@example.org"]),
    ],
)
def test_a_table_may_be_owned_by_whoever_a_contract_names(
    owner: str, shown: list[str], settings: Settings, tmp_path: Path
) -> None:
    """Dagster would refuse all tables of all domains."""
    with importable(write_domain(tmp_path, contracts=(('"As delivered.", "me"', f'"As delivered.", "{owner}"'),))):
        definitions = build_definitions(settings.model_copy(update={"domains": (PACKAGE,)}))
    assert described(definitions)["raw.sales"]["owners"] == shown


def test_every_dependency_is_on_the_same_day(settings: Settings) -> None:
    definitions = build_definitions(settings)
    for asset in definitions.get_repository_def().assets_defs_by_key.values():
        for spec in asset.specs:
            assert all(dep.partition_mapping is None for dep in spec.deps)


def test_an_exposure_lies_downstream_in_the_lineage_and_nobody_can_materialize_it(settings: Settings) -> None:
    told = build_definitions(settings.model_copy(update={"domains": ("platform_assets_tests.support.domains.told",)}))
    board, cache = (dg.AssetKey(["exposure", name]) for name in ("week dashboard", "reading cache"))
    graph = told.get_repository_def().asset_graph
    assert graph.get(board).parent_keys == {dg.AssetKey(["gold.sensor_week"])}
    assert graph.get(cache).parent_keys == {dg.AssetKey(["gold.sensor_week"]), dg.AssetKey(["silver.readings"])}
    assert not graph.get(board).is_executable
    assert (graph.get(board).owners, graph.get(cache).owners) == (["boards@example.com"], [])
    assert graph.get(board).metadata["page"].value == "https://boards.example.com/week"
    assert "exposure" in graph.get(board).kinds
    tables = told.resolve_job_def("tables").asset_layer.executable_asset_keys
    assert not {board, cache} & set(tables)


def test_dagster_has_a_sentence_for_every_check() -> None:
    assert set(CHECKS) == set(get_args(Check))


def test_every_table_names_the_sensor_that_refreshes_it(settings: Settings) -> None:
    definitions = build_definitions(settings)
    repository = definitions.get_repository_def()
    jobs = [target.job_name for target in repository.get_sensor_def("late_data").targets]
    assert jobs == ["refresh", "tables"]
    tables = definitions.resolve_job_def("tables").asset_layer.executable_asset_keys
    assert set(tables) == set(repository.assets_defs_by_key), "Dagster asks the jobs of a sensor for their tables"
