"""Opening a ledger that is not there, not usable or not ours says what to do, and never a password."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from platform_assets.lakehouse.errors import driver_message, masked
from platform_assets.ledger.connection import parse_url
from platform_assets.ledger.database import copy_ledger
from platform_assets.ledger.errors import (
    LedgerCorruptError,
    LedgerError,
    LedgerReadOnlyError,
    LedgerUnreachableError,
)
from platform_assets.ledger.ledger import Ledger
from platform_assets.records.decisions import LateDecision
from platform_assets.records.outbox import Announced
from platform_assets.settings import load_settings
from platform_assets_tests.support.ledger_records import TABLE, approval, hold, name_of, nth, simple, year

SPELLINGS = ("s3cr/t%pw", "s3cr%2Ft%25pw", "s3cr")


def _shows_no_password(error: LedgerError) -> bool:
    return not any(spelling in part for spelling in SPELLINGS for part in (str(error), repr(error), error.todo))


@contextmanager
def _as_somebody_else(folder: Path) -> Iterator[None]:
    """Root may write anywhere; become a user who may not."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked_folder() -> Iterator[Path]:
    """A folder that can be read by everybody and written by nobody."""
    folder = Path(tempfile.mkdtemp(prefix="ledger-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_ledger_is_kept_from_one_opening_to_the_next(url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.record(simple(1, 0))
    with Ledger.open(url) as ledger, Ledger.open(url, read_only=True) as reader:
        assert ledger.indexed() == reader.indexed() == {name_of(1): 1}


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger: ledger.record(simple(2, 0)),
        lambda ledger: ledger.reindex([name_of(1)], ()),
        lambda ledger: ledger.hold([hold(nth(0))]),
        lambda ledger: ledger.drop([hold(nth(0))]),
        lambda ledger: ledger.decide(approval()),
        lambda ledger: ledger.notes.mark_announced("log", Announced(runs=frozenset({"r"}))),
    ],
)
def test_a_reader_writes_nothing(url: str, write: object) -> None:
    Ledger.open(url).close()
    with Ledger.open(url, read_only=True) as ledger:
        with pytest.raises(LedgerReadOnlyError, match="opened for reading"):
            write(ledger)  # type: ignore[operator]
        # Not even behind our own check.
        with pytest.raises(Exception, match=r"read-?only"), ledger._database.engine.begin() as connection:
            connection.execute(text("DELETE FROM ledger_holds"))


def test_a_reader_where_no_ledger_is_yet_sees_an_empty_one_and_makes_nothing(url: str, tmp_path: Path) -> None:
    with Ledger.open(url, read_only=True) as ledger:
        assert (ledger.indexed(), ledger.holds(), ledger.arrivals(), ledger.current_days(TABLE)) == ({}, (), (), {})
    assert list(tmp_path.iterdir()) == []
    with Ledger.open(url, read_only=True) as ledger:
        assert (ledger.decisions(LateDecision), ledger.notes.catch_ups()) == ((), ())


def test_a_sqlite_ledger_is_in_wal_mode_and_synced(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger, ledger._database.engine.connect() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        found = [connection.execute(text(f"PRAGMA {pragma}")).scalar() for pragma in pragmas]
    assert found == ["wal", 2, 1, 30_000]


@pytest.mark.parametrize(("one", "other"), [("why?", "why?not"), ("50%41", "50A"), ("a#b", "a#c"), ("?x=y", "?x=z")])
def test_two_state_folders_have_two_ledgers_whatever_they_are_called(tmp_path: Path, one: str, other: str) -> None:
    first, second = (load_settings(state=tmp_path / name) for name in (one, other))
    with Ledger.open(first.ledger_url.get_secret_value()) as ledger:
        ledger.record(simple(1, 0))
    with Ledger.open(second.ledger_url.get_secret_value()) as ledger:
        assert ledger.indexed() == {}
    for settings in (first, second):
        assert (settings.state / "ledger.db").is_file()
    assert copy_ledger(first.ledger_url.get_secret_value(), tmp_path / "copy.db")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("content", [b"this is not a database\n" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, content: bytes, read_only: bool) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(content)
    with pytest.raises(LedgerCorruptError, match=r"ledger\.db is damaged.*\n.*ledger --rebuild"):
        Ledger.open(f"sqlite:///{file}", read_only=read_only)
    assert file.read_bytes() == content


def test_damage_is_found_on_opening_and_while_reading(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    with Ledger.open(f"sqlite:///{file}") as ledger:
        ledger.record(year(1))
    whole = file.read_bytes()
    damaged = whole[: 40 * 4096] + b"\xff" * (len(whole) - 40 * 4096)
    with Ledger.open(f"sqlite:///{file}") as ledger:
        file.write_bytes(damaged)
        with pytest.raises(LedgerCorruptError):
            ledger.publication(name_of(1))
    with pytest.raises(LedgerCorruptError):
        Ledger.open(f"sqlite:///{file}")


def test_a_ledger_that_cannot_be_written_is_refused_before_any_work_but_can_be_read(locked_folder: Path) -> None:
    url = f"sqlite:///{locked_folder}/ledger.db"
    with Ledger.open(url) as ledger:
        ledger.record(simple(1, 0))
    for path in locked_folder.iterdir():
        path.chmod(0o444)
    locked_folder.chmod(0o555)
    with _as_somebody_else(locked_folder):
        with pytest.raises(LedgerReadOnlyError, match=r"no right to write.*\n.*PLATFORM_LEDGER_URL"):
            Ledger.open(url)
        with Ledger.open(url, read_only=True) as ledger:
            assert ledger.indexed() == {name_of(1): 1}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada@h/x?sslkey=s3cr%2Ft%25pw&connect_timeout=1",
        "postgresql://ada@h/x?options=-c%20x%3Ds3cr%2Ft%25pw",
        "postgresql://ada:pw@s3cr@h/x",
        "postgresql://ada/p:s3cr@h/x",
        "sqlite:////x/ledger.db?key=s3cr",
    ],
)
def test_no_option_and_no_sign_left_unescaped_shows_a_secret(url: str) -> None:
    assert "s3cr" not in masked(make_url(url))
    assert "s3cr" not in driver_message(
        ValueError(f"refused {make_url(url).host} {url.partition('s3cr')[2]}"), make_url(url)
    )
    assert "connect_timeout=1" in masked(make_url("postgresql://ada@h/x?connect_timeout=1&sslmode=require"))


def test_what_a_driver_quotes_is_masked() -> None:
    url = parse_url("postgresql://ada:s3cr%2Ft%25pw@host/x")
    for quoted in ("s3cr/t%pw", "s3cr%2Ft%25pw"):
        assert driver_message(ValueError(f"bad connection string host=host password={quoted}\nmore"), url).endswith(
            "=***"
        )


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://ada:s3cr%2Ft%25pw@127.0.0.1:1/x", r"postgresql.*ada:\*\*\*@127\.0\.0\.1:1/x does not answer"),
        ("postgresql://ada:p@s3cr@127.0.0.1:1/x", r"resolve host[^\n]*\n.*@ in user and password as %40"),
        ("postgresql://ada@127.0.0.1:1/x?password=s3cr%2Ft%25pw", r"password=%2A%2A%2A|password=\*\*\*"),
        ("mysql://ada:s3cr%2Ft%25pw@host/x", "neither SQLite nor PostgreSQL"),
        *(
            (url, "PLATFORM_LEDGER_URL")
            for url in ("", "s3cr/t%pw", "postgresql://a:s3cr/t@h:port/x", "no://a:s3cr@h/x")
        ),
    ],
)
def test_a_server_that_is_not_there_or_none_is_named_without_its_password(url: str, says: str) -> None:
    with pytest.raises(LedgerError, match=says) as caught:
        Ledger.open(url)
    assert _shows_no_password(caught.value)
    assert isinstance(caught.value, LedgerUnreachableError) is ("127.0.0.1" in url)


def test_reading_imports_neither_alembic_nor_anything_that_computes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    Ledger.open(url).close()
    code = (
        "import sys; from platform_assets.ledger.ledger import Ledger\n"
        f"for read_only in (True, False): Ledger.open({url!r}, read_only=read_only).holds()\n"
        "print({'alembic', 'dagster', 'pyspark', 'deltalake', 'psycopg', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
