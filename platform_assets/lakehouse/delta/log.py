"""Files of a table at a version, by day, with their statistics from the log.

Folded from the newest usable checkpoint and the commits after it. The log holds URL-encoded paths; everything above
this module, and deltalake's `AddAction`, works with decoded ones.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import unquote

from pydantic_core import from_json

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import (
    DamagedTableError,
    NullDayError,
)
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
    """Content of a log up to some commit."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.schema_string = ""
        self.metadata: tuple[str, ...] = ()
        self.has_protocol = False
        self.files: dict[str, DataFile] = {}
        self.days: dict[str, date | None] = {}

    def apply(self, actions: Iterable[commits.Action]) -> None:
        """Apply a commit's actions, removes first: their order in the commit is arbitrary."""
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
        """Return a required action that this log lacks; None if it has all."""
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
    """Return whether a text is a Delta schema."""
    try:
        return isinstance(from_json(str(text))["fields"], list)
    except (ValueError, LookupError, TypeError):
        return False


def from_checkpoint(table_path: Location, version: int) -> tuple[int, State]:
    """Read the newest usable checkpoint up to a version. Returns its version and state, or -1 and an empty state."""
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
    """Return the schema in a checkpoint; empty if it takes more than one file to find."""
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
    """Yield the actions in some columns of a checkpoint, without rows in which these are null."""
    for name in table.column_names:
        for value in table.column(name).drop_null().to_pylist():
            if any(part is not None for part in value.values()):
                yield {name: value}


def drop_marks(checkpoint: Location, hint: Location) -> None:
    """Remove the tombstones of files from a new checkpoint. If killed, the checkpoint stays unchanged."""
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


@dataclass(frozen=True)
class TableSnapshot:
    """A table at a version.

    Args:
        metadata: id, columns and properties of the table, to detect that another tool altered it.
        days: the day of each file, by path; None for rows without one.
    """

    version: int
    schema_string: str
    metadata: tuple[str, ...]
    files: dict[str, DataFile]
    days: dict[str, date | None]

    def by_day(self) -> dict[date | None, dict[str, DataFile]]:
        """Return the live files of every day with files, by path."""
        by_day: dict[date | None, dict[str, DataFile]] = {}
        for path, file in self.files.items():
            by_day.setdefault(self.days[path], {})[path] = file
        return by_day


def table_snapshot(table_path: Location, version: int | None = None) -> TableSnapshot:
    """Fold a table's log.

    Raises:
        DamagedTableError: the version does not exist, its log lacks a required action, or the table needs Delta
            features beyond protocol 1/2.
    """
    wanted = commits.head_version(table_path) if version is None else version
    _require(table_path, wanted)
    start, state = from_checkpoint(table_path, wanted)
    for number in range(start + 1, wanted + 1):
        actions = commits.actions(table_path, number)
        try:
            state.apply(actions)
        except (KeyError, TypeError, ValueError) as error:
            what = f"an action without {error}" if isinstance(error, KeyError) else "an action that Delta does not have"
            raise _damaged(table_path, number, what) from error
    if lacking := state.lacking():
        raise _damaged(table_path, wanted, lacking)
    return TableSnapshot(
        wanted, state.schema_string, state.metadata, state.files, {path: state.days[path] for path in state.files}
    )


def _damaged(table_path: Location, version: int, what: str) -> DamagedTableError:
    return DamagedTableError(
        f"The log of {table_name(table_path)} has {what}, at version {version}: {table_path / '_delta_log'}.",
        "Restore the folder from a backup; if another tool wrote the table, write it again with a whole log.",
    )


def head_of(table_path: Location) -> TableSnapshot | None:
    """Return the newest version of a table; None if there is no table yet."""
    return table_snapshot(table_path) if commits.head_version(table_path) >= 0 else None


def schema_string_at(table_path: Location, version: int) -> str:
    """Return the Delta schema of a table at a version, without looking at its files."""
    _require(table_path, version)
    summed_up = commits.checkpoint_hint(table_path)
    for number in range(version, -1, -1):
        for action in commits.actions(table_path, number):
            if "metaData" in action:
                schema = (action["metaData"] or {}).get("schemaString")
                return str(schema) if is_schema(schema) else table_snapshot(table_path, version).schema_string
        if number - 1 <= summed_up:
            break
    return checkpointed_schema(table_path, version) or table_snapshot(table_path, version).schema_string


def _require(table_path: Location, version: int) -> None:
    if version < 0 or not commits.has_commit(table_path, version):
        raise DamagedTableError(
            f"{table_name(table_path)} has no version {version}.",
            "Check that the lake's folder is complete; restore the table from a backup if it was deleted.",
        )


def live_files(table_path: Location, version: int | None = None) -> dict[date, tuple[DataFile, ...]]:
    """Return the live files of each day, sorted by path."""
    return files_of_days(table_snapshot(table_path, version), table_name(table_path))


def files_of_days(snapshot: TableSnapshot, table: str) -> dict[date, tuple[DataFile, ...]]:
    """Return the live files of each day of a table that was read, sorted by path.

    Raises:
        NullDayError: some rows have no day.
    """
    by_day: dict[date, tuple[DataFile, ...]] = {}
    for day, files in snapshot.by_day().items():
        if day is None:
            raise NullDayError(
                f"{table} has rows without {DAY}, for example in {min(files)}.",
                f"Rows whose {DAY} is null belong to quarantine; filter them out before staging.",
            )
        by_day[day] = tuple(files[path] for path in sorted(files))
    return dict(sorted(by_day.items()))
