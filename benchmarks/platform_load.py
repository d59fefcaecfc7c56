"""The platform's side of a benchmark, in a process of its own; where things lie and which days exist comes from
`PLATFORM_…` variables.

    python -m benchmarks.platform_load start       a session, and nothing else
    python -m benchmarks.platform_load engine      everything landed, brought up to date
    python -m benchmarks.platform_load dagster     the same through Dagster
    python -m benchmarks.platform_load plain 2017-01-05 gold.daily_sales
    python -m benchmarks.platform_load ingest      what was delivered is taken, and silver and gold are left stale

`plain` is what a backfill of plain Dagster starts for each of its days: one asset, partitioned by day, computes some
tables with the engine, in a run kept in SQLite; nothing of the platform's own assets, ranges or sensors is in it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

from pyspark.sql import SparkSession

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import refresh
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets_tests.support.world import recompute

_AUTHOR = Author("benchmark", "a benchmark")


@contextmanager
def opened(settings: Settings) -> Iterator[tuple[Platform, SparkSession]]:
    """A platform with a warm session, which ends with it."""
    spark = create_session(settings, record_classes=False)
    try:
        with open_platform(settings) as platform:
            yield platform, spark
    finally:
        stop_session(spark)


def load(settings: Settings, day: date | None = None, tables: tuple[str, ...] = ()) -> None:
    """Refresh everything, or compute one day of some or all tables, without Dagster."""
    with opened(settings) as (platform, spark):
        print(f"spark.driver.memory: {driver_memory(spark)}", flush=True)
        if day is None:
            refresh(platform, lambda: spark, _AUTHOR)
        else:
            recompute(platform, lambda: spark, tables or platform.catalogue.names, (day,), _AUTHOR)


def driver_memory(spark: SparkSession) -> str:
    """What the JVM was really started with."""
    assert spark.sparkContext._jvm is not None
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("spark.driver.memory"))


def load_through_dagster(settings: Settings) -> None:
    """Materialize every asset for the whole calendar, in one run of this process."""
    import dagster as dg

    from platform_assets.cli.session import dagster_home
    from platform_assets.orchestration.build import build_definitions, materialize_range

    os.environ["DAGSTER_HOME"] = str(dagster_home(settings))
    days = settings.calendar()
    with dg.DagsterInstance.get() as instance:
        outcome = materialize_range(build_definitions(settings), instance, days[0], days[-1])
    if outcome.failures:
        raise SystemExit("\n".join(outcome.failures))


def in_plain_dagster(settings: Settings, day: date, tables: tuple[str, ...]) -> bool:
    """Compute one day in a run of its own."""
    import dagster as dg

    def gold(context) -> None:  # type: ignore[no-untyped-def]
        load(settings, date.fromisoformat(context.partition_key), tables)

    days = dg.DailyPartitionsDefinition(start_date=str(settings.calendar_first))
    with tempfile.TemporaryDirectory(prefix="plain-dagster-") as home, dg.DagsterInstance.local_temp(home) as instance:
        asset = dg.asset(partitions_def=days)(gold)
        return dg.materialize([asset], partition_key=str(day), instance=instance).success


def take(settings: Settings) -> None:
    """Ingest every raw table."""
    with opened(settings) as (platform, spark):
        for contract in platform.catalogue:
            if contract.source is not None:
                ingest(platform, lambda: spark, contract, _AUTHOR)


def main() -> None:
    """Load once, in a session of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("how", choices=("start", "engine", "dagster", "plain", "ingest"))
    parser.add_argument("day", type=date.fromisoformat, nargs="?")
    parser.add_argument("tables", nargs="*")
    given = parser.parse_args()
    settings, tables = load_settings(), tuple(given.tables)
    if given.how == "start":
        stop_session(create_session(settings))
    elif given.how == "dagster":
        load_through_dagster(settings)
    elif given.how == "ingest":
        take(settings)
    elif given.how == "plain":
        raise SystemExit(0 if in_plain_dagster(settings, given.day, tables) else 1)
    else:
        load(settings)


if __name__ == "__main__":
    main()
