"""Reading released tables: from Arrow, Polars, pandas, DuckDB or Spark, always the same release for all tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from platform_assets.contracts import DAY, UnknownTableError
from platform_assets.lakehouse.cut import require_whole
from platform_assets.lakehouse.errors import LakeError, NeverPublishedError
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.lakehouse.releases import release as release_of
from platform_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

Engine = Literal["arrow", "polars", "pandas", "duckdb", "spark"]


def read(
    table: str,
    *,
    days: Iterable[date] | None = None,
    release: int | Release | None = None,
    engine: Engine = "arrow",
    settings: Settings | None = None,
    declared: Collection[str] = (),
) -> Any:
    """Read a table as readers see it.

    Args:
        table: `<layer>.<table>`.
        days: only these days; all by default.
        release: number of a release, or a release resolved once for several tables; the current one by default.
        engine: what to return: a `pyarrow.Table`, a Polars or pandas frame, a DuckDB relation, or a Spark frame of
            the active session.
        settings: where the lake is; read from the environment by default.
        declared: tables that contracts declare, to tell a misspelt name from one never published.

    Raises:
        UnknownTableError: nobody declares or ever published such a table.
        NeverPublishedError: the release has no content of it.
        UnknownReleaseError: there is no such release.
        BeyondWindowError: it is older than the rollback window, and its files may be deleted.
        LakeError: the engine is unknown, or there is no active Spark session.
    """
    lake = Lake((settings or load_settings()).lake)
    now = resolve(lake, release)
    version = version_in(lake, table, now, declared)
    match engine:
        case "arrow":
            return read_arrow(lake, table, days, release=now)
        case "polars":
            import polars as pl

            return pl.from_arrow(read_arrow(lake, table, days, release=now))
        case "pandas":
            return read_arrow(lake, table, days, release=now).to_pandas()
        case "duckdb":
            import duckdb

            return duckdb.connect().from_arrow(dataset(lake, table, days, release=now))
        case "spark":
            return _spark(lake, table, version, days)
        case other:
            raise LakeError(
                f"{other!r} is not an engine.",
                "Name one of arrow, polars, pandas, duckdb and spark.",
            )


def resolve(lake: Lake, release: int | Release | None) -> Release:
    """The release that is meant, with the versions of its tables.

    Raises:
        UnknownReleaseError: there is no such release.
        BeyondWindowError: it is older than the rollback window, and its files may be deleted.
    """
    if release is None:
        return current_release(lake)
    found = release if isinstance(release, Release) else release_of(lake, release)
    require_whole(lake, found.number)
    return found


def version_in(lake: Lake, table: str, release: Release, declared: Collection[str] = ()) -> int:
    """The version of a table that a release shows.

    Raises:
        UnknownTableError: nobody declares or ever published such a table.
        NeverPublishedError: the release has no content of it.
    """
    if table in release.versions:
        return release.versions[table]
    choices = sorted({*declared, *release.versions})
    never = NeverPublishedError(
        f"{table} has never been published" + (f" up to release {release.number}." if release.number >= 0 else "."),
        "Materialize it first, or name a later release.",
    )
    if table in declared or table in lake.table_names():
        raise never
    if not choices:
        lake.table_path(table)
        raise never
    close = get_close_matches(table, choices, 1)
    raise UnknownTableError(
        f"There is no table {table!r}.",
        (f"Did you mean {close[0]}? " if close else "") + f"Tables are {', '.join(choices)}.",
    )


def dataset(
    lake: Lake,
    table: str,
    days: Iterable[date] | None = None,
    release: int | Release | None = None,
) -> ds.Dataset:
    """A table as an Arrow dataset, of which only the files of the days wanted are ever opened.

    Args:
        lake: the lake.
        table: `<layer>.<table>`.
        days: only these days; all by default.
        release: number of a release or the release itself; the current one by default.

    Raises:
        UnknownTableError: nobody ever published such a table.
        NeverPublishedError: the release has no content of it.
    """
    from deltalake import DeltaTable

    version = version_in(lake, table, resolve(lake, release))
    wanted = None if days is None else [(DAY, "in", sorted({day.isoformat() for day in days}))]
    found = DeltaTable(lake.table_path(table), version=version)
    if wanted is not None and not wanted[0][2]:
        return found.to_pyarrow_dataset().filter(_nothing())
    return found.to_pyarrow_dataset(partitions=wanted)


def read_arrow(
    lake: Lake,
    table: str,
    days: Iterable[date] | None = None,
    columns: Iterable[str] | None = None,
    release: int | Release | None = None,
) -> pa.Table:
    """Rows of a table as Arrow.

    Args:
        lake: the lake.
        table: `<layer>.<table>`.
        days: only these days; all by default.
        columns: only these columns; all by default.
        release: number of a release or the release itself; the current one by default.

    Raises:
        UnknownTableError: nobody ever published such a table.
        NeverPublishedError: the release has no content of it.
    """
    found = dataset(lake, table, days, release)
    return found.to_table(columns=None if columns is None else list(columns))


def _nothing() -> Any:
    import pyarrow.dataset as ds

    return ds.scalar(False)


def _spark(lake: Lake, table: str, version: int, days: Iterable[date] | None) -> Any:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    session = SparkSession.getActiveSession()
    if session is None:
        raise LakeError(
            "There is no active Spark session.",
            "Start one, or read with engine='arrow', 'polars', 'pandas' or 'duckdb', which need none.",
        )
    frame = session.read.format("delta").option("versionAsOf", version).load(str(lake.table_path(table)))
    return frame if days is None else frame.where(F.col(DAY).isin(sorted(set(days))))
