"""Secrets of the settings: planted in all of them, and looked for in everything that is said or written down."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from platform_assets.orchestration.build import build_definitions
from platform_assets.settings import load_settings
from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.orchestration.daemon import enter_world, running_daemon
from platform_assets_tests.support.orchestration.readings import DAYS, land
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.world import World

TOLD = "platform_assets_tests.support.domains.told"
PASSWORD, OPTION, S3, PATH, QUERY, TOKEN = PLANTED = tuple(f"planted-{n}-s3cr3t" for n in range(6))


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a webhook that takes nothing: busy, and asked again."""

    class Busy(Quiet):
        def respond(self) -> None:
            self.answer(503)

    with serving(Busy) as port:
        yield f"http://127.0.0.1:{port}/{PATH}?token={QUERY}"


def found_in(folder: Path) -> list[str]:
    """Files that hold a planted secret, whatever they are."""
    return [
        f"{path}: {secret}"
        for path in folder.rglob("*")
        if path.is_file()
        for secret in PLANTED
        if secret.encode() in path.read_bytes()
    ]


def command(*arguments: str, **variables: str) -> str:
    """All that a command says, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from platform_assets.cli import main; main()", *arguments],
        env=os.environ | variables, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def due(world: World) -> None:
    """Messages that nobody took are tried at once: a tick of before may have begun their pause."""
    with world.open() as platform:
        platform.ledger.outbox.retry(platform.ledger.outbox.messages(), datetime.now(UTC))


@pytest.mark.proof
def test_no_planted_secret_is_in_any_log_event_error_or_database(
    spark: SparkSession,
    postgres_server: PostgresServer,
    refusing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A refresh that fails and one that is good, by command line and by Dagster, with a webhook that refuses."""
    caplog.set_level(logging.DEBUG)
    url = postgres_server.new_database().replace("postgres:@", f"postgres:{PASSWORD}@") + f"&sslpassword={OPTION}"
    assert PASSWORD in url
    dead = f"postgresql://ada:{PASSWORD}@127.0.0.1:9/x?password={OPTION}&connect_timeout=1"
    conf = json.loads(OWN_PROCESS) | {"spark.hadoop.fs.s3a.secret.key": S3}
    dates = {"calendar_first": DAYS[0], "calendar_last": DAYS[-1], "today": DAYS[-1]}
    world = World(load_settings(state=tmp_path / "state", jars=JARS, domains=TOLD, ledger_url=url, **dates), spark)
    enter_world(world, monkeypatch, ledger_url=url, spark_conf=json.dumps(conf), webhook_url=refusing)
    for variable in ("WEEK_REFRESH_URL", "CACHE_REFRESH_URL"):
        monkeypatch.setenv(variable, refusing)
    said: list[str] = []

    land(world, DAYS[0], DAYS[0])
    # Each is what it is to be: or nothing was tried.
    said += [command("refresh", PLATFORM_SPARK_CONF=json.dumps(conf | {"spark.port.maxRetries": "many"}))]
    assert "Spark does not start" in said[-1]
    said += [command("refresh")]
    assert "published" in said[-1]
    said += [command("status", PLATFORM_LEDGER_URL=dead)]
    assert "does not answer" in said[-1]
    said += [
        command(*asked)
        for asked in (
            (
                "admin",
                "doctor",
            ),
            ("admin", "doctor", "--json"),
            ("status", "--json"),
            ("why", "--help"),
        )
    ]
    said += [command("admin", "outbox")]
    assert "answered 503" in said[-1]
    said += [command("status", PLATFORM_SPARK_REMOTE=f"sc://127.0.0.1:9/;token={TOKEN}", PLATFORM_BATCH_DAYS="none")]
    assert "batch_days" in said[-1]

    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        land(world, DAYS[1], DAYS[1])
        daemon.tick()
        monkeypatch.setenv("PLATFORM_LEDGER_URL", dead)
        daemon.reload()
        [failed] = daemon.launch()
        monkeypatch.setenv("PLATFORM_LEDGER_URL", url)
        daemon.reload()
        due(world)
        said += [str(daemon.tick("outbox", fails=True).error)]
        assert "messages were not delivered" in said[-1]
        monkeypatch.setenv("PLATFORM_WEBHOOK_URL", f"http://127.0.0.1:9/{PATH}?token={QUERY}")
        daemon.reload()
        due(world)
        said += [str(daemon.tick("outbox", fails=True).error)]
        land(world, DAYS[2], DAYS[2])
        daemon.tick()
        good = daemon.launch()
        runs = {run.run_id: run.status for run in daemon.instance.get_runs()}
        assert runs[failed.run_id] == dg.DagsterRunStatus.FAILURE
        assert dg.DagsterRunStatus.SUCCESS in {runs[run.run_id] for run in good}, (good, runs)
        said += [str(entry) for run_id in runs for entry in daemon.instance.all_logs(run_id)]
        said += [repr(load_settings()), str(build_definitions(load_settings()).resources)]

    captured = capfd.readouterr()
    logged = [record.getMessage() for record in caplog.records]
    assert [text for text in logged if "connection broken" in text], "urllib3 warned, as it does by itself"
    everything = [*said, *logged, captured.out, captured.err]
    assert [text for text in everything if any(secret in text for secret in PLANTED)] == []
    assert found_in(tmp_path) == []
