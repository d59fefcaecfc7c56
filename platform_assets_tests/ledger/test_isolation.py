"""Writers are one at a time, also where an administrator made another isolation level the default."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

import pytest
from sqlalchemy import text

from platform_assets.ledger import ledger as indexing
from platform_assets.ledger.ledger import Ledger
from platform_assets_tests.support.ledger_records import TABLE, name_of, nth, simple
from platform_assets_tests.support.postgres import PostgresServer

ENDS_WITHIN_S = 30


@pytest.fixture
def repeatable_read(postgres_server: PostgresServer) -> str:
    """A database whose transactions see what was there at their first statement."""
    import psycopg

    url = postgres_server.new_database()
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'".encode())
    return url


def first_waits(inside: Event, goes_on: Event) -> Callable[[str], None]:
    """A fail point at which the thread that came first waits, under the writers' lock."""
    first: list[int] = []

    def wait(point: str) -> None:
        if point == "ledger.recording" and not first:
            first.append(get_ident())
            inside.set()
            goes_on.wait(ENDS_WITHIN_S)

    return wait


def somebody_waits_for_a_lock(url: str) -> bool:
    import psycopg

    deadline = time.monotonic() + ENDS_WITHIN_S
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            asked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            if (connection.execute(asked).fetchone() or (0,))[0]:
                return True
            time.sleep(0.02)
    return False


def test_of_two_publications_indexed_at_once_the_later_one_is_what_the_day_is(
    repeatable_read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second writer waits for the first one's lock, and then has to see what that one wrote."""
    inside, goes_on = Event(), Event()
    monkeypatch.setattr(indexing, "failpoint", first_waits(inside, goes_on))
    with Ledger.open(repeatable_read) as one, Ledger.open(repeatable_read) as other, ThreadPoolExecutor(2) as threads:
        first = threads.submit(one.record, simple(0, 0))
        assert inside.wait(ENDS_WITHIN_S)
        second = threads.submit(other.record, simple(1, 0, digest="4-a-b-c-d"))
        assert somebody_waits_for_a_lock(repeatable_read)
        goes_on.set()
        assert [first.result(ENDS_WITHIN_S), second.result(ENDS_WITHIN_S)] == [1, 1]
        with other._database.engine.connect() as connection:
            asked = text('SELECT publication FROM ledger_days WHERE "table" = :table AND replaced_at IS NULL')
            assert [row[0] for row in connection.execute(asked, {"table": TABLE})] == [name_of(1)]
        assert other.current_days(TABLE)[nth(0)].digest == "4-a-b-c-d"
