"""The text of a commit that leaves a table as it is but for some files: who made it, which files leave, which enter.

deltalake writes the same, and for that reads the whole table first, which takes many times as long as the commit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from platform_assets.records.manifest import DataFile, platform_version

Entry = tuple[DataFile, Mapping[str, str | None]]
"""A file and its partition values."""

_PLAIN = re.compile(r"[A-Za-z0-9._=/-]+")
"""Paths that every writer of a log spells alike."""


def is_plain(entries: Sequence[Entry]) -> bool:
    """Whether the paths of files are written as they are: others are encoded, by each library in its own way.

    Readers take a file that leaves and one that entered for the same only if both are encoded alike.
    """
    return all(_PLAIN.fullmatch(file.path) for file, _ in entries)


def commit_text(
    removes: Sequence[Entry], adds: Sequence[Entry], said: Mapping[str, str], partition_by: Sequence[str]
) -> bytes:
    """A commit, one action a line, as Delta's protocol has it.

    Args:
        removes: live files that leave; their paths are plain.
        adds: files that enter; likewise.
        said: metadata of the commit.
        partition_by: columns by which the table is partitioned.
    """
    now_ms = time.time_ns() // 1_000_000
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": to_json(list(partition_by)).decode()},
        "engineInfo": f"platform-assets/{platform_version() or 'unknown'}",
        **said,
    }
    leaving = ({"remove": _remove(file, values, now_ms)} for file, values in removes)
    entering = ({"add": _add(file, values)} for file, values in adds)
    return b"".join(to_json(action) + b"\n" for action in ({"commitInfo": info}, *leaving, *entering))


def _remove(file: DataFile, values: Mapping[str, str | None], now_ms: int) -> dict[str, Any]:
    return {
        "path": file.path,
        "dataChange": True,
        "deletionTimestamp": now_ms,
        "extendedFileMetadata": True,
        "partitionValues": dict(values),
        "size": file.size,
    }


def _add(file: DataFile, values: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "path": file.path,
        "partitionValues": dict(values),
        "size": file.size,
        "modificationTime": file.modified_ms,
        "dataChange": True,
        "stats": file.stats,
    }
