"""The schema brought up to date, from the migrations packaged beside this module.

Alembic takes a second to import, so it is only imported when there is something to do; commands that read must answer
faster than that.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, column, inspect, select, table

from platform_assets.lakehouse.database_url import masked
from platform_assets.ledger.connection import reading, switch_to_wal, writing
from platform_assets.ledger.errors import LedgerVersionError
from platform_assets.ledger.schema import VERSION_TABLE

MIGRATIONS = Path(__file__).parent / "migrations"

_alembic = threading.Lock()
"""Alembic hands migrations their connection through module globals: one upgrade at a time in a process."""


def revisions() -> tuple[str, ...]:
    """Revisions this code knows, oldest first, as the migrations' files are named: `r<revision>_<subject>.py`."""
    names = sorted(file.stem for file in (MIGRATIONS / "versions").glob("r*.py"))
    return tuple(name[1:].partition("_")[0] for name in names)


def schema_state(engine: Engine) -> Literal["blank", "old", "current"]:
    """Whether there is a ledger in the database, and whether its schema is the newest.

    Raises:
        LedgerVersionError: the schema is newer than this code.
        LedgerError: the database failed.
    """
    with reading(engine) as connection:
        return _state(connection)


def upgrade(engine: Engine, to: str = "head") -> None:
    """Bring the schema to a revision, in one transaction; whoever comes second finds it done.

    Raises:
        LedgerVersionError: the schema is newer than this code.
        LedgerError: the database failed.
    """
    switch_to_wal(engine.url)
    with _alembic, writing(engine) as connection:
        if _state(connection) != "current":
            _run(connection, to)


def _run(connection: Connection, to: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _state(connection: Connection) -> Literal["blank", "old", "current"]:
    if not inspect(connection).has_table(VERSION_TABLE):
        return "blank"
    revision = connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    known = revisions()
    if revision is not None and revision not in known:
        raise LedgerVersionError(
            f"The ledger {masked(connection.engine.url)} has schema {revision}, which this code does not know; "
            f"its newest is {known[-1]}.",
            "It was written by a newer version: upgrade this installation, or point PLATFORM_LEDGER_URL at another "
            "ledger, which is then filled from the lake.",
        )
    if revision is None:
        return "blank"
    return "current" if revision == known[-1] else "old"
