"""Locks end with their holder, and who waits is told for whom."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Connection, text

from platform_assets.engine.platform import lake_to_write
from platform_assets.lakehouse import locks
from platform_assets.lakehouse.errors import LakeError, LockLostError, LockTimeoutError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import ingest_lock, is_staging, publish_lock, stage_lock
from platform_assets.lakehouse.publish import publish
from platform_assets.settings import Settings
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shelf import (
    SALES,
    day,
    in_process,
    staged_manifest,
)


def hold(lake: Lake, sign: Path) -> None:
    """Take the publish lock and keep it."""
    with publish_lock(lake):
        sign.touch()
        time.sleep(60)


@pytest.fixture
def served(tmp_path: Path, postgres_server: PostgresServer) -> Lake:
    """A lake whose locks a database holds."""
    return Lake.at(tmp_path / "lake", postgres_server.url)


@pytest.fixture(params=["file", "postgresql"])
def either(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """A lake whose locks lie in files, and one whose locks a database holds."""
    if request.param == "file":
        return Lake.at(tmp_path / "lake")
    lake: Lake = request.getfixturevalue("served")
    return lake


def test_a_lock_that_stays_taken_says_who_has_it(either: Lake) -> None:
    who = f"process {os.getpid()} on {socket.gethostname()}"
    with publish_lock(either), pytest.raises(LockTimeoutError, match=who):
        publish(either, staged_manifest(either, {SALES: {day(0): [("a", 1)]}}), timeout_s=0.2)


def test_files_of_locks_lie_on_a_disk_and_nowhere_else(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or every process would have its own, in a folder that is named like a bucket, below where it runs."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LakeError, match="keeps no locks"), publish_lock(Lake.at(f"{object_store.url}/locks/lake")):
        raise AssertionError("was held")
    assert not [*tmp_path.iterdir()]


def test_a_free_lock_can_be_taken_again(either: Lake) -> None:
    for _ in range(3):
        with publish_lock(either, timeout_s=0.2) as still_held:
            still_held()


def test_a_killed_holder_frees_the_lock_at_once(either: Lake, tmp_path: Path) -> None:
    sign = tmp_path / "held"
    process = in_process(hold, either, sign, wait=False)
    deadline = time.monotonic() + 30
    while not sign.exists():
        assert time.monotonic() < deadline
        assert process.exitcode is None
        time.sleep(0.02)
    with pytest.raises(LockTimeoutError, match=f"process {process.pid} "), publish_lock(either, 0.2):
        pass
    process.kill()
    process.join(10)
    with publish_lock(either, timeout_s=5):
        pass


def test_ingests_of_two_tables_and_a_publication_do_not_wait_for_each_other(either: Lake) -> None:
    with (
        ingest_lock(either, "raw.a", 0.2),
        ingest_lock(either, "raw.b", 0.2),
        publish_lock(either, 0.2),
        pytest.raises(LockTimeoutError, match=r"ingest-raw\.a"),
        ingest_lock(either, "raw.a", 0.2),
    ):
        pass


def test_whoever_is_at_work_on_a_stage_can_be_told_and_leaves_nothing(either: Lake) -> None:
    assert not is_staging(either, "one")
    with stage_lock(either, "one"):
        assert is_staging(either, "one")
        assert not is_staging(either, "other")
    assert not is_staging(either, "one")
    assert not list(on_disk(either.locks_path).glob("stage-*"))


def test_two_lakes_do_not_wait_for_each_other(either: Lake, tmp_path: Path) -> None:
    with publish_lock(either, 0.2), publish_lock(Lake.at(tmp_path / "other", either.lock_url), 0.2):
        pass


def test_a_lake_mounted_elsewhere_is_the_same_lake_to_the_database(
    served: Lake, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with publish_lock(served):
        (tmp_path / "mounted").symlink_to(on_disk(served.root))
        elsewhere = Lake.at(tmp_path / "mounted", postgres_server.url)
        with pytest.raises(LockTimeoutError), publish_lock(elsewhere, 0.2):
            pass


def test_a_publisher_whose_session_was_cut_stops(served: Lake, postgres_server: PostgresServer) -> None:
    import psycopg

    with publish_lock(served) as still_held:
        with psycopg.connect(postgres_server.url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        with pytest.raises(LockLostError, match="was lost"):
            still_held()


@pytest.fixture
def impatient(tmp_path: Path, postgres_server: PostgresServer) -> Lake:
    """A lake whose locks lie in a database that gives a statement, and a session without one, half a second."""
    import psycopg

    url = postgres_server.new_database()
    name = url.rpartition("/test_")[2].partition("?")[0]
    with psycopg.connect(postgres_server.url, autocommit=True) as other:
        for setting in ("statement_timeout", "idle_session_timeout"):
            other.execute(f"ALTER DATABASE test_{name} SET {setting} = '500ms'".encode())
    return Lake.at(tmp_path / "lake", url)


def test_a_lock_is_waited_for_and_held_longer_than_a_server_gives_others(impatient: Lake) -> None:
    with publish_lock(impatient) as still_held:
        began = time.monotonic()
        with pytest.raises(LockTimeoutError, match="it was last taken by"), publish_lock(impatient, timeout_s=1):
            pass
        assert time.monotonic() - began >= 1
        still_held()


def test_who_waits_for_a_lock_when_its_server_is_restarted_is_told(
    served: Lake, postgres_server: PostgresServer
) -> None:
    import psycopg

    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%pg_advisory_lock%'"

    def end_who_waits() -> None:
        with psycopg.connect(postgres_server.url, autocommit=True) as other:
            deadline = time.monotonic() + 30
            while not other.execute(waiting.encode()).fetchall():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            other.execute(f"SELECT pg_terminate_backend(pid) FROM ({waiting}) AS waits".encode())

    with publish_lock(served), ThreadPoolExecutor(1) as threads:
        ended = threads.submit(end_who_waits)
        with pytest.raises(LakeError, match="ended the session that waited for the lock 'publish'"):
            publish_lock(served, timeout_s=30).__enter__()
        ended.result()


def test_a_publisher_whose_session_holds_the_lock_no_more_stops(served: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a pooler that gives the connection to somebody else between two statements."""
    sessions: list[Connection] = []
    open_session = locks._session

    @contextmanager
    def seen(url: str) -> Iterator[Connection]:
        with open_session(url) as session:
            sessions.append(session)
            yield session

    monkeypatch.setattr(locks, "_session", seen)
    with publish_lock(served) as still_held:
        still_held()
        sessions[-1].execute(text("SELECT pg_advisory_unlock_all()"))
        with pytest.raises(LockLostError, match="was lost"):
            still_held()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "POSTGRESQL", "postgresql+psycopg2"])
def test_locks_lie_in_the_ledgers_database_however_its_url_is_spelled(settings: Settings, scheme: str) -> None:
    url = SecretStr(f"{scheme}://u:p%40ss@db/x")
    lake = lake_to_write(settings.model_copy(update={"ledger_url": url}))
    assert lake.lock_url == "postgresql+psycopg://u:p%40ss@db/x"


def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path / "lake", "postgresql://me:secret@127.0.0.1:1/none")
    with pytest.raises(LakeError, match="cannot be reached") as caught, publish_lock(lake):
        pass
    assert "secret" not in repr(lake)
    assert "secret" not in str(caught.value)
    lake = Lake.at(tmp_path / "lake", "postgresql://me@127.0.0.1:1/none?password=secret")
    with pytest.raises(LakeError, match="cannot be reached") as caught, publish_lock(lake):
        pass
    assert "secret" not in str(caught.value)
