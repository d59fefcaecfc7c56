"""What a frame reads, from the plan that is then executed and no other, without a Spark job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from py4j.java_gateway import is_instance_of
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location

_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_DELTA = "org.apache.spark.sql.delta."
_GROUP = "spark.jobGroup.id"
_CONSTANTS = {"LocalRelation", "OneRowRelation", "Range"}


@dataclass(frozen=True)
class PlanInput:
    """One input of a plan.

    Args:
        table: folder of a Delta table; None for anything else.
        files: files that are read; for a Delta table without those that filters rule out.
    """

    table: Location | None
    files: frozenset[Location]
    what: str


def shows_plans(spark: SparkSession) -> bool:
    """Return whether plans can be read, which a Spark Connect server does not allow."""
    return hasattr(spark, "_jsparkSession")


def with_own_jobs(spark: SparkSession, describe: Callable[[], DataFrame]) -> tuple[DataFrame, int]:
    """Return a function's result, and how many jobs it started while describing it; none if unknown.

    Jobs of other threads in the same session are not counted.
    """
    if not shows_plans(spark):
        return describe(), 0
    context = spark.sparkContext
    scala = cast("Any", context)._jsc.sc()
    before, others, group = scala.dagScheduler().numTotalJobs(), context.getLocalProperty(_GROUP), f"own-{uuid4()}"
    context.setLocalProperty(_GROUP, group)
    try:
        frame = describe()
    except Exception:  # after an interruption Java is asked for nothing more
        context.setLocalProperty(_GROUP, cast("str", others))
        raise
    context.setLocalProperty(_GROUP, cast("str", others))
    if scala.dagScheduler().numTotalJobs() == before:
        return frame, 0
    scala.listenerBus().waitUntilEmpty()  # the status tracker learns of jobs a moment later
    return frame, len(context.statusTracker().getJobIdsForGroup(group))


def scans_of(frame: DataFrame) -> list[PlanInput]:
    """Return everything that the optimised plan of a frame reads, except constants."""
    plan = cast("Any", frame)._jdf.queryExecution().optimizedPlan()
    return [scan for leaf in _leaves(plan) for scan in _scans(leaf)]


def is_made_of_given_rows(frame: DataFrame) -> bool:
    """Return whether a frame, before optimisation, reads nothing but rows given as values.

    If plans cannot be read, that is assumed.
    """
    if not shows_plans(frame.sparkSession):
        return True
    return all(_name(leaf) in _CONSTANTS for leaf in _leaves(_analysed(frame)))


def as_planned(frame: DataFrame) -> DataFrame:
    """Return the same rows, computed by exactly the plan that `scans_of` has read.

    A frame that is written is planned again, and Delta would list the files again: that plan is never shown, and it
    costs a job per table. Ordered rows are declared so: otherwise they are sorted again.
    """
    jvm, jdf, session = cast("Any", SparkContext._jvm), cast("Any", frame)._jdf, cast("Any", frame.sparkSession)
    logical_rdd = getattr(getattr(jvm.org.apache.spark.sql.execution, "LogicalRDD$"), "MODULE$")
    planned = jdf.queryExecution()
    rows = logical_rdd.fromDataset(planned.toRdd(), jdf, False)
    if (first := _first_order(planned.executedPlan(), rows)) is not None:
        known, none = jvm.org.apache.spark.api.python.PythonUtils.toSeq([first]), jvm.scala.Option.empty()
        given = (rows.output(), rows.rdd(), rows.outputPartitioning(), known, rows.isStreaming(), rows.stream())
        rows = rows.copy(*given, session._jsparkSession, none, none)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, rows), session)


def _first_order(plan: Any, rows: Any) -> Any | None:
    """Return the first sort column of a plan's rows, by their final names; None without one.

    Spark uses the names of the optimised plan, which differ if the optimiser removed a renaming.
    """
    orders, made = plan.outputOrdering(), plan.output()
    if orders.isEmpty():
        return None
    first = orders.head()
    places = (at for at in range(made.size()) if made.apply(at).semanticEquals(first.child()))
    if (place := next(places, None)) is None:
        return None
    order = cast("Any", SparkContext._jvm).org.apache.spark.sql.catalyst.expressions.SortOrder
    column = rows.output().apply(place)
    return order(column, first.direction(), first.nullOrdering(), first.children().take(0))


def _leaves(plan: Any) -> Iterator[Any]:
    yield from _items(plan.collectLeaves())
    for inner in _items(plan.subqueriesAll()):
        yield from _items(inner.collectLeaves())


def _scans(leaf: Any) -> Iterator[PlanInput]:
    name = _name(leaf)
    if name in _CONSTANTS:
        return
    if name != "LogicalRelation" or not is_instance_of(SparkContext._gateway, leaf.relation(), _FILES):
        yield PlanInput(None, frozenset(), name)
        return
    location = leaf.relation().location()
    kind = str(location.getClass().getName())
    table = located(str(location.path().toUri().getPath())) if kind.startswith(_DELTA) else None
    files = {uri: _placed(uri) for uri in _input_files(location)}
    yield PlanInput(table, frozenset(file for file in files.values() if file), kind)
    yield from (PlanInput(None, frozenset(), uri) for uri, file in files.items() if file is None)


def _input_files(location: Any) -> list[str]:
    """Fetch the files of a plan as one text: a call for each of a year's files takes a second."""
    jvm = cast("Any", SparkContext._jvm)
    listed = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(location.inputFiles()).mkString("\n")
    return str(listed).splitlines()


def _placed(uri: str) -> Location | None:
    """Return the place of a file; None for one outside any lake, which is not an input."""
    try:
        return located(uri)
    except LakeError:
        return None


def _items(seq: Any) -> Iterator[Any]:
    return (seq.apply(at) for at in range(seq.size()))


_ROW_BY_ROW = {"Project", "Filter", "SubqueryAlias"}
_CLOCK = {
    "CurrentTimestamp",
    "CurrentDate",
    "CurrentTime",
    "CurrentBatchTimestamp",
    "LocalTimestamp",
    "Now",
    "CurrentTimeZone",
}
_CHANCE = {"Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle"}
_PLACE = {
    "MonotonicallyIncreasingID",
    "SparkPartitionID",
    "InputFileName",
    "InputFileBlockStart",
    "InputFileBlockLength",
}
_WHOM = {"CurrentUser", "CurrentDatabase", "CurrentCatalog"}
_CAUSES = {
    **dict.fromkeys(_CLOCK, "reads the clock"),
    **dict.fromkeys(_CHANCE, "draws random numbers"),
    **dict.fromkeys(_PLACE, "depends on where rows lie"),
    **dict.fromkeys(_WHOM, "depends on who runs it"),
    "CallMethodViaReflection": "calls Java, which may give anything",
    "PythonUDF": "calls a function that is declared nondeterministic",
}


def not_repeatable(frame: DataFrame) -> dict[str, str]:
    """Return expressions that never give the same result twice, by Spark's names, and why.

    Spark Connect shows no plans, so with it nothing is known about a transform.

    Expressions that depend on the order of rows (`first`, `collect_list`) are not among them.
    """
    if not shows_plans(frame.sparkSession):
        return {}
    names = {name for node in _suspects(_analysed(frame)) for name in _names(node)}
    return {name: _CAUSES[name] for name in sorted(names & _CAUSES.keys())}


def is_row_by_row(frame: DataFrame, given: Collection[DataFrame]) -> bool:
    """Return whether every row is made from one row of one input, so that neither order nor other rows can matter."""
    if not shows_plans(frame.sparkSession):
        return False
    ends = [_analysed(rows) for rows in given]
    node = _analysed(frame)
    while not any(node.equals(end) for end in ends):
        if _name(node) not in _ROW_BY_ROW or not _is_pure(node):
            return False
        node = node.children().head()
    return True


def _is_pure(node: Any) -> bool:
    """Return whether a node calls nothing that Spark cannot vouch for."""
    patterns = cast("Any", SparkContext._jvm).org.apache.spark.sql.catalyst.trees.TreePattern
    wanted = (patterns.PYTHON_UDF(), patterns.SCALA_UDF(), patterns.PLAN_EXPRESSION())
    return not any(
        expression.containsPattern(pattern) for expression in _items(node.expressions()) for pattern in wanted
    )


def _suspects(tree: Any) -> Iterator[Any]:
    """Return parts of a plan or expression that may not be deterministic; clean branches are skipped."""
    patterns = cast("Any", SparkContext._jvm).org.apache.spark.sql.catalyst.trees.TreePattern
    if tree.deterministic() and not tree.containsPattern(patterns.CURRENT_LIKE()):
        return
    yield tree
    for child in _items(tree.children()):
        yield from _suspects(child)


def _names(node: Any) -> Iterator[str]:
    """Yield names of the suspicious expressions of one node of a plan, including its subqueries."""
    for expression in _items(node.expressions()):
        yield from map(_name, _suspects(expression))
    for inner in _items(node.subqueries()):
        yield from (name for below in _suspects(inner) for name in _names(below))


def _analysed(frame: DataFrame) -> Any:
    return cast("Any", frame)._jdf.queryExecution().analyzed()


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
