"""Corrections that both sides get: a few lines of some days with other amounts, under a newer version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS
from platform_assets.planning.windows import Calendar

LINES = 20
"""Corrected on each day."""

LATE_DAYS = 14
"""After its day a correction is delivered: well within every restatement window."""

APART_DAYS = 300


@dataclass(frozen=True)
class Corrections:
    """Corrected lines of some days, oldest first, as raw has them."""

    name: str
    days: tuple[date, ...]
    lines: dict[date, pa.Table]

    @contextmanager
    def landed(self, landing: Path) -> Iterator[None]:
        """Deliver them to the platform, a file for each day; taken away again afterwards."""
        assert RAW_TRANSACTIONS.source is not None
        files: list[Path] = []
        try:
            for day, lines in self.lines.items():
                arrival = landing / RAW_TRANSACTIONS.source.folder / str(day + timedelta(days=LATE_DAYS))
                arrival.mkdir(parents=True, exist_ok=True)
                files.append(arrival / f"corrections-of-{day}-{self.name.replace(' ', '-')}.parquet")
                pq.write_table(lines.select(list(RAW_TRANSACTIONS.column_names)), files[-1])
                os.utime(files[-1], (0, 0))  # it rests: nobody is writing it any more
            yield
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    def later(self, number: int, lines: int) -> Corrections:
        """Another correction of the same days: the first lines of each, dearer and under a newer version."""

        def newer(table: pa.Table) -> pa.Table:
            table = table.slice(0, lines)
            later = timedelta(hours=number)
            for name, more in (("updated_at", later), ("sales_value", Decimal(number))):
                values = pa.array([value + more for value in table[name].to_pylist()], table.schema.field(name).type)
                table = table.set_column(table.schema.get_field_index(name), name, values)
            return table

        changed = {day: newer(table) for day, table in self.lines.items()}
        return Corrections(f"{self.name}-{number}", self.days, changed)

    def append_to(self, raw: Path) -> None:
        """Add them to the Delta table that SQLMesh reads."""
        write_deltalake(raw, pa.concat_tables(self.lines.values()), mode="append")


def corrections(name: str, days: Sequence[date], raw: Path, silver: Path) -> Corrections:
    """Some lines of each day of silver, a dollar dearer, in the columns of raw; both are Delta tables."""
    types = {name: str(type_) for name, type_ in _types(raw).items()}
    own = dict.fromkeys(("_rescued", "_version"), "NULL") | dict.fromkeys(("_place", "_row_hash"), "0")
    own |= {
        "_arrival": f"'corrections of {name}'",
        "_arrival_date": f"event_date + {LATE_DAYS}",
        "_kind": "'record'",
        "_file_order": "'corrections'",
        "_order_day": "event_date",
        "sales_value": "sales_value + 1",
        "updated_at": "updated_at + INTERVAL 1 DAY",
        "voided": "false",
    }
    columns = ", ".join(f"CAST({own.get(name, name)} AS {type_}) AS {name}" for name, type_ in types.items())
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        files = DeltaTable(silver).file_uris()
        found = {
            day: db.sql(
                f"SELECT {columns} FROM read_parquet($files, hive_partitioning = true, "
                "hive_types = {'event_date': DATE}) WHERE event_date = $day "
                f"ORDER BY hash(basket_id, product_id) LIMIT {LINES}",
                params={"files": files, "day": day},
            ).to_arrow_table()
            for day in days
        }
    if empty := [day for day, lines in found.items() if not lines.num_rows]:
        raise ValueError(f"{empty[0]} has no lines to correct")
    return Corrections(name, tuple(days), found)


def scattered(calendar: Calendar, count: int) -> tuple[date, ...]:
    """That many days, evenly over the calendar, on which something was sold; two are no more than 300 days apart."""
    days = [day for day in calendar.days() if day not in RAW_TRANSACTIONS.closed_days]
    if count == 2:
        middle, half = len(days) // 2, min(APART_DAYS, len(days) - 1) / 2
        return days[int(middle - half)], days[int(middle - half)] + timedelta(days=min(APART_DAYS, len(days) - 1))
    return tuple(days[round(number * (len(days) - 1) / (count - 1))] for number in range(count))


def rewritten(before: Path, after: Path) -> set[date]:
    """Days of which two states of a Delta table have other files."""
    return {day for day, _ in _files(before) ^ _files(after)}


def _files(table: Path) -> set[tuple[date, str]]:
    """Day and file of everything a table refers to."""
    if not (table / "_delta_log").is_dir():
        return set()
    adds = pa.table(DeltaTable(table).get_add_actions(flatten=True))
    days, paths = adds["partition.event_date"].to_pylist(), adds["path"].to_pylist()
    return set(zip(days, paths, strict=True))


def replace_by_copy(folder: Path, other: Path) -> None:
    """Make a folder what another one is."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(other, folder)


def _types(raw: Path) -> dict[str, str]:
    """Columns of a Delta table in SQL's types."""
    sql = {"string": "VARCHAR", "long": "BIGINT", "integer": "INTEGER", "timestamp": "TIMESTAMPTZ"}
    fields = DeltaTable(raw).schema().fields
    return {field.name: sql.get(str(field.type.type), str(field.type.type)) for field in fields}
