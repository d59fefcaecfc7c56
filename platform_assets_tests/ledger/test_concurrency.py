"""Several processes use one ledger at the same time, whatever isolation its administrator made the default."""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest
from sqlalchemy import text

from platform_assets.ledger import ledger as indexing
from platform_assets.ledger.ledger import Ledger
from platform_assets.records.chain import breaks
from platform_assets.records.decisions import LateDecision
from platform_assets_tests.support.ledger_records import TABLE, approval, hold, name_of, nth, simple
from platform_assets_tests.support.postgres import PostgresServer

PROCESSES = 4


def _all_at_once(work: Callable[..., Any], url: str, meeting: Path) -> list[Any]:
    meeting.mkdir(exist_ok=True)
    with ProcessPoolExecutor(PROCESSES, mp_context=mp.get_context("spawn")) as pool:
        return [future.result() for future in [pool.submit(work, url, str(meeting), n) for n in range(PROCESSES)]]


def _meet(meeting: str, n: int) -> None:
    """Wait until every process has come this far, so that they really collide."""
    import time

    Path(meeting, str(n)).touch()
    deadline = time.monotonic() + 60
    while len(list(Path(meeting).iterdir())) < PROCESSES and time.monotonic() < deadline:
        time.sleep(0.001)


def _open_first(url: str, meeting: str, n: int) -> int:
    _meet(meeting, n)
    with Ledger.open(url) as ledger:
        return len(ledger.indexed())


def _record_the_same(url: str, meeting: str, n: int) -> int:
    with Ledger.open(url) as ledger:
        _meet(meeting, n)
        return sum(ledger.record(simple(release, *range(50))) for release in range(1, 21))


def _decide(url: str, meeting: str, n: int) -> None:
    with Ledger.open(url) as ledger:
        _meet(meeting, n)
        for turn in range(20):
            ledger.decide(approval(f"{n} {turn}"))
            ledger.record(replace(simple(1 + turn, 0), kind="withdrawal"))


def _write_everything(url: str, meeting: str, n: int) -> None:
    with Ledger.open(url) as ledger, Ledger.open(url, read_only=True) as reader:
        _meet(meeting, n)
        for turn in range(10):
            ledger.record(simple(1 + n * 10 + turn, *range(10)))
            ledger.hold([hold(nth(turn)), hold(nth(turn), gate=f"gate {n}")])
            ledger.decide(approval(f"{n} {turn}"))
            assert len(reader.current_days(TABLE)) == 10


@pytest.mark.proof
def test_four_processes_make_one_ledger_at_once(url: str, tmp_path: Path) -> None:
    assert _all_at_once(_open_first, url, tmp_path / "meeting") == [0] * PROCESSES
    with Ledger.open(url) as ledger:
        ledger.hold([hold(nth(0))])


@pytest.mark.proof
def test_what_four_processes_record_at_once_is_there_once(url: str, tmp_path: Path) -> None:
    assert sum(_all_at_once(_record_the_same, url, tmp_path / "meeting")) == 20
    with Ledger.open(url) as ledger:
        assert ledger.indexed() == {name_of(release): release for release in range(1, 21)}
        assert len(ledger.history(TABLE, nth(0))) == 20


def test_what_four_processes_decide_at_once_is_one_chain_with_each_decision_once(url: str, tmp_path: Path) -> None:
    """Among them withdrawals, each of which all four index."""
    _all_at_once(_decide, url, tmp_path / "meeting")
    with Ledger.open(url) as ledger:
        chain = ledger.decision_chain()
        assert [entry.number for entry in chain] == list(range(1, 20 * PROCESSES + 20 + 1))
        assert list(breaks(chain)) == []
        decided = [decision.arrival for decision in ledger.decisions(LateDecision)]
        assert sorted(decided) == sorted(f"{n} {turn}" for n in range(PROCESSES) for turn in range(20))


@pytest.mark.proof
def test_writers_wait_for_each_other_and_readers_for_nobody(url: str, tmp_path: Path) -> None:
    _all_at_once(_write_everything, url, tmp_path / "meeting")
    with Ledger.open(url) as ledger:
        assert len(ledger.indexed()) == PROCESSES * 10
        assert len(ledger.holds()) == 10 + PROCESSES * 10
        decided = [decision.arrival for decision in ledger.decisions(LateDecision)]
        assert sorted(decided) == sorted(f"{n} {turn}" for n in range(PROCESSES) for turn in range(10))


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
