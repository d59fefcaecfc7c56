"""What the plan of a transform says about it before anything is computed.

Spark Connect shows no plans; over it nothing is known of a transform.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import DataFrame

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
    """Expressions that never give the same twice, as Spark names them, and why.

    Those that may, because rows can be in an order that makes them (`first`, `collect_list`), are not among them.
    """
    if not _has_plan(frame):
        return {}
    names = {name for node in _suspects(_analysed(frame)) for name in _names(node)}
    return {name: _CAUSES[name] for name in sorted(names & _CAUSES.keys())}


def is_row_by_row(frame: DataFrame, given: Collection[DataFrame]) -> bool:
    """Return whether every row is made from one row of one input, so that neither order nor other rows can matter."""
    if not _has_plan(frame):
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
    """Parts of a plan or expression that need not be the same every time; branches that are clean are skipped."""
    patterns = cast("Any", SparkContext._jvm).org.apache.spark.sql.catalyst.trees.TreePattern
    if tree.deterministic() and not tree.containsPattern(patterns.CURRENT_LIKE()):
        return
    yield tree
    for child in _items(tree.children()):
        yield from _suspects(child)


def _names(node: Any) -> Iterator[str]:
    """Yield names of the suspicious expressions of one node of a plan, those of its subqueries included."""
    for expression in _items(node.expressions()):
        yield from map(_name, _suspects(expression))
    for inner in _items(node.subqueries()):
        yield from (name for below in _suspects(inner) for name in _names(below))


def _has_plan(frame: DataFrame) -> bool:
    return hasattr(frame, "_jdf")


def _analysed(frame: DataFrame) -> Any:
    return cast("Any", frame)._jdf.queryExecution().analyzed()


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(seq: Any) -> Iterator[Any]:
    return (seq.apply(at) for at in range(seq.size()))
