"""What rules are made of: Sail gives what Spark gives, or a table that uses it is refused."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_assets.settings import Settings
from platform_assets.spark.sail.known_differences import refused_expressions
from platform_assets.spark.sail.session import columns_for, sail_session, stop_sail
from platform_assets_tests.support.frames import rows_as_frame

SCHEMA = "n int, s string, l bigint, i int, d decimal(12,2), b boolean, day date, at timestamp"
REFUSED = (
    "initcap(s)", "base64(s)", "extract(DOW FROM day)", "weekday(day)", "array_contains(array(1L, 7L), l)",
    "is_valid_utf8(s)", "date_trunc('MILLISECOND', at)", "unix_seconds(at)", "unix_millis(at)",
    "timestampdiff(DAY, at, TIMESTAMP'2017-01-01 00:00:00Z')", "s RLIKE '[0-9]'", "regexp_like(s, 'a')",
    "regexp_replace(s, 'a', 'b')", "regexp_extract(s, 'a', 0)", "regexp_count(s, 'a')", "split(s, ',')",
    "try_cast(s AS date)", "try_cast(s AS decimal(12,2))", "CAST(s AS double)", "CAST(at AS bigint)", "to_date(s)",
    "CAST(CAST(l AS double) AS string)", "i + 1", "l * 2", "d / 2", "xxhash64(s)", "log(l)",
)  # fmt: skip
ALIKE = (
    "length(s)", "octet_length(s)", "bit_length(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "btrim(s)",
    "trim(BOTH 'a' FROM s)", "upper(s)", "lower(s)", "s LIKE 'a%'", "s LIKE 'a_'", r"s LIKE '%\\_%'", "s ILIKE 'A%'",
    "s ILIKE 'ß'", "s < 'b'", "s > 'Z'", "substring(s, 2, 3)", "substring(s, -2)", "substring(s, 0, 2)", "left(s, 2)",
    "right(s, 2)", "instr(s, 'b')", "locate('b', s)", "replace(s, 'a', 'xy')", "s || 'x'", "lpad(s, 5, '*')",
    "rpad(s, 5, '*')", "reverse(s)", "contains(s, 'a')", "startswith(s, 'a')", "endswith(s, 'b')",
    "split_part(s, 'a', 1)", "ascii(s)", "translate(s, 'ab', 'xy')", "s IS NULL", "coalesce(s, 'n')", "nullif(s, '')",
    "s IN ('a', 'b')", "s NOT IN ('a', 'b')", "s IN ('a', NULL)", "s <=> 'a'", "length(trim(s)) > 0",
    "try_cast(s AS int)", "try_cast(s AS bigint)", "try_cast(s AS timestamp)", "try_cast(s AS boolean)",
    "l % 7", "pmod(l, 7)", "mod(l, -7)", "l > 0", "l = i", "l <=> i", "l DIV 3", "sign(l)", "greatest(l, i)",
    "least(l, i)", "l BETWEEN 0 AND 10", "try_cast(l AS int)", "l & 3", "l = 1.0", "l > 0.5", "l > 1e3", "l IN (1, 7)",
    "l NOT IN (1, 7)", "CAST(l AS string)", "CAST(i AS bigint)", "hex(l)", "nullif(l, 0)", "if(b, l, i)",
    "d > 0", "abs(d)", "-d", "round(d, 1)", "floor(d)", "ceil(d)", "d = 0", "d <> 0.01", "CAST(d AS bigint)",
    "CAST(d AS string)", "d BETWEEN 0 AND 100000", "d NOT BETWEEN 0 AND 10", "d > 1.5", "d >= 0.01D", "d = round(d)",
    "d + d", "d - 1", "d > l", "d > i", "d IN (0.01, 2.1)", "CAST(d AS decimal(20,4)) = d",
    "CASE WHEN d > 0 THEN 'p' WHEN d < 0 THEN 'n' END", "b AND l > 0", "b OR l > 0", "NOT b", "b = true",
    "CAST(b AS int)", "CAST(b AS string)", "year(day)", "month(day)", "day(day)", "dayofweek(day)", "dayofyear(day)",
    "weekofyear(day)", "quarter(day)", "last_day(day)", "add_months(day, 1)", "date_sub(day, 0)",
    "day > DATE'2017-01-01'", "day = '2017-01-01'", "day BETWEEN DATE'2016-01-01' AND DATE'2017-12-31'",
    "date_diff(day, DATE'2017-01-01')", "abs(date_diff(day, DATE'2017-01-01')) <= 3", "CAST(day AS string)",
    "CAST(day AS timestamp)", "hour(at)", "minute(at)", "second(at)", "at > TIMESTAMP'2017-01-01 00:00:00Z'",
    "at >= '2017-01-01'", "at BETWEEN '2016-01-01' AND '2018-01-01'", "to_date(at)", "CAST(at AS date)",
    "unix_micros(at)", "date_format(at, 'yyyy-MM')", "at - INTERVAL 1 HOUR < at", "CAST(at AS string)",
)  # fmt: skip

TEXTS = (
    "", " ", "a", "ab", "abcdef", " a ", "\ta\n", "\u00a0a\u00a0", "12", " 12 ", "+12", "-0", "1e3", "1.50", "12abc",
    "99999999999", "true", "T", "yes", "2017-01-05", "2017-1-5", " 2017-01-05", "2017-01-05T10:00:00Z", "2017",
    "NaN", "ß", "\ufb01", "İ", "\u0131", "ǅ", "Σας", "日本語", "😀", "e\u0301", "a_b", "a%b", "a\\b", "x" * 300,
    "\x00a",
)  # fmt: skip
LONGS = (0, 1, -1, 7, -7, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63))
INTS = (0, 1, -1, 7, -7, 2**31 - 1, -(2**31))
AMOUNTS = tuple(Decimal(cents) / 100 for cents in (0, 1, -1, 5, -5, 15, 210, -250, 1235, 10**12 - 1, 1 - 10**12))
DAYS = (
    date(1, 1, 1), date(1582, 10, 10), date(1899, 12, 31), date(1969, 12, 31), date(1970, 1, 1), date(2016, 2, 29),
    date(2016, 12, 31), date(2017, 1, 1), date(2017, 12, 31), date(2024, 12, 30), date(9999, 11, 30),
)  # fmt: skip
MOMENTS = (
    datetime(1, 1, 2, tzinfo=UTC), datetime(1582, 10, 10, 1, 2, 3, 456_789, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
    datetime(2016, 2, 29, 12, 30, 15, 500_000, UTC), datetime(2017, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
)  # fmt: skip


KINDS: tuple[tuple[tuple[Any, ...], int], ...] = (
    (TEXTS, 11), (LONGS, 13), (INTS, 17), (AMOUNTS, 19), ((True, False), 5), (DAYS, 23), (MOMENTS, 29),
)  # fmt: skip
"""With each kind, the how manieth row has none."""


def odd_row(n: int) -> list[Any]:
    """The n-th value of each kind, or none."""
    return [n, *(values[n % len(values)] if n % gap else None for values, gap in KINDS)]


def test_what_comes_out_otherwise_is_refused_and_nothing_else(spark: SparkSession) -> None:
    rows = rows_as_frame(spark, [odd_row(n) for n in range(3)], SCHEMA)
    assert not [expression for expression in REFUSED if not refused_expressions(rows.selectExpr(expression))]
    assert not {expression: why for expression in ALIKE if (why := refused_expressions(rows.selectExpr(expression)))}


@pytest.mark.proof
def test_what_is_not_refused_comes_out_alike(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    path = str(tmp_path / "odd.parquet")
    rows_as_frame(spark, [odd_row(n) for n in range(400)], SCHEMA).coalesce(1).write.parquet(path)
    texts = [f"CAST(({expression}) AS string) AS `{n}`" for n, expression in enumerate(ALIKE)]

    def computed(session: SparkSession) -> list[tuple[Any, ...]]:
        rows = session.read.schema(SCHEMA).parquet(path).selectExpr("n", *texts)
        return sorted(tuple(row) for row in rows.collect())

    expected = computed(spark)
    with columns_for("sail"):
        found = computed(sail_session(settings))
    stop_sail()
    differing = {
        expression: (odd_row(one[0]), one[n], other[n])
        for n, expression in enumerate(ALIKE, 1)
        for one, other in zip(expected, found, strict=True)
        if one[n] != other[n]
    }
    assert not differing
