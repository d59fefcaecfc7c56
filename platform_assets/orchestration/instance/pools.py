"""Pools: how many runs of each sort may work at the same time.

Two sorts share the two places that `dagster.yaml` gives out. Runs of assets, a backfill's among them, and plans have
one, and the refresh, which daily runs and late data go through, has the other; so a backfill of years never takes all
of the machine, today's data never waits for it, and no two plans work at the same time. Whole runs wait for their pool
(`granularity: run`), before they start Spark.
"""

from __future__ import annotations

import dagster as dg

TABLES_POOL = "tables"
"""Of every asset, of maintenance and of plans."""

REFRESH_POOL = "refresh"
"""Of the op of the job `refresh`: two at the same time would only do the same work."""

_PLACES = {TABLES_POOL: 1, REFRESH_POOL: 1}


def create_pools(instance: dg.DagsterInstance) -> None:
    """Create the pools that do not exist yet; limits that somebody has set are left as they are.

    Dagster would create a pool with the first run that wants it, and let that pass begin all the runs it finds.
    """
    storage = instance.event_log_storage
    there = {pool.name for pool in storage.get_pool_limits()}
    for name, places in _PLACES.items():
        if name not in there:
            storage.set_concurrency_slots(name, places)
