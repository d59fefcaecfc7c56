"""A Dagster platform that corrects the past of daily-partitioned Delta tables safely.

`read` gives any released table, `views` all of them in Spark SQL, each at one release across tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from platform_assets.lakehouse.releases import Release
    from platform_assets.operations.readers import Days, Engine
    from platform_assets.settings import Settings


def read(
    table: str,
    *,
    days: Days | None = None,
    release: int | str | Release | None = None,
    engine: Engine = "arrow",
    settings: Settings | None = None,
) -> Any:
    """Read a table as readers see it, at one release that is resolved once.

    Args:
        table: `<layer>.<table>`.
        days: only this day or these, as dates or written YYYY-MM-DD; all by default.
        release: a release's number, the name of its pin, or what `current_release` gave, to read several tables at
            the same; the current one by default.
        engine: what to return: `arrow`, `polars` or `pandas` tables, a `duckdb` relation, or a `spark` frame of the
            active session.
        settings: where the lake is; read from the environment by default.

    Raises:
        PlatformError: the table, the release or the engine does not exist, or the lake is not where it was; the
            message names what there is and what to do.
    """
    from platform_assets.engine.catalogue import load_catalogue
    from platform_assets.operations.readers import read as read_at
    from platform_assets.operations.readers import readers_release
    from platform_assets.settings import load_settings

    settings = settings or load_settings()
    declared = load_catalogue(settings).names
    now = readers_release(settings, release)
    return read_at(table, days=days, release=now, engine=engine, settings=settings, declared=declared)


def current_release(settings: Settings | None = None) -> Release:
    """Return the release that readers see now: pass it to `read` and `views` to see several tables at the same one.

    Args:
        settings: where the lake is; read from the environment by default.

    Raises:
        PlatformError: the lake is not where it was.
    """
    from platform_assets.operations.readers import released
    from platform_assets.settings import load_settings

    return released(settings or load_settings())


def views(
    spark: SparkSession | None = None,
    *,
    release: int | str | Release | None = None,
    settings: Settings | None = None,
) -> SparkSession:
    """Give Spark SQL every released table, all at one release, as temporary views named `<layer>_<table>`.

    Args:
        spark: the session; by default the one of this process, started by the settings if there is none.
        release: as for `read`.
        settings: where the lake is; read from the environment by default.

    Returns:
        The session: `views().sql("SELECT * FROM gold_daily_sales")`.

    Raises:
        PlatformError: the release does not exist, the lake is not where it was, or Spark does not start.
    """
    from platform_assets.lakehouse.layout import Lake
    from platform_assets.operations.readers import readers_release
    from platform_assets.settings import load_settings
    from platform_assets.spark.session.session import create_session
    from platform_assets.spark.tables.reading import register_views

    settings = settings or load_settings()
    now = readers_release(settings, release)
    session = spark or create_session(settings)
    register_views(session, Lake.at(settings.lake), now)
    return session


__all__ = ["current_release", "read", "views"]
