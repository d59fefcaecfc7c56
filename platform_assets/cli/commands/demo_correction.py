"""The demo's last file: landed, taken by a refresh as the command line does it, and looked at from both sides."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from platform_assets.cli.commands.demo_story import Story, compare, net_sales, reasons, shown_at, stale_days
from platform_assets.cli.commands.summary import Phase
from platform_assets.cli.console import opened_platform
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.records.manifest import new_publication
from platform_assets.settings import Settings

if TYPE_CHECKING:
    from platform_assets.domains.retail.sample import Simulation
    from platform_assets.spark.session.on_demand import SparkOnDemand

_NAME = "one correction"


def correct(
    settings: Settings, simulation: Simulation, spark: SparkOnDemand, progress: OnProgress
) -> tuple[Phase, Story | None]:
    """Land one file that corrects a few lines of one day, and bring everything up to date.

    Returns:
        What was done, and what there is to tell of the file: nothing where it was taken before.
    """
    from platform_assets.domains.retail.sample import land_recount
    from platform_assets.engine.pending import intakes
    from platform_assets.engine.platform import Author
    from platform_assets.engine.refresh import refresh
    from platform_assets.engine.state.planner import plan_steps

    started = time.monotonic()
    recount = land_recount(simulation, settings.landing_folder)
    with opened_platform(settings) as platform:
        if recount is None or plan_steps(platform, intakes=intakes(platform)).is_empty:
            return Phase(_NAME, 0, {}, time.monotonic() - started), None
        before = platform.current_release().number
        result = refresh(platform, spark, Author(f"refresh-{new_publication()}", _NAME), progress)
        failures = tuple(
            f"{step.table} {day}: {why}" for step in result.steps for day, why in sorted(step.not_published.items())
        )
        took = time.monotonic() - started
        if recount.path not in {arrival.path for done in result.ingests for arrival in done.arrivals}:
            changed = {table: len(days) for table, days in stale_days(result).items()}
            return Phase(_NAME, 0, changed, took, failures), None
        with meanwhile(progress, "comparing all days with before"):
            after = platform.current_release().number
            compared = compare(shown_at(platform, before), shown_at(platform, after), stale_days(result))
            net = net_sales(platform, recount.day, before), net_sales(platform, recount.day, after)
        why = {table: why for table, why in reasons(platform, result).items() if table in compared.rewritten}
    changed = {table: len(days) for table, days in compared.rewritten.items()}
    story = Story(recount.path, recount.day, recount.store, before, after, why, compared, net)
    return Phase(_NAME, 1, changed, took, failures), story
