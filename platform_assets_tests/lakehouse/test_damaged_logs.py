"""A table whose log does not say what every log says is refused by its name, with what is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from platform_assets.lakehouse.delta.log import schema_string_at, table_snapshot
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets_tests.support.shelf import SALES, day, staged_manifest

Actions = list[dict[str, Any]]


def without(kind: str, field: str | None = None) -> Any:
    def spoil(actions: Actions) -> Actions:
        if field is None:
            return [action for action in actions if kind not in action]
        return [
            {k: {f: v for f, v in said.items() if (k, f) != (kind, field)} for k, said in a.items()} for a in actions
        ]

    return spoil


def with_schema(text: object) -> Any:
    def spoil(actions: Actions) -> Actions:
        return [a if "metaData" not in a else {"metaData": a["metaData"] | {"schemaString": text}} for a in actions]

    return spoil


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without("metaData"), "no metaData action"),
        (without("protocol"), "no protocol action"),
        (without("metaData", "schemaString"), "an action without 'schemaString'"),
        (without("metaData", "partitionColumns"), "an action without 'partitionColumns'"),
        (without("protocol", "minReaderVersion"), "an action without 'minReaderVersion'"),
        (without("add", "path"), "an action without 'path'"),
        (with_schema(""), "no schema in its metaData"),
        (with_schema("{}"), "no schema in its metaData"),
        (with_schema(None), "no schema in its metaData"),
        (lambda actions: [*actions, {"add": "a.parquet"}], "an action that is none of Delta's"),
    ],
)
def test_a_log_without_what_every_log_has_is_refused_by_name(disk_lake: Lake, spoil: Any, says: str) -> None:
    publish(disk_lake, staged_manifest(disk_lake, {SALES: {day(0): [("a", 1)]}}))
    table = disk_lake.table_path(SALES)
    commit = table / "_delta_log" / f"{0:020d}.json"
    actions = spoil([json.loads(line) for line in (commit.read() or b"").splitlines()])
    commit.replace("".join(json.dumps(action) + "\n" for action in actions).encode())
    with pytest.raises(DamagedTableError, match=f"The log of {SALES} has {says}, at version 0: .*_delta_log"):
        table_snapshot(table)
    if "etaData" in says or "schemaString" in says:
        with pytest.raises(DamagedTableError, match=says):
            schema_string_at(table, 0)
