"""The schema, from nothing and from what there was before the first release."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from platform_assets.ledger import database
from platform_assets.ledger.connection import open_engine, parse_url, prepare_folder, writing
from platform_assets.ledger.database import MIGRATIONS, revisions, schema_state
from platform_assets.ledger.errors import LedgerVersionError
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.schema import metadata, versions
from platform_assets_tests.support.ledger_records import TABLE, hold, nth, simple


def test_files_are_named_after_the_revisions_alembic_sees() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    walked = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(walked)) == revisions()


def test_foreign_keys_hold_on_both_databases(ledger: Ledger) -> None:
    ledger.record(simple(1, 0))
    with writing(ledger._database.engine) as connection:
        connection.execute(text("DELETE FROM ledger_publications"))
        assert connection.execute(text("SELECT count(*) FROM ledger_days")).scalar() == 0


_SINCE_THE_FIRST = {
    "0002": ["ALTER TABLE ledger_days DROP COLUMN git_commit"],
    "0003": ["DROP TABLE ledger_ended_holds"],
    "0004": [
        "DROP TABLE ledger_looks",
        "DROP INDEX ix_ledger_arrivals_table_date",
        "DROP INDEX ix_ledger_arrivals_kind",
    ],
    "0005": ["DROP TABLE ledger_verdicts"],
    "0006": [f"ALTER TABLE ledger_verdicts DROP COLUMN {name}" for name in ("tries", "lives_by")],
}
"""What takes a ledger back to the revision before."""


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004", "0005"])
def test_a_ledger_from_before_the_release_is_brought_up_to_date_and_loses_nothing(url: str, revision: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.record(simple(1, 0))
        ledger.hold([hold(nth(0))])
        _take_back(ledger._database.engine, revision)
    with pytest.raises(LedgerVersionError, match=r"older schema.*\n.*ledger --rebuild"):
        Ledger.open(url, read_only=True)
    with Ledger.open(url) as ledger, ledger._database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": versions.name})
        assert compare_metadata(context, metadata) == []
        assert schema_state(ledger._database.engine) == "current"
        assert list(ledger.indexed().values()) == [1]
        assert [held.day for held in ledger.holds()] == [nth(0)]


def test_a_ledger_whose_revision_is_lost_is_brought_up_to_date(url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.record(simple(1, 0))
        _take_back(ledger._database.engine, "0001")
        with writing(ledger._database.engine) as connection:
            connection.execute(text(f"DELETE FROM {versions.name}"))
    with Ledger.open(url) as ledger:
        assert list(ledger.indexed().values()) == [1]
        assert len(ledger.current_days(TABLE)) == 1


def _take_back(engine: Engine, revision: str) -> None:
    with writing(engine) as connection:
        for later in sorted(_SINCE_THE_FIRST, reverse=True):
            for statement in _SINCE_THE_FIRST[later] if later > revision else ():
                connection.execute(text(statement))
        connection.execute(text(f"UPDATE {versions.name} SET version_num = '{revision}'"))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_and_left_alone(url: str, read_only: bool) -> None:
    with Ledger.open(url) as ledger, writing(ledger._database.engine) as connection:
        connection.execute(text(f"UPDATE {versions.name} SET version_num = '9999'"))
    with pytest.raises(LedgerVersionError, match=r"schema 9999, which this code does not know.*\n.*upgrade"):
        Ledger.open(url, read_only=read_only)


def test_the_database_may_be_shared_with_dagster(url: str) -> None:
    parsed = parse_url(url)
    prepare_folder(parsed)
    engine = open_engine(parsed, writable=True)
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('dagster')"))
    engine.dispose()
    with Ledger.open(url) as ledger, ledger._database.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "dagster"
        assert all(name.startswith(("ledger_", "alembic_")) for name in inspect(connection).get_table_names())


def test_a_migration_that_dies_leaves_nothing_half_done(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "revisions", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Ledger.open(url)
    monkeypatch.undo()
    with Ledger.open(url) as ledger:
        assert ledger.indexed() == {}
