"""Propose the contract of a raw table that reads a table of PostgreSQL or a topic of Kafka, from a sample of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qsl

from platform_assets.sources.inference import InferenceError, Proposal, propose
from platform_assets.sources.kafka import KafkaTopic
from platform_assets.sources.kafka_records import IS_TOMBSTONE, OFFSET
from platform_assets.sources.postgres import PostgresTable
from platform_assets.sources.postgres_rows import IS_DELETED, READ_AT, ROW_HASH
from platform_assets.sources.source import SourceError

_NUMBERS = ("int", "long", "double", "decimal", "boolean")
_LINES = 1_000


def proposed(variable: str, name: str, options: str, *, folder: str) -> Proposal:
    """Propose how a raw table reads a table or a topic.

    Args:
        variable: environment variable with the URL.
        options: what else the source declares, as `format=avro&registry_env=SHOP_REGISTRY_URL`.
        folder: of the source, below the landing root.

    Raises:
        InferenceError: no contract can be made of what is there.
        SourceError: it cannot be read, or the variable has no URL.
    """
    more: Mapping[str, Any] = dict(parse_qsl(options))
    kind: type[PostgresTable | KafkaTopic]
    match os.environ.get(variable, "").partition("://")[0]:
        case "postgresql" | "postgres":
            kind, what, known = PostgresTable, "table", {"watermark"}
        case "kafka":
            kind, what, known = KafkaTopic, "topic", {"format", "registry_env", "schema", "message"}
        case _:
            raise SourceError(
                f"The environment variable {variable} has no URL of PostgreSQL or Kafka.",
                f"Set {variable}='postgresql://reader:password@host/database', or 'kafka://user:password@broker:9092'.",
            )
    if unknown := more.keys() - known:
        raise SourceError(
            f"A {kind.__name__} has no {', '.join(sorted(unknown))} here.",
            f"Leave it out, or give one of {', '.join(sorted(known))}; declare the rest in the contract later.",
        )
    declared: Mapping[str, Any] = {what: name, **more}
    source = kind(folder, url_env=variable, **declared)
    with TemporaryDirectory(prefix="platform-assets-") as at:
        file = source.sample(Path(at))
        if not file.stat().st_size:
            raise InferenceError(f"{name} has no rows.", "Begin once it has some.")
        found = propose([file], folder)
        if isinstance(source, PostgresTable):
            return _of_table(found, source, file)
        return _of_topic(found, source)


def _of_table(found: Proposal, source: PostgresTable, file: Path) -> Proposal:
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, _LINES)]
    texts = {name for row in rows for name, value in row.items() if isinstance(value, str | list | dict)}
    columns = {}
    for column in found.columns:
        name = str(column.path[0]) if column.path else column.source_name or column.name
        is_text = bool(column.path) or (name in texts and column.type.startswith(_NUMBERS))
        plain = replace(column, name=name if column.path else column.name, path=(), may_be_absent=False)
        columns[name] = replace(plain, type="string", additive=True) if is_text else plain
    watermark = found.chosen["updated_at"] or source.watermark
    chosen = {**found.chosen, "source": replace(source, watermark=watermark)}
    own = {READ_AT: f"{found.day}T00:00:00Z", IS_DELETED: "false", ROW_HASH: "1"}
    return _read_by(
        replace(found, columns=tuple(columns.values())), chosen | {"updated_at": READ_AT, "voided": IS_DELETED}, own
    )


def _of_topic(found: Proposal, source: KafkaTopic) -> Proposal:
    newest, voided = found.chosen["updated_at"], found.chosen["voided"]
    chosen = {**found.chosen, "source": source}
    chosen |= {"updated_at": (newest, OFFSET) if newest else OFFSET}
    chosen |= {"voided": f"{IS_TOMBSTONE} OR {voided}" if voided else IS_TOMBSTONE}
    return _read_by(found, chosen, {"kafka_partition": "0", OFFSET: "1", IS_TOMBSTONE: "false"})


def _read_by(found: Proposal, chosen: Mapping[str, Any], own: Mapping[str, str]) -> Proposal:
    names = {column.name for column in found.columns}
    given = [{**{name: value for name, value in row.items() if name in names}, **own} for row in found.given]
    typed = [{name: value for name, value in row.items() if name in names} for row in found.typed]
    notes = {name: note for name, note in found.notes.items() if name not in ("updated_at", "voided")}
    return replace(found, chosen=chosen, notes=notes, given=given, typed=typed)
