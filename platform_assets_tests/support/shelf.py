"""A lake on a shelf: stage days with deltalake, publish them, look at what is there. No Spark."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from platform_assets.errors import PlatformError
from platform_assets.failpoints import VARIABLE as FAILPOINT
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.delta.statistics import staged_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.records.manifest import (
    DataFile,
    DayContent,
    Manifest,
    TableChange,
    new_publication,
)
from platform_assets_tests.support.places import STORED, on_disk

SALES, STORES = "silver.sales", "gold.stores"
ENDS_WITHIN_S = 300
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("cents", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("event_date", pa.date32()),
    ]
)
Days = Mapping[date, Iterable[tuple[str, int]]]

PUBLISHING = (
    "publish.before_manifest",
    "write.before_rename",
    "publish.written",
    "publish.after_manifest",
    "publish.locked",
    "publish.checked",
    "publish.before_table",
    "replace.before_commit",
    "replace.after_commit",
    "replace.synced",
    "publish.after_table",
    "publish.before_table:2",
    "publish.after_table:2",
    "publish.before_release",
    "release.after_file",
    "release.after_commit",
    "publish.after_release",
)
"""Where a publication of two tables can be killed, in the order in which it comes by."""
HALF_WAY = PUBLISHING[PUBLISHING.index("replace.after_commit") : PUBLISHING.index("release.after_commit")]
"""Of these, where a table is committed and no release shows it."""


def day(n: int) -> date:
    """The n-th day of the tests' calendar."""
    return date(2017, 1, 1) + timedelta(days=n)


def rows_of(days: Days) -> pa.Table:
    """One row (key, cents) each, with a price in euros beside it."""
    return pa.Table.from_pylist(
        [
            {"key": key, "cents": cents, "price": Decimal(cents) / 100, "event_date": when}
            for when, rows in days.items()
            for key, cents in rows
        ],
        schema=SCHEMA,
    )


def stage(lake: Lake, table: str, days: Days, publication: str | None = None, *, rows: pa.Table | None = None) -> str:
    """Write days as Spark does: a Delta table inside the live table's folder."""
    publication = publication or new_publication()
    folder = lake.stage_path(table, publication)
    on_disk(folder.parent).mkdir(parents=True, exist_ok=True)
    write_deltalake(str(folder), rows_of(days) if rows is None else rows, partition_by=["event_date"])
    return publication


def live(lake: Lake, table: str) -> dict[date, tuple[DataFile, ...]]:
    """Live files of a table that may not exist yet."""
    path = lake.table_path(table)
    return live_files(path) if on_disk(path / "_delta_log").is_dir() else {}


def age(lake: Lake, table: str) -> None:
    """As if everything that lies in a table's folder had been written long ago."""
    folder = on_disk(lake.table_path(table))
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (0, 0))


def change(
    lake: Lake,
    table: str,
    publication: str,
    days: Iterable[date] | None = None,
    base: Mapping[date, tuple[DataFile, ...]] | None = None,
) -> TableChange:
    """Replace the named days, by default those staged, by what was staged; days that were not staged become empty."""
    schema, staged = staged_files(lake, table, publication)
    have = live(lake, table) if base is None else base
    return TableChange(
        table=table,
        schema_string=schema,
        days={when: content(staged.get(when, ()), have.get(when, ())) for when in days or staged},
    )


def content(files: Iterable[DataFile], base: Iterable[DataFile] = ()) -> DayContent:
    """A day's content without the hashes of its digest: the lakehouse does not look at them."""
    files = tuple(files)
    rows = sum(json.loads(file.stats)["numRecords"] for file in files)
    return DayContent(
        files=files,
        base=tuple(file.path for file in base),
        digest=f"{rows}-0-0-0-0",
        rows=rows,
        bytes=sum(file.size for file in files),
    )


def manifest(publication: str, *changes: TableChange) -> Manifest:
    """A manifest with the rest filled in."""
    return Manifest(
        publication=publication,
        created_at=datetime.now(UTC),
        kind="recompute",
        run="test",
        who="tester",
        why="a test",
        git_commit=None,
        tables=changes,
    )


def staged_manifest(lake: Lake, tables: Mapping[str, Days], days: Iterable[date] | None = None) -> Manifest:
    """Stage days of some tables under one publication."""
    publication = new_publication()
    for table, rows in tables.items():
        stage(lake, table, rows, publication)
    return manifest(publication, *(change(lake, table, publication, days) for table in tables))


def contents(lake: Lake, table: str, release: int | Release | None = None) -> dict[date, list[tuple[str, int]]]:
    """What a reader sees: rows by day, sorted."""
    found: dict[date, list[tuple[str, int]]] = {}
    for row in read_arrow(lake, table, release=release).to_pylist():
        found.setdefault(row["event_date"], []).append((row["key"], row["cents"]))
    return {when: sorted(found[when]) for when in sorted(found)}


def everything(lake: Lake) -> dict[str, dict[date, list[tuple[str, int]]]]:
    """What a reader sees of all tables at the current release."""
    now = current_release(lake)
    return {table: contents(lake, table, now) for table in now.versions}


def write_as_long(file: Path, rows: pa.Table) -> None:
    """Overwrite a Parquet file by other rows, and leave its length as it is: only reading tells."""
    size = file.stat().st_size
    pq.write_table(rows, file, compression="zstd", use_dictionary=False, write_statistics=False, store_schema=False)
    written = file.read_bytes()
    assert len(written) <= size
    footer = len(written) - 8 - int.from_bytes(written[-8:-4], "little")
    file.write_bytes(written[:footer] + b"\0" * (size - len(written)) + written[footer:])


FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    ["pandas", *(f"platform_assets_tests.support.kills.{name}" for name in ("harness", "paper", "sales"))]
)


def in_process(work: Callable[..., object], *args: object, failpoint: str = "", wait: bool = True) -> BaseProcess:
    """Do work in a process of its own, which may die at a fail point; from a fork server, so in milliseconds."""
    environ = {**os.environ, FAILPOINT: failpoint}
    process = FORKS.Process(target=_work, args=(environ, STORED, work, args))
    process.start()
    if wait:
        process.join(ENDS_WITHIN_S)
    return process


def _work(
    environ: Mapping[str, str], stored: Mapping[str, Path], work: Callable[..., object], args: tuple[object, ...]
) -> None:
    # The fork server knows what was there when it started.
    os.environ |= environ
    STORED.update(stored)
    work(*args)


def try_to_publish(lake: Lake, what: Manifest, said: Path, gate: Path | None) -> None:
    """Publish, together with others if there is a gate, and leave what came of it in a file."""
    if gate is not None:
        said.with_suffix(".ready").touch()
        while not gate.exists():
            pass
    try:
        said.write_text(str(publish(lake, what)))
    except PlatformError as error:
        said.write_text(f"{type(error).__name__} {getattr(error, 'days', ())} {error}")


def publish_elsewhere(lake: Lake, what: Manifest, folder: Path, failpoint: str = "") -> BaseProcess:
    """Publish in another process."""
    return in_process(try_to_publish, lake, what, folder / what.publication, None, failpoint=failpoint)


def killed(process: BaseProcess) -> bool:
    """Whether it died as if by `kill -9`."""
    return process.exitcode == -signal.SIGKILL


def spark_rows(frame: Any) -> list[tuple[Any, ...]]:
    """Rows of a Spark frame, sorted."""
    return sorted(tuple(row) for row in frame.select("event_date", "key", "cents", "price").collect())


def unchain(lake: Lake, number: int) -> None:
    """A release as a version of the platform wrote it that knew of no chain."""
    file = commits.commit_file(lake.releases_path, number)
    lines = [json.loads(line) for line in on_disk(file).read_text().splitlines()]
    for line in lines:
        for name in (commits.CHAIN, commits.MANIFEST_HASH):
            line.get("commitInfo", {}).pop(name, None)
    on_disk(file).write_text("\n".join(map(json.dumps, lines)))
