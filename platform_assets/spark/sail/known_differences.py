"""What Sail is known to compute otherwise than Spark, found in a contract and in the plan that Spark makes of a table.

A sample of days cannot show all of it: an overflow that Spark stops at, and Sail wraps, may never have happened yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from pyspark.sql import DataFrame

from platform_assets.contracts import Contract

MOST_HASHED_DIGITS = 18
"""Of a decimal, up to which both hash it alike."""

_WRAPS = {"Add", "Subtract", "Multiply"}
_QUOTIENTS = {"Divide", "IntegralDivide", "Average", "TryAverage"}
_MAKES_OTHERS = {"Cast", "ParseToDate"}
_CASTS = {
    ("string", "date"),
    ("string", "decimal"),
    ("string", "double"),
    ("timestamp", "bigint"),
    ("double", "string"),
}
"""From and to types: of texts, spaces, exponents and what stands behind a day; of moments, those before 1970."""
_BY_NAME = {
    "JsonToStructs": "from_json leaves out what could not be read",
    "PythonUDF": "functions in Python were not tried",
    "XxHash64": "it hashes decimals of more than 18 digits otherwise",
    "Murmur3Hash": "hash was not tried",
    "InitCap": "a word begins elsewhere",
    "Base64": "long texts are broken into lines by Spark alone",
    "Extract": "it counts the days of a week from another one",
    "WeekDay": "it counts the days of a week from another one before 1970",
    "ArrayContains": "nothing is in an array, or it is not known",
    "IsValidUTF8": "nothing is valid, or it is not known",
    **dict.fromkeys(
        ("TruncTimestamp", "UnixSeconds", "UnixMillis", "TimestampDiff"),
        "before 1970 parts of a second count up instead of down",
    ),
    **dict.fromkeys(
        ("RLike", "RegExpReplace", "RegExpExtract", "RegExpExtractAll", "RegExpInStr", "RegExpCount", "StringSplit"),
        r"regular expressions are read otherwise: to Sail \d is any digit of Unicode, \w any letter",
    ),
    **dict.fromkeys(
        (
            *("Exp", "Expm1", "Log", "Logarithm", "Log10", "Log2", "Log1p", "Pow", "Cbrt", "Hypot"),
            *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Atan2", "Sinh", "Cosh", "Tanh"),
            *("StddevSamp", "StddevPop", "VarianceSamp", "VariancePop"),
        ),
        "floating point is not computed to the same last digit",
    ),
}


def refused_contract(contract: Contract, source: Contract | None = None) -> Iterator[str]:
    """What a contract says that could not be compared, or would not come out the same, each as a sentence's end.

    Args:
        contract: of a silver or gold table.
        source: of silver, the raw table: its rows that break a rule are kept as a text.
    """
    for column in source.columns if source and contract.rules else ():
        if column.type == "double":
            yield f"rows that break its rules are kept as JSON, in which the double {column.name} has other digits"
    for column in contract.columns:
        if column.digits and column.digits[0] > MOST_HASHED_DIGITS:
            yield f"{column.name} is {column.type}, and Sail hashes decimals of more than 18 digits otherwise"
        if column.type == "double":
            yield f"{column.name} is double, and floating point is not computed to the same last digit"


def refused_expressions(frame: DataFrame) -> tuple[str, ...]:
    """What in a plan of Spark's is known to come out otherwise, each as a sentence's end.

    Args:
        frame: of a session of Spark in this process, which shows its plans.
    """
    plan = cast("Any", frame)._jdf.queryExecution().analyzed()
    return tuple(sorted({reason for node in _nodes(plan) for reason in _reasons(node)}))


def _reasons(plan: Any) -> Iterator[str]:
    for expression in _items(plan.expressions()):
        for part in _parts(expression):
            yield from _reason(part)


def _reason(part: Any) -> Iterator[str]:
    name = str(part.getClass().getSimpleName())
    if name in _BY_NAME:
        yield f"it uses {name}: {_BY_NAME[name]}"
    elif name in _QUOTIENTS and any(_type(child).startswith("decimal") for child in _items(part.children())):
        yield f"it uses {name} of decimals, to which Sail gives other digits"
    elif name in _MAKES_OTHERS and (cast_from := _cast_from(part)):
        yield f"it makes a {_kind(part)} of a {cast_from}, which Sail does otherwise"
    elif name in _WRAPS and (_type(part) == "int" or (name == "Multiply" and _type(part) == "bigint")):
        yield f"it uses {name} of whole numbers ({_type(part)}), which wrap in Sail where Spark stops at an overflow"


def _cast_from(part: Any) -> str:
    """The type from which a value is made by another way than Spark's; empty if it is the same, or one constant."""
    given = part.children().apply(0)
    return _type(given) if (_type(given), _kind(part)) in _CASTS and not given.foldable() else ""


def _type(expression: Any) -> str:
    return str(expression.dataType().simpleString())


def _kind(expression: Any) -> str:
    return _type(expression).partition("(")[0]


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for inner in (*_items(plan.children()), *_items(plan.subqueries())):
        yield from _nodes(inner)


def _parts(expression: Any) -> Iterator[Any]:
    yield expression
    for child in _items(expression.children()):
        yield from _parts(child)


def _items(seq: Any) -> Iterable[Any]:
    return (seq.apply(at) for at in range(seq.size()))
