"""The platform's side of a load: everything landed, brought up to date in this process.

Where things lie and which days exist comes from `PLATFORM_…` variables.

    python -m benchmarks.platform_load start
    python -m benchmarks.platform_load engine
    python -m benchmarks.platform_load dagster
    python -m benchmarks.platform_load day 2017-01-05
"""

from __future__ import annotations

import argparse
import os
from datetime import date

from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import RefreshResult, recompute, refresh
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.session import create_session, stop_session


def load(settings: Settings, day: date | None = None) -> RefreshResult:
    """Refresh everything, or compute one day of every table, without Dagster."""
    author = Author("benchmark", "a benchmark")
    spark = create_session(settings, record_classes=False)
    try:
        print(f"spark.driver.memory: {driver_memory(spark)}", flush=True)
        with open_platform(settings) as platform:
            if day is None:
                return refresh(platform, lambda: spark, author)
            return recompute(platform, lambda: spark, platform.catalogue.names, (day,), author)
    finally:
        stop_session(spark)


def driver_memory(spark: SparkSession) -> str:
    """What the JVM was really started with."""
    assert spark.sparkContext._jvm is not None
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("spark.driver.memory"))


def load_through_dagster(settings: Settings) -> None:
    """Materialize every asset for the whole calendar, in one run of this process."""
    import dagster as dg

    from platform_assets.cli.dagster_storage import dagster_home
    from platform_assets.orchestration.build import build_definitions
    from platform_assets.orchestration.in_process import materialize_range

    os.environ["DAGSTER_HOME"] = str(dagster_home(settings))
    days = settings.calendar()
    with dg.DagsterInstance.get() as instance:
        outcome = materialize_range(build_definitions(settings), instance, days[0], days[-1])
    if outcome.failures:
        raise SystemExit("\n".join(outcome.failures))


def main() -> None:
    """Load once, in a session of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("how", choices=("start", "engine", "dagster", "day"))
    parser.add_argument("day", type=date.fromisoformat, nargs="?")
    given = parser.parse_args()
    settings = load_settings()
    if given.how == "start":
        stop_session(create_session(settings))
    elif given.how == "dagster":
        load_through_dagster(settings)
    else:
        result = load(settings, given.day)
        ingested = [(done.table, done.seconds) for done in result.ingests]
        for table, seconds in ingested + [(done.table, done.seconds) for done in result.steps]:
            print(f"{table}: {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
