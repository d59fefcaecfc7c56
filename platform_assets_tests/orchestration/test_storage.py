"""Dagster's storage: its files kept open, readable by everybody, at once and after a kill; and all on one server."""

import json
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.event_api import EventLogCursor
from dagster_postgres import PostgresRunStorage
from sqlalchemy import create_engine, inspect

from platform_assets.orchestration.instance.launcher import create_pools
from platform_assets.orchestration.instance.storage import LocalEventLog, LocalStorage
from platform_assets.settings import project_root
from platform_assets_tests.support.orchestration.daemon import enter_world, idle, run_one, running_daemon
from platform_assets_tests.support.orchestration.readings import DAYS, SENSORS, land
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.world import MakeWorld

SALES = dg.AssetKey("sales")
THREE_DAYS = dg.DailyPartitionsDefinition("2017-01-01", end_date="2017-01-04")
RANGE = {
    "dagster/asset_partition_range_start": "2017-01-01",
    "dagster/asset_partition_range_end": "2017-01-03",
}

OPEN = Path("/dev/fd")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
DAGSTERS = "sqlite"


def definitions() -> dg.Definitions:
    """An asset of three days, of which the second has too few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)

        @dg.asset(
            partitions_def=THREE_DAYS,
            backfill_policy=dg.BackfillPolicy.single_run(),
            check_specs=[dg.AssetCheckSpec("volume", asset="sales", partitions_def=THREE_DAYS)],
        )
        def sales(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
            for day in context.partition_keys:
                context.add_asset_metadata({"rows": 10}, partition_key=day)
            yield dg.MaterializeResult()
            for day in context.partition_keys:
                passed = day != "2017-01-02"
                context.log_event(
                    dg.AssetCheckEvaluation(
                        asset_key=SALES, check_name="volume", passed=passed, metadata={}, partition=day
                    )
                )
            yield dg.AssetCheckResult(check_name="volume", passed=True)

        return dg.Definitions(assets=[sales])


def configure(folder: Path, kind: str = "local") -> None:
    """What `dagster.yaml` says of the storage."""
    config = {"base_dir": str(folder / "storage")}
    local = {"module": LocalStorage.__module__, "class": LocalStorage.__name__, "config": config}
    storage = {"custom": local} if kind == "local" else {kind: config}
    (folder / "dagster.yaml").write_text(json.dumps({"storage": storage, "telemetry": {"enabled": False}}))


@contextmanager
def opened(folder: Path, kind: str = "local") -> Iterator[dg.DagsterInstance]:
    """An instance on the folder's storage, as another process would open it."""
    configure(folder, kind)
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


def run(instance: dg.DagsterInstance) -> str:
    job = definitions().resolve_implicit_global_asset_job_def()
    return job.execute_in_process(instance=instance, tags=RANGE, run_config=QUIET).run_id


def told(instance: dg.DagsterInstance, run_id: str) -> dict[str, object]:
    """What the UI shows of the run, its days and their checks."""
    checks = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(SALES, "volume"), limit=20, cursor=None
    )
    return {
        "events": [(entry.step_key, entry.dagster_event_type, entry.message) for entry in instance.all_logs(run_id)],
        "days": instance.get_materialized_partitions(SALES),
        "latest": instance.get_latest_materialization_event(SALES),
        "checks": sorted((str(check.partition), check.status.value) for check in checks),
        "runs": [found.status for found in instance.get_runs()],
    }


@pytest.mark.proof
def test_what_it_writes_dagsters_own_storage_reads_and_the_other_way_round(tmp_path: Path) -> None:
    for writer, reader in (("local", DAGSTERS), (DAGSTERS, "local")):
        folder = tmp_path / writer
        folder.mkdir()
        with opened(folder, writer) as instance:
            run_id = run(instance)
            as_written = told(instance, run_id)
        with opened(folder, reader) as instance:
            assert told(instance, run_id) == as_written
            assert instance.get_materialized_partitions(SALES) == {
                "2017-01-01",
                "2017-01-02",
                "2017-01-03",
            }
        assert ("2017-01-02", "FAILED") in as_written["checks"]  # type: ignore[operator]
        assert ("2017-01-03", "SUCCEEDED") in as_written["checks"]  # type: ignore[operator]


def test_an_instance_that_goes_on_sees_what_another_writes(tmp_path: Path) -> None:
    with opened(tmp_path) as webserver, opened(tmp_path) as worker:
        assert isinstance(webserver.event_log_storage, LocalEventLog)
        first, second = run(worker), run(webserver)
        for run_id in (first, second):
            assert told(webserver, run_id) == told(worker, run_id)


def test_the_log_of_a_run_is_told_while_it_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as webserver, opened(tmp_path) as worker:
        seen: list[str] = []
        run_id = run(worker)
        webserver.watch_event_logs(
            run_id, None, lambda entry, _: seen.append(entry.get_dagster_event().event_type_value)
        )
        waited_until = time.monotonic() + 20
        while "PIPELINE_SUCCESS" not in seen and time.monotonic() < waited_until:
            time.sleep(0.05)
        so_far = len(seen)
        assert seen[-1] == "PIPELINE_SUCCESS"
        worker.report_engine_event("one more", run_id=run_id, job_name="job")
        while len(seen) == so_far and time.monotonic() < waited_until:
            time.sleep(0.05)
        assert seen[so_far:] == ["ENGINE_EVENT"]


@pytest.mark.proof
def test_many_runs_are_looked_at_with_few_files_open(tmp_path: Path) -> None:
    with opened(tmp_path) as instance:
        log = instance.event_log_storage
        assert isinstance(log, LocalEventLog)
        before = len(list(OPEN.iterdir()))
        for n in range(20):
            instance.report_engine_event(f"number {n}", run_id=f"run{n}", job_name="job")
        files_of_a_database = 3
        assert len(list(OPEN.iterdir())) - before <= 17 * files_of_a_database  # 16 runs and the index
        for n in range(20):
            [record] = log.get_records_for_run(f"run{n}").records
            assert record.event_log_entry.message == f"number {n}"


def test_a_killed_process_loses_no_event(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "import dagster as dg\n"
        "with dg.DagsterInstance.from_config(sys.argv[1]) as instance:\n"
        "    for n in range(20):\n"
        "        instance.report_engine_event(f'number {n}', run_id='run', job_name='job')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    configure(tmp_path)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -9
    with opened(tmp_path) as instance:
        records = instance.event_log_storage.get_records_for_run("run", limit=100).records
        assert [record.event_log_entry.message for record in records] == [f"number {n}" for n in range(20)]
        cursor = EventLogCursor.from_storage_id(records[9].storage_id).to_string()
        assert len(instance.event_log_storage.get_records_for_run("run", cursor).records) == 10


def test_wiping_removes_files_that_are_open(tmp_path: Path) -> None:
    with opened(tmp_path) as instance:
        run_id = run(instance)
        instance.wipe()
        assert instance.all_logs(run_id) == []
        assert instance.get_materialized_partitions(SALES) == set()
        again = run(instance)
        assert told(instance, again)["days"] == {"2017-01-01", "2017-01-02", "2017-01-03"}


def test_files_that_another_removes_are_opened_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as webserver, opened(tmp_path) as worker:
        run_id = run(webserver)
        worker.wipe()
        webserver.report_engine_event("once more", run_id=run_id, job_name="job")
        assert [entry.message for entry in worker.all_logs(run_id)] == ["once more"]
        run(webserver)
        shutil.rmtree(tmp_path / "storage" / "history")
        with opened(tmp_path) as other:
            again = run(other)
            assert told(other, again)["days"] == {"2017-01-01", "2017-01-02", "2017-01-03"}
            assert len(webserver.all_logs(again)) == len(other.all_logs(again))


DOCUMENTED = project_root() / "docs" / "postgresql.md"


def variant() -> str:
    found = re.search(r"<!-- example: storage -->\n```yaml\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_it_replaces_the_storage_of_the_projects_own() -> None:
    assert list(yaml.safe_load(variant())) == ["storage"]
    assert yaml.safe_load(variant())["storage"]["postgres"]
    assert re.search(r"^storage:\n", (project_root() / "dagster.yaml").read_text(), re.MULTILINE)


@pytest.mark.proof
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
