"""Read tables with Arrow, Polars, pandas, DuckDB or Spark, at a release."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from platform_assets.contracts import DAY
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import dataset, read_arrow, resolve, version_in, whole_snapshot
from platform_assets.lakehouse.releases import Release, newest_release
from platform_assets.places import for_hadoop

if TYPE_CHECKING:
    from platform_assets.ledger.ledger import Ledger
    from platform_assets.settings import Settings

Engine = Literal["arrow", "polars", "pandas", "duckdb", "spark"]
Days = Iterable[date | str] | date | str
"""Days wanted by a reader: one or several, as dates or written YYYY-MM-DD."""


def read(
    table: str,
    *,
    days: Days | None = None,
    release: int | Release | None = None,
    engine: Engine = "arrow",
    settings: Settings,
    declared: Collection[str] = (),
) -> Any:
    """Read a table as readers see it.

    Args:
        days: only this day, or only these; all by default.
        release: number of a release, or a release resolved once for several tables; the current one by default.
        engine: what to return: a `pyarrow.Table`, a Polars or pandas frame, a DuckDB relation, or a Spark frame of
            the active session.
        declared: tables that contracts declare, to distinguish a misspelt name from one never published.

    Raises:
        UnknownTableError: no contract declares such a table, and it was never published.
        NeverPublishedError: the release has no content of it.
        UnknownReleaseError: there is no such release.
        MovedLakeError: the lake has none of the releases that the ledger knows.
        BeyondWindowError: it is older than the rollback window, and its files may be deleted.
        DamagedTableError: files of that release are gone.
        LakeError: the engine is unknown, a day is not a date, or no active Spark session can read a lake.
    """
    lake = Lake.at(settings.lake)
    now = released(settings, release)
    version_in(lake, table, now, declared)
    wanted = _wanted(days)
    match engine:
        case "arrow":
            return read_arrow(lake, table, wanted, release=now)
        case "polars":
            import polars as pl

            return pl.from_arrow(read_arrow(lake, table, wanted, release=now))
        case "pandas":
            return read_arrow(lake, table, wanted, release=now).to_pandas()
        case "duckdb":
            import duckdb

            return duckdb.connect().from_arrow(dataset(lake, table, wanted, release=now))
        case "spark":
            return _spark(lake, table, now, wanted)
        case other:
            raise LakeError(
                f"{other!r} is not an engine.",
                "Name one of arrow, polars, pandas, duckdb and spark.",
            )


def released(settings: Settings, release: int | Release | None = None) -> Release:
    """Return the requested release, if the lake matches the ledger."""
    lake = Lake.at(settings.lake)
    if isinstance(release, Release) or newest_release(lake) >= 0:
        return resolve(lake, release)
    from platform_assets.ledger.sync import require_one_history

    with _ledger(settings) as ledger:
        if known := ledger.indexed():
            require_one_history(lake, known, {})
    return resolve(lake, release)


def readers_release(settings: Settings, which: int | str | Release | None) -> Release:
    """Return a release by number, name of a pin, or publication; the current one by default."""
    if not isinstance(which, str):
        return released(settings, which)
    from platform_assets.operations.pins import release_number

    with _ledger(settings) as ledger:
        return released(settings, release_number(ledger, which))


def _ledger(settings: Settings) -> Ledger:
    """Open the ledger read-only. It is imported lazily: reading a release by number does not need it."""
    from platform_assets.ledger.ledger import Ledger

    return Ledger.open(settings.ledger_url.get_secret_value(), read_only=True)


def _wanted(days: Days | None) -> set[date] | None:
    if days is None:
        return None
    wanted: set[date] = set()
    for day in [days] if isinstance(days, date | str) else days:
        try:
            parsed = date.fromisoformat(day) if isinstance(day, str) else day
        except ValueError:
            parsed = None
        if not isinstance(parsed, date):
            raise LakeError(
                f"{day!r} is not a day.", "Give dates, or write them as YYYY-MM-DD, for example 2017-03-31."
            )
        wanted.add(parsed.date() if isinstance(parsed, datetime) else parsed)
    return wanted


def _spark(lake: Lake, table: str, release: Release, days: Collection[date] | None) -> Any:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from platform_assets.spark.tables.failures import explain_unreadable_session

    session = SparkSession.getActiveSession()
    if session is None:
        raise LakeError(
            "There is no active Spark session.",
            "Start one with platform_assets.views(), or read with engine='arrow', 'polars', 'pandas' or 'duckdb', "
            "which need none.",
        )
    version = whole_snapshot(lake, table, release, days).version
    path = for_hadoop(str(lake.table_path(table)))
    with explain_unreadable_session(session):
        frame = session.read.format("delta").option("versionAsOf", version).load(path)
    return frame if days is None else frame.where(F.col(DAY).isin(sorted(days)))
