"""Refuse a table for Sail if its Spark plan has operations that were not proved equal.

`shown_equal.json` has every expression and operator, with argument types, that both engines computed alike on odd
values. `uv run poe engines` writes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from platform_assets.contracts import Contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_HASHED_DIGITS = 18
"""Of a decimal, up to which both hash it alike."""

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_NO_FIELDS = (
    f"{_EXPRESSIONS}.Expression",
    "org.apache.spark.sql.types.DataType",
    "scala.Option",
    "scala.collection.Iterable",
)
"""Classes of arguments, types and the session's time zone; what else an expression has decides what it computes."""
_MOVES_VALUES = {"Alias", "AttributeReference", "OuterReference", "CreateNamedStruct", "GetStructField", "ListQuery"}
_ANY_NUMBER = {"CaseWhen", "Coalesce", "Concat", "ConcatWs", "CreateArray", "Greatest", "In", "Least"}


class EqualList(NamedTuple):
    """Compared versions, forms that may be in a plan, and the digest of it all."""

    spark: str
    sail: str
    expressions: frozenset[str]
    digest: str


def _read() -> EqualList:
    text = files(__package__).joinpath("shown_equal.json").read_bytes()
    listed = json.loads(text)
    forms = (f"{name}{rest}" for name, rests in listed["expressions"].items() for rest in rests)
    return EqualList(listed["spark"], listed["sail"], frozenset(forms), hashlib.sha256(text).hexdigest()[:12])


EQUAL = _read()


class Use(NamedTuple):
    """An expression or operator of a plan: the forms under which it may be listed, and an expression's SQL."""

    forms: tuple[str, ...]
    text: str = ""


def refused_contract(contract: Contract, source: Contract | None = None) -> Iterator[str]:
    """Yield declarations of a contract that were not compared or would differ, each as the end of a sentence.

    For silver also those of the raw table: its quarantined rows are kept as text.
    """
    for column in source.columns if source and contract.quarantine_rules else ():
        if column.type == "double":
            yield f"rows that break its rules are kept as JSON, in which the double {column.name} has other digits"
    for column in contract.columns:
        if column.digits and column.digits[0] > MOST_HASHED_DIGITS:
            yield f"{column.name} is {column.type}, and Sail hashes decimals of more than 18 digits otherwise"
        if column.type == "double":
            yield f"{column.name} is double, and floating point is not computed to the same last digit"


def other_versions() -> Iterator[str]:
    """Yield each engine whose installed version differs from the list's, as the end of a sentence."""
    for name, package, listed in (("Spark", "pyspark", EQUAL.spark), ("Sail", "pysail", EQUAL.sail)):
        with suppress(PackageNotFoundError):  # starting it says so
            if (installed := version(package)) != listed:
                yield f"what comes out alike was shown with {name} {listed}, and {installed} is installed"


def refused_expressions(frame: DataFrame) -> tuple[str, ...]:
    """Return what in a Spark plan of this process was not proved equal, each as the end of a sentence."""
    refused = dict.fromkeys(use for use in uses(frame) if not EQUAL.expressions.intersection(use.forms))
    shown = f"which was not shown to come out alike on Spark {EQUAL.spark} and Sail {EQUAL.sail}"
    return tuple(f"it has {use.forms[0]}, {f'as in {use.text}, ' if use.text else ''}{shown}" for use in refused)


def uses(frame: DataFrame) -> Iterator[Use]:
    """Yield the operators of a frame's plan, the last one first, each with its expressions."""
    yield from _of_plan(cast("Any", frame)._jdf.queryExecution().analyzed())


def _of_plan(plan: Any) -> Iterator[Use]:
    name = _name(plan)
    if name not in ("Window", "Project"):  # a window's partitions and frames are those of its expressions
        kind = [plan.joinType().sql()] if name == "Join" else []
        name = " ".join([name, *kind, *(str(field) for field in _product(plan) if isinstance(field, bool))])
        more = (*(f"by {_kind(key)}" for key in _keys(plan)), *_widened(plan))
        yield from (Use((form,)) for form in (name, *(f"{name} {what}" for what in more)))
    for expression in _items(plan.expressions()):
        yield from _of_expression(expression)
    for inner in (*_items(plan.children()), *_items(plan.subqueries())):
        yield from _of_plan(inner)


def _widened(plan: Any) -> Iterator[str]:
    """Yield the casts by which Spark gave the sides of a union the same types: Sail has rules of its own."""
    sides = _items(plan.children()) if _name(plan) in ("Union", "Intersect", "Except") else ()
    for at, side in enumerate(sides):
        for column in _items(side.projectList()) if _name(side) == "Project" else ():
            value = column.child() if _name(column) == "Alias" else column
            written = _written(value)
            if written is not value or str(value) == "null":
                yield f"of {'null' if str(written) == 'null' else _kind(written)} as {_kind(value)} on side {at}"


def _keys(plan: Any) -> list[Any]:
    """Return the columns by which an operator compares rows."""
    match _name(plan):
        case "Aggregate":
            return list(_items(plan.groupingExpressions()))
        case "Deduplicate":
            return list(_items(plan.keys()))
        case "Distinct" | "Intersect" | "Except":
            return list(_items(plan.output()))
        case "Join" if plan.condition().isDefined():
            return list(_items(plan.condition().get().references().toSeq()))
    return []


def _of_expression(part: Any, over: str = "") -> Iterator[Use]:
    name, inner = _name(part), list(_arguments(part))
    if name == "WindowExpression":
        spec = part.windowSpec()
        partitions, orders = list(_items(spec.partitionSpec())), list(_items(spec.orderSpec()))
        yield from _of_expression(part.windowFunction(), f" over {_frame(spec, orders)}")
        yield from (Use((f"Window by {_kind(key)}",)) for key in partitions)
        inner = [*partitions, *orders]
    elif name == "AggregateExpression":
        inner = list(_items(part.filter().toList()))
        how = f"{' distinct' if part.isDistinct() else ''}{' filtered' if inner else ''}"
        yield from _of_expression(part.aggregateFunction(), how + over)
    elif name not in _MOVES_VALUES:
        yield Use(tuple(form + over for form in _forms(part)), f"{part.sql()}{over}")
        inner = [_written(argument) for argument in inner]
    for argument in inner:
        yield from _of_expression(argument)


def _frame(spec: Any, orders: list[Any]) -> str:
    """Return the name of a window's frame: one name for any number of rows; a range has its bounds and types."""
    if not orders:
        return "all rows"
    text = re.sub(r"-(\d+) FOLLOWING", r"\1 PRECEDING", str(spec.frameSpecification().sql()))
    return re.sub(r"\d+", "n", text) if text.startswith("ROWS") else f"{text} by {', '.join(map(_kind, orders))}"


def _forms(part: Any) -> tuple[str, ...]:
    name, kind = _name(part), _kind(part)
    fields = ", ".join(str(field.toString() if hasattr(field, "toString") else field) for field in _fields(part))
    head = f"{name}{{{fields}}}" if fields and name != "Literal" else name
    by_type, by_constant, decimals = list[str](), list[str](), list[str]()
    for given in _arguments(part):
        written = _written(given)
        of_type = _kind(written)
        cut = " as decimal38" if of_type != "decimal38" == _kind(given) else ""
        if of_type.startswith("decimal"):
            decimals.append(str(written.dataType().simpleString()))
            of_type = f"other {of_type}" if decimals[-1] != decimals[0] else of_type
        by_type.append(of_type + cut)
        by_constant.append((str(written.sql()) if written.foldable() else of_type) + cut)
    texts = (", ".join(dict.fromkeys(names) if name in _ANY_NUMBER else names) for names in (by_type, by_constant))
    return tuple(dict.fromkeys(f"{head}({text}) {kind}" for text in texts))


def _written(part: Any) -> Any:
    """Return an argument without the casts that Spark added, because Sail has its own rules for common types."""
    while _name(part) == "Cast" and not part.getTagValue(_of_jvm(_jvm())[1]).isDefined():
        part = part.children().apply(0)
    return part


def _arguments(part: Any) -> Iterator[Any]:
    """Yield the arguments as written; Spark replaces some functions by other expressions, Sail does not."""
    yield from _items(part.parameters() if _is_a(part, f"{_EXPRESSIONS}.InheritAnalysisRules") else part.children())


def _fields(part: Any) -> Iterator[Any]:
    for field in _product(part):
        if not hasattr(field, "getClass") or not any(_is_a(field, name) for name in _NO_FIELDS):
            yield field


def _product(part: Any) -> Iterator[Any]:
    fields = part.productIterator()
    while fields.hasNext():
        if (field := fields.next()) is not None:
            yield field


def _kind(expression: Any) -> str:
    """Return the name of a type; a decimal of 38 digits has its own, since digits may be cut."""
    text = str(expression.dataType().simpleString())
    return re.sub(r"decimal\((\d+),-?\d+\)", lambda found: "decimal38" if found[1] == "38" else "decimal", text)


def _name(part: Any) -> str:
    return str(part.getClass().getSimpleName()).removesuffix("$")


def _is_a(thing: Any, class_name: str) -> bool:
    return bool(_of_jvm(_jvm())[0].isInstanceOf(class_name, thing))


def _jvm() -> Any:
    from pyspark import SparkContext  # the list alone is read where no Spark is

    return SparkContext._jvm


@lru_cache(maxsize=1)
def _of_jvm(jvm: Any) -> tuple[Any, Any]:
    """Return the JVM's type checks and the tag of a user's cast, cached: finding them by name is slow."""
    casts = getattr(jvm.org.apache.spark.sql.catalyst.expressions, "Cast$")
    return jvm.py4j.reflection.TypeUtil, getattr(casts, "MODULE$").USER_SPECIFIED_CAST()


def _items(seq: Any) -> Iterator[Any]:
    return (seq.apply(at) for at in range(seq.size()))
