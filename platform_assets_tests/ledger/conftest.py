"""Every test that takes `url` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.ledger.ledger import Ledger
from platform_assets_tests.support.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be made that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state' / 'ledger.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """An open, empty ledger."""
    with Ledger.open(url) as opened:
        yield opened
