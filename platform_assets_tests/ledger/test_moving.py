"""A SQLite ledger moved to PostgreSQL: all of it, once, and nobody works on with the file."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from platform_assets.ledger import database
from platform_assets.ledger.database import move_ledger
from platform_assets.ledger.errors import LedgerError, LedgerMovedError, LedgerUnreachableError
from platform_assets.ledger.ledger import Ledger
from platform_assets.records.decisions import LateDecision
from platform_assets.records.outbox import CatchUp
from platform_assets_tests.support.kills.points import POINTS
from platform_assets_tests.support.ledger_records import NOON, TABLE, approval, hold, nth, simple
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shelf import in_process, killed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A ledger with publications, a hold, one that ended, decisions and notes; names in no language's order."""
    file = tmp_path / "ledger.db"
    with Ledger.open(f"sqlite:///{file}") as ledger:
        for number in range(3):
            ledger.record(simple(number, number))
        odd = [replace(hold(nth(number)), gate=gate) for number, gate in enumerate(("_b", "B", "a", "É", "\U0001f9fe"))]
        ledger.hold([*odd, hold(nth(1), reason="é 'quoted'\n"), hold(nth(2))])
        ledger.drop([hold(nth(2))])
        for _ in range(2):
            ledger.decide(approval())
        for number in range(3):
            ledger.notes.catch_up(CatchUp(number, number, f"note {number}", NOON + timedelta(microseconds=number)))
    return file


@pytest.fixture
def server(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database()


def test_all_of_it_is_on_the_server(file: Path, server: str) -> None:
    with Ledger.open(f"sqlite:///{file}") as before:
        known = (before.indexed(), before.current_days(TABLE), set(before.holds()), before.ended_holds(TABLE, nth(2)))
        chain, notes = before.decision_chain(), before.notes.catch_ups()
    moved = move_ledger(file, server)
    assert (moved.rows["ledger_publications"], moved.rows["ledger_decisions"]) == (3, len(chain))
    with Ledger.open(server) as after:
        assert (
            after.indexed(),
            after.current_days(TABLE),
            set(after.holds()),
            after.ended_holds(TABLE, nth(2)),
        ) == known
        assert (after.decision_chain(), after.notes.catch_ups()) == (chain, notes)
        after.decide(approval())  # and it goes on there
        after.hold([hold(nth(7))])
        after.drop([hold(nth(7))])
        after.notes.catch_up(CatchUp(9, 9, "later", NOON))
        assert len(after.decisions(LateDecision)) == 3
        assert [note.text for note in after.notes.catch_ups()] == [*(note.text for note in notes), "later"]
    with closing(sqlite3.connect(moved.aside)) as kept:
        assert kept.execute("SELECT count(*) FROM ledger_decisions").fetchone() == (len(chain),)


def test_who_still_has_the_old_setting_is_refused(file: Path, server: str) -> None:
    move_ledger(file, server)
    for read_only in (False, True):
        with pytest.raises(LedgerMovedError, match=r"was moved to postgresql[^\n]*\n.*PLATFORM_LEDGER_URL"):
            Ledger.open(f"sqlite:///{file}", read_only=read_only)
    with pytest.raises(LedgerMovedError):
        move_ledger(file, server)


def test_a_file_that_somebody_works_with_is_not_moved(file: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_WAITS_S", 0.2)
    with Ledger.open(f"sqlite:///{file}") as open_elsewhere:
        assert open_elsewhere.holds()
        with pytest.raises(LedgerError, match="Another process works with the ledger"):
            move_ledger(file, server)
    with Ledger.open(f"sqlite:///{file}") as ledger:
        assert ledger.holds()
    with closing(sqlite3.connect(file)) as found:
        assert found.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    move_ledger(file, server)


@pytest.mark.parametrize("is_of_another_lake", [False, True])
def test_a_ledger_that_is_another_is_not_written_over(file: Path, server: str, is_of_another_lake: bool) -> None:
    with Ledger.open(server) as other:
        if is_of_another_lake:
            other.record(simple(7, 0))
        else:
            other.hold([hold(nth(5))])
        before = (other.holds(), other.indexed())
    with pytest.raises(LedgerError, match="is not empty and differs from the one to be moved"):
        move_ledger(file, server)
    with Ledger.open(server) as other:
        assert (other.holds(), other.indexed()) == before
    with Ledger.open(f"sqlite:///{file}") as ledger:
        assert ledger.indexed()


def test_one_that_was_cut_short_goes_on(file: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(database, "_leave_note", killed)
        with pytest.raises(KeyboardInterrupt):
            move_ledger(file, server)
    moved = move_ledger(file, server)
    assert moved.rows["ledger_publications"] == 3
    assert moved.aside.exists()


def test_what_cannot_be_is_said(tmp_path: Path, file: Path, server: str) -> None:
    with pytest.raises(LedgerUnreachableError, match="There is no ledger"):
        move_ledger(tmp_path / "none.db", server)
    with pytest.raises(LedgerError, match="is moved to PostgreSQL"):
        move_ledger(file, f"sqlite:///{tmp_path / 'other.db'}")


@pytest.mark.parametrize("point", POINTS["move"])
def test_killed_at_any_moment_it_leaves_all_of_the_ledger_or_the_note_and_never_room_for_a_second(
    file: Path, server: str, point: str
) -> None:
    with Ledger.open(f"sqlite:///{file}") as before:
        chain = before.decision_chain()
    assert killed(in_process(move_ledger, file, server, failpoint=point))
    try:
        with Ledger.open(f"sqlite:///{file}") as left:
            assert (left.decision_chain(), len(left.indexed())) == (chain, 3)
        assert move_ledger(file, server).rows["ledger_decisions"] == len(chain)
    except LedgerMovedError:
        assert point == "move.noted"
    with Ledger.open(server) as after:
        assert (after.decision_chain(), len(after.indexed())) == (chain, 3)
    with pytest.raises(LedgerMovedError):
        Ledger.open(f"sqlite:///{file}")
    for aside in file.parent.glob("ledger.db.moved-*"):
        with closing(sqlite3.connect(aside)) as kept:
            assert kept.execute("SELECT count(*) FROM ledger_decisions").fetchone() == (len(chain),)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_keep_every_name_is_refused_before_anything_is_written(
    file: Path, postgres_server: PostgresServer, encoding: str
) -> None:
    import psycopg

    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        made = f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        server.execute(made.encode())
    url = postgres_server.url.replace("/postgres?", f"/{name}?")
    for refused in (lambda: move_ledger(file, url), lambda: Ledger.open(url), lambda: Ledger.open(url, read_only=True)):
        with pytest.raises(LedgerError, match=f"with the encoding {encoding}") as caught:
            refused()
        assert "UTF8" in caught.value.todo
    with Ledger.open(f"sqlite:///{file}") as ledger:
        assert ledger.indexed()


def decide_meanwhile(file: Path, said: Path) -> None:
    """Open the ledger while it is moved, wait for its lock, and say what came of it."""
    try:
        with Ledger.open(f"sqlite:///{file}") as ledger:
            said.with_suffix(".opened").touch()
            ledger.decide(approval())
        said.write_text("decided")
    except LedgerError as error:
        said.write_text(type(error).__name__)


def test_who_waits_to_decide_while_it_is_moved_is_refused(
    file: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told that something was decided which is in no ledger any more."""
    said, same = tmp_path / "said", database._require_same
    waiting = []

    def slowly(*args: Any) -> None:
        same(*args)
        waiting.append(in_process(decide_meanwhile, file, said, wait=False))
        deadline = time.monotonic() + 30
        while not said.with_suffix(".opened").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.5)

    monkeypatch.setattr(database, "_require_same", slowly)
    move_ledger(file, server)
    waiting[0].join(60)
    assert said.read_text() == "LedgerMovedError"
