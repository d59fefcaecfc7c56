"""The way to a ledger on PostgreSQL and back from its loss, by the commands that `docs/postgresql.md` names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.opening import open_platform
from platform_assets.records.decisions import LateDecision
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import DAY
from platform_assets_tests.support.ledger_records import approval, hold
from platform_assets_tests.support.postgres import PostgresServer

TOLD = (("status", "--json"), ("releases", "--json"), ("audit", "decisions", "--json"), ("audit", "head", "--json"))


@pytest.fixture
def decided(published: Settings) -> Settings:
    """A platform on SQLite, with a hold and a decision."""
    with open_platform(published) as platform:
        platform.ledger.hold([hold(DAY)])
        platform.ledger.decide(approval())
    return published


def test_a_ledger_is_moved_dumped_lost_and_restored(
    run: Run,
    decided: Settings,
    postgres_server: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = [run(*command).out for command in TOLD]
    url = postgres_server.new_database()
    monkeypatch.setenv("PLATFORM_LEDGER_URL", url)
    said = run("ledger", "move")
    assert (said.code, "Moved" in said.out, "PLATFORM_LEDGER_URL" in said.out) == (0, True, True)
    assert [run(*command).out for command in TOLD] == before
    assert run("audit", "verify").code == 0

    dump, backup = tmp_path / "ledger.dump", tmp_path / "backup"
    postgres_server.run("pg_dump", "--format=custom", f"--file={dump}", f"--dbname={url}")
    assert run("backup", str(backup)).code == 0

    shutil.rmtree(load_settings().lake_folder)
    lost = postgres_server.new_database()
    monkeypatch.setenv("PLATFORM_LEDGER_URL", lost)
    postgres_server.run("pg_restore", "--no-owner", f"--dbname={lost}", str(dump))
    assert run("restore", str(backup)).code == 0
    assert [run(*command).out for command in TOLD] == before
    assert run("audit", "verify").code == 0
    assert run("read", TABLE, "--json").json["rows"]
    with Ledger.open(lost) as ledger:
        assert (len(ledger.holds()), len(ledger.decisions(LateDecision))) == (1, 1)
        ledger.decide(approval())


def test_who_still_has_the_old_setting_is_told_where_it_is(
    run: Run, decided: Settings, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as moving:
        moving.setenv("PLATFORM_LEDGER_URL", postgres_server.new_database())
        assert run("ledger", "move", "--json").json["rows"]["publications"] == 2
    for command in (["status"], ["stale"], ["why", TABLE, "2017-01-01"], ["refresh"], ["ledger", "rebuild"]):
        said = run(*command)
        assert (said.code, "was moved to postgresql" in said.err) == (3, True), command
    assert "was moved to postgresql" in run("doctor", "--json").out


def test_it_is_moved_only_to_a_server(run: Run, decided: Settings) -> None:
    said = run("ledger", "move")
    assert (said.code, "is moved to PostgreSQL" in said.err) == (3, True)
