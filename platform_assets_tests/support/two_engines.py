"""The same probes on two engines, by values and types: what comes out alike, and the list that is made of it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.spark.sail.session import GONE, columns_for, is_sail
from platform_assets.spark.sail.shown_equal import Use, uses
from platform_assets_tests.support.frames import rows_as_frame
from platform_assets_tests.support.probes import AGGREGATES, QUERIES, ROWS, SCHEMA, WINDOWS, odd_row

ODD_ROWS, SINGLE_ROWS, AT_ONCE = 300, 44, 40
PROBES = {
    "expressions of a row": tuple(dict.fromkeys(ROWS)),
    "aggregates": tuple(dict.fromkeys(AGGREGATES)),
    "functions over windows": tuple(dict.fromkeys(WINDOWS)),
    "queries": tuple(QUERIES),
}
NOT_BY_SAMPLES = re.compile(
    r"(Add|Subtract|Multiply|Divide|IntegralDivide|Remainder|Pmod)\{.*\) decimal38"
    r"|\w*(Approx|HyperLogLog|Histogram|Percentile|Median|Mode|MaxBy|MinBy)"
    r"|(Sum|TrySum|Average|Exp|Log|Pow|Sin|Cbrt|Stddev|Variance|Skewness|Corr)\w*[({].*double"
)
"""What no sample shows: a product whose digits are cut is a cent apart in one of 20,000 amounts, estimates and ties
differ from some number of rows on, and sums of doubles depend on the order."""
_ERRORS = (PySparkException, Py4JJavaError, pa.ArrowException)


class Column(NamedTuple):
    """What came of an expression: the type, and each row's value as text, so that -0.0 and NaN count."""

    type_: str
    values: tuple[str, ...]

    def agrees_with(self, other: Column) -> bool:
        """Tell whether another engine gave the same; where Spark counts in ints, Sail may count in longs."""
        return self.values == other.values and (self.type_, other.type_) in {
            (self.type_, self.type_),
            ("int32", "int64"),
        }


@dataclass
class TwoEngines:
    """Spark and Sail with a view `odd` of the same file.

    Args:
        spark: the reference.
        sail: gives the session of the other one, a new one where the server is gone.
        path: of the file.
        gone: probes with which the server ended.
    """

    spark: SparkSession
    sail: Callable[[], SparkSession]
    path: str
    gone: list[str] = field(default_factory=list)
    singles: list[DataFrame] = field(default_factory=list)

    def alike(self, kind: str, probes: Sequence[str]) -> dict[str, bool]:
        """Compare probes, many in one query; an error of one engine has to be one of the other, with the same rows."""
        ours, theirs = (self._tried(session, kind, probes) for session in (lambda: self.spark, self.other))
        return {
            probe: one.agrees_with(other)
            if one and other
            else one is other and kind == "expressions of a row" and self._row_by_row(probe)
            for probe, one, other in zip(probes, ours, theirs, strict=True)
        }

    def _tried(self, session: Callable[[], SparkSession], kind: str, probes: Sequence[str]) -> list[Column | None]:
        """Compute probes in one query; where that fails, in ever smaller ones."""
        try:
            return list(self.computed(session(), kind, probes))
        except _ERRORS as error:
            if len(probes) > 1:
                half = len(probes) // 2
                return [one for some in (probes[:half], probes[half:]) for one in self._tried(session, kind, some)]
            if GONE.search(str(error)):
                self.gone.append(probes[0])
            return [None]

    def other(self) -> SparkSession:
        """Return Sail's session with the view."""
        session = self.sail()
        session.read.schema(SCHEMA).parquet(self.path).createOrReplaceTempView("odd")
        return session

    def computed(self, session: SparkSession, kind: str, probes: Sequence[str]) -> list[Column]:
        """Compute probes in one query."""
        if kind == "queries":
            return [_whole(query(session, probe)) for probe in probes]
        return _columns(selected(session.table("odd"), kind, probes))

    def _row_by_row(self, probe: str) -> bool:
        """Compare the rows of which an engine fails with some: both have to fail with the same ones."""
        if not self.singles:
            self.singles.extend(rows_as_frame(self.spark, [odd_row(n)], SCHEMA) for n in range(SINGLE_ROWS))
        sail = self.other()
        any_value = False
        for n, row in enumerate(self.singles):
            one = _tried(row.selectExpr("n", f"{probe} AS c0"))
            other = _tried(sail.table("odd").where(f"n = {n}").selectExpr("n", f"{probe} AS c0"))
            if (one is None) != (other is None) or (one and other and not one.agrees_with(other)):
                return False
            any_value = any_value or one is not None
        return any_value


def query(session: SparkSession, probe: str) -> DataFrame:
    """Describe a query in SQL, or the one of this name."""
    made = QUERIES[probe]
    with columns_for(_engine(session)):
        return session.sql(made) if isinstance(made, str) else made(session.table("odd"))


def selected(odd: DataFrame, kind: str, probes: Sequence[str]) -> DataFrame:
    """Describe some probes in one query, beside what tells its rows apart."""
    with columns_for(_engine(odd.sparkSession)):
        columns = [F.expr(probe).alias(f"c{n}") for n, probe in enumerate(probes)]
        return odd.groupBy("g").agg(*columns) if kind == "aggregates" else odd.select("n", *columns)


def planned(odd: DataFrame, kind: str, probe: str) -> list[Use]:
    """Return what Sail has to compute for a probe of odd rows, as the list has it."""
    if kind == "queries":
        return list(uses(query(odd.sparkSession, probe)))
    return list(uses(selected(odd, kind, [probe])))


def listed(outcome: dict[str, dict[str, bool]], planned_uses: dict[tuple[str, str], list[Use]]) -> dict[str, Any]:
    """Make the list of a comparison: what is in a probe that came out alike and is the cause of none that did not.

    Args:
        outcome: by kind and probe, whether it came out alike.
        planned_uses: by kind and probe, as `planned` has them.
    """
    equal: set[str] = set()
    differing: list[tuple[list[Use], Use]] = []
    for kind, probes in outcome.items():
        for probe, is_equal in probes.items():
            used = planned_uses[kind, probe]
            if is_equal:
                equal.update(use.forms[-1] for use in used)
            else:
                differing.append((used, _root(kind, used)))
    blocked = set[str]()
    for used, root in differing:
        causes = [use for use in used if not equal.intersection(use.forms)] or [root]
        blocked.update(form for use in causes for form in use.forms)
    by_name = defaultdict[str, list[str]](list)
    # What names an expression of one plan by its id is in no other.
    lasting = {form for form in equal - blocked if "ExprId(" not in form}
    for form in sorted(form for form in lasting if not NOT_BY_SAMPLES.match(form)):
        name = form.replace("{", " ").replace("(", " ").partition(" ")[0]
        by_name[name].append(form.removeprefix(name))
    return {
        "spark": version("pyspark"),
        "sail": version("pysail"),
        "probes": {kind: [len(probes), sum(probes.values())] for kind, probes in outcome.items()},
        "expressions": dict(by_name),
    }


def write(shown: dict[str, Any], file: Path) -> None:
    """Write the list with a line for each letter that names begin with."""
    letters = groupby(shown["expressions"].items(), key=lambda of_name: of_name[0][0])
    names = (f"  {json.dumps(dict(of_letter))[1:-1]}" for _, of_letter in letters)
    head = (f" {json.dumps(name)}: {json.dumps(shown[name])}" for name in ("spark", "sail", "probes"))
    lines = ["{", *(f"{line}," for line in head), ' "expressions": {', ",\n".join(names), " }", "}"]
    file.write_text("\n".join(lines) + "\n", "utf-8")


def odd_file(spark: SparkSession, folder: Path) -> str:
    """Write the odd rows, and show them to Spark."""
    path = str(folder / "odd.parquet")
    rows_as_frame(spark, [odd_row(n) for n in range(ODD_ROWS)], SCHEMA).coalesce(1).write.parquet(path)
    spark.read.schema(SCHEMA).parquet(path).createOrReplaceTempView("odd")
    return path


def in_turn(kind: str, probes: Sequence[str]) -> Iterable[Sequence[str]]:
    """Deal probes out, as many as one query may have."""
    step = 1 if kind == "queries" else AT_ONCE
    return (probes[at : at + step] for at in range(0, len(probes), step))


def _engine(session: SparkSession) -> str:
    return "sail" if is_sail(session) else "spark"


def _root(kind: str, used: Sequence[Use]) -> Use:
    """Return what a probe is about: of a query its last operator, else the outermost expression."""
    return next((use for use in used if bool(use.text) == (kind != "queries")), used[0])


def _columns(frame: DataFrame) -> list[Column]:
    table = cast("pa.Table", cast("Any", frame).toArrow())
    keys = table.column(0).to_pylist()
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return [_column(column, order) for column in table.columns[1:]]


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    """Return the values, moments as numbers: those that Python cannot have are no error of an engine."""
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        column = column.cast(pa.int64())
    return cast("list[Any]", (column.cast(pa.int32()) if pa.types.is_date(column.type) else column).to_pylist())


def _column(column: pa.ChunkedArray[Any], order: Sequence[int]) -> Column:
    values = _values(column)
    return Column(str(column.type).replace("large_", ""), tuple(repr(values[at]) for at in order))


def _whole(frame: DataFrame) -> Column:
    table = cast("pa.Table", cast("Any", frame).toArrow())
    columns = [_values(column) for column in table.columns]
    types = ", ".join(str(column.type).replace("large_", "") for column in table.columns)
    return Column(types, tuple(sorted(map(repr, zip(*columns, strict=True)))))


def _tried(frame: DataFrame) -> Column | None:
    try:
        return _columns(frame)[0]
    except _ERRORS:
        return None
