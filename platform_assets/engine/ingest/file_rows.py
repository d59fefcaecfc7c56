"""Stage rows of delivered files: choose what Spark reads, and find files that make it fail.

Spark reads copies of some files: it can only read some text as lines; a cluster sees the lake, not this machine's
landing folder; and a deliverer can replace a file while it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import Column, Contract
from platform_assets.contracts.landing import Format
from platform_assets.engine.raw import IngestTurn
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.arrivals import Delivery
from platform_assets.records.raw_rows import ENDING
from platform_assets.sources.compression import ContentError
from platform_assets.sources.inspect import Inspection
from platform_assets.sources.landing import (
    NOT_AS_LISTED,
    ChangedError,
    LandedFile,
    Problem,
    changed_since,
    replaced_since,
)
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.rewriting import lines_of
from platform_assets.sources.text import EncodingError
from platform_assets.spark.raw.dead_letters import without_erased
from platform_assets.spark.raw.parsing import Layout, parse
from platform_assets.spark.session.on_demand import computes_here
from platform_assets.spark.tables.failures import complaint
from platform_assets.spark.tables.lost import lies_elsewhere
from platform_assets.spark.tables.staging import FEW_BYTES, stage

_MOST_LAYOUTS = 16
"""Files that look different and are staged at once: of hundreds Spark makes a plan that it cannot hold."""
_FEW_ROWS = 50_000
_CHUNK = 1 << 20
_AT_ONCE = 8
"""Copies written at a time: a store takes longer over each than a small file needs (90 of them: 6.9 s, so 1.4 s)."""

_VALUES: dict[str, object] = {
    "long": 0,
    "int": 0,
    "string": "0",
    "boolean": False,
    "timestamp": datetime(2000, 1, 1, tzinfo=UTC),
    "date": date(2000, 1, 1),
    "double": 0.0,
}


class FilesChangedError(Exception):
    """Files changed since they were listed."""

    def __init__(self, problems: dict[LandedFile, Problem]) -> None:
        super().__init__(*problems)
        self.problems = problems


def stage_rows(
    spark: SparkSession,
    turn: IngestTurn,
    seen: Mapping[LandedFile, Inspection],
    refused: dict[LandedFile, str],
    folder: Location,
    copies_folder: Location,
    replayed: Mapping[str, Delivery],
    chosen: Callable[[DataFrame], DataFrame],
) -> None:
    """Stage the rows of all files that were not refused; refused, late and too early rows without a day.

    A file that turns out corrupt, or that alone makes Spark fail, is refused too.

    Args:
        replayed: files whose content came before, each with the delivery that it repeats.
        chosen: selects the rows to ingest from parsed rows.

    Raises:
        FilesChangedError: files changed since they were listed.
    """
    contract = turn.contract
    came = {file.path: replayed[file.path].arrival_date for file in seen if file.path in replayed}

    def described(file: LandedFile) -> DataFrame:
        assert contract.source is not None
        like = folder / f"described/{contract.source.folder}/2000-01-01/described.{file.format}"
        like.write_in_place([described_by(contract, file.format)])
        return parse(spark, [Layout(file.format, contract.column_names, (str(like),))], contract)

    try:
        with _copies_for_spark(turn, seen, refused, copies_folder) as copies:

            def parsed(files: Sequence[LandedFile]) -> DataFrame:
                return chosen(without_erased(parse(spark, _layouts(files, seen, copies), contract, came), turn.erased))

            while parts := _parts([file for file in seen if file not in refused], seen):
                try:
                    for part in parts:
                        rows, size = sum(seen[file].landed for file in part), sum(file.size for file in part)
                        stage(parsed(part), folder, small=rows <= _FEW_ROWS and size <= FEW_BYTES)
                    return
                except (PySparkException, Py4JError) as error:
                    if elsewhere := lies_elsewhere(error, turn.platform.settings):  # no delivered file is to blame
                        raise elsewhere from error
                    raise_if_changed(file for part in parts for file in part)
                    culprits: dict[LandedFile, str] = {}
                    for part in parts:
                        culprits |= untakeable(parsed, described, part)
                    if not culprits:
                        raise
                    refused |= culprits
                    folder.remove(durable=False)
    except (ContentError, EncodingError, LimitError, *NOT_AS_LISTED):
        raise_if_changed(file for file in seen if file not in refused)
        raise


def _parts(files: Sequence[LandedFile], seen: Mapping[LandedFile, Inspection]) -> list[list[LandedFile]]:
    """Group files so that few files of a part differ in form: Spark's plan does not grow with their number."""
    looks = iter(_alike(files, seen))
    return [[file for look in part for file in look] for part in iter(lambda: [*islice(looks, _MOST_LAYOUTS)], [])]


def _layouts(
    files: Sequence[LandedFile], seen: Mapping[LandedFile, Inspection], copies: Mapping[LandedFile, Location]
) -> list[Layout]:
    layouts: list[Layout] = []
    for alike in _alike(files, seen):
        paths, one = tuple(str(copies.get(file, file.file)) for file in alike), seen[alike[0]]
        layouts.append(Layout(alike[0].format, one.columns, paths, one.is_read_as_lines, one.nanoseconds))
    return layouts


def _alike(files: Sequence[LandedFile], seen: Mapping[LandedFile, Inspection]) -> list[list[LandedFile]]:
    """Group files that are read together."""
    alike: defaultdict[tuple[object, ...], list[LandedFile]] = defaultdict(list)
    for file in files:
        one = seen[file]
        alike[file.format, one.schema, one.columns, one.is_read_as_lines, one.nanoseconds].append(file)
    return list(alike.values())


def raise_if_changed(files: Iterable[LandedFile], unread: Collection[LandedFile] = ()) -> None:
    """Raise if the content of a file changed, or a file that Spark never reads was replaced."""
    if changed := changed_since(file for file in files if file not in unread) | replaced_since(unread):
        raise FilesChangedError(changed)


@contextmanager
def _copies_for_spark(
    turn: IngestTurn, seen: Mapping[LandedFile, Inspection], refused: Collection[LandedFile], folder: Location
) -> Iterator[dict[LandedFile, Location]]:
    """Copy files for Spark into a folder that is emptied afterwards."""
    settings = turn.platform.settings
    limits, of_all = Limits.of(settings), settings.copy_deliveries or not computes_here(settings)
    copied = [file for file in seen if file not in refused and (of_all or seen[file].is_read_as_lines)]
    copies = {
        file: folder / f"{number}/{file.path}{ENDING if seen[file].is_read_as_lines else ''}"
        for number, file in enumerate(copied)
    }

    def copy(file: LandedFile) -> None:
        copies[file].write_in_place(
            lines_of(file, limits, turn.contract) if seen[file].is_read_as_lines else _content(file)
        )

    try:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            deque(threads.map(copy, copied), maxlen=0)
        yield copies
    finally:
        if copies:
            folder.remove(durable=False)


def _content(file: LandedFile) -> Iterator[bytes]:
    digest = hashlib.sha256()
    with file.open() as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            yield chunk
    if digest.hexdigest() != file.sha256:
        raise ChangedError


def untakeable(
    parsed: Callable[[Sequence[LandedFile]], DataFrame],
    described: Callable[[LandedFile], DataFrame],
    files: Sequence[LandedFile],
) -> dict[LandedFile, str]:
    """Find the files that make Spark fail even alone, each with the reason, by halving.

    No rows are written. If reading succeeds, writing had failed and no file is to blame; nor if Spark also fails with a
    file that is certainly valid.

    Args:
        parsed: rows of some files, which may fail before they are read.
        described: rows of a valid file in the same format, made from the contract.

    Raises:
        PySparkException, Py4JError: not a file makes Spark fail, but the machine, an interruption, or how it reads.
    """
    try:
        _read_through(parsed(files))
    except (PySparkException, Py4JError) as error:
        reason = complaint(error)
        if reason is None:
            raise
        if len(files) == 1:
            # A file that is refused is not tried again: so it has to be the file.
            _read_through(described(files[0]))
            return {files[0]: f"cannot be read by Spark: {reason}"}
        half = len(files) // 2
        return untakeable(parsed, described, files[:half]) | untakeable(parsed, described, files[half:])
    return {}


def _read_through(rows: DataFrame) -> None:
    """Compute every field of every row, and discard it."""
    rows.write.format("noop").mode("overwrite").save()


def described_by(contract: Contract, kind: Format) -> bytes:
    """Return a file with one row that has a valid value in every field.

    Returns:
        The content of the file.
    """
    row = {column.name: _value(column) for column in contract.columns}
    sink = io.BytesIO()
    match kind:
        case "json":
            sink.write(f"{json.dumps(row, default=str)}\n".encode())
        case "csv":
            texts = {name: [str(value)] for name, value in row.items()}
            pyarrow.csv.write_csv(pa.table(texts), sink)
        case "parquet":
            pq.write_table(pa.Table.from_pylist([row]), sink)
    return sink.getvalue()


def _value(column: Column) -> object:
    return Decimal(0) if column.digits else _VALUES["long" if column.epoch else column.type]
