"""The schema, from nothing and from every revision there ever was."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from platform_assets.ledger import database
from platform_assets.ledger.connection import open_engine, parse_url, prepare_folder, writing
from platform_assets.ledger.database import MIGRATIONS, revisions, schema_state, upgrade
from platform_assets.ledger.errors import LedgerVersionError
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.schema import VERSION_TABLE, metadata
from platform_assets_tests.support.ledger_records import hold, nth, simple


def _migrated_to(url: str, revision: str) -> None:
    parsed = parse_url(url)
    prepare_folder(parsed)
    engine = open_engine(parsed, writable=True)
    upgrade(engine, revision)
    engine.dispose()


def test_files_are_named_after_the_revisions_alembic_sees() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    walked = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(walked)) == revisions()


def test_migrations_make_the_schema_the_code_uses(ledger: Ledger) -> None:
    with ledger._database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_foreign_keys_hold_on_both_databases(ledger: Ledger) -> None:
    ledger.record(simple(1, 0))
    with writing(ledger._database.engine) as connection:
        connection.execute(text("DELETE FROM ledger_publications"))
        assert connection.execute(text("SELECT count(*) FROM ledger_days")).scalar() == 0


@pytest.mark.parametrize("revision", revisions())
def test_a_ledger_of_any_earlier_revision_is_brought_up_to_date(url: str, revision: str) -> None:
    _migrated_to(url, revision)
    with Ledger.open(url) as ledger:
        ledger.hold([hold(nth(0))])
        assert schema_state(ledger._database.engine) == "current"


def test_a_reader_of_an_older_schema_is_told_who_migrates_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _migrated_to(url, revisions()[-1])
    known = (*revisions(), "9998")
    monkeypatch.setattr(database, "revisions", lambda: known)
    with pytest.raises(LedgerVersionError, match=r"older schema.*\n.*ledger rebuild"):
        Ledger.open(url, read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_and_left_alone(url: str, read_only: bool) -> None:
    with Ledger.open(url) as ledger, writing(ledger._database.engine) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
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
    monkeypatch.setattr("alembic.operations.Operations.create_index", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Ledger.open(url)
    monkeypatch.undo()
    with Ledger.open(url) as ledger:
        assert ledger.indexed() == {}
