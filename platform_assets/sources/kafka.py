"""A topic of Kafka, read as ranges of offsets.

Each file of a reading names its ranges, so raw's publications say of every offset whether it was ingested. Each file is
complete by itself: what a killed reading had landed is ingested once, and the rest is read then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import IO, Annotated, NamedTuple

from pydantic import Field

from platform_assets.contracts import Contract, ContractError
from platform_assets.contracts.columns import words
from platform_assets.sources.kafka_broker import Broker, Fetch, Found, Ranges, Record
from platform_assets.sources.kafka_records import IS_TOMBSTONE, OFFSET, RECORD, Format, Lines, Registry
from platform_assets.sources.source import Again, Reading, SoFar, Source, Waits

__all__ = ["RECORD", "KafkaTopic"]

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ID = 11
"""Characters of a topic's id in names of files: 64 bits."""
_FILE = re.compile(
    rf"(\d+)\.([A-Za-z0-9_-]{{{_ID}}})-[^.]*\.\d+of\d+\.(read|again)-(\d+_\d+_\d+(?:-\d+_\d+_\d+)*)\.jsonl"
)
_PLACE = re.compile(r"\d+:\d+(,\d+:\d+)*")
_TOGETHER = 5
"""Partitions in a file: as many as its name has room for."""
_FILE_ROWS, _FILE_BYTES = 1_000_000, 256 << 20
_MOST_BYTES = 4 << 30
_SAMPLED = 1_000
_REASON = 20


@dataclass(frozen=True)
class KafkaTopic(Source):
    """Declare a topic of Kafka that feeds a raw table.

    Args:
        folder: folder for the files of readings, below the landing root.
        topic: name of the topic.
        url_env: the environment variable with the brokers: `kafka://user:password@broker:9092?security.protocol=…`.
        format: format of the values. Keys are text, JSON, or as their schema in the registry says.
        registry_env: the environment variable with the address of a schema registry; values and keys then begin with a
            schema's number.
        schema: path of the schema instead: a file of Avro, or a descriptor set of protobuf.
        message: name of the protobuf message in `schema`.
        most_rows: most rows of one reading; the next one continues.
    """

    order: str | None = "name"
    topic: str = ""
    url_env: str = ""
    format: Format = "json"
    registry_env: str = ""
    schema: str = ""
    message: str = ""
    most_rows: Annotated[int, Field(ge=1)] = 5_000_000

    def _problems(self) -> Iterator[ContractError]:
        yield from super()._problems()
        whose = f"The source {self.folder!r}"
        if not _TOPIC.fullmatch(self.topic):
            yield ContractError(f"{whose} reads the topic {self.topic!r}.", "Write its name.", field="topic")
        for name, variable in (("url_env", self.url_env), ("registry_env", self.registry_env)):
            if not _VARIABLE.fullmatch(variable) and (variable or name == "url_env"):  # not shown: it may be the URL
                yield ContractError(
                    f"{whose} has a {name} that is no name of an environment variable.",
                    "Write the variable's name, such as SHOP_KAFKA_URL, and keep the URL out of the code.",
                    field=name,
                )
        has = (bool(self.schema), bool(self.message), bool(self.registry_env))
        fits = {"json": [(0, 0, 0), (0, 0, 1)], "avro": [(0, 0, 1), (1, 0, 0)], "protobuf": [(0, 0, 1), (1, 1, 0)]}
        if has not in fits[self.format]:
            yield ContractError(
                f"{whose} has {self.format} with schema={self.schema!r} and message={self.message!r}.",
                "Give Avro and protobuf `registry_env`, or `schema`, for protobuf with `message`; JSON needs neither.",
                field="schema",
            )
        if self.replaces is not None or self.resent != "replay" or self.csv or self.records:
            yield ContractError(
                f"{whose} brings records one by one.",
                "Leave out `replaces`, `resent`, `csv` and `records`.",
                field="replaces",
            )

    def misfits(self, contract: Contract) -> Iterator[tuple[str, str, str]]:
        """Yield what a contract lacks for records of a topic."""
        yield from super().misfits(contract)
        declared = {column.name: column.type for column in contract.columns}
        lacks = [column.name for column in RECORD if declared.get(column.name) != column.type]
        if lacks:
            yield f"is read from Kafka, and lacks {', '.join(lacks)}", "End `columns` with *RECORD.", "columns"
        if contract.versioned_by[-1:] != (OFFSET,):
            todo = f'End updated_at with it, as updated_at="{OFFSET}": what is read again then counts as before.'
            yield f"is read from Kafka, and does not order versions by {OFFSET} at last", todo, "updated_at"
        if IS_TOMBSTONE not in words(contract.voided or ""):
            todo = f'Give voided="{IS_TOMBSTONE}", or with more, as voided="{IS_TOMBSTONE} OR op = \'d\'".'
            yield "is read from Kafka, and takes no tombstones", todo, "voided"

    def waits(self, contract: Contract, so_far: SoFar) -> Waits:
        """Count unread offsets; a compacted topic, or one with transactions, has fewer records."""
        have = Taken.of(so_far)
        ranges = self._to_read(self._broker.look(), have)
        rows = sum(end - first for first, end in ranges.values())
        return Waits(rows, f"read {have.total:,} offsets of {len(have.behind)} of {len(ranges)} partitions")

    def read(self, contract: Contract, so_far: SoFar, folder: Path) -> Reading | None:
        """Read each partition from its last position to the last committed record."""
        have, found = Taken.of(so_far), self._broker.look()
        return self._read_on(contract, so_far, folder, have, found.id, self._to_read(found, have))

    def again(self, contract: Contract, so_far: SoFar, folder: Path, asked: Again) -> Reading | None:
        """Read offsets, or from a time, again; or continue after what the topic no longer has.

        Days are days of the records' times. Places are times, or `partition:offset,…`.
        """
        have, found = Taken.of(so_far), self._broker.look()
        reason = "-" + re.sub("[^A-Za-z0-9]+", "-", asked.reason)[:_REASON]
        if asked.accepts_loss:
            have = have if have.id in ("", found.id[:_ID]) else self._begun_anew(contract)
            return self._read_on(contract, so_far, folder, have, found.id, found.ranges, reason)
        self._to_read(found, have)  # or it is another topic
        places = [asked.first, asked.upto]
        if asked.days:
            places = [f"{asked.days[0]}", f"{asked.days[1] + timedelta(days=1)}"]
        begins, ends = (self._place(text, have) if text else {} for text in places)
        wanted = {n: (begins[n], min(end, ends.get(n, end))) for n, end in have.behind.items() if n in begins}
        if gone := {n: (at, found.ranges[n][0]) for n, (at, _) in wanted.items() if at < found.ranges[n][0]}:
            raise self._broker.error(f"has no more {_in_words(gone)}", "Begin behind them.")
        fetch, files = Fetch(self._broker, wanted), _Files(folder, so_far.today, {})
        self._write(contract, fetch, files)
        position = f"{found.id[:_ID]}-{have.total}{reason}"
        by_date = files.close("again", wanted, fetch.at)
        return Reading(position, by_date, date.min) if by_date else None

    def sample(self, folder: Path) -> Path:
        """Write the values of the newest records of each partition; records that cannot be read are left out."""
        file, ranges = folder / "sample.jsonl", self._broker.look().ranges
        newest = Fetch(self._broker, {n: (max(first, end - _SAMPLED), end) for n, (first, end) in ranges.items()})
        lines = Lines(None, self.format, Registry(self.registry_env), self.schema, self.message)
        with file.open("wb") as written:
            for record in (record for records in newest.batches() for record in records):
                written.write(lines.value_line(record))
        return file

    @property
    def _broker(self) -> Broker:
        return Broker(self.topic, self.url_env)

    def _to_read(self, found: Found, have: Taken) -> Ranges:
        """Return the ranges to read of each partition.

        Raises:
            SourceError: it cannot be continued from its position.
        """
        accept = '`platform-assets admin pull TABLE --accept-loss --reason "…"` goes on with what there is.'
        if have.id not in ("", found.id[:_ID]):
            raise self._broker.error(
                f"was deleted and made again since {have.total:,} of its offsets were read, and may have had more",
                accept,
            )
        ranges = {number: (have.behind.get(number, first), end) for number, (first, end) in found.ranges.items()}
        if gone := {n: (at, found.ranges[n][0]) for n, (at, _) in ranges.items() if at < found.ranges[n][0]}:
            raise self._broker.error(
                f"has no more {_in_words(gone)}, which were not read: its retention was faster",
                f"Let it keep records for longer. {accept}",
            )
        if short := {n: (end, at) for n, (at, end) in ranges.items() if end < at}:
            raise self._broker.error(
                f"has lost {_in_words(short)}, which were read", "Its brokers lost records: make the topic anew."
            )
        return ranges

    def _begun_anew(self, contract: Contract) -> Taken:
        if len(contract.versioned_by) > 1:
            return Taken()
        raise self._broker.error(
            "was made again, and its offsets begin anew, by which versions are ordered",
            f'Declare updated_at=("kafka_timestamp", "{OFFSET}") in the contract of {contract.name} first.',
        )

    def _read_on(
        self, contract: Contract, so_far: SoFar, folder: Path, have: Taken, topic: str, ranges: Ranges, why: str = ""
    ) -> Reading | None:
        ranges = {n: (at, min([end, *have.beyond.get(n, ())])) for n, (at, end) in ranges.items()}
        fetch = Fetch(self._broker, {n: (max(at, have.behind.get(n, at)), end) for n, (at, end) in ranges.items()})
        files = _Files(folder, so_far.today, dict(have.dates))
        self._write(contract, fetch, files, self.most_rows)
        # What was lost belongs to the range that goes on behind it.
        begins = {n: (have.behind.get(n, at), end) for n, (at, end) in ranges.items()}
        found = files.close("read", begins, fetch.at)
        unread = [number for number, (_, end) in ranges.items() if fetch.at[number] < end]
        until = min((files.dates.get(number, date.min) for number in unread), default=so_far.today)
        total = sum({**have.behind, **fetch.at}.values())
        return Reading(f"{topic[:_ID]}-{total}{why}", found, until) if found else None

    def _write(self, contract: Contract, fetch: Fetch, files: _Files, most: int | None = None) -> None:
        """Write fetched records, up to a number of rows."""
        lines = Lines(contract, self.format, Registry(self.registry_env), self.schema, self.message)
        for records in fetch.batches():
            for record in records:
                files.add(record, lines.line(record))
            if most is not None and (files.rows >= most or files.bytes >= _MOST_BYTES):
                break

    def _place(self, text: str, have: Taken) -> dict[int, int]:
        """Return offsets by partition, or of the first records at a time."""
        if _PLACE.fullmatch(text):
            return {int(number): int(at) for number, _, at in (part.partition(":") for part in text.split(","))}
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self._broker.error(
                f"is asked for {text!r}", "Write a time, as 2026-03-01T12:00Z, or offsets, as 0:1200,1:900."
            ) from None
        at = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return self._broker.offsets_at([*have.behind], int(at.timestamp() * 1000))


@dataclass(frozen=True)
class Taken:
    """What raw has of a topic, by the names of its files.

    Args:
        id: id of the topic; empty if nothing was read.
        behind: next offset to read of each partition.
        beyond: offset at which read ranges begin again, for a partition from which a file was removed.
        dates: the newest arrival date of each partition.
    """

    id: str = ""
    behind: Mapping[int, int] = field(default_factory=dict)
    beyond: Mapping[int, list[int]] = field(default_factory=dict)
    dates: Mapping[int, date] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the sum of the positions of all partitions."""
        return sum(self.behind.values())

    @classmethod
    def of(cls, so_far: SoFar) -> Taken:
        """Return what the files of readings have; files refused whole are read again once they are gone."""
        named = [(path, is_taken, _FILE.fullmatch(path.rpartition("/")[2])) for path, is_taken in so_far.files.items()]
        known = [(path, is_taken, name) for path, is_taken, name in named if name and name[3] != "again"]
        topic = max(((int(name[1]), name[2]) for _, _, name in known), default=(0, ""))[1]
        ranges = defaultdict[int, list[tuple[int, int, bool]]](list)
        dates = defaultdict[int, date](lambda: date.min)
        for path, is_taken, name in known:
            if name[2] == topic:
                for number, first, end in (map(int, one.split("_")) for one in name[4].split("-")):
                    ranges[number].append((first, end, is_taken))
                    dates[number] = max(dates[number], date.fromisoformat(path.split("/")[-2]))
        behind, beyond = dict[int, int](), dict[int, list[int]]()
        for number, some in ranges.items():
            behind[number] = min(first for first, _, _ in some)
            for first, end, is_taken in sorted(some):
                if is_taken and first <= behind[number]:
                    behind[number] = max(behind[number], end)
            beyond[number] = [first for first, _, is_taken in some if is_taken and first > behind[number]]
        return cls(topic, behind, beyond, dates)


class _Open(NamedTuple):
    """A file being written: partitions of one arrival date, each with one range."""

    file: IO[bytes]
    day: date
    ranges: dict[int, list[int]]


class _Files:
    """Files of records by arrival date, each with a range of every partition in it.

    A record arrives on the date of its time, but not before earlier records of its partition, and not after today. So
    the dates of a partition never go back, and a range is divided where they change.
    """

    def __init__(self, folder: Path, today: date, dates: dict[int, date]) -> None:
        self.rows = self.bytes = 0
        self.dates = dates
        self._folder = folder
        self._today = today
        self._all: list[_Open] = []
        self._newest: dict[tuple[int, date], _Open] = {}
        self._current: dict[int, _Open] = {}

    def add(self, record: Record, line: bytes) -> None:
        """Write a record, the next of its partition."""
        number = record.partition
        day = min(self._today, max(self.dates.get(number, date.min), self._date(record.moment)))
        current = self._current.get(number)
        if current is None or current.day != day or current.ranges[number][2] >= _FILE_ROWS or _is_full(current):
            current = self._turn(number, day, record.offset)
        current.file.write(line)
        current.ranges[number][1] = record.offset + 1
        current.ranges[number][2] += 1
        self.rows += 1
        self.bytes += len(line)

    def close(self, what: str, ranges: Ranges, at: Mapping[int, int]) -> dict[date, list[Path]]:
        """Return the files by arrival date, each named by its ranges: together all from the first to `at`."""
        for number, (first, _) in ranges.items():
            if at[number] > first and number not in self._current:
                self._turn(number, self.dates.get(number, self._today), first)
            mine = sorted(each.ranges[number] for each in self._all if number in each.ranges)
            begins = [first, *(begin for begin, _, _ in mine[1:])]
            for one, begin, end in zip(mine, begins, [*begins[1:], at[number]], strict=bool(mine)):
                one[:2] = begin, end
        found: dict[date, list[Path]] = {}
        for each in self._all:
            each.file.close()
            named = "-".join(f"{n}_{first}_{end}" for n, (first, end, _) in sorted(each.ranges.items()))
            path = Path(each.file.name)
            found.setdefault(each.day, []).append(path.rename(path.with_name(f"{path.stem}.{what}-{named}.jsonl")))
        return found

    def _turn(self, number: int, day: date, offset: int) -> _Open:
        place = (number // _TOGETHER, day)
        newest = self._newest.get(place)
        if newest is None or number in newest.ranges or _is_full(newest):
            newest = _Open((self._folder / f"{len(self._all)}.jsonl").open("wb"), day, {})
            self._all.append(newest)
            self._newest[place] = newest
        newest.ranges[number] = [offset, offset, 0]
        self.dates[number] = day
        self._current[number] = newest
        return newest

    def _date(self, moment: int | None) -> date:
        return self._today if moment is None else datetime.fromtimestamp(moment / 1000, UTC).date()


def _is_full(file: _Open) -> bool:
    return file.file.tell() >= _FILE_BYTES


def _in_words(ranges: Ranges) -> str:
    return ", ".join(f"offsets {first:,} to {end - 1:,} of partition {n}" for n, (first, end) in ranges.items())
