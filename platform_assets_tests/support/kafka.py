"""A real broker of Kafka for tests, in KRaft mode, and a registry of schemas, both on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.jars import Jar, JarsError, bring
from platform_assets.spark.session.java import JavaError, find_java
from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.processes import free_port, wait

HOW_TO_GET_IT = "no broker of Kafka to test with: connect to the network once, its jars come from Maven's registry"
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{signed},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{signed}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_reader="{password}";
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
message.max.bytes=100000000
log.cleaner.backoff.ms=100
log.cleaner.dedupe.buffer.size=4000000
log.initial.task.delay.ms=100
log.retention.check.interval.ms=200
log.segment.delete.delay.ms=0
"""
PASSWORD = "s3cret/reader"
_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def jars(when: str) -> tuple[Jar, ...]:
    """The pinned jars of the broker, or of Spark's source."""
    lines = Path(__file__).with_name("kafka_jars.lock").read_text(encoding="utf-8").splitlines()
    split = (line.split() for line in lines if not line.startswith("#"))
    named = [(*name.split(":"), sha256) for needed, name, sha256 in split if needed == when]
    return tuple(Jar(organisation, module, revision, sha256) for organisation, module, revision, sha256 in named)


def brought(folder: Path, when: str) -> tuple[Path, ...]:
    """The files of jars; without them there is no test."""
    try:
        return bring(load_settings(state=folder / "state", jars=JARS), find_java(), jars(when))
    except (JarsError, JavaError):
        pytest.skip(HOW_TO_GET_IT)


@dataclass(frozen=True)
class Kafka:
    """A running broker.

    Args:
        brokers: its address.
        signed: address at which one has to say who one is: `reader`, with `PASSWORD`.
    """

    brokers: str
    signed: str

    @property
    def url(self) -> str:
        """As a source has it."""
        return f"kafka://{self.brokers}?security.protocol=PLAINTEXT"

    def topic(self, partitions: int = 1, name: str = "", **config: str) -> Topic:
        """A fresh topic that keeps whatever is written."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import NewTopic, OffsetSpec

        name = name or f"t-{uuid4().hex[:12]}"
        new = NewTopic(
            name, partitions, 1, config={"retention.ms": "-1"} | {k.replace("_", "."): v for k, v in config.items()}
        )
        admin = self.admin()  # held, or it ends before it has an answer
        _await(admin.create_topics([new]))
        wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}
        while any(future.exception() for future in admin.list_offsets(wanted).values()):
            time.sleep(0.1)  # until each partition has its leader
        return Topic(self, name)

    def admin(self) -> Any:
        """A client that may do anything."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.brokers})


def _await(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result()


@dataclass(frozen=True)
class Topic:
    """A topic, as its producers see it."""

    kafka: Kafka
    name: str

    def write(
        self, *values: bytes | str | Mapping[str, Any] | None, key: bytes | str | None = None, **options: Any
    ) -> None:
        """Write values, objects as JSON."""
        producer = self.producer()
        failed: list[Any] = []
        options["on_delivery"] = lambda error, _: failed.append(error) if error else None
        self.produce(producer, *values, key=key, **options)
        producer.flush()
        assert not failed

    def produce(self, producer: Any, *values: Any, **options: Any) -> None:
        """Give values to a producer."""
        for value in values:
            producer.produce(self.name, json.dumps(value) if isinstance(value, dict) else value, **options)

    def producer(self, **settings: Any) -> Any:
        """A client that writes."""
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.kafka.brokers, "message.max.bytes": 100_000_000, **settings})

    @contextmanager
    def transaction(self, *, aborts: bool = False) -> Iterator[Any]:
        """Write in a transaction."""
        producer = self.producer(**{"transactional.id": uuid4().hex})
        producer.init_transactions()
        producer.begin_transaction()
        yield producer
        producer.flush()
        producer.abort_transaction() if aborts else producer.commit_transaction()

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete records as retention does."""
        from confluent_kafka import TopicPartition

        admin = self.kafka.admin()
        _await(admin.delete_records([TopicPartition(self.name, partition, offset)]))

    def delete(self) -> None:
        """Delete all of it, and wait until it is gone."""
        admin = self.kafka.admin()
        _await(admin.delete_topics([self.name]))
        while self.name in admin.list_topics().topics:
            time.sleep(0.1)

    def configure(self, **config: str) -> None:
        """Change its configuration."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entries = [
            ConfigEntry(k.replace("_", "."), v, incremental_operation=AlterConfigOpType.SET) for k, v in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self.name, incremental_configs=entries)
        admin = self.kafka.admin()
        _await(admin.incremental_alter_configs([resource]))


@contextmanager
def running_kafka(folder: Path) -> Iterator[Kafka]:
    """Start a broker, and stop it again."""
    pytest.importorskip("confluent_kafka", reason="no client of Kafka: install the dev group with `uv sync`")
    classes = os.pathsep.join(map(str, brought(folder, "broker")))
    port, signed, controller = free_port(), free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(
        _PROPERTIES.format(port=port, signed=signed, controller=controller, folder=folder, password=PASSWORD)
    )
    java = [str(find_java().executable), *_OPTIONS, "-cp", classes]
    with (folder / "kafka.log").open("wb") as log:
        said: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": folder}
        cluster = "4L6g3nShT-eMCtK--X86sw"
        formatted = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
        subprocess.run([*java, *formatted], check=True, **said)
        server = subprocess.Popen([*java, "kafka.Kafka", str(properties)], **said)
    try:
        wait(port)
        wait(signed)
        yield Kafka(f"127.0.0.1:{port}", f"127.0.0.1:{signed}")
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for the tests of a process."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@dataclass
class SchemaRegistry:
    """A server with the calls of a registry by which schemas are read.

    Args:
        schemas: by number, as it answers.
        versions: by subject and version.
    """

    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    versions: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    serialized: dict[str, str] = field(default_factory=dict)
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def add(self, schema: str, **others: Any) -> int:
        """Keep a schema and return its number."""
        number = len(self.schemas) + 1
        self.schemas[number] = {"schema": schema, **others}
        return number

    def answer(self, path: str) -> dict[str, Any] | None:
        """What is at a path; None if nothing is."""
        self.asked.append(path)
        place, _, form = path.partition("?")
        match place.strip("/").split("/"):
            case ["schemas", "ids", number]:
                found = self.schemas.get(int(number))
            case ["subjects", subject, "versions", version]:
                found = self.versions.get((subject, int(version)))
            case _:
                found = None
        if found and form == "format=serialized":
            return {**found, "schema": self.serialized[found["schema"]]}
        return found


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A registry of its own, with a name and a password."""
    kept = SchemaRegistry()

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            is_known = self.headers.get("Authorization") == "Basic bWU6czNjcmV0"  # me:s3cret
            found = kept.answer(self.path) if is_known else None
            content = json.dumps(found or {"error_code": 40403, "message": "Schema not found"}).encode()
            self.answer(200 if found else 404 if is_known else 401, content)

    with serving(Handler) as port:
        kept.url = f"http://me:s3cret@127.0.0.1:{port}"
        yield kept
