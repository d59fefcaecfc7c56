"""One run of plain Dagster for one day: what its backfill of several runs starts for each of its days.

The asset is partitioned by day and computes that day of some tables with the engine, whatever their state: the work is
the same, and nothing of the platform's own assets, ranges or sensors is in it. Its run is kept in SQLite, as Dagster
does by default.

    python -m benchmarks.plain_dagster 2017-01-05 gold.daily_sales
"""

import argparse
import tempfile
from datetime import date

import dagster as dg

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.session import create_session, stop_session


def run_of_a_day(settings: Settings, day: date, tables: tuple[str, ...]) -> bool:
    """Materialize one day in a run of its own."""

    @dg.asset(partitions_def=dg.DailyPartitionsDefinition(start_date=str(settings.calendar_first)))
    def gold(context: dg.AssetExecutionContext) -> None:
        spark = create_session(settings, record_classes=False)
        try:
            with open_platform(settings) as platform:
                its_day = date.fromisoformat(context.partition_key)
                recompute(platform, lambda: spark, tables, (its_day,), Author(context.run_id, "a benchmark"))
        finally:
            stop_session(spark)

    with tempfile.TemporaryDirectory(prefix="plain-dagster-") as home, dg.DagsterInstance.local_temp(home) as instance:
        return dg.materialize([gold], partition_key=str(day), instance=instance).success


def main() -> None:
    """Run once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("day", type=date.fromisoformat)
    parser.add_argument("tables", nargs="+")
    given = parser.parse_args()
    if not run_of_a_day(load_settings(), given.day, tuple(given.tables)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
