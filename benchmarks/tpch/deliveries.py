"""TPC-H orders and lines as a source delivers them: a file a day and table, and some rows once more, corrected."""

from __future__ import annotations

import subprocess
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import duckdb

GENERATOR = ("uvx", "tpchgen-cli")
FIRST, DAYS = date(1995, 1, 1), 90
CORRECTED = 50
"""Every so manieth order comes once more, with all its lines."""
DAYS_LATER = 3
_TABLES = {"orders": ("o_orderkey", "o_totalprice"), "lineitem": ("l_orderkey", "l_extendedprice")}
"""Key of the order, and what is corrected."""


class Delivered(NamedTuple):
    """Rows and bytes of all files in the landing folder."""

    rows: int
    bytes: int


def generate(folder: Path, scale: float) -> None:
    """Both tables as TPC-H has them, one Parquet file each."""
    tables = ",".join(_TABLES)
    command = (*GENERATOR, "parquet", "-s", f"{scale:g}", f"--tables={tables}", f"--output-dir={folder}")
    subprocess.run(command, check=True, capture_output=True)


def deliver(generated: Path, landing: Path) -> Delivered:
    """One file a day and table, in folders of the day on which it came."""
    rows = 0
    with duckdb.connect() as database:
        database.execute("SET preserve_insertion_order = false")
        database.execute(_days_of_orders(generated))
        for table, (key, price) in _TABLES.items():
            place = landing / table
            place.mkdir(parents=True)
            [(count,)] = database.execute(_arrivals(generated, table, key, price, place)).fetchall()
            rows += count
            for folder in place.glob("came=*"):
                folder.rename(place / folder.name.removeprefix("came="))
    return Delivered(rows, sum(file.stat().st_size for file in landing.rglob("*.parquet")))


def correct(generated: Path, landing: Path, day: date, lines: int) -> None:
    """One file more: some lines of one day at another price."""
    place = landing / "lineitem" / f"{FIRST + timedelta(days=DAYS - 1)}"
    with duckdb.connect() as database:
        database.execute(_days_of_orders(generated))
        database.execute(
            f"COPY (SELECT l.* REPLACE ((l_extendedprice + 1)::DECIMAL(15, 2) AS l_extendedprice), "
            f"ordered_at, ordered_at + INTERVAL {DAYS} DAY AS updated_at "
            f"FROM '{generated}/lineitem.parquet' l JOIN days ON l_orderkey = key "
            f"WHERE ordered_at::DATE = DATE '{day}' AND l_orderkey // 4 % {CORRECTED} > 0 "
            f"ORDER BY l_orderkey, l_linenumber LIMIT {lines}) "
            f"TO '{place}/correction.parquet' (FORMAT PARQUET)"
        )


def totals(generated: Path, corrected: int) -> tuple[int, Decimal]:
    """Lines that there are, and their price in all with those of the file that came last corrected; by DuckDB."""
    with duckdb.connect() as database:
        found = database.execute(
            f"SELECT count(*), sum(l_extendedprice + CASE WHEN l_orderkey // 4 % {CORRECTED} = 0 "
            f"THEN {DAYS_LATER} ELSE 0 END) + {corrected} FROM '{generated}/lineitem.parquet'"
        ).fetchall()
    [(lines, price)] = found
    return lines, price


def _days_of_orders(generated: Path) -> str:
    """When each order was placed: its day of seven years, laid on the calendar's."""
    return (
        f"CREATE TABLE days AS SELECT o_orderkey AS key, (DATE '{FIRST}' "
        f"+ CAST((o_orderdate - DATE '1992-01-01') % {DAYS} AS INTEGER)) "
        f"+ INTERVAL (o_orderkey % 86400) SECOND AS ordered_at FROM '{generated}/orders.parquet'"
    )


def _arrivals(generated: Path, table: str, key: str, price: str, place: Path) -> str:
    last = FIRST + timedelta(days=DAYS - 1)
    return (
        f"COPY (WITH delivered AS (SELECT t.* REPLACE (({price} + later)::DECIMAL(15, 2) AS {price}), ordered_at, "
        f"later FROM '{generated}/{table}.parquet' t "
        f"JOIN days ON {key} = key, (VALUES (0), ({DAYS_LATER})) AS versions(later) "
        f"WHERE later = 0 OR {key} // 4 % {CORRECTED} = 0) "
        f"SELECT * EXCLUDE (later), ordered_at + INTERVAL (later) DAY AS updated_at, "
        f"least(ordered_at::DATE + later::INTEGER, DATE '{last}') AS came FROM delivered) "
        f"TO '{place}' (FORMAT PARQUET, PARTITION_BY (came), FILENAME_PATTERN 'part-{{i}}')"
    )
