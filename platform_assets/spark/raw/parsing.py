"""Parse landed files into typed rows: rows that can enter raw, and refused rows with their reasons.

Text is never guessed: every field is cast to the contract's type, and a row with a field that does not fit is refused.
Nothing here knows today's date: a row's outcome follows from the row, its arrival date, and the contract.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.landing import Format
from platform_assets.places import for_hadoop
from platform_assets.records.raw_rows import BROKEN, ENDING, MARKED, MARKED_IN_BROKEN, RECORD, UNREADABLE, VOID, WHOLE
from platform_assets.spark.raw.casting import YEARS, as_declared, cast, is_cast, lost, misfit, nanoseconds
from platform_assets.spark.raw.versions import FILE_ORDER, PLACE, file_order
from platform_assets.spark.tables.reading import no_rows
from platform_assets.spark.tables.schemas import order_hash, raw_schema, with_columns

_LINE, _WHOLE = "_line", "_whole"
_HALF_A_CHARACTER = (
    rf"(contains({_LINE}, r'\ud') OR contains({_LINE}, r'\uD')) AND replace({_LINE}, r'\\', ' ') RLIKE "
    r"r'(?i)\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}'"
)
"""Whether a line of JSON names half of a character, as text that was cut does: Java makes a question mark of each."""
_IS_NOT_BLANK = rf"{_LINE} rlike '[^\\x00-\\x20]'"

_AS_DATED: Mapping[str, date] = {}
_PARTS_IN_TASK = 1024
_SHOWN = 200
"""Characters of names that no contract declares."""

_PATTERN = re.compile(r"[\\{}\[\]*?]")
"""Special characters in a path, unless there is a backslash before them."""


@dataclass(frozen=True)
class Layout:
    """Files of the same form, which are read together.

    Args:
        columns: names in the files' order; a missing column of the contract is null.
        copied: whether these are copies with one record per line, as `sources.text` writes them.
        nanoseconds: Parquet columns in nanoseconds, each with the text after its moments: `Z` if it counts in UTC.
    """

    format: Format
    columns: tuple[str, ...]
    files: tuple[str, ...]
    copied: bool = False
    nanoseconds: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return names of the columns for Spark: a CSV column without a name gets a unique one."""
        others = {name.casefold() for name in self.columns}
        return tuple(
            name or next(free for n in count(place) if (free := f"_column_{n}") not in others)
            for place, name in enumerate(self.columns, 1)
        )

    @property
    def file_names(self) -> set[str]:
        """Return the delivered names."""
        names = {file.rpartition("/")[2] for file in self.files}
        return {name.removesuffix(ENDING) for name in names} if self.copied else names


def parse(
    spark: SparkSession, layouts: Sequence[Layout], contract: Contract, came: Mapping[str, date] = _AS_DATED
) -> DataFrame:
    """Return the rows of some landed files, each read and judged once.

    Args:
        came: first arrival of files whose content came before: it decides whether their rows are late.

    Returns:
        Rows in `raw_schema`, nothing computed yet. What must not enter raw has no day: of a refused row `_kind` is the
        reason and `_rescued` the row as it was delivered, for `dead_letters.refused_rows`; a row that came too late, or
        too far ahead, lacks nothing else, for `dead_letters.late_rows`.
    """
    parsed: DataFrame | None = None
    for layout in layouts:
        typed = _typed(_located(_read(spark, layout, contract), layout, contract), layout, contract)
        first = F.create_map(*(F.lit(value) for pair in came.items() for value in pair))[F.col("_arrival")]
        judged = _judged(typed, layout, contract)
        judged = judged.withColumn("_came", F.coalesce(first, "_arrival_date") if came else F.col("_arrival_date"))
        rows = judged.select(*_raw_columns(typed, layout, contract))
        parsed = rows if parsed is None else parsed.union(rows)
    return no_rows(spark, raw_schema(contract)) if parsed is None else parsed


def _read(spark: SparkSession, layout: Layout, contract: Contract) -> DataFrame:
    paths = [_PATTERN.sub(r"\\\g<0>", for_hadoop(file)) for file in layout.files]
    reader = spark.read
    where = (F.col("_metadata.file_path").alias("_file_path"), _place(layout.format).alias(PLACE))
    match layout.format:
        case "parquet":
            types = {column.name: column.type for column in contract.columns}
            in_words = {name: F.expr(nanoseconds(name, end, types.get(name))) for name, end in layout.nanoseconds}
            frame = reader.parquet(*paths).select("*", *where)
            others = {column.source_name: column.name for column in contract.columns if column.source_name}
            return with_columns(frame.withColumnsRenamed(others), in_words)
        case "json":
            line = delivered = F.col("value")
            if layout.copied:  # with the object as delivered behind it, if its values were looked up by paths
                line, whole = (_restored(F.split_part(line, F.lit(WHOLE), F.lit(part))) for part in (1, 2))
                delivered = F.when(F.contains("value", F.lit(WHOLE)), whole).otherwise(line)
            lines = reader.text(paths).select(line.alias(_LINE), delivered.alias(_WHOLE), *where).where(_IS_NOT_BLANK)
            is_read = contract.source is not None and contract.source.is_read
            read = with_delivered_values(_json_fields(lines, layout, is_read=is_read), _LINE, contract)
            return read.withColumn(_LINE, F.col(_WHOLE)).drop(_WHOLE)
        case "csv":
            text = StructType([StructField(name, StringType()) for name in (*layout.names, _LINE)])
            # Quotes within quotes are doubled, as everybody but Spark writes them.
            reader = reader.schema(text).option("header", True).option("enforceSchema", True).option("escape", '"')
            frame = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _LINE).csv(paths)
            fields = [_named(name) for name in frame.columns]
            broken = F.when(F.isnotnull(_LINE), F.lit(f"not {len(layout.columns)} fields"))
            if layout.copied:
                # For a record that is marked as broken: its problem, and its line as delivered
                is_marked = F.startswith(fields[0], F.lit(BROKEN))
                fault, line = (F.split_part(fields[0], F.lit(BROKEN), F.lit(part)) for part in (2, 3))
                broken = F.when(is_marked, fault).otherwise(broken)
                fields = [
                    *map(_restored, fields[:-1]),
                    F.when(is_marked, _restored(line, MARKED_IN_BROKEN)).otherwise(_restored(fields[-1])),
                ]
            named = [field.alias(name) for field, name in zip(fields, frame.columns, strict=True)]
            return frame.select(*named, *where, broken.alias("_broken"))


def _place(format: Format) -> Column:
    """Return a number that grows from row to row of a file, however Spark splits the file.

    Spark knows no row number of text, but the offset of a task's part, and how many rows the task has read. A part has
    fewer rows than bytes, so the next one begins beyond all of its numbers. No row may be dropped before numbering.
    """
    if format == "parquet":
        return F.col("_metadata.row_index")
    in_task = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    return F.col("_metadata.file_block_start") * F.lit(_PARTS_IN_TASK) + in_task


def _json_fields(lines: DataFrame, layout: Layout, *, is_read: bool) -> DataFrame:
    """Return each line as the text of its fields, with all `_names`; `_broken` is why it is not a record, if so."""
    text = StructType([StructField(name, StringType()) for name in (*layout.columns, "_broken")])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_broken"}
    options |= {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
    fields = lines.withColumn("_fields", F.from_json(_LINE, text, options)).select(
        "_fields.*", _LINE, _WHOLE, "_file_path", PLACE
    )
    # Spark reads the first object of a line and drops the rest: a line that does not end with a brace is checked once
    # more, as all but the last item of an array.
    more = F.instr(_LINE, "}") < F.length(F.rtrim(_LINE))
    is_single = F.json_array_length(F.concat(F.lit("["), _LINE, F.lit(",0]"))) == 2
    fields = fields.withColumn("_names", F.json_object_keys(_LINE))
    is_none = F.isnotnull("_broken") | F.isnull("_names") | (more & ~F.coalesce(is_single, F.lit(False)))
    # Of two fields with one name Spark keeps the last.
    is_twice = F.size(F.array_distinct("_names")) < F.size("_names")
    broken = F.when(is_none, F.lit("not one JSON object")).when(is_twice, F.lit("names a field twice"))
    if is_read:
        is_marked = F.contains(_WHOLE, F.lit(f'"{UNREADABLE}"'))
        why = F.when(is_marked, F.get_json_object(_WHOLE, f"$.{UNREADABLE}"))
        broken = F.coalesce(why, broken)
    return fields.withColumn("_broken", broken)


def _restored(text: Column, marks: Iterable[tuple[str, str]] = MARKED) -> Column:
    """Return a text with its line ends, for which a copy has marks."""
    for written, meant in marks:
        text = F.replace(text, F.lit(written), F.lit(meant))
    return text


def _located(frame: DataFrame, layout: Layout, contract: Contract) -> DataFrame:
    """Return the origin of each row: `<folder>/<arrival date>/<file>`, the end of the file's URL."""
    assert contract.source is not None
    end = F.substring_index("_file_path", "/", -len(contract.source.folder.split("/")) - 2)
    # Decoded only where there is something to decode, since it is done for every row.
    decoded = F.url_decode(F.replace(end, F.lit("+"), F.lit("%2B")))
    arrival = F.when(F.contains(end, F.lit("%")), decoded).otherwise(end)
    if layout.copied:
        arrival = F.substring(arrival, F.lit(1), F.length(arrival) - F.lit(len(ENDING)))
    located = frame.withColumn("_arrival", arrival).drop("_file_path")
    return located.withColumn(
        "_arrival_date", F.substring_index(F.substring_index("_arrival", "/", -2), "/", 1).cast("date")
    )


def _typed(frame: DataFrame, layout: Layout, contract: Contract) -> DataFrame:
    """Return the contract's typed columns next to the delivered fields, which are kept as `_as_delivered_<n>`."""
    absent = [name for name in contract.column_names if name not in layout.columns]
    frame = with_columns(frame, {name: F.lit(None).cast("string") for name in absent})
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    assert contract.source is not None
    kept_in, drift = contract.source.rescued_in, contract.source.schema_drift
    if layout.format == "parquet" and kept_in in layout.columns:  # a reading that has it already
        kept_in = None
    declared_names = [name for name in contract.column_names if name != kept_in]
    extra = [name for name in layout.names if name not in declared_names] if drift == "rescue" else []
    rescued = F.to_json(F.struct(*map(_named, extra))) if extra else F.lit(None).cast("string")
    if layout.format == "json" and drift != "ignore":
        names = F.array_except("_names", F.array(*map(F.lit, declared_names)))
        what = F.array_join(names, ", ") if drift == "fail" else F.col(_LINE)
        rescued = F.when(F.size(names) > 0, what)
    csv = contract.source.csv if layout.format == "csv" else None
    declared = {c.name: text for c in contract.columns if (text := as_declared(c, types[c.name], csv))}
    other = [
        (n, each) for n, each in enumerate(contract.columns) if each.name in declared or is_cast(each, types[each.name])
    ]
    located = frame.select(
        *contract.column_names,
        *(F.expr(f"`{column.name}` AS {_as_delivered(n)}") for n, column in other),
        *(F.expr(f"{declared[column.name]} AS {_as_text(n)}") for n, column in other if column.name in declared),
        *(name for name in ("_broken", _LINE) if name in types),
        rescued.alias("_rescued"),
        "_arrival",
        "_arrival_date",
        PLACE,
    )
    values = {c.name: cast(_given(n, located.columns), types[c.name], c) for n, c in other}
    values |= {kept_in: "_rescued"} if kept_in else {}
    return with_columns(located, {name: F.expr(value) for name, value in values.items()})


def _as_delivered(n: int) -> str:
    return f"_as_delivered_{n}"


def _as_text(n: int) -> str:
    return f"_as_text_{n}"


def _given(n: int, names: Collection[str]) -> str:
    """Return the source of a cast: the field, or its text in the default format."""
    return _as_text(n) if _as_text(n) in names else _as_delivered(n)


def _named(name: str) -> Column:
    """Return a column of a file by its name, which may contain anything, and so cannot be in SQL."""
    return F.col("`" + name.replace("`", "``") + "`")


def _judged(typed: DataFrame, layout: Layout, contract: Contract) -> DataFrame:
    """Return the rows with `_reason`, null if a row can enter raw, and with irrelevant fields of voids made null.

    A void needs only its key and its place in the order. Other fields may be anything: a value that does not fit its
    type becomes null, and the row as delivered is kept in `_rescued`.
    """
    types = {field.name: field.dataType.simpleString() for field in typed.schema.fields}
    losses = {
        column.name: lost(given, types[given], column)
        for n, column in enumerate(contract.columns)
        if (given := _given(n, types)) in types
    }
    spared = {name: loss for name, loss in losses.items() if contract.voided and name not in contract.needed}
    is_void = f"coalesce({contract.void_condition}, false)"
    counts = {name: f"({loss}) AND NOT {is_void}" if name in spared else loss for name, loss in losses.items()}
    judged = typed.withColumn("_reason", F.expr(_refusal(types, counts, layout, contract)))
    if not spared:
        return judged
    is_spared = {name: f"({is_void} AND ({loss}) AND _reason IS NULL)" for name, loss in spared.items()}
    kept = f"CASE WHEN {' OR '.join(is_spared.values())} THEN {_payload(types, contract)} ELSE _rescued END"
    nulled = {name: f"CASE WHEN NOT {spare} THEN `{name}` END" for name, spare in is_spared.items()}
    return judged.withColumns({name: F.expr(value) for name, value in {"_rescued": kept, **nulled}.items()})


def _refusal(types: Mapping[str, str], losses: Mapping[str, str], layout: Layout, contract: Contract) -> str:
    """Return why a row is refused, null if it can enter raw: all faults of its fields, or of its line."""
    of_line: list[tuple[str, str]] = []
    checks: list[tuple[str, str]] = []
    if layout.format == "json":
        of_line.append((_HALF_A_CHARACTER, "'broken line: half of a character'"))
    if layout.format == "parquet":  # text files are decoded when they are looked at
        texts = [column.name for column in contract.columns if column.type == "string" and column.name not in losses]
        checks += [(f"NOT is_valid_utf8(`{name}`)", f"'{name}: not UTF-8'") for name in texts]
    if "_broken" in types:
        of_line.append(("_broken IS NOT NULL", "concat('broken line: ', _broken)"))
    for n, column in enumerate(contract.columns):
        if column.name in losses:
            given = _given(n, types)
            text = f"substring(make_valid_utf8(CAST({_as_delivered(n)} AS string)), 1, 40)"
            what = misfit(given, types[given], column)
            checks.append((losses[column.name], f"concat('{column.name}: ', {what}, ': ', {text})"))
    if layout.format == "json" and contract.source and contract.source.schema_drift == "fail":
        checks.append(("_rescued IS NOT NULL", f"concat('extra column: not declared: ', left(_rescued, {_SHOWN}))"))
    is_void = f"coalesce({contract.void_condition}, false)" if contract.voided else "false"
    if contract.voided and not contract.takes_undated:
        why = f"'{contract.event_time}: no value, by which a delete finds the day of its record'"
        checks.append((f"`{contract.event_time}` IS NULL AND {is_void}", why))
    for needed in (*contract.key, contract.event_time, *contract.versioned_by):
        if needed is not None:
            spared = f" AND NOT {is_void}" if needed == contract.event_time and contract.takes_undated else ""
            is_lost = f" AND NOT coalesce({losses[needed]}, false)" if needed in losses else ""
            checks.append((f"`{needed}` IS NULL{is_lost}{spared}", f"'{needed}: no value'"))
    for name, is_in_years in _in_years(contract).items():
        says = f"concat('{name}: ', CAST(to_date(`{name}`) AS string), ' is not in the years 1 to 9999')"
        matters = "" if name in contract.needed else f" AND NOT {is_void}"
        checks.append((f"NOT ({is_in_years}){matters}", says))
    of_fields = ", ".join(f"CASE WHEN {condition} THEN {why} END" for condition, why in checks)
    # Most rows have no fault: texts are put together only where one is found.
    is_faulty = " OR ".join(f"coalesce({condition}, false)" for condition, _ in checks)
    broken = "".join(f"WHEN {condition} THEN {why} " for condition, why in of_line)
    return f"CASE {broken}WHEN {is_faulty} THEN concat_ws('; ', {of_fields}) END"


def _in_years(contract: Contract) -> dict[str, str]:
    """Return whether each column of moments is null or in the years 1 to 9999.

    Python, Delta's partitions and the ledger have no others. Spark has many more; even as a bound of a staged file
    whose row was refused, one would end the process that writes Delta's log.
    """
    kinds = {column.name: column.type for column in contract.columns if column.type in YEARS}
    is_in = {name: f"coalesce(`{name}` BETWEEN {YEARS[kind]}, true)" for name, kind in kinds.items()}
    if contract.day_zone is not None and contract.event_time is not None:  # whose date may lie a year away
        local = _local(f"`{contract.event_time}`", contract.day_zone)
        is_in[contract.event_time] += f" AND coalesce({local} BETWEEN {YEARS['timestamp']}, true)"
    return is_in


def _local(when: str, zone: str) -> str:
    """Return the local time of a moment in a zone."""
    return f"from_utc_timestamp({when}, '{zone}')"


def _payload(types: Collection[str], contract: Contract) -> str:
    """Return the row as delivered: its line if there is one, else its fields as JSON."""
    given = {column.name: _as_delivered(n) for n, column in enumerate(contract.columns)}
    fields = [f"{got if got in types else f'`{name}`'} AS `{name}`" for name, got in given.items()]
    as_json = f"to_json(struct({', '.join(fields)}, _rescued))"
    return f"coalesce({_LINE}, {as_json})" if _LINE in types else as_json


def _raw_columns(typed: DataFrame, layout: Layout, contract: Contract) -> list[Column]:
    columns = {name: f"CASE WHEN {is_in} THEN `{name}` END" for name, is_in in _in_years(contract).items()}
    assert contract.event_time is not None
    when = columns[contract.event_time]
    day = f"to_date({when if contract.day_zone is None else _local(when, contract.day_zone)})"
    is_void, in_time = contract.void_condition, ""
    if contract.takes_undated:  # such a delete lies on the day it arrived: spark.raw.markers
        is_undated = f"`{contract.event_time}` IS NULL AND coalesce({is_void}, false)"
        day, in_time = f"CASE WHEN {is_undated} THEN _arrival_date ELSE {day} END", f"({is_undated}) OR "
    kind = f"CASE WHEN {is_void} THEN '{VOID}' ELSE '{RECORD}' END" if is_void else f"'{RECORD}'"
    in_time += f"date_diff(_came, {day}) BETWEEN {-contract.ahead_days} AND {contract.restatement_window_days}"
    for closed in contract.protected:
        days = f"{day} BETWEEN DATE'{closed.first}' AND DATE'{closed.last}'"
        in_time += f" AND NOT ({days} AND _came > DATE'{closed.since}')"
    computed = {
        "_rescued": f"CASE WHEN _reason IS NULL THEN _rescued ELSE {_payload(typed.columns, contract)} END",
        "_kind": f"CASE WHEN _reason IS NULL THEN {kind} ELSE _reason END",
        "_order_day": day,
        DAY: f"CASE WHEN _reason IS NULL AND ({in_time}) THEN {day} END",
    }
    return [
        *(F.expr(f"{columns.get(name, f'`{name}`')} AS `{name}`") for name in contract.column_names),
        *map(F.col, ("_arrival", "_arrival_date")),
        *(F.expr(f"{computed[name]} AS {name}") for name in ("_rescued", "_kind")),
        F.expr("CAST(NULL AS timestamp) AS _version"),
        file_order(layout.file_names).alias(FILE_ORDER),
        F.col(PLACE),
        order_hash(contract.column_names).alias("_row_hash"),
        *(F.expr(f"{computed[name]} AS {name}") for name in ("_order_day", DAY)),
    ]


_MOST_NESTED = 100
"""Deepest nesting of lists and objects in a line with a value that is read again."""

_A_DOUBLE = r'(-?\d+\.(0|\d*[1-9])(E-?\d+)?|"-?Infinity")'
"""What Spark makes of a JSON number with a fraction or an exponent."""

_MARK = "\\t"
"""That a field may hold, too: then its line is looked at once more, in vain."""


def _values(deep: int) -> str:
    """Return the pattern of a JSON object's next field, with the value as its group, in a line with one object.

    Nothing of it is tried twice, so it takes neither stack nor time on a long line.
    """
    text = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    nested = rf'[\[{{](?:[^"\[\]{{}}]++|{text})*+[\]}}]'
    for _ in range(deep - 1):
        nested = rf'[\[{{](?:[^"\[\]{{}}]++|{text}|{nested})*+[\]}}]'
    return rf"\G(?:^[^{{]*+\{{|\s*+,)\s*+{text}\s*+:\s*+({nested}|{text}|[^\"\[\]{{}},\s]++)"


def with_delivered_values(fields: DataFrame, line: str, contract: Contract) -> DataFrame:
    """Return the fields with their values as in the line, if Spark may have changed the text.

    Spark converts numbers with a fraction or an exponent through floating point, also within lists and objects, and
    writes these without white space. Only a line with such a field is read again. A text value stays as Spark read it.
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
    """Return whether Spark may have changed a field's text in a way that matters.

    All fields of a kind are checked as one text, each between two marks: this takes a tenth of the code that Spark
    generates for a condition on each, of which Java would compile nothing.
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
