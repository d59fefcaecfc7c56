"""The PostgreSQL variant of the documentation, for real: Dagster's storage and the ledger on one server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from dagster_postgres import PostgresRunStorage
from sqlalchemy import create_engine, inspect

from platform_assets.orchestration.instance.launcher import create_pools
from platform_assets.settings import project_root
from platform_assets_tests.support.orchestration.daemon import enter_world, idle, run_one, running_daemon
from platform_assets_tests.support.orchestration.readings import DAYS, SENSORS, land
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.world import MakeWorld

DOCUMENTED = project_root() / "docs" / "postgresql.md"


def variant() -> str:
    found = re.search(r"<!-- example: dagster.yaml -->\n```yaml\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_it_differs_from_the_projects_own_in_storage_only() -> None:
    own = (project_root() / "dagster.yaml").read_text()
    marker = "local_artifact_storage:"
    assert variant().partition(marker)[2].strip() == own.partition(marker)[2].strip()
    assert yaml.safe_load(variant())["storage"]["postgres"]


def test_a_refresh_with_everything_on_one_server(
    postgres_server: PostgresServer, make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL is started, Dagster makes its tables in it, and three tables are computed."""
    url = postgres_server.new_database()
    world = make_world(days=3, domains=SENSORS, ledger_url=url)
    enter_world(world, monkeypatch, ledger_url=url)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    folder = tmp_path / "dagster"
    for day in DAYS[:2]:
        land(world, day, day)
    storage = yaml.safe_load(variant())["storage"]
    with running_daemon(folder, monkeypatch, storage=storage) as daemon:
        assert isinstance(daemon.instance.run_storage, PostgresRunStorage)
        create_pools(daemon.instance)
        assert daemon.materialized(run_one(daemon))["gold.sensor_week"] == {1, 2}
        assert idle(daemon)
        assert daemon.tick("announcements").skip_reason == "nothing to announce"
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    tables = set(inspect(engine).get_table_names())
    engine.dispose()
    assert {"runs", "event_logs", "ledger_publications", "ledger_days"} <= tables
    assert not (folder / "dagster" / "runs").exists()
    assert not (world.settings.state / "ledger.db").exists()
