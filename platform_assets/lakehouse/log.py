"""Which files make up a table at a version, by day, with their statistics to the letter.

Folded from the newest usable checkpoint and the commits after it. The log holds URL-encoded paths; everything above
this module, and deltalake's `AddAction`, works with decoded ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from platform_assets.contracts import DAY
from platform_assets.lakehouse import commits, storage
from platform_assets.lakehouse.errors import (
    DamagedTableError,
    NullDayError,
    StagedFileError,
)
from platform_assets.lakehouse.lake import Lake, table_name
from platform_assets.lakehouse.manifest import DataFile

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_DECIMAL = re.compile(r"decimal\(\d+,(\d+)\)")
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
_EXACT = 2**53
"""Whole numbers below it are exact as floating-point numbers."""


@dataclass(frozen=True)
class Snapshot:
    """A table at a version.

    Args:
        version: the version.
        schema_string: Delta schema.
        metadata: id, columns and properties of the table, to see whether somebody altered it.
        files: live files by decoded path.
        days: the day of each file, by path; None for rows without one.
    """

    version: int
    schema_string: str
    metadata: tuple[str, ...]
    files: dict[str, DataFile]
    days: dict[str, date | None]

    def by_day(self) -> dict[date | None, dict[str, DataFile]]:
        """The live files of every day that has some, by path."""
        found: dict[date | None, dict[str, DataFile]] = {}
        for path, file in self.files.items():
            found.setdefault(self.days[path], {})[path] = file
        return found


def snapshot(table_path: Path, version: int | None = None) -> Snapshot:
    """Fold a table's log.

    Args:
        table_path: folder of the table.
        version: version wanted; the head by default.

    Raises:
        DamagedTableError: there is no such version, or the table needs Delta features beyond protocol 1/2.
    """
    wanted = commits.head_version(table_path) if version is None else version
    _require(table_path, wanted)
    start, state = _from_checkpoint(table_path, wanted)
    for number in range(start + 1, wanted + 1):
        state.apply(commits.actions(table_path, number))
    return Snapshot(
        wanted, state.schema_string, state.metadata, state.files, {path: state.days[path] for path in state.files}
    )


def head_of(table_path: Path) -> Snapshot | None:
    """The newest version of a table; None if there is no table yet.

    Raises:
        DamagedTableError: as `snapshot`.
    """
    return snapshot(table_path) if commits.head_version(table_path) >= 0 else None


def schema_string_at(table_path: Path, version: int) -> str:
    """The Delta schema of a table at a version, without looking at its files.

    Raises:
        DamagedTableError: there is no such version.
    """
    _require(table_path, version)
    summed_up = commits.checkpoint_hint(table_path)
    for number in range(version, -1, -1):
        for action in commits.actions(table_path, number):
            if "metaData" in action:
                return str(action["metaData"]["schemaString"])
        if number - 1 <= summed_up:
            break
    return _checkpointed_schema(table_path, version) or snapshot(table_path, version).schema_string


def _require(table_path: Path, version: int) -> None:
    if version < 0 or not storage.exists(commits.commit_file(table_path, version)):
        raise DamagedTableError(
            f"{table_name(table_path)} has no version {version}.",
            "Check that the lake's folder is complete; restore the table from a backup if it was deleted.",
        )


def live_files(table_path: Path, version: int | None = None) -> dict[date, tuple[DataFile, ...]]:
    """The live files of each day, sorted by path.

    Args:
        table_path: folder of the table.
        version: version wanted; the head by default.

    Raises:
        NullDayError: rows have no day.
        DamagedTableError: there is no such version.
    """
    return files_of_days(snapshot(table_path, version), table_name(table_path))


def staged_files(lake: Lake, table: str, publication: str) -> tuple[str, dict[date, tuple[DataFile, ...]]]:
    """What a publication staged for a table: Delta schema, and the files of each day relative to the table's folder.

    Raises:
        StagedFileError: nothing was staged.
        NullDayError: staged rows have no day.
    """
    folder = lake.stage_path(table, publication)
    if commits.head_version(folder) < 0:
        raise StagedFileError(
            f"Publication {publication} staged nothing for {table}: {folder} has no Delta log.",
            "Write the computed days there as a Delta table before publishing.",
        )
    staged = snapshot(folder)
    scales = _scales(staged.schema_string)
    files = {
        day: tuple(
            file.model_copy(update={"path": f"{publication}/{file.path}", "stats": _exact(file.stats, scales)})
            for file in files
        )
        for day, files in files_of_days(staged, table).items()
    }
    return staged.schema_string, files


def _scales(schema_string: str) -> dict[str, int]:
    """Digits after the point of every decimal column."""
    fields = json.loads(schema_string)["fields"]
    found = {field["name"]: _DECIMAL.fullmatch(str(field["type"])) for field in fields}
    return {name: int(match[1]) for name, match in found.items() if match}


def _exact(stats: str, scales: Mapping[str, int]) -> str:
    """Statistics without the bounds that lost digits as floating-point numbers: a reader would skip rows by them."""
    if not scales:
        return stats
    found = json.loads(stats)
    bounds = [found.get("minValues", {}), found.get("maxValues", {})]
    rounded = [
        name
        for name, scale in scales.items()
        if any(abs(bound.get(name) or 0) * 10**scale >= _EXACT for bound in bounds)
    ]
    for bound in bounds if rounded else ():
        for name in rounded:
            bound.pop(name, None)
    return json.dumps(found) if rounded else stats


def files_of_days(found: Snapshot, table: str) -> dict[date, tuple[DataFile, ...]]:
    """The live files of each day of a table that was read, sorted by path.

    Raises:
        NullDayError: rows have no day.
    """
    by_day: dict[date, tuple[DataFile, ...]] = {}
    for day, files in found.by_day().items():
        if day is None:
            raise NullDayError(
                f"{table} has rows without {DAY}, for example in {min(files)}.",
                f"Rows whose {DAY} is null belong to quarantine; filter them out before staging.",
            )
        by_day[day] = tuple(files[path] for path in sorted(files))
    return dict(sorted(by_day.items()))


class State:
    """What a log says up to some commit.

    Args:
        where: name of the table, for messages.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.schema_string = ""
        self.metadata: tuple[str, ...] = ()
        self.files: dict[str, DataFile] = {}
        self.days: dict[str, date | None] = {}

    def apply(self, actions: Iterable[commits.Action]) -> None:
        """Removes first: within a commit their order to the adds means nothing."""
        actions = list(actions)
        for action in actions:
            if (found := action.get("remove")) is not None:
                self.files.pop(unquote(found["path"]), None)
        for action in actions:
            if (found := action.get("add")) is not None:
                self._add(found)
            elif (found := action.get("metaData")) is not None:
                self.schema_string = found["schemaString"]
                properties = sorted(dict(found["configuration"]).items())
                self.metadata = (found["id"], self.schema_string, *(f"{k}={v}" for k, v in properties))
                self._check(list(found["partitionColumns"]) == [DAY], f"is not partitioned by {DAY}")
            elif (found := action.get("protocol")) is not None:
                self._check(
                    found["minReaderVersion"] <= 1 and found["minWriterVersion"] <= 2,
                    f"has protocol {found['minReaderVersion']}/{found['minWriterVersion']}, not 1/2",
                )

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


def _from_checkpoint(table_path: Path, version: int) -> tuple[int, State]:
    hint = commits.checkpoint_hint(table_path)
    folder = table_path / "_delta_log"
    if 0 <= hint <= version:
        single = folder / f"{hint:020d}.checkpoint.parquet"
        if storage.exists(single) and (state := _checkpointed(table_path, [single])):
            return hint, state
    parts: dict[int, list[tuple[int, Path]]] = {}
    for name in storage.names(folder):
        if (match := _CHECKPOINT.fullmatch(name)) and int(match[1]) <= version:
            parts.setdefault(int(match[1]), []).append((int(match[2] or 1), folder / name))
    for number in sorted(parts, reverse=True):
        whole = parts[number][0][0] == len(parts[number])
        files = [path for _, path in parts[number]]
        if whole and (state := _checkpointed(table_path, files)):
            return number, state
    return -1, State(table_name(table_path))


def _checkpointed(table_path: Path, files: list[Path]) -> State | None:
    import pyarrow as pa  # which only few tables need: most have no checkpoint
    import pyarrow.parquet as pq

    state = State(table_name(table_path))
    try:
        for file in files:
            with pq.ParquetFile(file) as parquet:
                state.apply(_rows(parquet.read(columns=_COLUMNS)))
    except (pa.ArrowInvalid, OSError):
        return None  # torn by a power cut: the commits it sums up are all still there
    return state


def _checkpointed_schema(table_path: Path, version: int) -> str:
    """What a checkpoint says of a table's columns; empty where it cannot be told from one file."""
    hint = commits.checkpoint_hint(table_path)
    file = table_path / "_delta_log" / f"{hint:020d}.checkpoint.parquet"
    if not 0 <= hint <= version or not storage.exists(file):
        return ""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parquet:
            column = parquet.read(columns=["metaData.schemaString"]).column("metaData")
    except (pa.ArrowInvalid, OSError):
        return ""
    said = [one["schemaString"] for one in column.combine_chunks().drop_null().to_pylist()]
    return next((schema for schema in said if schema), "")


def _rows(table: Any) -> Iterator[commits.Action]:
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield {
                name: value
                for name, value in row.items()
                if value is not None and any(part is not None for part in value.values())
            }
