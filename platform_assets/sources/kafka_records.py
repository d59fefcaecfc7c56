"""Convert records of a Kafka topic to lines of JSON: what raw takes of them, or why one is unreadable."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from platform_assets.contracts import Column, Contract
from platform_assets.records.raw_rows import UNREADABLE
from platform_assets.sources.kafka_broker import Record
from platform_assets.sources.source import SourceError

PARTITION, OFFSET, MOMENT, KEY, IS_TOMBSTONE = (
    "kafka_partition",
    "kafka_offset",
    "kafka_timestamp",
    "kafka_key",
    "is_tombstone",
)
RECORD = (
    Column(PARTITION, "int", "Partition of the record.", nullable=False, additive=False),
    Column(OFFSET, "long", "Offset of the record in its partition.", nullable=False, additive=False),
    Column(MOMENT, "timestamp", "When the record was written, as its producer or the broker says, UTC."),
    Column(KEY, "string", "Key of the record: text, JSON of a structure, or base64 of other bytes."),
    Column(IS_TOMBSTONE, "boolean", "Whether the record has no value, which takes its key back."),
)
"""Columns that each record adds; the contract of a raw table that is read from Kafka ends with them."""

Format = Literal["json", "avro", "protobuf"]
_MAGIC = b"\0"
_ID_BYTES = 5
_ANSWERS_S = 10
_NOT_FOUND = 404
_LONGEST = 16 << 20
"""Bytes of a line, as ingest takes it."""
_KEPT = 64 << 10
_SHOWN = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Decode = Callable[[bytes], Any]


class UnreadableError(Exception):
    """A record cannot be decoded; the text says why."""


@dataclass
class Registry:
    """Schemas of a registry, each fetched once.

    Args:
        url_env: the environment variable with its address; empty if there is none.
    """

    url_env: str
    known: dict[int, Decode] = field(default_factory=dict)

    def decode(self, data: bytes) -> Any:
        """Decode bytes after the number of their schema; any error of the libraries means that they do not fit.

        Raises:
            UnreadableError: the registry does not know the schema.
            SourceError: the registry does not answer.
        """
        number = int.from_bytes(data[1:_ID_BYTES], "big")
        if number not in self.known:
            self.known[number] = self._decoder(number)
        return self.known[number](data[_ID_BYTES:])

    def _decoder(self, number: int) -> Decode:
        schema = self._get(f"schemas/ids/{number}")
        match schema.get("schemaType", "AVRO"):
            case "AVRO":
                return avro_decoder([*self._references(schema), schema["schema"]])
            case "PROTOBUF":
                form = "?format=serialized"
                texts = [*self._references(schema, form), self._get(f"schemas/ids/{number}{form}")["schema"]]
                return protobuf_decoder([base64.b64decode(text) for text in texts])
            case _:
                return _json_object

    def _references(self, schema: Mapping[str, Any], form: str = "") -> list[str]:
        """Return the schemas to which one refers, each after its own references."""
        texts: list[str] = []
        for each in schema.get("references") or ():
            found = self._get(f"subjects/{each['subject']}/versions/{each['version']}{form}")
            texts += [*self._references(found, form), found["schema"]]
        return list(dict.fromkeys(texts))

    def _get(self, path: str) -> Mapping[str, Any]:
        import requests

        base = os.environ.get(self.url_env, "").strip().rstrip("/")
        try:
            answer = requests.get(f"{base}/{path}", timeout=_ANSWERS_S, allow_redirects=False)
            if answer.status_code == _NOT_FOUND:
                raise UnreadableError(f"the registry has no {path}")
            answer.raise_for_status()
            found: Mapping[str, Any] = answer.json()
        except (requests.RequestException, ValueError) as error:  # whose words may quote the address
            response = getattr(error, "response", None)
            why = type(error).__name__ if response is None else f"it answers {response.status_code}"
            raise SourceError(
                f"The registry of schemas ({self.url_env}) was not read: {why}.",
                f"Nothing of this reading was kept; run the same again, or set {self.url_env}='https://user:password@host'.",
            ) from None
        return found


@dataclass
class Lines:
    """Convert the records of one topic.

    Args:
        contract: None if only values are asked for.
        schema: schema of values without a schema's number: a file of Avro, or a descriptor set of protobuf.
        message: name of the protobuf message in it.
    """

    contract: Contract | None
    format: Format
    registry: Registry
    schema: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        own = {column.name for column in RECORD}
        declared = self.contract.columns if self.contract else ()
        columns = {column: _steps(column) for column in declared if column.name not in own}
        self._needed = {column: steps for column, steps in columns.items() if not column.may_be_absent}
        self._key = [steps for column, steps in columns.items() if self.contract and column.name in self.contract.key]
        self._names = frozenset(steps[0] for steps in self._needed.values())
        self._own = own | {UNREADABLE}
        self._by_file = self._decoder() if self.schema else None

    def line(self, record: Record) -> bytes:
        """Return a record as a line.

        Raises:
            SourceError: the registry does not answer.
        """
        when = None if record.moment is None else _plain(_EPOCH + timedelta(milliseconds=record.moment))
        own = {PARTITION: record.partition, OFFSET: record.offset, MOMENT: when, KEY: None, IS_TOMBSTONE: False}
        try:
            if record.problem:
                raise UnreadableError(record.problem)
            key, own[KEY] = (None, None) if record.key is None else self._of_key(record.key)
            if record.value is None:
                return _ended(_dumped({**self._tombstone(key), **own, IS_TOMBSTONE: True}))
            value, text = self._of_value(record.value)
            self._expect(value)
            body = text.strip().replace("\n", " ").replace("\r", " ")[:-1]
            line = _ended(f"{body}{',' if value else ''}{_dumped(own)[1:]}")
            if len(line) > _LONGEST:
                raise UnreadableError(f"has more than {_LONGEST >> 20} MiB")
            return line
        except (SourceError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - libraries fail at hostile bytes in any way
            why = str(error) if isinstance(error, UnreadableError) else f"cannot be decoded: {_first_line(error)}"
            where = f"partition {record.partition}, offset {record.offset}: {why}"
            row = {**dict.fromkeys(self._names), **own, KEY: None, UNREADABLE: where}
            return _ended(_dumped({**row, "_value": _text((record.value or b"")[:_KEPT])}))

    def value_line(self, record: Record) -> bytes:
        """Return the value of a record as a line without anything else; none of one without a value, or unreadable.

        Raises:
            SourceError: the registry cannot be asked.
        """
        try:
            text = self._of_value(record.value)[1] if record.value is not None else ""
        except (SourceError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - libraries fail at hostile bytes in any way
            return b""
        return _ended(text.strip().replace("\n", " ").replace("\r", " ")) if text else b""

    def _of_value(self, data: bytes) -> tuple[Any, str]:
        """Return a value, and it as JSON: JSON text stays unchanged."""
        has_number = data[:1] == _MAGIC and bool(self.registry.url_env)
        if self.format == "json":
            data = data[_ID_BYTES:] if has_number else data
            return _json_object(data), data.decode()
        if self._by_file is None and not has_number:
            raise UnreadableError("does not begin with the number of a schema")
        value = self._by_file(data) if self._by_file else self.registry.decode(data)
        return value, _dumped(value)

    def _decoder(self) -> Decode:
        try:
            content = Path(self.schema).read_bytes()
            return avro_decoder([content.decode()]) if self.format == "avro" else set_decoder(content, self.message)
        except Exception as error:
            whose = self.contract.name if self.contract else "a topic"
            raise SourceError(
                f"The schema {self.schema} of {whose} cannot be used: {_first_line(error)}.",
                "Name a file of Avro (.avsc), or a descriptor set (protoc --include_imports --descriptor_set_out=…) "
                "that has the `message`.",
            ) from error

    def _of_key(self, data: bytes) -> tuple[Any, str]:
        """Return a key, and it as text."""
        if data[:1] == _MAGIC and self.registry.url_env:
            key = self.registry.decode(data)
            return key, key if isinstance(key, str) else _dumped(key)
        text = _text(data)
        try:
            return _json_object(data), text
        except ValueError:
            return text, text

    def _tombstone(self, key: Any) -> dict[str, Any]:
        """Return the columns of a record without a value: those of the contract's key, from the record's own key."""
        columns: dict[str, Any] = dict.fromkeys(self._names)
        for steps in self._key:
            value = _at(key, steps) if isinstance(key, dict) else key if len(self._key) == 1 else None
            for step in reversed(steps[1:]):
                value = {step: value}
            columns[steps[0]] = value
        return columns

    def _expect(self, value: Any) -> None:
        if taken := sorted(self._own & value.keys()):
            raise UnreadableError(f"has a field {taken[0]}, a name of the platform's own")
        for column, steps in self._needed.items():
            if _at(value, steps, _ABSENT) is _ABSENT:
                raise UnreadableError(
                    f"lacks {'.'.join(map(str, steps))}; where that means null, declare {column.name} with "
                    "may_be_absent=True"
                )


_ABSENT = object()


def _steps(column: Column) -> tuple[Any, ...]:
    return column.path or (column.source_name or column.name,)


def _at(value: Any, steps: tuple[Any, ...], absent: Any = None) -> Any:
    """Return the value at a path; None within a null and after the end of a list."""
    for step in steps:
        if value is None:
            return None
        try:
            value = value[step]
        except IndexError:
            return None
        except (KeyError, TypeError):
            return absent
    return value


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _json_object(data: bytes) -> dict[str, Any]:
    # Numbers stay texts: Python makes none of one that is too long.
    value = json.loads(data.decode(), parse_int=str, parse_float=str, parse_constant=_no_number)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def _ended(line: str) -> bytes:
    return f"{line}\n".encode()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:_SHOWN]


def _dumped(value: Any) -> str:
    return json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)


def _plain(value: object) -> str:
    match value:
        case Decimal():
            return format(value, "f")
        case date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


def avro_decoder(schemas: Sequence[str]) -> Decode:
    """Return a decoder for Avro by the last of some schemas, which may refer to those before it."""
    from fastavro import parse_schema, schemaless_reader

    named: dict[str, Any] = {}
    schema = [parse_schema(json.loads(text), named_schemas=named) for text in schemas][-1]

    def decode(data: bytes) -> Any:
        stream = io.BytesIO(data)
        value = schemaless_reader(stream, schema, None)
        if rest := len(data) - stream.tell():
            raise UnreadableError(f"has {rest} bytes behind what its schema says")
        return value

    return decode


def _pool(files: Iterable[bytes]) -> tuple[Any, str]:
    """Return the messages of some protobuf files, each after its imports, and the last file's name."""
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        descriptor_pool,
        duration_pb2,
        empty_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    brought = (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    pool, name = descriptor_pool.DescriptorPool(), ""
    for each in (*(module.DESCRIPTOR.serialized_pb for module in brought), *files):
        name = descriptor_pb2.FileDescriptorProto.FromString(each).name
        pool.AddSerializedFile(each)
    return pool, name


def set_decoder(content: bytes, message: str) -> Decode:
    """Return a decoder for one protobuf message, from a file that protoc wrote."""
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(content).file
    kind = _pool(file.SerializeToString() for file in files)[0].FindMessageTypeByName(message)
    return lambda data: _protobuf(kind, data)


def protobuf_decoder(files: Iterable[bytes]) -> Decode:
    """Return a decoder for protobuf values that begin with the index of their message in the last of some files."""
    pool, name = _pool(files)
    file = pool.FindFileByName(name)

    def decode(data: bytes) -> Any:
        count, at = _varint(data, 0)
        places = []
        for _ in range(count):
            place, at = _varint(data, at)
            places.append(place)
        places = places or [0]  # which is written as no place at all
        kind = list(file.message_types_by_name.values())[places[0]]
        for place in places[1:]:
            kind = kind.nested_types[place]
        return _protobuf(kind, data[at:])

    return decode


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number, and where it ends."""
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            return (number >> 1) ^ -(number & 1), at


def _protobuf(kind: Any, data: bytes) -> Any:
    from google.protobuf import json_format, message_factory

    message = message_factory.GetMessageClass(kind).FromString(data)
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
