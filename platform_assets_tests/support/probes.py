"""Expressions and queries over odd values, by which two engines are held against each other.

Each has one expression over columns, since what is around it would be compared with it. Constants stand only where
columns may not, or where they decide what is computed, as formats do. What makes an engine crash is not here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.compare.row_diff import outer_union

SCHEMA = (
    "n int, g int, s string, t string, l bigint, m bigint, q bigint, i int, j int, k int, d decimal(12,2), "
    "e decimal(12,2), f decimal(18,6), h decimal(38,10), w decimal(28,2), b boolean, c boolean, day date, day2 date, "
    "at timestamp, at2 timestamp, x double, y double, p string"
)
TEXTS = (
    "", " ", "a", "ab", "abcdef", " a ", "\ta\n", "\u00a0a\u00a0", "12", " 12 ", "+12", "-0", "1e3", "1.50", "12abc",
    "99999999999", "true", "T", "yes", "2017-01-05", "2017-1-5", " 2017-01-05", "2017-01-05T10:00:00Z", "2017",
    "NaN", "ß", "\ufb01", "İ", "\u0131", "ǅ", "Σας", "日本語", "😀", "e\u0301", "a_b", "a%b", "a\\b", "x" * 300,
    "\x00a", "in/2017-01-05/b10.csv", "in/b007_2.csv", "b٣.csv",
)  # fmt: skip
LONGS = (0, 1, -1, 7, -7, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63))
SMALL_LONGS = (0, 1, -1, 7, -7, 2**31, -(2**31) - 1, 2**53 + 1, -(2**53) - 1)
INTS = (0, 1, -1, 7, -7, 2**31 - 1, -(2**31))
COUNTS = (0, 1, -1, 2, 3, -3, 5, 40)
AMOUNTS = tuple(Decimal(cents) / 100 for cents in (0, 1, -1, 5, -5, 15, 210, -250, 1235, 10**12 - 1, 1 - 10**12))
FINE = tuple(Decimal(text) for text in ("0", "0.000001", "-0.000001", "0.5", "-2.5", "999999999999.999999", "1.005"))
HUGE = tuple(Decimal(text) for text in ("0", "1", "0.0000000001", "-0.0000000005", "1" * 27 + ".5", "-" + "9" * 27))
WIDE = tuple(Decimal(text) for text in ("0", "0.01", "-0.01", "9" * 25 + ".99", "-" + "9" * 25 + ".99", "12.30"))
DAYS = (
    date(1, 1, 1), date(1582, 10, 10), date(1899, 12, 31), date(1969, 12, 31), date(1970, 1, 1), date(2016, 2, 29),
    date(2016, 12, 31), date(2017, 1, 1), date(2017, 12, 31), date(2024, 12, 30), date(9999, 11, 30),
)  # fmt: skip
MOMENTS = (
    datetime(1, 1, 2, tzinfo=UTC), datetime(1582, 10, 10, 1, 2, 3, 456_789, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
    datetime(2016, 2, 29, 12, 30, 15, 500_000, UTC), datetime(2017, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 30, 23, 59, 59, 999_999, UTC),
)  # fmt: skip
DOUBLES = (0.0, -0.0, 1.5, -2.5, 0.1, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 123456789.125)
PATTERNS = (
    "%", "", "_", "a%", "%b", "%a%", "a_b", "a__", "%é%", "12%", "日%", "\\%", "a\\_b", "%%", "_%_",
    "A%", "ß", "__",
)  # fmt: skip
KINDS: tuple[tuple[tuple[Any, ...], int], ...] = (
    (TEXTS, 11), (TEXTS, 7), (LONGS, 13), (LONGS, 9), (SMALL_LONGS, 8), (INTS, 17), (INTS, 10), (COUNTS, 12),
    (AMOUNTS, 19), (AMOUNTS, 14), (FINE, 15), (HUGE, 16), (WIDE, 18), ((True, False), 5), ((True, False), 3),
    (DAYS, 23), (DAYS, 20), (MOMENTS, 29), (MOMENTS, 25), (DOUBLES, 21), (DOUBLES, 22), (PATTERNS, 26),
)  # fmt: skip
"""With each kind, the how manieth row has none."""
GROUPS = 6


def odd_row(n: int) -> list[Any]:
    """Return the n-th row: group 0 has one row, group 1 nothing but nulls, the last one only equal values."""
    group = 0 if n == 0 else 1 + n % (GROUPS - 1)
    at = {1: None, GROUPS - 1: 5}.get(group, n)
    values = [
        None if at is None or (at % gap == 0 and n) else kind[(at + place * (at // len(kind))) % len(kind)]
        for place, (kind, gap) in enumerate(KINDS)
    ]
    return [n, group, *values]


SAME = ("s t", "l m", "i j", "d e", "h h", "b c", "day day2", "at at2", "x y")
OTHER = ("l i", "i l", "d f", "d i", "i d", "d l", "l d", "d h", "w d", "d x", "day at", "at day")
COLUMNS = ("s", "l", "i", "d", "f", "h", "w", "b", "day", "at", "x")
SETS = ("s", "l", "i", "d", "day", "at")
ORDERED = ("s", "l", "i", "d", "h", "b", "day", "at", "x")
FEW = ("s", "d", "day")


def _pairs(pattern: str, pairs: tuple[str, ...]) -> list[str]:
    return [pattern.format(*pair.split()) for pair in pairs]


def _each(pattern: str, columns: tuple[str, ...] = COLUMNS) -> list[str]:
    return [pattern.format(column) for column in columns]


NUMBERS = (
    "d e", "d f", "f f", "d h", "h h", "w d", "w w", "d i", "i d", "d l", "l d", "d x", "x y", "l x", "f i", "f l",
    "w i", "w l",
)  # fmt: skip
FACTORS = ("d e", "d f", "f f", "d i", "i d", "d l", "l d", "x y", "f i")
CASTS = {
    "s": "string", "l": "bigint string decimal(22,2) double boolean",
    "i": "int bigint string decimal(12,2) double boolean",
    "d": "bigint string decimal(12,2) decimal(18,2) decimal(20,4) double boolean", "f": "decimal(18,2) decimal(38,10)",
    "h": "decimal(38,10) decimal(38,2) decimal(18,2) string",
    "w": "decimal(18,2) decimal(38,2)", "b": "int bigint string boolean",
    "day": "string timestamp date", "at": "string date timestamp bigint", "x": "string double",
}  # fmt: skip
TRIED = CASTS | {
    "s": "int bigint boolean date timestamp decimal(12,2) double string", "l": "int decimal(12,2)",
    "d": "int decimal(10,1)", "x": "int bigint decimal(12,2)",
}  # fmt: skip
ROWS = (
    *("length(s)", "octet_length(s)", "bit_length(s)", "char_length(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "btrim(s)"),
    *("trim(BOTH t FROM s)", "trim(BOTH 'a' FROM s)", "btrim(s, t)", "upper(s)", "lower(s)", "initcap(s)"),
    *("s LIKE p", "s LIKE 'a%'", r"s LIKE '%\\_%'", "s ILIKE p", "s ILIKE 'A%'", "s LIKE 'a/%' ESCAPE '/'"),
    *("substring(s, k, j)", "substring(s, k)", "left(s, k)", "right(s, k)", "instr(s, t)", "locate(t, s)"),
    *("left(s, 2)", "right(s, 2)", "substring(s, 2, 3)"),
    *("locate(t, s, k)", "position(t IN s)", "replace(s, t, 'xy')", "replace(s, 'a', t)", "replace(s, 'a')", "s || t"),
    *("concat(s, t, s)", "concat_ws(t, s, s)", "concat_ws('-', s, t)", "lpad(s, 5, 'ab')", "rpad(s, 5, 'ab')"),
    *("repeat(s, k)", "reverse(s)", "contains(s, t)", "startswith(s, t)", "endswith(s, t)", "split_part(s, 'a', 1)"),
    *("split_part(s, t, k)", "ascii(s)", "chr(k)", "translate(s, 'ab', 'xy')", "translate(s, t, 'xy')", "md5(s)"),
    *("sha2(s, 256)", "base64(CAST(s AS binary))", "hex(s)", "hex(l)"),
    "substring_index(s, t, k)",
    "elt(k, s, t)",
    r"s RLIKE '\\d'", r"regexp_replace(s, '\\w', 'b')", r"regexp_extract(s, '(\\s)', 1)",
    *("split(s, ',')", "is_valid_utf8(s)", "format_number(d, 2)"),
    "format_string('%s', s)",
    *("to_date(s)", "try_to_date(s, 'yyyy-MM-dd')", "to_timestamp(s)", "try_to_timestamp(s)"),
    "get_json_object(s, '$.a')",
    *("from_json(s, 'a int')", "to_json(named_struct('a', d))"),
    *(text for sign in ("=", "<", "<=", ">", ">=", "<=>") for text in _pairs(f"{{}} {sign} {{}}", SAME + OTHER)),
    *(
        text
        for pattern in (
            *("{} IN ({})", "nullif({}, {})", "coalesce({}, {})", "if(b, {}, {})", "greatest({}, {})"),
            *("least({}, {})", "CASE WHEN b THEN {} WHEN c THEN {} END"),
        )
        for text in _pairs(pattern, (*SAME, "d f", "d i", "l i"))
    ),
    *(text for name in ("nvl", "ifnull") for text in _pairs(f"{name}({{}}, {{}})", (*SAME[:-1], "d i", "l i"))),
    *_pairs("CASE {0} WHEN {1} THEN 1 ELSE 0 END", ("s t", "l m", "i j", "d e", "day day2")),
    *_pairs("{} + {}", NUMBERS), *_pairs("{} - {}", NUMBERS), *_pairs("{} * {}", FACTORS), "l + m", "l - m",
    *("s = i", "l * m", "i + j", "i - j", "i * j", "d / e", "l / m", "l % 7", "i % 7", "pmod(l, 7)"),
    *("l DIV 3", "mod(l, -7)"),
    *_pairs("try_add({}, {})", ("l m", "i j", "d e")), *_pairs("try_divide({}, {})", ("l m", "d e", "x y")),
    *_pairs("try_subtract({}, {})", ("l m", "i j", "d e")), *_pairs("try_multiply({}, {})", ("l m", "i j", "d e")),
    *_pairs("if(b, {}, NULL)", ("s s", "l l", "i i", "d d", "day day", "at at", "x x", "b b")),
    *_each("{} IS NULL"), *_each("{} IS NOT NULL"), *_each("coalesce({0}, {0}, NULL)"), *_each("NULL = {}"),
    *_each("coalesce({}, 0)", ("h", "d", "l", "i")),
    *_each("-{}", ("l", "i", "d", "h", "x", "k")), *_each("abs({})", ("l", "i", "d", "f", "h", "x", "k")),
    *_each("sign({})", ("l", "i", "d", "x")), *_each("zeroifnull({})", ("l", "i", "d", "x")), "nullifzero(d)",
    *(f"{name}({column}, {at})" for name, column, at in product(("round", "bround"), "dfh", (-2, 0, 1, 2))),
    *_each("round({})", ("d", "f", "x", "i")), *_each("floor({})", ("l", "i", "d", "f", "h", "x")),
    *_each("ceil({})", ("l", "i", "d", "f", "h", "x")), *("round(l, -2)", "floor(d, 1)", "ceil(d, 1)", "round(x, 2)"),
    *("l & m", "l | m", "l ^ m", "i & j", "~l", "shiftleft(l, k)", "bit_count(l)", "isnan(x)", "nanvl(x, y)"),
    *("sqrt(x)", "exp(x)", "log(x)", "log10(x)", "pow(x, y)", "bin(l)"),
    *("greatest(d, e, f)", "greatest(l, i, d)", "s IN ('a', t, NULL)"),
    *("b AND c", "b OR c", "NOT b", "b = true", "b IS TRUE", "b IS NOT FALSE", "b IS UNKNOWN", "d BETWEEN e AND f"),
    *("l BETWEEN m AND q", "i BETWEEN j AND k", "d BETWEEN i AND j", "day BETWEEN day2 AND day2", "s BETWEEN t AND t"),
    *("at BETWEEN at2 AND at2", "x BETWEEN y AND y", "l BETWEEN i AND j", "d BETWEEN e AND e"),
    *(f"{name}(day)" for name in ("year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekday")),
    *(f"{name}(day)" for name in ("weekofyear", "quarter", "last_day", "dayname", "monthname", "unix_date")),
    *(f"{name}(at)" for name in ("year", "month", "day", "dayofweek", "dayofyear", "weekday", "weekofyear", "quarter")),
    *(f"{name}(at)" for name in ("hour", "minute", "second", "last_day", "to_date", "unix_seconds", "unix_millis")),
    *(f"{name}(at)" for name in ("unix_micros", "date")), *(f"extract({part} FROM day)" for part in ("YEAR", "MONTH")),
    *("extract(DOW FROM day)", "extract(WEEK FROM day)", "extract(YEAR FROM at)", "extract(HOUR FROM at)"),
    *(f"trunc(day, '{unit}')" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK")),
    *(f"date_trunc('{unit}', at)" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
    *("date_trunc('MILLISECOND', at)", "add_months(day, k)", "date_add(day, k)", "date_sub(day, k)", "day + k"),
    *("day - k", "date_diff(day, day2)", "datediff(day, day2)", "day - day2", "months_between(at, at2)"),
    *("months_between(day, day2)", "next_day(day, 'MON')", "make_date(2017, k, k)", "date_from_unix_date(k)"),
    *(f"date_format(at, '{form}')" for form in ("yyyy", "MM", "dd", "yyyy-MM", "yyyy-MM-dd", "yyyyMMdd", "HH",
    "HH:mm")),
    *(f"date_format(day, '{form}')" for form in ("yyyy", "MM", "yyyy-MM", "yyyy-MM-dd", "yyyyMMdd", "E", "EEEE", "D")),
    *("date_format(at, 'yyyy-MM-dd HH:mm:ss')", "date_format(at, 'SSS')", "at - at2"),
    *(f"at {sign} INTERVAL {span}" for sign, span in product("+-", ("1 HOUR", "1 DAY", "30 MINUTES", "1 MONTH"))),
    *(f"day {sign} INTERVAL {span}" for sign, span in product("+-", ("1 DAY", "7 DAYS", "1 MONTH", "1 YEAR"))),
    *("timestampdiff(DAY, at, at2)", "timestampadd(DAY, k, at)", "timestamp_seconds(q)", "from_unixtime(q)"),
    *("timestamp_micros(q)", "from_utc_timestamp(at, 'America/New_York')", "to_utc_timestamp(at, 'America/New_York')"),
    *("convert_timezone('UTC', 'Asia/Tokyo', CAST(at AS timestamp_ntz))", "make_timestamp(2017, 1, 1, 1, 1, 1)"),
    *("array(s, t)", "array(l, m)", "size(array(l, m))", "array_contains(array(1L, 7L), l)", "array(d, e)[0]"),
    *("sort_array(array(l, m))", "array_max(array(l, m))", "array_distinct(array(s, t))"),
    "array_join(array(s, t), '-')",
    *("element_at(array(l, m), 1)", "named_struct('a', s, 'b', d)", "named_struct('a', s).a", "map('a', l)"),
    *("sequence(day, day)", "transform(array(l), v -> v)", "filter(array(l, m), v -> v > 0)"),
    "exists(array(l), v -> v > 0)",
    *(f"CAST({column} AS {type_})" for column, types in CASTS.items() for type_ in types.split()),
    *(f"try_cast({column} AS {type_})" for column, types in TRIED.items() for type_ in types.split()),
    *(f"CAST(NULL AS {type_})" for type_ in ("string", "bigint", "int", "decimal(12,2)", "boolean", "date",
    "timestamp")),
    *("'a'", r"'\\ \' 😀'", "1", "-1", "1L", "9223372036854775807L", "1.50", "0.1D", "1e3", "true", "NULL", "1.5BD"),
    *("CAST(NULL AS decimal(38,10))", "99999999999999999999999999999999999999", "-0.000000000000000001"),
    *("DATE'2016-02-29'", "DATE'0001-01-01'", "DATE'9999-12-31'", "TIMESTAMP'2017-01-01 10:00:00.123456'"),
    *("TIMESTAMP'1582-10-10 00:00:00Z'", "TIMESTAMP'2017-01-01 00:00:00+02:00'", "INTERVAL 1 DAY"),
)  # fmt: skip
AGGREGATES = (
    *("count(*)", "count(1)", "count(s, t)", "count(DISTINCT s, t)", "count_if(b)", "count(*) FILTER (WHERE b)"),
    *_each("count({})"), *_each("count(DISTINCT {})"), *_each("min({})"), *_each("max({})"), "mode(s)", "mode(l)",
    *_each("sum({})", ("q", "i", "d", "f", "h", "w", "x")), *_each("avg({})", ("q", "i", "d", "f", "w", "x")),
    *_each("sum(DISTINCT {})", ("q", "i", "d", "f", "w")), *_each("sum({}) FILTER (WHERE b)", ("q", "i", "d", "f",
    "w")),
    *_each("min({}) FILTER (WHERE b)", FEW), *_each("max({}) FILTER (WHERE b)", FEW), "count(s) FILTER (WHERE b)",
    *_each("max_by({}, n)"), *_each("min_by({}, n)", FEW), *_each("max_by(n, {})", ("n", "day", "s")),
    *_each("try_sum({})", ("q", "i", "d")), *_each("median({})", ("q", "d", "x")),
    *_each("approx_count_distinct({})", ("s", "l", "d")), *_each("percentile_approx({}, 0.5)", ("q", "d", "x")),
    *_each("stddev({})", ("q", "d", "x")), *_each("var_pop({})", ("q", "d", "x")), *_each("skewness({})", ("q", "x")),
    *("bool_and(b)", "bool_or(b)", "every(b)", "some(b)", "bit_and(l)", "bit_or(l)", "bit_xor(l)"),
    *("percentile(q, 0.5)", "listagg(DISTINCT s)"),
    "max(named_struct('a', d, 'b', s))",
)  # fmt: skip
FRAMES = (
    "ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "",
    "ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
)  # fmt: skip
ROWS_OVER = (
    *_each("sum({})", ("q", "i", "d", "f", "w")), *_each("min({})", SETS), *_each("max({})", SETS), "count(1)",
    *_each("count({})", FEW),
)  # fmt: skip
TO_HERE = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
BOUNDED = (
    ("i", "6 PRECEDING AND CURRENT ROW"), ("q", "6 PRECEDING AND CURRENT ROW"), ("q", "6 PRECEDING AND 1 PRECEDING"),
    ("day", "6 PRECEDING AND CURRENT ROW"), ("day", "INTERVAL 6 DAYS PRECEDING AND CURRENT ROW"),
    ("at", "INTERVAL 6 DAYS PRECEDING AND CURRENT ROW"), ("at", "INTERVAL 1 HOUR PRECEDING AND CURRENT ROW"),
)  # fmt: skip
ORDERS = ("ASC", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST")
WINDOWS = (
    *(f"{value} OVER (PARTITION BY g {frame})" for value, frame in product(ROWS_OVER, FRAMES)),
    *(
        f"{name}({column}) OVER (PARTITION BY g ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND {end})"
        for name, column, end in product(("first_value", "last_value"), SETS, ("CURRENT ROW", "UNBOUNDED FOLLOWING"))
    ),
    *(
        f"{value} OVER (PARTITION BY g ORDER BY {by} {TO_HERE})"
        for value, by in product(("sum(d)", "count(1)"), ORDERED)
    ),
    *(f"sum(d) OVER (PARTITION BY g ORDER BY {by} RANGE BETWEEN {bounds})" for by, bounds in BOUNDED),
    *(f"{name}() OVER (PARTITION BY g ORDER BY {by})" for name, by in product(("rank", "dense_rank"), SETS)),
    *(f"{name} OVER (PARTITION BY g ORDER BY n)" for name in ("percent_rank()", "cume_dist()", "ntile(3)")),
    *(f"row_number() OVER (PARTITION BY g ORDER BY {by} {how}, n)" for by, how in product(ORDERED, ORDERS)),
    *(f"row_number() OVER (PARTITION BY {by} ORDER BY n)" for by in COLUMNS),
    *(f"{name}({by}) OVER (PARTITION BY g ORDER BY n)" for name, by in product(("lag", "lead"), COLUMNS)),
    *(f"{name} OVER (PARTITION BY g ORDER BY n)" for name in ("lag(d, 2)", "lag(d, 1, 0)", "nth_value(d, 2)")),
    "row_number() OVER (ORDER BY n)",
)  # fmt: skip


def _sides(odd: DataFrame, column: str) -> tuple[DataFrame, DataFrame]:
    """Describe two frames, each of which lacks a column that the other has."""
    return odd.selectExpr("n", f"{column} AS v"), odd.selectExpr("n", f"{column} AS w")


def _without(column: str) -> Callable[[DataFrame], DataFrame]:
    return lambda odd: DataFrame.unionByName(*_sides(odd, column), allowMissingColumns=True)


def _outer(column: str) -> Callable[[DataFrame], DataFrame]:
    return lambda odd: outer_union(*_sides(odd, column))


def _places(odd: DataFrame) -> DataFrame:
    """Describe how silver finds the place of a file that was delivered before."""
    kinds = (TEXTS, [str(day) for day in DAYS], TEXTS[5:], LONGS)
    rows = ([None if n % (7 + at) == at else kind[n % len(kind)] for at, kind in enumerate(kinds)] for n in range(60))
    text = json.dumps([dict(zip(("_arrival", "_date", "_file", "_file_number"), row, strict=True)) for row in rows])
    known = odd.where("n < 1").select(F.lit(text).alias("text")).select(F.inline(F.from_json("text", PLACES)))
    return odd.selectExpr("n", "s AS _arrival").join(F.broadcast(known), "_arrival", "left")


PLACES = "array<struct<_arrival: string, _date: date, _file: string, _file_number: bigint>>"
QUERIES: Mapping[str, str | Callable[[DataFrame], DataFrame]] = {
    sql: sql
    for sql in (
        *(f"SELECT count(*) AS c, min(n) AS v, {by} FROM odd GROUP BY {by}" for by in COLUMNS),
        *(f"SELECT DISTINCT {by} FROM odd" for by in COLUMNS),
        *(f"SELECT a.n, b.n AS o FROM odd a JOIN odd b ON a.{by} = b.{by}" for by in SETS),
        *(
            f"SELECT a.n, b.d AS o FROM odd a {kind} JOIN (SELECT DISTINCT k, d FROM odd WHERE k > 1) b ON a.i = b.k"
            for kind in ("LEFT", "RIGHT", "FULL")
        ),
        *(
            f"SELECT a.n FROM odd a LEFT {kind} JOIN (SELECT * FROM odd WHERE b) b ON a.{by} = b.{by}"
            for kind, by in product(("SEMI", "ANTI"), FEW)
        ),
        *(f"SELECT a.n, b.n AS o FROM odd a LEFT JOIN odd b ON a.{by} = b.{by}" for by in SETS),
        *_pairs("SELECT n, {} AS v FROM odd UNION ALL SELECT n, {} FROM odd", ("i l", "l i", "d f", "f d", "i d")),
        "SELECT a.n, b.n AS o FROM odd a CROSS JOIN odd b WHERE b.n < 3",
        "SELECT a.n, b.n AS o FROM odd a JOIN odd b ON a.day < b.day2",
        *(
            f"SELECT {by} FROM odd WHERE n < 90 {kind} SELECT {by} FROM odd WHERE n > 40 AND n < 100"
            for kind, by in product(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"), FEW)
        ),
        *(f"SELECT n, {by} FROM odd ORDER BY {by}, n LIMIT 40" for by in FEW),
        "SELECT n FROM odd ORDER BY n LIMIT 10 OFFSET 5",
        "SELECT n FROM odd WHERE b", "SELECT n FROM odd WHERE d IS NULL",
        "SELECT g, sum(q) AS v FROM odd GROUP BY g HAVING count(1) > 3", "SELECT sum(q) AS v FROM odd WHERE n < 0",
        "SELECT n FROM odd a WHERE EXISTS (SELECT 1 FROM odd b WHERE b.n = a.k)",
        "SELECT n FROM odd WHERE n IN (SELECT k FROM odd)", "SELECT n FROM odd WHERE n NOT IN (SELECT k FROM odd)",
        "SELECT n, (SELECT max(d) FROM odd) AS v FROM odd", "WITH w AS (SELECT n, d FROM odd) SELECT n, d FROM w",
        "SELECT n, explode(array(l, m)) AS v FROM odd", "SELECT n, explode(array(s)) AS v FROM odd",
        "SELECT n, posexplode(array(l, m)) FROM odd", "SELECT n, inline(array(named_struct('a', l))) FROM odd",
        "SELECT n, explode(sequence(day, date_add(day, 2))) AS v FROM odd WHERE n > 5 AND n < 20",
        "SELECT g, b, count(1) AS v FROM odd GROUP BY ROLLUP (g, b)",
        "SELECT g, b, count(1) AS v FROM odd GROUP BY CUBE (g, b)",
        "SELECT * FROM (SELECT g, b, q FROM odd) PIVOT (sum(q) FOR b IN (true, false))",
        "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v(n, s)", "SELECT n FROM odd a LEFT JOIN odd USING (n)",
        "SELECT n, v FROM odd LATERAL VIEW explode(array(l)) AS v",
    )
} | {
    "repartition": lambda odd: odd.repartition("day").select("n"),
    "repartition to a number": lambda odd: odd.repartition(3, "day").select("n"),
    "coalesce": lambda odd: odd.coalesce(1).select("n"),
    "sortWithinPartitions": lambda odd: odd.sortWithinPartitions("n").select("n"),
    "dropDuplicates": lambda odd: odd.select("s", "l", "i", "d", "b", "day", "at").dropDuplicates(),
    "dropDuplicates of keys": lambda odd: odd.select("g").dropDuplicates(["g"]),
    "unionByName": lambda odd: odd.select("n", "d").unionByName(odd.select("d", "n")),
    "range": lambda odd: odd.sparkSession.range(3),
    "withColumn": lambda odd: odd.withColumn("v", odd["d"]).drop("d").withColumnRenamed("v", "d").select("n", "d"),
    "limit": lambda odd: odd.orderBy("n").limit(5).select("n"),
    "fillna": lambda odd: odd.select("n", "s").fillna({"s": "none"}),
    "alias": lambda odd: odd.select("n").alias("a").select("a.n"),
    "places of files": _places,
    **{f"unionByName without {by}": _without(by) for by in FEW},
    **{f"outer_union of {by}": _outer(by) for by in (*SETS, "h", "b")},
}  # fmt: skip
