"""The platform's side of corrections: one process each, where things lie comes from `PLATFORM_…` variables.

    python -m benchmarks.corrections_platform refresh
    python -m benchmarks.corrections_platform explain
    python -m benchmarks.corrections_platform ingest
    python -m benchmarks.corrections_platform rebuild

`refresh` takes what was delivered and recomputes exactly the stale days; with nothing to do it starts no Spark.
`explain` lists what a refresh would do. `ingest` only takes what was delivered. `rebuild` does that, then computes
every day of silver and gold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache

from pyspark.sql import SparkSession

from platform_assets.compute.session import create_session, stop_session
from platform_assets.engine.ingest import ingest
from platform_assets.engine.pending import steps_to_refresh, waiting
from platform_assets.engine.platform import Author, Platform, open_platform
from platform_assets.engine.refresh import RefreshResult, recompute, refresh
from platform_assets.settings import Settings, load_settings

_AUTHOR = Author("benchmark", "a benchmark")


def explain(settings: Settings) -> None:
    """Print the files that wait and the days that are stale."""
    with open_platform(settings) as platform:
        found = waiting(platform, settings.files_per_run)
        for table, files in found.files.items():
            print(f"{table}: {len(files)} files to take")
        for step in steps_to_refresh(platform):
            print(f"{step.table}: {len(step.days)} days to recompute")


def work(settings: Settings, what: str) -> None:
    """Refresh, ingest or rebuild; Spark starts when it is first needed."""
    session = cache(lambda: create_session(settings, record_classes=False))
    do = {"refresh": lambda platform: refresh(platform, session, _AUTHOR)}
    do |= {
        "ingest": lambda platform: _ingest(platform, session),
        "rebuild": lambda platform: _rebuild(platform, session),
    }
    try:
        with open_platform(settings) as platform:
            _report(do[what](platform))
    finally:
        if SparkSession.getActiveSession() is not None:
            stop_session(session())


def _ingest(platform: Platform, session: Callable[[], SparkSession]) -> RefreshResult:
    """Take what was delivered, and leave silver and gold stale."""
    sources = [contract for contract in platform.catalogue if contract.source is not None]
    return RefreshResult(tuple(ingest(platform, session, contract, _AUTHOR) for contract in sources))


def _rebuild(platform: Platform, session: Callable[[], SparkSession]) -> RefreshResult:
    """Take what was delivered, then compute every day whether it is stale or not."""
    taken = _ingest(platform, session)
    computed = tuple(contract.name for contract in platform.catalogue if contract.inputs)
    rebuilt = recompute(platform, session, computed, platform.calendar.days(), _AUTHOR)
    return RefreshResult(taken.ingests, rebuilt.steps)


def _report(result: RefreshResult) -> None:
    for done in (*result.ingests, *result.steps):
        print(f"{done.table}: {len(done.published)} days, {done.seconds:.1f} s", flush=True)
    if held := [f"{done.table} {day}" for done in result.steps for day in (*done.held, *done.blocked)]:
        raise SystemExit(f"held or blocked: {', '.join(held)}")


def main() -> None:
    """Do one of them, in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("refresh", "explain", "ingest", "rebuild"))
    what = parser.parse_args().what
    settings = load_settings()
    if what == "explain":
        explain(settings)
    else:
        work(settings, what)


if __name__ == "__main__":
    main()
