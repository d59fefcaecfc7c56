"""Values of JSON fields as they were delivered, where Spark would write them anew.

Spark makes a text of a number with a fraction or an exponent by way of a floating-point one, also where the number lies
within a list or an object, and writes these without their white space.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Contract

_MOST_NESTED = 100
"""How deep lists and objects may lie in each other within a line of which a value is read anew."""

_A_DOUBLE = r'(-?\d+\.(0|\d*[1-9])(E-?\d+)?|"-?Infinity")'
"""What Spark makes of a JSON number with a fraction or an exponent."""

_MARK = "\\t"
"""That a field may hold, too: then its line is looked at once more, in vain."""


def _values(deep: int) -> str:
    """The pattern of a JSON object's next field, whose value is the group, in a line that is one object.

    Nothing of it is tried twice, so that it takes neither stack nor time on a long line.
    """
    text = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    nested = rf'[\[{{](?:[^"\[\]{{}}]++|{text})*+[\]}}]'
    for _ in range(deep - 1):
        nested = rf'[\[{{](?:[^"\[\]{{}}]++|{text}|{nested})*+[\]}}]'
    return rf"\G(?:^[^{{]*+\{{|\s*+,)\s*+{text}\s*+:\s*+({nested}|{text}|[^\"\[\]{{}},\s]++)"


def with_delivered_values(fields: DataFrame, line: str, contract: Contract) -> DataFrame:
    """The fields with their values as they stand in the line, wherever that may be another text.

    Only a line in which such a field is found is read a second time. A value that is a text stays what Spark read.

    Args:
        fields: of JSON lines, as texts, with the `_names` of all, and why a line is `_broken`.
        line: the column that has the whole line.
        contract: of the raw table.
    """
    may_be_other = F.isnull("_broken") & F.expr(_may_be_other(contract, line))
    values = F.when(may_be_other, F.regexp_extract_all(line, F.lit(_values(_MOST_NESTED)), 1))
    is_short = F.isnotnull("_values") & (F.size("_values") < F.size("_names"))
    too_deep = F.when(is_short, F.lit(f"nested more than {_MOST_NESTED} deep"))
    delivered = {
        name: F.expr(f"CASE WHEN {is_other} AND {value} NOT LIKE '\"%' THEN {value} ELSE `{name}` END")
        for name in contract.column_names
        for is_other in [f"_values IS NOT NULL AND `{name}` IS NOT NULL"]
        for value in [f"get(_values, CAST(array_position(_names, '{name}') AS int) - 1)"]
    }
    read = fields.withColumn("_values", values).withColumns({**delivered, "_broken": F.coalesce("_broken", too_deep)})
    return read.drop("_values")


def _may_be_other(contract: Contract, line: str) -> str:
    """Return whether a field as Spark reads it may be another text than the delivered one, where its column may tell.

    All fields of a kind are looked at as one text, each between two marks: this takes a tenth of the code that Spark
    makes for a condition on each, of which Java would compile nothing.
    """
    texts, found = [], []
    amounts: defaultdict[int, list[str]] = defaultdict(list)
    for column in contract.columns:
        if column.digits is not None:
            amounts[column.digits[1]].append(column.name)
        elif column.type != "double":
            texts.append(column.name)
    found.append(_contains(_marked(contract.column_names), f"{_MARK}[", f"{_MARK}{{"))
    text = _marked(texts)
    found.append(f"{_contains(text, '.', 'Infinity')} AND {text} RLIKE r'{_MARK}{_A_DOUBLE}{_MARK}'")
    found.append(f"{_contains(text, f'{_MARK}0{_MARK}')} AND {line} RLIKE r':\\s*-0'")
    for decimals, names in amounts.items():
        amount = _marked(names)
        found.append(f"{amount} RLIKE r'\\.\\d{{{decimals + 1}}}|[EI]'")
        # As with an exponent that no such number has.
        found.append(f"{_contains(amount, f'{_MARK}0.0{_MARK}', f'{_MARK}-0.0{_MARK}')} AND {line} RLIKE '[eE]-'")
    if amounts:  # a double holds 15 digits
        found.append(f"{line} RLIKE r'[0-9][0-9.]{{15}}'")
    return " OR ".join(f"({each})" for each in found)


def _marked(names: Iterable[str]) -> str:
    fields = ", ".join(f"`{name}`" for name in names)
    return f"concat_ws('{_MARK}', '', {fields}, '')"


def _contains(text: str, *parts: str) -> str:
    return "(" + " OR ".join(f"contains({text}, '{part}')" for part in parts) + ")"
