"""What a table's log says up to some commit: applied action by action, or read from a checkpoint that sums it up.

The log holds URL-encoded paths; everything above `lakehouse.delta.log` works with decoded ones.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any
from urllib.parse import unquote

from pydantic_core import from_json

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import table_name
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.records.manifest import DataFile

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_COLUMNS = [
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.modificationTime",
    "add.stats",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.id",
    "metaData.configuration",
    "protocol.minReaderVersion",
    "protocol.minWriterVersion",
]
_NULL_DAYS = {"", "__HIVE_DEFAULT_PARTITION__"}


class State:
    """What a log says up to some commit.

    Args:
        where: name of the table, for messages.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.schema_string = ""
        self.metadata: tuple[str, ...] = ()
        self.has_protocol = False
        self.files: dict[str, DataFile] = {}
        self.days: dict[str, date | None] = {}

    def apply(self, actions: Iterable[commits.Action]) -> None:
        """Apply a commit's actions, removes first: their order to the adds means nothing."""
        actions = list(actions)
        for action in actions:
            if (remove := action.get("remove")) is not None:
                self.files.pop(unquote(remove["path"]), None)
        for action in actions:
            if (add := action.get("add")) is not None:
                self._add(add)
            elif (metadata := action.get("metaData")) is not None:
                self.schema_string = metadata["schemaString"]
                properties = sorted(dict(metadata["configuration"]).items())
                self.metadata = (metadata["id"], self.schema_string, *(f"{k}={v}" for k, v in properties))
                self._check(list(metadata["partitionColumns"]) == [DAY], f"is not partitioned by {DAY}")
            elif (protocol := action.get("protocol")) is not None:
                self.has_protocol = True
                self._check(
                    protocol["minReaderVersion"] <= 1 and protocol["minWriterVersion"] <= 2,
                    f"has protocol {protocol['minReaderVersion']}/{protocol['minWriterVersion']}, not 1/2",
                )

    def lacking(self) -> str | None:
        """Return what every log has to say and this one does not; None where it says all."""
        if not self.has_protocol:
            return "no protocol action"
        if not self.metadata:
            return "no metaData action"
        return None if is_schema(self.schema_string) else "no schema in its metaData"

    def _add(self, add: commits.Action) -> None:
        path = unquote(add["path"])
        value = dict(add["partitionValues"]).get(DAY)
        self.days[path] = None if value is None or value in _NULL_DAYS else date.fromisoformat(value)
        self.files[path] = DataFile(
            path=path,
            size=add["size"],
            modified_ms=add["modificationTime"],
            stats=add.get("stats") or "{}",
        )

    def _check(self, fine: bool, problem: str) -> None:
        if not fine:
            raise DamagedTableError(
                f"{self.where} {problem}, so not every writer here understands its log.",
                "Undo the upgrade of the table (revert_foreign), or stage with plain Delta settings.",
            )


def is_schema(text: object) -> bool:
    """Return whether a text names columns as Delta does."""
    try:
        return isinstance(from_json(str(text))["fields"], list)
    except (ValueError, LookupError, TypeError):
        return False


def from_checkpoint(table_path: Location, version: int) -> tuple[int, State]:
    """Read the newest usable checkpoint up to a version, with its version; -1 and nothing where there is none."""
    hint = commits.checkpoint_hint(table_path)
    folder = table_path / "_delta_log"
    if 0 <= hint <= version:
        single = folder / f"{hint:020d}.checkpoint.parquet"
        if single.exists() and (state := _checkpointed(table_path, [single])):
            return hint, state
    parts: dict[int, list[tuple[int, Location]]] = {}
    for name in folder.names():
        if (match := _CHECKPOINT.fullmatch(name)) and int(match[1]) <= version:
            parts.setdefault(int(match[1]), []).append((int(match[2] or 1), folder / name))
    for number in sorted(parts, reverse=True):
        whole = parts[number][0][0] == len(parts[number])
        files = [path for _, path in parts[number]]
        if whole and (state := _checkpointed(table_path, files)):
            return number, state
    return -1, State(table_name(table_path))


def _checkpointed(table_path: Location, files: list[Location]) -> State | None:
    import pyarrow as pa  # which only few tables need: most have no checkpoint

    state = State(table_name(table_path))
    try:
        for file in files:
            with opened(file) as parquet:
                state.apply(_rows(parquet.read(columns=_COLUMNS)))
    except (pa.ArrowException, OSError, ValueError):
        return None  # torn by a power cut, or damaged since: the commits it sums up are all still there
    return None if state.lacking() else state


def checkpointed_schema(table_path: Location, version: int) -> str:
    """Return what a checkpoint says of a table's columns; empty where it cannot be told from one file."""
    hint = commits.checkpoint_hint(table_path)
    file = table_path / "_delta_log" / f"{hint:020d}.checkpoint.parquet"
    if not 0 <= hint <= version or not file.exists():
        return ""
    import pyarrow as pa

    try:
        with opened(file) as parquet:
            column = parquet.read(columns=["metaData.schemaString"]).column("metaData")
    except (pa.ArrowInvalid, OSError):
        return ""
    said = [row["schemaString"] for row in column.combine_chunks().drop_null().to_pylist()]
    return next((schema for schema in said if schema), "")


def _rows(table: Any) -> Iterator[commits.Action]:
    """Yield the actions in some columns of a checkpoint, without the rows that hold none of them."""
    for name in table.column_names:
        for value in table.column(name).drop_null().to_pylist():
            if any(part is not None for part in value.values()):
                yield {name: value}


def drop_marks(checkpoint: Location, hint: Location) -> None:
    """Take the marks of files that left out of a checkpoint that was just written; killed meanwhile, it is as it was.

    Args:
        hint: the file that names it, with its size.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with opened(checkpoint) as parquet:
        rows = parquet.read()
    kept = rows.filter(pc.is_null(pc.struct_field(rows.column("remove"), "path")))
    if kept.num_rows == rows.num_rows:
        return
    sink = io.BytesIO()
    pq.write_table(kept, sink)
    content = sink.getvalue()
    checkpoint.replace(content)
    said = from_json(hint.read() or b"{}") | {"size": kept.num_rows, "sizeInBytes": len(content)}
    said.pop("checksum", None)
    hint.replace(json.dumps(said).encode())
