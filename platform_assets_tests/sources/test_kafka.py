"""A topic of Kafka as ranges of offsets, on a real broker and without Spark: files are landed here as readings are."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from shutil import rmtree
from typing import Any, cast

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Contract, ContractError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.sources import kafka as module
from platform_assets.sources import kafka_broker, kafka_records
from platform_assets.sources.kafka import KafkaTopic
from platform_assets.sources.source import Again, Reading, SoFar, SourceError
from platform_assets_tests.support.clicks import RAW, REGISTRY, URL, order
from platform_assets_tests.support.kafka import PASSWORD, Kafka, SchemaRegistry, Topic, registry
from platform_assets_tests.support.processes import free_port

__all__ = ["registry"]
TODAY = date(2026, 3, 10)
DAY_MS = 86_400_000
NEW_YEAR = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture(autouse=True)
def _broker(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, kafka.url)


@dataclass
class Raw:
    """What raw has of a topic: files with the names that readings get, some of them refused whole."""

    folder: Path
    topic: Topic
    options: dict[str, Any] = field(default_factory=dict)
    contract: Contract = RAW
    files: dict[str, bool] = field(default_factory=dict)
    content: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        source = KafkaTopic("orders", topic=self.topic.name, url_env=URL, **self.options)
        self.contract = replace(self.contract, source=source)

    @property
    def source(self) -> KafkaTopic:
        return cast(KafkaTopic, self.contract.source)

    @property
    def so_far(self) -> SoFar:
        return SoFar("", frozenset(), TODAY, Lake.at(self.folder), Release(0, {}), files=self.files)

    def _private(self) -> Path:
        folder = self.folder / "reading"
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def fetch(self) -> Reading | None:
        return self.source.read(self.contract, self.so_far, self._private())

    def read(self) -> list[dict[str, Any]]:
        """Read what is new and take it."""
        return self.take(self.fetch())

    def again(self, first: str = "", upto: str = "", *, accepts_loss: bool = False) -> list[dict[str, Any]]:
        asked = Again("wrong price!", first, upto, accepts_loss)
        return self.take(self.source.again(self.contract, self.so_far, self._private(), asked))

    def take(self, reading: Reading | None, most: int | None = None) -> list[dict[str, Any]]:
        """Land the files of a reading, or the first few of them, as a killed process would have."""
        if reading is None:
            return []
        self.number += 1
        rows: list[dict[str, Any]] = []
        files = [(day, file) for day, some in sorted(reading.files.items()) for file in some]
        for n, (day, file) in enumerate(files[:most], 1):
            name = f"{self.number:08}.{reading.position}.{n}of{len(files)}{''.join(file.suffixes)}"
            assert len(name) <= 240, name
            path = f"orders/{day}/{name}"
            assert path not in self.files
            self.files[path] = True
            self.content[path] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            rows += self.content[path]
        return rows

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Of all records that raw has, and of those that it refused."""
        return sorted((row["kafka_partition"], row["kafka_offset"]) for rows in self.content.values() for row in rows)

    def refused(self) -> list[str]:
        return [row["_unreadable"] for rows in self.content.values() for row in rows if "_unreadable" in row]


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["order_id"] for row in rows]


def test_each_record_is_read_once_with_its_place(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic(2))
    assert raw.fetch() is None
    assert raw.source.waits(raw.contract, raw.so_far) == (0, "read 0 offsets of 0 of 2 partitions")
    text = '{"order_id": 1, "amount": 1.10,\n "ordered_at": "2026-01-01", "x": [12345678901234567890.10]}'
    topic.write(text, key="a", partition=1, timestamp=NEW_YEAR)
    topic.write(order(2), key=b"\xff", partition=0, timestamp=NEW_YEAR + DAY_MS)
    assert raw.source.waits(raw.contract, raw.so_far).rows == 2
    found = raw.fetch()
    assert found
    assert {*found.files} == {date(2026, 1, 1), date(2026, 1, 2)}
    assert found.until == TODAY
    [line] = found.files[date(2026, 1, 1)][0].read_text().splitlines()
    assert '"x": [12345678901234567890.10]' in line  # as it was written, on one line
    assert {name: json.loads(line)[name] for name in [column.name for column in kafka_records.RECORD]} == {
        "kafka_partition": 1,
        "kafka_offset": 0,
        "kafka_timestamp": "2026-01-01T12:00:00+00:00",
        "kafka_key": "a",
        "is_tombstone": False,
    }
    raw.take(found)
    assert raw.fetch() is None
    topic.write(order(3), partition=1, timestamp=NEW_YEAR)
    [third] = raw.read()
    assert (third["order_id"], third["kafka_offset"], raw.offsets) == (3, 1, [(0, 0), (1, 0), (1, 1)])
    assert [row["kafka_key"] for rows in raw.content.values() for row in rows if row["order_id"] == 2] == ["/w=="]
    assert raw.source.waits(raw.contract, raw.so_far) == (0, "read 3 offsets of 2 of 2 partitions")


def test_a_record_arrives_on_its_date_but_not_before_those_ahead_of_it(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic(message_timestamp_after_max_ms=str(10**12)))
    for after in (0, 1, -300, 1, 1_000, 2):
        topic.write(order(after), timestamp=NEW_YEAR + after * DAY_MS)
    raw.read()
    days = {path.split("/")[1]: numbers(rows) for path, rows in raw.content.items()}
    assert days == {"2026-01-01": [0], "2026-01-02": [1, -300, 1], str(TODAY): [1_000, 2]}
    topic.write(order(7), timestamp=NEW_YEAR)
    raw.read()
    assert [path.split("/")[1] for path, rows in raw.content.items() if numbers(rows) == [7]] == [str(TODAY)]


def test_what_was_aborted_or_compacted_is_no_row_and_is_passed(kafka: Kafka, tmp_path: Path) -> None:
    """Records of an open transaction wait, with all behind them."""
    raw = Raw(tmp_path, topic := kafka.topic())
    with topic.transaction() as producer:
        topic.produce(producer, order(1))
    with topic.transaction(aborts=True) as producer:
        topic.produce(producer, order(2), order(3))
    assert numbers(raw.read()) == [1]
    assert raw.fetch() is None  # its marks are passed, too
    with topic.transaction() as producer:
        topic.produce(producer, order(4))
        producer.flush()
        topic.write(order(5))
        assert raw.fetch() is None
    assert numbers(raw.read()) == [4, 5]
    with topic.transaction(aborts=True) as producer:
        topic.produce(producer, order(6))
    assert raw.read() == []
    assert raw.fetch() is None  # though a range without records was read
    compacted = kafka.topic(cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    raw = Raw(tmp_path, compacted)
    for n in range(3):
        compacted.write(order(n), key="same")
    assert numbers(raw.read()) == [0, 1, 2]
    compacted.write(order(3), key="same")
    compacted.write(order(4), key="other")
    assert [n for n in numbers(raw.read()) if n != 3] == [4]


def test_a_tombstone_takes_its_key_back(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic())
    topic.write(None, key='{"order_id": 7}')
    topic.write(None, key="8")
    topic.write(None)
    rows = raw.read()
    assert [(row["order_id"], row["is_tombstone"], row["kafka_key"]) for row in rows] == [
        ("7", True, '{"order_id": 7}'),
        ("8", True, "8"),
        (None, True, None),
    ]
    assert all("ordered_at" in row for row in rows)  # or a file of tombstones alone would lack the column


BROKEN: dict[str | bytes, str] = {
    "not json": "cannot be decoded: Expecting value: line 1 column 1 (char 0)",
    '{"order_id": 1} {}': "cannot be decoded: Extra data: line 1 column 17 (char 16)",
    "[1]": "cannot be decoded: it is no JSON object",
    '{"order_id": NaN}': "cannot be decoded: NaN is no JSON",
    '{"order_id": 1, "ordered_at": "2026-01-01"}': "lacks amount; where that means null, declare amount with "
    "may_be_absent=True",
    '{"order_id": 1, "amount": 1, "ordered_at": null, "kafka_offset": 9}': "has a field kafka_offset, a name of the "
    "platform's own",
    b"\xff\xfe": "cannot be decoded: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
}


def test_a_record_that_cannot_be_parsed_is_refused_with_its_place_and_stops_none(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic())
    topic.write(*BROKEN, order(1))
    rows = raw.read()
    assert raw.refused() == [f"partition 0, offset {n}: {why}" for n, why in enumerate(BROKEN.values())]
    assert rows[-1]["order_id"] == 1
    assert (rows[0]["_value"], rows[-2]["_value"]) == ("not json", base64.b64encode(b"\xff\xfe").decode())


def test_a_record_that_is_too_large_is_refused_without_being_held(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One beyond what ingest takes is fetched; one beyond an answer is not, nor is the one after it lost."""
    monkeypatch.setattr(kafka_broker, "_FETCHED", 1 << 20)
    monkeypatch.setattr(kafka_broker, "_LARGEST", 20 << 20)
    raw = Raw(tmp_path, topic := kafka.topic(2, max_message_bytes="100000000"))
    topic.write(order(1), partition=0)
    topic.write(order(2, note="x" * (17 << 20)), partition=0)
    topic.write(order(3, note="x" * (40 << 20)), order(4), partition=0)
    topic.write(order(5), partition=1)
    assert sorted(n for n in numbers(raw.read()) if n) == [1, 4, 5]
    assert raw.refused() == [
        "partition 0, offset 1: has more than 16 MiB",
        "partition 0, offset 2: has more than 20 MiB, alone or with its batch",
    ]


ORDER_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "ordered_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "lines", "type": {"type": "array", "items": "Line"}},
        {"name": "photo", "type": ["null", "bytes"]},
    ],
}
LINE_AVRO = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
ORDERED = datetime(2026, 1, 1, 10, 0, 0, 1, tzinfo=UTC)


def in_avro(schemas: list[Any], value: Any) -> bytes:
    stream, named = io.BytesIO(), dict[str, Any]()
    parsed = [fastavro.parse_schema(schema, named_schemas=named) for schema in schemas][-1]
    fastavro.schemaless_writer(stream, parsed, value)
    return stream.getvalue()


def order_in_avro(number: int) -> bytes:
    lines = [{"sku": "a"}, {"sku": "b"}]
    value = {"order_id": number, "amount": Decimal("1.10"), "ordered_at": ORDERED, "lines": lines, "photo": b"\xff"}
    return in_avro([LINE_AVRO, ORDER_AVRO], value)


def wire(number: int, content: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + content


IN_JSON = {
    "order_id": 1,
    "amount": "1.10",
    "ordered_at": "2026-01-01T10:00:00.000001+00:00",
    "lines": [{"sku": "a"}, {"sku": "b"}],
    "photo": "/w==",
}


def test_avro_by_a_registry_and_by_a_file(
    kafka: Kafka, registry: SchemaRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REGISTRY, registry.url)
    registry.versions["line", 3] = {"schema": json.dumps(LINE_AVRO)}
    refers = [{"name": "Line", "subject": "line", "version": 3}]
    number = registry.add(json.dumps(ORDER_AVRO), references=refers)
    of_key = registry.add('"long"')
    raw = Raw(tmp_path / "registry", topic := kafka.topic(), {"format": "avro", "registry_env": REGISTRY})
    topic.write(wire(number, order_in_avro(1)), key=wire(of_key, in_avro(["long"], 1)))
    topic.write(wire(99, b""), wire(number, order_in_avro(1)[:-3]), wire(number, order_in_avro(1) + b"!"), b"plain")
    topic.write(None, key=wire(of_key, in_avro(["long"], 5)))
    rows = raw.read()
    assert {name: rows[0][name] for name in IN_JSON} == IN_JSON
    assert (rows[0]["kafka_key"], rows[-1]["order_id"]) == ("1", 5)
    assert [why.partition(": ")[2] for why in raw.refused()] == [
        "the registry has no schemas/ids/99",
        "cannot be decoded: EOFError",
        "has 1 bytes behind what its schema says",
        "does not begin with the number of a schema",
    ]
    assert registry.asked.count(f"/schemas/ids/{number}") == 1
    topic.write(wire(number, order_in_avro(2)))
    monkeypatch.setenv(REGISTRY, f"http://me:s3cret@127.0.0.1:{free_port()}")
    with pytest.raises(SourceError, match=r"SHOP_REGISTRY_URL\) was not read: ConnectionError") as down:
        raw.fetch()
    assert "s3cret" not in str(down.value)
    monkeypatch.setenv(REGISTRY, registry.url.replace("s3cret", "other"))
    with pytest.raises(SourceError, match="it answers 401"):
        raw.fetch()
    monkeypatch.setenv(REGISTRY, registry.url)
    assert numbers(raw.read()) == [2]

    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps({**ORDER_AVRO, "fields": ORDER_AVRO["fields"][:3]}))
    raw = Raw(tmp_path / "file", topic := kafka.topic(), {"format": "avro", "schema": str(schema)})
    value = {"order_id": 1, "amount": Decimal("1.10"), "ordered_at": ORDERED}
    topic.write(in_avro([json.loads(schema.read_text())], value))
    [row] = raw.read()
    assert {name: row[name] for name in value} == {name: IN_JSON[name] for name in value}
    schema.write_text("{}")
    topic.write("x")
    with pytest.raises(SourceError, match=r"order.avsc of raw.orders cannot be used"):
        raw.fetch()


def described() -> list[descriptor_pb2.FileDescriptorProto]:
    """Two files of protobuf: one imports the other, and what protobuf brings along."""
    fields = descriptor_pb2.FieldDescriptorProto
    line = descriptor_pb2.FileDescriptorProto(name="line.proto", package="shop", syntax="proto3")
    line.message_type.add(name="Line").field.add(name="sku", number=1, type=fields.TYPE_STRING, label=1)
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.extend(["line.proto", "google/protobuf/timestamp.proto"])
    file.message_type.add(name="Other")
    message = file.message_type.add(name="Outer").nested_type.add(name="Order")
    message.field.add(name="order_id", number=1, type=fields.TYPE_INT64, label=1)
    message.field.add(name="amount", number=2, type=fields.TYPE_STRING, label=1)
    stamp = ".google.protobuf.Timestamp"
    message.field.add(name="ordered_at", number=3, type=fields.TYPE_MESSAGE, type_name=stamp, label=1)
    message.field.add(name="lines", number=4, type=fields.TYPE_MESSAGE, type_name=".shop.Line", label=3)
    message.field.add(name="photo", number=5, type=fields.TYPE_BYTES, label=1)
    return [line, file]


def order_in_protobuf() -> bytes:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for file in described():
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Outer.Order"))
    made: Any = kind(order_id=1, amount="1.10", lines=[{"sku": "a"}, {"sku": "b"}], photo=b"\xff")
    made.ordered_at.FromDatetime(ORDERED)
    return cast(bytes, made.SerializeToString())


def test_protobuf_by_a_registry_and_by_a_file(
    kafka: Kafka, registry: SchemaRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REGISTRY, registry.url)
    line, file = described()
    for text, each in (("line", line), ("order", file)):
        registry.serialized[text] = base64.b64encode(each.SerializeToString()).decode()
    registry.versions["line", 1] = {"schema": "line", "schemaType": "PROTOBUF"}
    refers = [{"name": "line.proto", "subject": "line", "version": 1}]
    number = registry.add("order", schemaType="PROTOBUF", references=refers)
    raw = Raw(tmp_path / "registry", topic := kafka.topic(), {"format": "protobuf", "registry_env": REGISTRY})
    topic.write(wire(number, b"\x04\x02\x00" + order_in_protobuf()), wire(number, b"\x02\x0e"), wire(number, b""))
    rows = raw.read()
    expected = IN_JSON | {"order_id": "1", "ordered_at": "2026-01-01T10:00:00.000001Z"}
    assert {name: rows[0][name] for name in IN_JSON} == expected
    assert len(raw.refused()) == 2

    schema = tmp_path / "order.desc"
    brought = descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    schema.write_bytes(descriptor_pb2.FileDescriptorSet(file=[brought, *described()]).SerializeToString())
    options = {"format": "protobuf", "schema": str(schema), "message": "shop.Outer.Order"}
    raw = Raw(tmp_path / "file", topic := kafka.topic(), options)
    topic.write(order_in_protobuf(), b"\xff")
    rows = raw.read()
    assert {name: rows[0][name] for name in IN_JSON} == expected
    assert len(raw.refused()) == 1


def test_json_behind_the_number_of_a_schema(
    kafka: Kafka, registry: SchemaRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REGISTRY, registry.url)
    raw = Raw(tmp_path, topic := kafka.topic(), {"registry_env": REGISTRY})
    topic.write(wire(registry.add("{}", schemaType="JSON"), json.dumps(order(1)).encode()), order(2))
    assert numbers(raw.read()) == [1, 2]


def test_a_replay_is_an_arrival_of_its_own_and_keeps_the_position(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic(2))
    for n in range(4):
        topic.write(order(n), partition=n % 2, timestamp=NEW_YEAR + n * DAY_MS)
    raw.read()
    topic.write(order(9), partition=0, timestamp=NEW_YEAR + 9 * DAY_MS)
    assert numbers(raw.again("0:1,1:0", "1:1")) == [1, 2]
    assert sorted(numbers(raw.again("2026-01-02T00:00"))) == [1, 2, 3]
    assert raw.again("2026-01-02T00:00Z", "2026-01-03T12:00:00Z")[-1]["order_id"] == 1
    asked = Again("wrong price!", days=(date(2026, 1, 2), date(2026, 1, 3)))
    assert sorted(numbers(raw.take(raw.source.again(raw.contract, raw.so_far, raw._private(), asked)))) == [1, 2]
    assert [path for path in raw.files if "-wrong-price-." in path and ".again-" in path]
    assert numbers(raw.read()) == [9]
    with pytest.raises(SourceError, match="is asked for 'noon'"):
        raw.again("noon")
    topic.delete_before(0, 1)
    with pytest.raises(SourceError, match=r"has no more offsets 0 to 0 of partition 0"):
        raw.again("0:0")


def test_retention_that_was_faster_names_what_is_lost_and_a_person_accepts_it(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic(2))
    topic.write(order(0), order(1), partition=0)
    raw.read()
    topic.write(*map(order, range(2, 6)), partition=0)
    topic.delete_before(0, 4)
    lost = r"has no more offsets 2 to 3 of partition 0, which were not read"
    with pytest.raises(SourceError, match=lost):
        raw.source.waits(raw.contract, raw.so_far)
    with pytest.raises(SourceError, match=lost):
        raw.fetch()
    assert numbers(raw.again(accepts_loss=True)) == [4, 5]
    assert raw.fetch() is None
    topic.delete_before(0, 6)
    topic.write(order(6), partition=1)
    assert numbers(raw.read()) == [6]
    topic.write(order(7), partition=0)
    topic.delete_before(0, 7)
    assert raw.again(accepts_loss=True) == []  # and nothing came after it yet
    assert raw.fetch() is None


def test_old_records_expire_by_time(kafka: Kafka, tmp_path: Path) -> None:
    """What has expired before it was ever read is not missed."""
    topic = kafka.topic(segment_ms="100")
    topic.write(order(1), timestamp=NEW_YEAR)
    topic.write(order(2))
    topic.configure(retention_ms="60000")
    raw = Raw(tmp_path, topic)
    for _ in range(100):
        if raw.source._broker.look().ranges[0][0] == 1:
            break
    assert numbers(raw.read()) in ([2], [1, 2])


def test_a_topic_that_was_made_again_is_read_once_a_person_says_so(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic())
    topic.write(order(1), order(2))
    raw.read()
    topic.delete()
    topic = kafka.topic(name=topic.name)
    topic.write(*map(order, range(3, 8)))
    with pytest.raises(SourceError, match="was deleted and made again since 2 of its offsets were read"):
        raw.fetch()
    raw.contract, both = replace(raw.contract, updated_at="kafka_offset"), raw.contract
    with pytest.raises(SourceError, match="was made again, and its offsets begin anew"):
        raw.again(accepts_loss=True)
    raw.contract = both
    assert numbers(raw.again(accepts_loss=True)) == [3, 4, 5, 6, 7]
    assert raw.fetch() is None


def test_partitions_that_are_added_are_read_from_their_beginning(kafka: Kafka, tmp_path: Path) -> None:
    from confluent_kafka.admin import NewPartitions

    raw = Raw(tmp_path, topic := kafka.topic())
    topic.write(order(1))
    raw.read()
    admin = kafka.admin()
    [made] = admin.create_partitions([NewPartitions(topic.name, 14)]).values()
    made.result()
    producer = topic.producer()
    for number in range(14):
        topic.produce(producer, order(number), partition=number)
    producer.flush()
    assert sorted(numbers(raw.read())) == [*range(14)]


def test_a_file_that_was_refused_whole_and_removed_is_read_again_and_nothing_else(kafka: Kafka, tmp_path: Path) -> None:
    raw = Raw(tmp_path, topic := kafka.topic())
    for n in range(3):
        topic.write(order(n), timestamp=NEW_YEAR + n * DAY_MS)
    raw.read()
    first, middle, _ = sorted(raw.files)
    for refused, number in ((first, 0), (middle, 1)):
        raw.files[refused] = False
        assert numbers(raw.read()) == [number]
        assert raw.fetch() is None


def test_brokers_that_are_away_and_wrong_passwords_are_named_without_secrets(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_broker, "_ANSWERS_S", 4)
    raw = Raw(tmp_path, topic := kafka.topic())
    topic.write(order(1))
    signed = f"kafka://reader:s3cret%2Freader@{kafka.signed}?security.protocol=SASL_PLAINTEXT"
    monkeypatch.setenv(URL, signed)
    assert numbers(raw.read()) == [1]
    wrong = {
        signed.replace("s3cret", "wr0ng"): "uthentication failed",
        f"kafka://127.0.0.1:{free_port()}": "Connection refused",
        "": "has no URL of Kafka",
        "kafka://x:9092?plugin.library.paths=x": "has the option plugin.library.paths",
        "kafka://x:9092?ssl.ca.location=/nowhere&security.protocol=SSL": "was not read",
    }
    for url, why in wrong.items():
        monkeypatch.setenv(URL, url)
        with pytest.raises(SourceError, match=why) as told:
            raw.fetch()
        assert PASSWORD not in str(told.value)
        assert "wr0ng" not in str(told.value)
    monkeypatch.setenv(URL, kafka.url)
    raw.contract = replace(raw.contract, source=replace(raw.source, topic="nowhere"))
    with pytest.raises(SourceError, match=r"nowhere of Kafka .* is not there"):
        raw.fetch()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"topic": ""}, "reads the topic ''"),
    ({"url_env": "kafka://me:pw@x"}, "url_env that is no name"),
    ({"registry_env": "http://me:pw@x"}, "registry_env that is no name"),
    ({"format": "avro"}, "has avro with schema=''"),
    ({"format": "protobuf", "schema": "x.desc"}, "has protobuf with schema='x.desc'"),
    ({"schema": "x.avsc"}, "has json with schema='x.avsc'"),
    ({"replaces": "days"}, "brings records one by one"),
]


@pytest.mark.parametrize(("options", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_declaration_that_cannot_be_read_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ContractError, match=why) as told:
        KafkaTopic(**({"folder": "orders", "topic": "orders", "url_env": URL} | options))
    assert "pw" not in str(told.value)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"columns": RAW.columns[:-1], "voided": None}, "lacks is_tombstone"),
        ({"updated_at": "ordered_at"}, "does not order versions by kafka_offset at last"),
        ({"voided": None}, "takes no tombstones"),
    ],
)
def test_a_contract_that_records_do_not_fit_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ContractError, match=why):
        replace(RAW, **changes)


def _written(topic: Topic, seed: list[tuple[int, int]]) -> Iterator[None]:
    producer = topic.producer()
    for number, (partition, day) in enumerate(seed):
        topic.produce(producer, order(number), partition=partition, timestamp=NEW_YEAR + day * DAY_MS)
        producer.flush()
        yield


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    writes=st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 3)), min_size=1, max_size=12),
    steps=st.lists(st.sampled_from(["read", "kill", "cut", "again", "refuse"]), max_size=8),
)
def test_any_cut_and_any_kill_give_raw_each_record_once(
    kafka: Kafka, tmp_path: Path, writes: list[tuple[int, int]], steps: list[str]
) -> None:
    """And each with the arrival date that one reading of everything would give it."""
    raw = Raw(tmp_path / "cut", topic := kafka.topic(3))
    writing = _written(topic, writes)
    for step in steps:
        next(writing, None)
        next(writing, None)
        if step == "again" and raw.files:
            raw.again("2026-01-01")
        elif step == "refuse" and (mine := [path for path in raw.content if ".read-" in path]):
            raw.files[mine[0]] = False
            del raw.content[mine[0]]
        else:
            raw.contract = replace(raw.contract, source=replace(raw.source, most_rows=1 if step == "cut" else 99))
            raw.take(raw.fetch(), 1 if step == "kill" else None)
    for _ in writing:
        pass
    while raw.read():
        pass
    whole = Raw(tmp_path / "whole", topic)
    whole.read()

    def dated(of: Raw) -> list[tuple[str, int, int]]:
        mine = {path: rows for path, rows in of.content.items() if ".read-" in path}
        return sorted(
            (path.split("/")[1], row["kafka_partition"], row["kafka_offset"])
            for path, rows in mine.items()
            for row in rows
        )

    assert sorted(at[1:] for at in dated(raw)) == sorted(at[1:] for at in dated(whole))
    if "refuse" not in steps:
        assert dated(raw) == dated(whole)


def test_names_of_files_have_room_for_the_longest_ranges(tmp_path: Path) -> None:
    files = module._Files(tmp_path, TODAY, {})
    ranges = dict.fromkeys(range(99_990, 100_000), (10**11, 2 * 10**11))
    found = files.close("again", ranges, dict.fromkeys(ranges, 2 * 10**11))
    for some in found.values():
        for file in some:
            assert len(f"00000001.{'x' * 11}-{10**18}-{'x' * 20}.12of12{''.join(file.suffixes)}") <= 240
