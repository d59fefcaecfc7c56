"""Sail computes what was shown to come out as Spark computes it, on odd values of every type, and nothing else."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts.checks import EXACT
from platform_assets.domains.retail.sample import Simulation
from platform_assets.domains.retail.sample.landing import land
from platform_assets.operations.verify import why_refused
from platform_assets.settings import Settings
from platform_assets.spark.compare.row_diff import within_sql
from platform_assets.spark.sail import shown_equal
from platform_assets.spark.sail.session import GONE, columns_for, is_sail, sail_session, stop_sail
from platform_assets.spark.sail.shown_equal import Use, refused_expressions, uses
from platform_assets_tests.support.installation import rows_as_frame
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.probes import AGGREGATES, QUERIES, ROWS, SCHEMA, WINDOWS, odd_row
from platform_assets_tests.support.world import World

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


LIST = Path(shown_equal.__file__).with_name("shown_equal.json")

SAMPLE = (
    "length(s)", "trim(s)", "upper(s)", "lower(s)", "s LIKE p", "replace(s, t, 'xy')", "s || t", "contains(s, t)",
    "s < t", "s = t", "s <=> t", "coalesce(s, t)", "nullif(s, t)", "if(b, s, t)", "s IN (t)", "l > m", "i = l",
    "d > i", "d <=> e", "day >= day2", "at < at2", "x < y", "x = y", "coalesce(d, e)", "greatest(d, e)",
    "least(l, m)", "d + e", "d - e", "d * e", "CASE WHEN b THEN d WHEN c THEN e END", "CAST(d AS string)",
    "CAST(l AS string)", "CAST(day AS string)", "CAST(at AS date)", "try_cast(s AS int)", "year(day)",
    "last_day(day)", "hour(at)", "date_diff(day, day2)", "b AND c", "NOT b", "d BETWEEN e AND f",
)  # fmt: skip
DIFFER = (
    "h * h", "w * f", "nvl(d, e)", "ifnull(d, 0)", "zeroifnull(d)", "bround(d, 1)", "day - day2", "l + m", "i * j",
    "d / e", "s = 1", "initcap(s)", "s RLIKE '[0-9]'", "to_date(s)", "CAST(at AS bigint)", "xxhash64(d)",
    "timestamp_seconds(q)",
    "avg(d)", "approx_count_distinct(s)", "percentile_approx(d, 0.5)", "mode(s)", "stddev(d)", "max_by(d, i)",
    "sum(d) OVER (ORDER BY day RANGE BETWEEN 6 PRECEDING AND CURRENT ROW)", "parse_url(s, 'HOST')", "pi()",
)  # fmt: skip
"""What comes out otherwise or is not shown by samples, and what no probe has."""


def test_what_was_not_shown_to_come_out_alike_is_refused_by_name(spark: SparkSession) -> None:
    odd = rows_as_frame(spark, [odd_row(n) for n in range(3)], SCHEMA)
    assert not [text for text in DIFFER if not refused_expressions(odd.selectExpr(text))]
    (why,) = refused_expressions(odd.selectExpr("nvl(d, e) AS v"))
    assert why == (
        "it has Nvl(decimal, decimal) decimal, as in nvl(d, e), which was not shown to come out alike on Spark 4.2.0 "
        "and Sail 0.7.2"
    )
    assert refused_expressions(odd.select("s").intersectAll(odd.select("t")))
    assert not refused_expressions(odd.selectExpr("coalesce(d, e) AS v").distinct())
    sums = odd.selectExpr("CAST(d AS decimal(28,2)) AS ours", "CAST(e AS decimal(22,2)) AS theirs")
    exact = within_sql("ours", "theirs", EXACT, [field.dataType for field in sums.schema])
    assert not refused_expressions(sums.selectExpr(exact)), "then no table with a reconciliation could be computed"


def three_days(lakes: Lakes) -> World:
    """Return the sample of three days as Spark computes it."""
    world = lakes.new(days=3)
    land(Simulation(days=3), world.settings.landing_folder, date(2017, 1, 3))
    world.refresh()
    return world


@pytest.mark.proof
def test_the_shipped_tables_are_made_of_what_was_shown(prepared: Prepared) -> None:
    world = prepared(three_days)
    with world.open() as platform:
        computed = [contract for contract in platform.catalogue if contract.inputs]
        assert {table.name: why_refused(platform, lambda: world.spark, table) for table in computed} == {
            table.name: "" for table in computed
        }


def test_a_sample_of_the_list_comes_out_alike(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    both = TwoEngines(spark, lambda: sail_session(settings), odd_file(spark, tmp_path))
    assert not [probe for probe, is_equal in both.alike("expressions of a row", SAMPLE).items() if not is_equal]
    stop_sail()


def test_the_page_has_the_figures_of_the_list() -> None:
    rows = [
        f"| {kind} | {tried:,} | {alike:,} |" for kind, (tried, alike) in json.loads(LIST.read_text())["probes"].items()
    ]
    page = Path("docs/engines.md").read_text("utf-8")
    assert not [row for row in rows if row not in page], rows


def test_other_versions_than_those_of_the_list_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not list(shown_equal.other_versions())
    monkeypatch.setattr(shown_equal, "EQUAL", shown_equal.EQUAL._replace(spark="4.1.0"))
    assert list(shown_equal.other_versions()) == [
        "what comes out alike was shown with Spark 4.1.0, and 4.2.0 is installed"
    ]


@pytest.mark.proof
@pytest.mark.timeout(3000)
def test_the_list_has_what_comes_out_alike_and_refuses_the_rest(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """With WRITE_SHOWN it writes the list anew, which takes some minutes."""
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    both = TwoEngines(spark, lambda: sail_session(settings), odd_file(spark, tmp_path))
    outcome: dict[str, dict[str, bool]] = {}
    for kind, probes in PROBES.items():
        outcome[kind] = {}
        for some in in_turn(kind, probes):
            outcome[kind] |= both.alike(kind, some)
    stop_sail()
    assert not both.gone
    odd = spark.read.schema(SCHEMA).parquet(both.path)
    used = {(kind, probe): planned(odd, kind, probe) for kind, probes in PROBES.items() for probe in probes}
    found = listed(outcome, used)
    if "WRITE_SHOWN" in os.environ:
        write(found, LIST)
    assert found == json.loads(LIST.read_text("utf-8")), "WRITE_SHOWN=1 writes the list anew"
    every = {f"{name}{rest}" for name, forms in found["expressions"].items() for rest in forms}
    assert not [
        probe
        for (kind, probe), uses in used.items()
        if not outcome[kind][probe] and all(every.intersection(use.forms) for use in uses)
    ]
