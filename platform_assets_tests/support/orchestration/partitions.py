"""What Dagster's pages show of the days of an asset and of a check, asked as they ask."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from typing import Any

from platform_assets_tests.support.orchestration.backfills import ask
from platform_assets_tests.support.orchestration.daemon import Daemon

_OF_ASSET = """
query ($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      partitionStats { numMaterialized numFailed }
      assetPartitionStatuses { ... on TimePartitionStatuses { ranges { status startKey endKey } } }
    }
  }
}
"""
_OF_CHECKS = """
query ($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      assetChecksOrError {
        ... on AssetChecks {
          checks {
            name
            partitionStatuses { ... on AssetCheckTimePartitionStatuses { ranges { status startKey endKey } } }
            executionForLatestMaterialization { status evaluation { severity description } }
          }
        }
      }
    }
  }
}
"""
Ranges = list[dict[str, str]]


def days_of_asset(daemon: Daemon, table: str) -> dict[str, list[str]]:
    """The days of a table by what the tab *Partitions* of its asset calls them."""
    node = ask(daemon, _OF_ASSET, key={"path": [table]})["assetNodeOrError"]
    shown = _by_status(node["assetPartitionStatuses"]["ranges"])
    assert len(shown.get("FAILED", ())) == node["partitionStats"]["numFailed"]
    return shown


def days_of_check(daemon: Daemon, table: str, check: str) -> dict[str, list[str]]:
    """The days of a table by what the tab *Partitions* of a check calls them."""
    return _by_status(_check(daemon, table, check)["partitionStatuses"]["ranges"])


def newest_of_check(daemon: Daemon, table: str, check: str) -> dict[str, Any]:
    """What the overview of an asset shows of a check."""
    return dict(_check(daemon, table, check)["executionForLatestMaterialization"])


def _check(daemon: Daemon, table: str, check: str) -> dict[str, Any]:
    node = ask(daemon, _OF_CHECKS, key={"path": [table]})["assetNodeOrError"]
    [found] = [found for found in node["assetChecksOrError"]["checks"] if found["name"] == check]
    return dict(found)


def _by_status(ranges: Ranges) -> dict[str, list[str]]:
    shown: defaultdict[str, list[str]] = defaultdict(list)
    for of_range in ranges:
        day, last = date.fromisoformat(of_range["startKey"]), date.fromisoformat(of_range["endKey"])
        while day <= last:
            shown[of_range["status"]].append(str(day))
            day += timedelta(days=1)
    return dict(shown)
