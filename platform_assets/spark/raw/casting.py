"""Cast delivered fields to their column's types, and find values that lost anything or had to be guessed.

Everything is an SQL expression over columns of the contract, whose names and types are on an allow-list. Built from
column objects, each part would be several calls into the JVM, thousands for a table.
"""

from __future__ import annotations

import re

from platform_assets.contracts import Column, Csv
from platform_assets.contracts.files import date_pattern

_SPARK_NAMES = {"long": "bigint"}
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_CERTAIN = {"float": (2.0**24, 6), "double": (2.0**53, 15)}
"""From which number on it stands for several whole numbers, and how many digits it holds in any version of Java."""
_MICROSECONDS = {"s": "1000000BD", "ms": "1000BD", "us": "1BD", "ns": "0.001BD"}
"""In the units of epoch numbers."""
_OFFSET = r" *(Z|UTC|GMT|[+-]\d{1,2}(:?\d{2}){0,2})"
_WHOLE = {
    "date": r"^\s*\d{4}-\d{1,2}-\d{1,2}\s*$",
    "timestamp": r"^\s*\d{4}-\d{1,2}-\d{1,2}"
    rf"([ T]\d{{1,2}}:\d{{1,2}}(:\d{{1,2}}(\.\d{{0,6}}0*)?)?({_OFFSET})?)?\s*$",
    "double": r"(?i)^[\x00-\x20]*[+-]?(nan|inf(inity)?|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)[\x00-\x20]*$",
}
"""What a text must look like so that nothing of its meaning is made up or left out.

A moment has no fractions of a microsecond, which Spark would cut off, and no abbreviation of a time zone, which is
ambiguous. A number is not in Java's notation (`1d`).
"""
_HAS_OFFSET = "RLIKE r':.*[ZCT+-]'"
"""Of a text that is whole: whether it says how far its clock is from UTC."""
_CLOCK = r"^\s*\d{4}-\d{1,2}-\d{1,2}[ T]\d{1,2}:[\d:.]*"
YEARS = {
    "date": "DATE'0001-01-01' AND DATE'9999-12-31'",
    "timestamp": "TIMESTAMP'0001-01-01 00:00:00Z' AND TIMESTAMP'9999-12-31 23:59:59.999999Z'",
}
"""The first and the last moment of the years 1 to 9999."""


_NUMBERS = ("int", "long", "double", "decimal")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_LONGEST_NUMBER = 200


def as_declared(column: Column, came: str, csv: Csv | None) -> str | None:
    """Return a delivered text converted to the default format; None if its column declares none.

    A text that is not as declared becomes one that does not fit the column's type, so that its row is refused.

    Args:
        csv: format of CSV files, for a field of such a file.
    """
    if came != "string":
        return None
    field = text = f"`{column.name}`"
    if csv and column.type.startswith(_NUMBERS) and (csv.decimal != "." or csv.thousands):
        text = _plain_number(text, csv)
    if column.pattern is not None:
        text = _iso(text, column.pattern, column.type)
    if nulls := column.nulls or (csv.nulls if csv else ()):
        text = f"CASE WHEN {field} NOT IN ({', '.join(map(_literal, nulls))}) THEN {text} END"
    return None if text == field else text


def _plain_number(text: str, csv: Csv) -> str:
    """Return a number with a decimal point and no thousands separators."""
    point = re.escape(csv.decimal)
    grouped = rf"|\d{{1,3}}({re.escape(csv.thousands)}\d{{3}})+" if csv.thousands else ""
    whole = rf"^\s*[+-]?(\d+{grouped})?({point}\d*)?([eE][+-]?\d+)?\s*$"
    plain = f"replace({text}, {_literal(csv.thousands)}, '')" if csv.thousands else text
    plain = f"replace({plain}, {_literal(csv.decimal)}, '.')"
    # Java's patterns repeat a group by calls within calls, of which it has few thousand.
    is_number = f"length({text}) <= {_LONGEST_NUMBER} AND {text} RLIKE {_literal(whole)}"
    return f"CASE WHEN {is_number} OR NOT {text} RLIKE '[0-9]' THEN {plain} ELSE concat('not ', {text}) END"


def _iso(text: str, pattern: str, type_: str) -> str:
    """Return a date or time in ISO format, parsed by a pattern."""
    matched, groups = date_pattern(pattern, type_)
    regex = _literal(matched)
    part = {name: f"regexp_extract({text}, {regex}, {group})" for name, group in groups.items()}
    if year := part.get("y"):
        part["Y"] = f"concat(if({year} >= '69', '19', '20'), {year})"
    for name, letters in (("b", 3), ("B", None)):
        if name in part:
            listed = ", ".join(_literal(month[:letters]) for month in _MONTHS)
            part["m"] = f"CAST(array_position(array({listed}), lower({part[name]})) AS string)"
    if half := part.get("p"):
        part["H"] = f"CAST(CAST({part['I']} AS int) % 12 + if(upper({half}) = 'PM', 12, 0) AS string)"
    iso = f"{part['Y']}, '-', {part['m']}, '-', {part['d']}"
    if "H" in part:
        minutes, seconds = part.get("M", "'00'"), part.get("S", "'00'")
        iso += f", ' ', {part['H']}, ':', {minutes}, ':', {seconds}"
        iso += f", '.', {part['f']}" if "f" in part else ""
        iso += f", {part['z']}" if "z" in part else ""
    return f"CASE WHEN {text} RLIKE {regex} THEN concat({iso}) ELSE concat('not ', {text}) END"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def is_cast(column: Column, came: str) -> bool:
    """Return whether a field of a Spark type has to be cast to its column's type."""
    return came != _SPARK_NAMES.get(column.type, column.type)


def cast(given: str, came: str, column: Column) -> str:
    """Return a delivered field in the type of its column, null if it does not fit."""
    if _is_epoch(came, column):
        assert column.epoch is not None
        units = f"try_cast({_as_text(given, came)} AS decimal(28,9))"
        return f"timestamp_micros(try_cast({units} * {_MICROSECONDS[column.epoch]} AS bigint))"
    at = f"try_cast({_as_text(given, came) if column.digits else given} AS {column.type})"
    if (is_local := _is_local(given, came, column)) is None:
        return at
    is_local = f"{is_local} AND {at} BETWEEN {YEARS['timestamp']}"
    return f"CASE WHEN {is_local} THEN to_utc_timestamp({at}, '{column.zone}') ELSE {at} END"


def lost(given: str, came: str, column: Column) -> str:
    """Return whether casting a field lost something, or had to guess."""
    got = f"`{column.name}`"
    nothing = f"{given} IS NOT NULL AND {got} IS NULL"
    kind = column.type.partition("(")[0]
    if _is_epoch(came, column):
        return f"{nothing} OR {_significant(_as_text(given, came))} != {_significant(f'unix_micros({got})')}"
    if column.digits and came.startswith("decimal"):
        # Both of one type: Spark compares those of two by rounding both to what neither may be.
        return f"{nothing} OR NOT (try_cast({got} AS {came}) <=> {given})"
    if column.digits and came not in _INTEGERS:
        text = _as_text(given, came)
        # Most amounts have no more decimals than their column, which is far cheaper to check.
        decimals = f"(instr({text}, '.') = 0 OR length({text}) - instr({text}, '.') <= {column.digits[1]})"
        is_plain = f"{decimals} AND NOT ({_has_exponent(text)})"
        return f"{nothing} OR {got} IS NOT NULL AND NOT ({is_plain}) AND {_significant(text)} != {_significant(got)}"
    is_local = _is_local(given, came, column)
    twice = f" OR {got} IS NOT NULL AND {is_local} AND ({_is_uncertain(given, column)})" if is_local else ""
    if came == "string":
        if kind == "double":
            infinite = f"abs({got}) = double('Infinity') AND NOT {given} RLIKE '(?i)inf'"
            nothing = f"{nothing} OR {infinite} OR {got} = 0 AND {given} RLIKE '^[^eE]*[1-9]'"
        # Spark takes "2017" for the first of January, "10:05" for today and "1d" for one.
        return f"{nothing} OR NOT {given} RLIKE r'{_WHOLE[kind]}'{twice}" if kind in _WHOLE else nothing
    if kind == "long" and came in ("double", "float"):
        # 2 to the 63rd is no long: it becomes the greatest long, which becomes 2 to the 63rd again.
        nothing = f"{nothing} OR {given} >= {2.0**63!r}D"
    if (kind in {"long", "int"} and came not in _INTEGERS) or kind == "date":
        return f"{nothing} OR {got} IS NOT NULL AND try_cast({got} AS {came}) != {given}"
    return nothing + twice


def misfit(given: str, came: str, column: Column) -> str:
    """Return the reason for refusing a field that lost something, as an SQL text."""
    if _is_epoch(came, column):
        return f"'no whole microseconds as a number of {column.epoch} since 1970'"
    written = f" by {column.pattern}" if column.pattern and came == "string" else ""
    otherwise = f"'not {column.type}{written}'"
    if column.type != "timestamp":
        return otherwise
    if _is_local(given, came, column):
        is_whole = f"`{column.name}` IS NOT NULL AND CAST({given} AS string) RLIKE r'{_WHOLE['timestamp']}'"
        otherwise = f"CASE WHEN {is_whole} THEN 'twice or never in {column.zone}' ELSE {otherwise} END"
    if came != "string":
        return otherwise
    zone = f"{given} RLIKE r'{_CLOCK}.*[A-Za-z]' AND NOT {given} RLIKE r'{_CLOCK}({_OFFSET})?\\s*$'"
    return f"CASE WHEN {zone} THEN 'neither Z, UTC, GMT nor an offset after the time' ELSE {otherwise} END"


def nanoseconds(name: str, end: str, type_: str | None) -> str:
    """Return a moment, which Spark reads as a number of nanoseconds, as a text with all of them.

    Args:
        end: text after the moment: `Z`, or nothing for a local time.
        type_: type of the contract's column; None if it declares none. A date gets no time at midnight.
    """
    given = "`" + name.replace("`", "``") + "`"
    at = f"timestamp_micros({given} div 1000)"
    floor = f"timestamp_micros({given} div 1000 - CASE WHEN {given} % 1000 < 0 THEN 1 ELSE 0 END)"
    digits = f"lpad(CAST(pmod({given}, 1000) AS string), 3, '0')"
    whole = f"WHEN {given} % 1000 = 0 THEN concat(CAST({at} AS string), '{end}')"
    if type_ == "date":
        whole = f"WHEN {given} % 86400000000000 = 0 THEN CAST(CAST({at} AS date) AS string) {whole}"
    return f"CASE {whole} ELSE concat(date_format({floor}, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), {digits}, '{end}') END"


def _is_epoch(came: str, column: Column) -> bool:
    return column.epoch is not None and (came in {*_INTEGERS, *_CERTAIN, "string"} or came.startswith("decimal"))


def _is_local(given: str, came: str, column: Column) -> str | None:
    """Return whether a field is a local time in its column's zone; None if none can be."""
    if column.zone is None or came not in {"string", "date", "timestamp_ntz"}:
        return None
    return f"NOT {given} {_HAS_OFFSET}" if came == "string" else f"{given} IS NOT NULL"


def _is_uncertain(given: str, column: Column) -> str:
    """Return whether a local time exists twice or never in a zone, as when clocks change."""
    clock, got = f"try_cast({given} AS timestamp)", f"`{column.name}`"
    day, zone = "INTERVAL '24' HOUR", f"'{column.zone}'"
    # Of two moments Spark takes the earlier: the later is found with the offset that holds a day afterwards.
    later = f"{got} + ({clock} - (from_utc_timestamp({got} + {day}, {zone}) - {day}))"
    never = f"from_utc_timestamp({got}, {zone}) != {clock}"
    return f"{never} OR {later} != {got} AND from_utc_timestamp({later}, {zone}) = {clock}"


def _as_text(given: str, came: str) -> str:
    """Return the text that becomes a decimal: a floating-point number's own digits, null if these are uncertain.

    Java computes an amount with an exponent of many digits for hours, or fails: no column of a contract holds it.
    """
    if came == "string":
        return f"CASE WHEN NOT (({_has_exponent(given)}) AND {given} RLIKE r'[eE][+-]?\\d{{4}}') THEN {given} END"
    if came not in _CERTAIN:
        return given
    several, digits = _CERTAIN[came]
    text = f"CAST({given} AS string)"
    return f"CASE WHEN abs({given}) < {several!r}D OR length({_significant(text)}) <= {digits} THEN {text} END"


def _has_exponent(text: str) -> str:
    return f"contains({text}, 'e') OR contains({text}, 'E')"


def _significant(number: str) -> str:
    """Return a number's digits without zeros at its ends: rounding that changes a number changes these."""
    return f"trim(BOTH '0' FROM regexp_replace(CAST({number} AS string), r'[eE].*|[^0-9]', ''))"
