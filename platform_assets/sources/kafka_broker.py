"""Fetch ranges of offsets of a Kafka topic, committed records only, in bounded memory."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from platform_assets.sources.source import SourceError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

Ranges = Mapping[int, tuple[int, int]]
"""First offset, and the one behind the last, by partition."""

_ANSWERS_S = 20
_STALLS_S = 60
_AT_ONCE = 2_000
_WAITS_S = 0.1
_FETCHED = 16 << 20
_LARGEST = 64 << 20
"""Bytes of the largest answer: a broker sends a batch of records whole, whatever was asked for."""
_QUEUED_KIB = 32 << 10
_OPTIONS = ("security.protocol", "sasl.", "ssl.")
_AS_IN_NAMES = str.maketrans("+/", "-_")
"""The client writes ids in base64, Kafka's own tools in that for names of files."""
_SECRET = ("password", "secret", "key", "config", "token")


class Record(NamedTuple):
    """A fetched record.

    Args:
        moment: ms since 1970 UTC; None if the broker keeps none.
        value: None for a tombstone.
        problem: why it was not fetched; empty if it was.
    """

    partition: int
    offset: int
    moment: int | None
    key: bytes | None
    value: bytes | None
    problem: str = ""


class Found(NamedTuple):
    """Present state of a topic.

    Args:
        id: unique, also among former topics of this name.
        ranges: offsets of each partition, up to the first open transaction.
    """

    id: str
    ranges: Ranges


@dataclass(frozen=True)
class Broker:
    """A topic, and the environment variable with its brokers."""

    topic: str
    url_env: str

    def error(self, what: str, todo: str) -> SourceError:
        """Return an error that names the topic."""
        return SourceError(f"The topic {self.topic} of Kafka ({self.url_env}) {what}.", todo)

    def look(self) -> Found:
        """Return the topic of this name, and its ranges.

        Raises:
            SourceError: the brokers do not answer, or have no such topic.
        """
        with self._admin() as admin:
            from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
            from confluent_kafka.admin import OffsetSpec

            [asked] = admin.describe_topics(TopicCollection([self.topic]), request_timeout=_ANSWERS_S).values()
            described = asked.result()
            partitions = [TopicPartition(self.topic, each.id) for each in described.partitions]
            first, behind = (
                {
                    partition.partition: offset.result().offset
                    for partition, offset in admin.list_offsets(
                        dict.fromkeys(partitions, which),
                        isolation_level=IsolationLevel.READ_COMMITTED,
                        request_timeout=_ANSWERS_S,
                    ).items()
                }
                for which in (OffsetSpec.earliest(), OffsetSpec.latest())
            )
            id_ = str(described.topic_id).translate(_AS_IN_NAMES)
            return Found(id_, {number: (first[number], behind[number]) for number in sorted(first)})

    def offsets_at(self, partitions: Collection[int], moment: int) -> dict[int, int]:
        """Return the first offset of each partition at or after a time, in ms; none without one."""
        with self._admin() as admin:
            from confluent_kafka import TopicPartition
            from confluent_kafka.admin import OffsetSpec

            asked = {TopicPartition(self.topic, number): OffsetSpec.for_timestamp(moment) for number in partitions}
            answers = admin.list_offsets(asked, request_timeout=_ANSWERS_S).items()
            found = {partition.partition: answer.result().offset for partition, answer in answers}
            return {number: offset for number, offset in found.items() if offset >= 0}

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        said: list[str] = []
        with self.errors(said):
            from confluent_kafka.admin import AdminClient

            admin = AdminClient(self._settings() | {"error_cb": lambda error: said.append(error.str())})
            try:
                yield admin
            finally:
                admin.poll(0)  # calls back with what went wrong

    @contextmanager
    def errors(self, said: list[str]) -> Iterator[None]:
        """Raise the client's errors as errors that name the topic and no secret.

        Args:
            said: the client's reports before it gave up, which say more than a timeout.
        """
        try:
            from confluent_kafka import KafkaError, KafkaException
        except ImportError:
            raise self.error(
                "cannot be read without its client",
                "Install it: uv sync --inexact --extra kafka, or pip install 'platform-assets[kafka]'.",
            ) from None
        try:
            yield
        except KafkaException as error:
            failed: KafkaError = error.args[0]
            if failed.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise self.error("is not there", "Correct `topic` of the source, or create it.") from None
            why = dict.fromkeys([*said, failed.str()])
            raise self.error(
                f"was not read: {self._masked('; '.join(why))}",
                f"Nothing of this reading was kept; run the same again, or correct {self.url_env}.",
            ) from None

    def client(self, **settings: Any) -> Consumer:
        """Return a consumer that commits nothing and belongs to no group."""
        from confluent_kafka import Consumer

        return Consumer(
            self._settings()
            | {
                "group.id": "platform-assets",  # which the client asks for; nothing is stored under it
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.max.bytes": _FETCHED,
                "receive.message.max.bytes": _LARGEST,
                "queued.max.messages.kbytes": _QUEUED_KIB,
            }
            | settings
        )

    def _settings(self) -> dict[str, Any]:
        url = urlsplit(os.environ.get(self.url_env, "").strip())
        who, _, hosts = url.netloc.rpartition("@")
        user, _, password = map(unquote, who.partition(":"))
        options = dict(parse_qsl(url.query))
        unknown = [name for name in options if not name.startswith(_OPTIONS)]
        if url.scheme != "kafka" or not hosts or unknown:
            raise self.error(
                f"is where the environment variable {self.url_env} says, which "
                + (f"has the option {unknown[0]}" if unknown else "has no URL of Kafka"),
                f"Set {self.url_env}='kafka://user:password@broker:9092,other:9092?sasl.mechanism=SCRAM-SHA-512', "
                f"with options of librdkafka that begin with {', '.join(_OPTIONS)}.",
            )
        if user:
            signed = {"sasl.username": user, "sasl.password": password}
            options = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"} | signed | options
        return options | {"bootstrap.servers": hosts, "client.id": "platform-assets", "log_level": 0}

    def _masked(self, text: str) -> str:
        for name, value in self._settings().items():
            if name.endswith(_SECRET) and value:
                text = text.replace(value, "***")
        return text.rstrip(".")


@dataclass
class Fetch:
    """A pass through ranges of offsets.

    Args:
        at: how far each partition was read: everything before was yielded, or is not a record.
    """

    broker: Broker
    ranges: Ranges
    at: dict[int, int] = field(default_factory=dict)

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records, those of a partition in order; the caller may stop at any batch.

        Raises:
            SourceError: the brokers stop answering, or records were deleted meanwhile.
        """
        self.at |= {number: first for number, (first, _) in self.ranges.items()}
        if unread := self._unread():
            yield from self._together(unread)
        for number in self._unread():  # behind a record that is too large there may be good ones of any partition
            while self._is_unread(number):
                yield from self._together([number])
                if self._is_unread(number):
                    what = f"has more than {_LARGEST >> 20} MiB, alone or with its batch"
                    yield [Record(number, self.at[number], None, None, None, what)]
                    self.at[number] += 1

    def _is_unread(self, number: int) -> bool:
        return self.at[number] < self.ranges[number][1]

    def _unread(self) -> list[int]:
        return [number for number in self.ranges if self._is_unread(number)]

    def _together(self, numbers: Collection[int]) -> Iterator[list[Record]]:
        """Yield records until all were read, or the next one is too large for an answer."""
        said: list[str] = []
        too_large: list[KafkaError] = []
        with self.broker.errors(said):
            from confluent_kafka import KafkaError, TopicPartition

            def report(error: KafkaError) -> None:
                said.append(error.str())
                if error.code() == KafkaError._BAD_MSG:
                    too_large.append(error)

            # One of its own: what an earlier one still reports is about other records.
            consumer = self.broker.client(error_cb=report)
            try:
                consumer.assign([TopicPartition(self.broker.topic, number, self.at[number]) for number in numbers])
                heard = time.monotonic()
                while any(map(self._is_unread, numbers)):
                    messages = consumer.consume(_AT_ONCE, _WAITS_S)
                    if records := list(self._taken(messages)):
                        yield records
                    if any(message.topic() for message in messages):
                        heard = time.monotonic()
                    elif too_large:
                        return
                    elif time.monotonic() - heard > _STALLS_S:
                        raise self.broker.error(
                            f"has not answered for {_STALLS_S} s{': ' + said[-1] if said else ''}",
                            "Nothing of this reading was kept; check its brokers, and run the same again.",
                        )
            finally:
                consumer.close()

    def _taken(self, messages: Collection[Message]) -> Iterator[Record]:
        from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException

        for message in messages:
            number, offset = message.partition(), message.offset()
            if message.topic() is None or number is None or offset is None:
                continue  # about the group, which is none
            end = self.ranges[number][1]
            if failed := message.error():
                if failed.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(failed)
                self.at[number] = max(self.at[number], min(offset, end))
            elif offset >= end:  # what is between was aborted, compacted, or is a mark of a transaction
                self.at[number] = end
            elif offset >= self.at[number]:
                kind, moment = message.timestamp()
                at = None if kind == TIMESTAMP_NOT_AVAILABLE else moment
                yield Record(number, offset, at, message.key(), message.value())
                self.at[number] = offset + 1
