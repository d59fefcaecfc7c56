"""A backfill of everything landed by Dagster's daemon, launched as the UI does it.

Where things lie comes from `PLATFORM_…` variables.

    python -m benchmarks.daemon_backfill --first 2017-01-01 --last 2017-03-31
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from benchmarks.dagster_server import Server, postgres, running
from benchmarks.harness import BenchmarkError
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.settings import load_settings

_EVERY_S = 2.0
_WITHIN_S = 7200.0
_UNFINISHED = {"REQUESTED", "CANCELING", "FAILING"}
_LAUNCH = """
mutation ($given: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $given) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
_LOOK = """
query ($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill {
      status timestamp endTimestamp runs { id status startTime endTime tags { key value } }
    }
  }
}
"""


@dataclass(frozen=True)
class Timing:
    """Seconds until the first run starts (ticks of daemon and queue, a process), of the runs, and until all is told."""

    before_s: float
    runs_s: float
    after_s: float


def backfill(server: Server, days: Sequence[date]) -> Timing:
    """Launch a backfill of all tables and wait for its end; it has to be one run for the whole range."""
    keys = [{"path": contract.name.split(".")} for contract in TABLES]
    given = {"assetSelection": keys, "partitionNames": [str(day) for day in days]}
    answer = server.ask(_LAUNCH, given=given)["launchPartitionBackfill"]
    if answer["__typename"] != "LaunchBackfillSuccess":
        raise BenchmarkError(f"The backfill was refused: {answer.get('message', answer['__typename'])}")
    end = time.monotonic() + _WITHIN_S
    found = {"status": "REQUESTED"}
    while found["status"] in _UNFINISHED and time.monotonic() < end:
        time.sleep(_EVERY_S)
        found = server.ask(_LOOK, id=answer["backfillId"])["partitionBackfillOrError"]
    if found["status"] != "COMPLETED_SUCCESS":
        raise BenchmarkError(f"The backfill ended as {found['status']}; see the runs' logs above.")
    return _timing(found, days)


def _timing(found: dict[str, Any], days: Sequence[date]) -> Timing:
    runs = found["runs"]
    tags = {tag["key"]: tag["value"] for run in runs for tag in run["tags"]}
    bounds = tuple(tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end"))
    if len(runs) != 1 or bounds != (str(days[0]), str(days[-1])):
        raise BenchmarkError(f"{len(runs)} runs were made, of {bounds}; one was expected, of {days[0]} to {days[-1]}.")
    first, last = min(run["startTime"] for run in runs), max(run["endTime"] for run in runs)
    return Timing(first - found["timestamp"], last - first, found["endTimestamp"] - last)


def main() -> None:
    """Backfill once, with a Dagster of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=date.fromisoformat, required=True)
    parser.add_argument("--last", type=date.fromisoformat, required=True)
    parser.add_argument("--postgres", action="store_true", help="Dagster's storage, as docs/postgresql.md has it.")
    for folder in ("--landing", "--lake"):
        parser.add_argument(folder, help="Given to the scripts of all sides; here the variables say it.")
    given = parser.parse_args()
    days = [given.first + timedelta(days=n) for n in range((given.last - given.first).days + 1)]
    settings = load_settings()
    with ExitStack() as stack:
        url = stack.enter_context(postgres()) if given.postgres else None
        server = stack.enter_context(running(settings, "announcements", postgres_url=url))
        timing = backfill(server, days)
    print(json.dumps(asdict(timing)), flush=True)


if __name__ == "__main__":
    main()
