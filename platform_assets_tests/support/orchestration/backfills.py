"""Backfills as the UI launches them and Dagster's own daemon works them off."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionStatus
from dagster._daemon.backfill import execute_backfill_iteration
from dagster_graphql.test.utils import execute_dagster_graphql

from platform_assets_tests.support.orchestration.daemon import LOGGER, Daemon
from platform_assets_tests.support.orchestration.readings import TABLES

LAUNCH = """
mutation ($given: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $given) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PartitionKeysNotFoundError { message }
    ... on PythonError { message }
  }
}
"""


def ask(daemon: Daemon, query: str, **variables: Any) -> dict[str, Any]:
    """GraphQL, as the UI sends it."""
    return dict(execute_dagster_graphql(daemon.workspace.create_request_context(), query, variables).data)


def request(daemon: Daemon, days: Collection[str], tables: Collection[str]) -> dict[str, Any]:
    """The answer to the UI's "Launch backfill"."""
    given = {"assetSelection": [{"path": [table]} for table in tables], "partitionNames": list(days)}
    return dict(ask(daemon, LAUNCH, given=given)["launchPartitionBackfill"])


def launch(daemon: Daemon, days: Collection[str], tables: Collection[str] = TABLES) -> str:
    """Launch a backfill and let the daemon make its runs; its id."""
    answer = request(daemon, days, tables)
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    look_after_backfills(daemon)
    return str(answer["backfillId"])


def look_after_backfills(daemon: Daemon) -> None:
    """One iteration of the backfill daemon."""
    errors = [error for error in execute_backfill_iteration(daemon.workspace, LOGGER) if error]
    assert not errors, errors


def complete(daemon: Daemon, backfill: str) -> list[dg.DagsterRun]:
    """Let the daemon work until a backfill ended; its runs, oldest first."""
    for _ in range(10):
        daemon.launch()
        look_after_backfills(daemon)
        if status(daemon, backfill) in BULK_ACTION_TERMINAL_STATUSES:
            return list(daemon.instance.get_runs(dg.RunsFilter.for_backfill(backfill)))[::-1]
    raise AssertionError(f"{backfill} is {status(daemon, backfill)}")


def status(daemon: Daemon, backfill: str) -> BulkActionStatus:
    found = daemon.instance.get_backfill(backfill)
    assert found is not None
    return found.status


def reasons(daemon: Daemon, run: dg.DagsterRun) -> str:
    """What the steps said that failed."""
    told = []
    for entry in daemon.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        assert entry.dagster_event is not None
        data = entry.dagster_event.step_failure_data
        told.append(str(data.user_failure_data.description if data.user_failure_data else data.error))
    return "\n".join(told)
