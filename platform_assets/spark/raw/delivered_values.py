"""Values of JSON fields as they were delivered, where Spark would write them anew.

Spark makes a text of a number with a fraction or an exponent by way of a floating-point one, also where the number lies
within a list or an object, and writes these without their white space.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Column, Contract

_MOST_NESTED = 100
"""How deep lists and objects may lie in each other within a line of which a value is read anew."""

_A_DOUBLE = r'^(-?\d+\.(0|\d*[1-9])(E-?\d+)?|"-?Infinity")$'
"""What Spark makes of a JSON number with a fraction or an exponent."""


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
    at_stake = {column.name: _may_be_other(column, line) for column in contract.columns}
    any_is = F.expr(" OR ".join(f"({condition})" for condition in at_stake.values()))
    values = F.when(F.isnull("_broken") & any_is, F.regexp_extract_all(line, F.lit(_values(_MOST_NESTED)), 1))
    is_short = F.isnotnull("_values") & (F.size("_values") < F.size("_names"))
    too_deep = F.when(is_short, F.lit(f"nested more than {_MOST_NESTED} deep"))
    delivered = {
        name: F.expr(f"CASE WHEN ({condition}) AND {value} NOT LIKE '\"%' THEN {value} ELSE `{name}` END")
        for name, condition in at_stake.items()
        for value in [f"get(_values, CAST(array_position(_names, '{name}') AS int) - 1)"]
    }
    read = fields.withColumn("_values", values).withColumns({**delivered, "_broken": F.coalesce("_broken", too_deep)})
    return read.drop("_values")


def _may_be_other(column: Column, line: str) -> str:
    """Whether a field as Spark reads it may be another text than the delivered one, where its column may tell."""
    field = f"`{column.name}`"
    nested = f"substring({field}, 1, 1) IN ('[', '{{')"
    if column.type == "double":
        return nested
    # Most texts are told apart by their first byte and by having no point, which costs far less than the pattern.
    may_be = f"{field} < ':' AND (contains({field}, '.') OR contains({field}, 'Infinity'))"
    if column.digits is None:
        is_zero = f"{field} = '0' AND contains({line}, '-0')"
        return f"{nested} OR {is_zero} OR {may_be} AND {field} RLIKE r'{_A_DOUBLE}'"
    # As with an exponent that no such number has.
    is_zero = f"{field} IN ('0.0', '-0.0') AND (contains({line}, 'e-') OR contains({line}, 'E-'))"
    is_fine = f"{field} RLIKE '[EI]' OR length(substring_index({field}, '.', -1)) > {column.digits[1]}"
    # A double holds 15 digits.
    is_long = f"{line} RLIKE r'[0-9][0-9.]{{15}}'"
    return f"{nested} OR {is_zero} OR {may_be} AND ({is_fine} OR {is_long})"
