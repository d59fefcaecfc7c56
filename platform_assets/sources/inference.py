"""Propose a contract for existing files: dialect, types, key, day and order of versions.

DuckDB sniffs dialect and structure, and tests every declaration against all values.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.dataset import dataset

from platform_assets.contracts import DAY, Column, Csv, LandingFiles
from platform_assets.contracts.files import date_pattern
from platform_assets.contracts.landing import format_of
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.reading import quoted

if TYPE_CHECKING:
    import duckdb

_SAMPLE_BYTES, _SAMPLE_ROWS = 64 << 20, 500_000
_NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "-", "\\N", "#N/A")
_DATES = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %b %Y", "%d/%m/%y", "%m/%d/%y")
_TIMES = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%H:%M:%S%z")
_SIGNS = ((".", ""), (".", ","), (",", ""), (",", "."), (",", " "), (",", "'"), (".", "'"))
"""For decimals and between thousands, the likely first."""
_EPOCHS = {"s": (10, "* 1000000"), "ms": (13, "* 1000"), "us": (16, ""), "ns": (19, "// 1000")}
"""How many digits numbers since 1970 have in these units, from 2001 to 2286, and how they become microseconds."""
_TYPES = dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"), "int")
_TYPES |= {"BIGINT": "long", "UINTEGER": "long", "FLOAT": "double", "DOUBLE": "double", "BOOLEAN": "boolean"}
_TYPES |= {"VARCHAR": "string", "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP WITH TIME ZONE": "timestamp"}
_ORDERS = ("timestamp", "date", "long", "int")
_IS_ID = re.compile(r"(id|no|nr|num|number|key|code|uuid|sku)$")
_IS_CHANGE = re.compile(r"updat|modif|chang|version|extract|export|load|ingest|sync")
_IS_VOID = re.compile(r"void|cancel|delet|revoked")
_IS_MOMENT = re.compile(r"date|datum|day|time|stamp|(_|^)(at|on|ts)$")
_IS_RATE = re.compile(r"price|rate|ratio|share|percent|pct|temperature|avg|mean|score|year|month|week|zip")


class InferenceError(PlatformError):
    """A file from which no contract can be proposed."""


@dataclass(frozen=True)
class Proposal:
    """Proposal of a raw contract for some files.

    Args:
        chosen: fields of the contract: `key`, `source`, `event_time`, `updated_at` and `voided`, if any.
        notes: reasons and alternatives, by name of a column or a field of the contract: `sure` or `guess`, and a text.
        days: the first and the last day of the rows.
        day: day of the next two.
        given: up to two rows as texts of JSON lines, without nulls.
        typed: the same rows by their types.
    """

    columns: tuple[Column, ...]
    chosen: Mapping[str, Any]
    notes: Mapping[str, tuple[str, str]]
    rows: int
    days: tuple[date, date]
    day: date
    given: Sequence[Mapping[str, str | None]]
    typed: Sequence[Mapping[str, str | None]]


def propose(files: Sequence[Path], folder: str) -> Proposal:
    """Propose the declaration of a raw table for files of one layout.

    Args:
        files: of one format; or the folder of a Delta table.
        folder: folder of the source, below the landing root.

    Raises:
        InferenceError: they cannot be read, or have no key or no day.
    """
    with _looked_at(files, folder) as inference:
        return inference.proposal()


def columns_in(files: Sequence[Path]) -> tuple[Column, ...]:
    """Propose the columns of files of one layout, whatever else they have or lack.

    Raises:
        InferenceError: they cannot be read.
    """
    with _looked_at(files, "files") as inference:
        return inference.columns()


@contextmanager
def _looked_at(files: Sequence[Path], folder: str) -> Iterator[_Inference]:
    import duckdb
    from deltalake.exceptions import DeltaError

    with TemporaryDirectory(prefix="platform-assets-", ignore_cleanup_errors=True) as at, duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'; SET memory_limit = '2GB'; SET autoinstall_known_extensions = false")
        try:
            yield _Inference(database, files, folder, Path(at))
        except (duckdb.Error, DeltaError, pa.ArrowException, OSError) as error:
            what = f"{files[0]} cannot be read: {str(error).splitlines()[0]}"
            todo = "Name files of one table; or begin with `platform-assets init NAME`, and declare it by hand."
            raise InferenceError(what, f"{todo} docs/file-formats.md shows how.") from error


class _Inference:
    def __init__(self, database: duckdb.DuckDBPyConnection, files: Sequence[Path], folder: str, at: Path) -> None:
        self._database, self._file, self._signs = database, files[0], _SIGNS[0]
        self._source, self._notes, self._taken = LandingFiles(folder), dict[str, tuple[str, str]](), [DAY]
        self._columns = [*self._read(files, at)]

    def columns(self) -> tuple[Column, ...]:
        return tuple(self._typed(text, column)[0] for text, column in self._columns)

    def proposal(self) -> Proposal:
        typed = [self._typed(text, column) for text, column in self._columns]
        columns = [column for column, _ in typed]
        made = [f"{value} AS {quoted(column.name)}" for column, value in typed]
        for (text, _), (column, value) in zip(self._columns, typed, strict=True):
            made.append(f'{text if column.pattern or column.epoch else value} AS "{column.name} in files"')
        self._database.execute(f"CREATE TABLE typed AS SELECT DISTINCT {', '.join(made)} FROM rows")
        counts = ", ".join(f"count({quoted(column.name)})" for column in columns)
        [rows, *filled] = self._row(f"SELECT count(*), {counts} FROM typed")
        if not rows:
            raise InferenceError(f"{self._file} has no rows.", "Name a file with rows.")
        whole = {column.name: column for column, count in zip(columns, filled, strict=True) if count == rows}
        event_time = self._event_time(columns, whole)
        updated_at = next((name for name, c in whole.items() if _IS_CHANGE.search(name) and c.type in _ORDERS), None)
        voided = None
        for name in (column.name for column in columns if _IS_VOID.search(column.name) and column.type == "boolean"):
            if self._row(f"SELECT bool_or(NOT {quoted(name)}) FROM typed")[0]:
                voided = name
        self._notes |= {"updated_at": ("guess", "by its name; the newest version of a key counts")}
        self._notes |= {"voided": ("guess", "by its name; a row with true deletes its key")}
        key = self._key(whole, updated_at, rows)
        columns = [
            replace(c, nullable=False, may_be_absent=False) if c.name in (*key, event_time) else c for c in columns
        ]
        day, keys = f"CAST({quoted(event_time)} AS DATE)", ", ".join(map(quoted, key))
        is_there = f"NOT coalesce({quoted(voided)}, false)" if voided else "true"
        most = f"SELECT {day} FROM typed WHERE {is_there} GROUP BY 1 ORDER BY count(DISTINCT ({keys})) DESC, 1 LIMIT 1"
        two = f"SELECT DISTINCT ON ({keys}) * FROM typed WHERE {is_there} AND {day} = ({most}) ORDER BY ALL LIMIT 2"
        self._database.execute(f"CREATE TABLE two AS {two}")
        first, last, one = self._row(f"SELECT min({day}), max({day}), (SELECT {day} FROM two LIMIT 1) FROM typed")
        chosen = {"key": key, "source": self._source, "event_time": event_time}
        chosen |= {"updated_at": updated_at, "voided": voided}
        notes = {name: note for name, note in self._notes.items() if chosen.get(name, "") is not None}
        given, texts = (self._texts(columns, suffix) for suffix in (" in files", ""))
        return Proposal(tuple(columns), chosen, notes, rows, (first, last), one, given, texts)

    def _read(self, files: Sequence[Path], at: Path) -> Iterator[tuple[str, Column]]:
        """Make the table `rows`, and yield the SQL and the name of each column."""
        kind = "parquet" if self._file.is_dir() else format_of(self._file.name) or "csv"
        if kind == "parquet":
            yield from self._arrow([str(file) for file in files])
            return
        texts, encodings = [at / str(n) for n in range(len(files))], {"utf-8"}
        for file, text in zip(files, texts, strict=True):
            with pa.input_stream(str(file), compression="detect") as stream:
                content = stream.read(_SAMPLE_BYTES)
            if len(content) == _SAMPLE_BYTES:
                content = content[: content.rfind(b"\n") + 1]
            for encoding in ("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "cp1252", "latin-1"):
                try:
                    text.write_text(content.decode(encoding).removeprefix("\ufeff"), "utf-8", newline="")
                except UnicodeDecodeError:
                    continue
                encodings.add(encoding)
                break
        listed = f"[{', '.join(_text(str(text)) for text in texts)}]"
        yield from self._json(listed) if kind == "json" else self._csv(files, listed, max(encodings, key=len))

    def _arrow(self, files: Sequence[str]) -> Iterator[tuple[str, Column]]:
        from deltalake import DeltaTable, QueryBuilder

        if self._file.is_dir():  # as a dataset, columns of other names in the files are null throughout
            asked = QueryBuilder().register("t", DeltaTable(files[0]))
            rows = pa.table(asked.execute(f"SELECT * FROM t LIMIT {_SAMPLE_ROWS}").read_all())
        else:
            rows = dataset(files)
        self._database.register("arrow", rows)
        self._database.execute(f"CREATE TABLE rows AS FROM arrow LIMIT {_SAMPLE_ROWS}")
        for name, type_, *_ in self._database.execute("DESCRIBE rows").fetchall():
            if found := _TYPES.get(type_, type_.lower() if type_.startswith("DECIMAL") else None):
                yield quoted(name), self._named((name,), found)
            else:
                self._notes[name] = ("guess", f"left out, since no column of a contract is {type_}")

    def _csv(self, files: Sequence[Path], listed: str, encoding: str) -> Iterator[tuple[str, Column]]:
        sniffed = self._database.execute(f"FROM sniff_csv({listed}[1], sample_size = -1)")
        found = dict(zip([name for name, *_ in sniffed.description or ()], sniffed.fetchone() or (), strict=True))
        delimiter, quote, escape = (found[name].replace("(empty)", "") for name in ("Delimiter", "Quote", "Escape"))
        delimiter, quote, names = delimiter or ",", quote or '"', [column["name"] for column in found["Columns"]]
        columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
        self._database.execute(
            f"CREATE TABLE rows AS FROM read_csv({listed}, auto_detect = false, delim = {_text(delimiter)}, "
            f"quote = {_text(quote)}, escape = {_text(escape or quote)}, skip = {found['SkipRows']}, "
            f"header = {found['HasHeader']}, columns = {{{columns}}}, store_rejects = true) LIMIT {_SAMPLE_ROWS}"
        )
        broken = self._broken(files)
        numbers = product(names, _SIGNS)
        fits = self._fitting({(name, signs): _matches(quoted(name), _number(signs)) for name, signs in numbers})
        self._signs = max(_SIGNS, key=[signs for _, signs in fits].count)
        csv = Csv(
            delimiter=delimiter,
            quote=quote,
            escape=escape if escape not in ("", quote) else None,
            encoding=encoding,
            columns=() if found["HasHeader"] else tuple(names),
            skip_first=found["SkipRows"],
            decimal="," if self._signs[0] == "," else ".",
            thousands=self._signs[1] or None,
            endings=() if format_of(self._file.name) else (self._file.suffix.lower(),),
        )
        doubts = ["the text is not UTF-8, and other encodings fit, too"] if encoding in ("cp1252", "latin-1") else []
        doubts += ["no header was found: give the columns names, here and above"] if csv.columns else []
        doubts += broken
        if csv != Csv():
            self._source = replace(self._source, csv=csv)
        if csv != Csv() or broken:
            self._notes["source"] = ("guess", "; ".join(doubts)) if doubts else ("sure", "all rows can be read so")
        yield from ((quoted(name), self._named((name,))) for name in names)

    def _broken(self, files: Sequence[Path]) -> list[str]:
        """Return a sentence about the lines that are no rows, if there are any."""
        query = "SELECT file_path, line, error_message FROM reject_errors JOIN reject_scans USING (scan_id, file_id)"
        lines = self._database.execute(f"SELECT DISTINCT ON (1, 2) * FROM ({query}) ORDER BY 1, 2").fetchall()
        if not lines:
            return []
        (copy, line, error), count = lines[0], len(lines)
        what = "1 line is" if count == 1 else f"{count} lines are"
        return [f"{what} left out: {files[int(Path(copy).name)]}, line {line}: {error.splitlines()[0]}"]

    def _json(self, listed: str) -> Iterator[tuple[str, Column]]:
        read = f"read_json_objects({listed}, format = 'auto', maximum_object_size = {_SAMPLE_BYTES})"
        self._database.execute(f"CREATE TABLE rows AS SELECT json AS j FROM {read} LIMIT {_SAMPLE_ROWS}")
        form = json.loads(self._row("SELECT CAST(json_group_structure(j) AS VARCHAR) FROM rows")[0] or "null")
        for path in _leaves(form) if isinstance(form, dict) else ():
            at, top = (_text("$" + "".join(f'."{name}"' for name in names)) for names in (path, path[:1]))
            [is_always] = self._row(f"SELECT bool_and(json_exists(j, {top})) FROM rows")
            yield f"nullif(j ->> {at}, '')", replace(self._named(path), may_be_absent=not is_always)

    def _named(self, path: tuple[str, ...], type_: str = "string") -> Column:
        """Return a column with a valid name for a contract, and its name in files."""
        plain = unicodedata.normalize("NFKD", ".".join(path).casefold()).encode("ascii", "ignore").decode()
        name = re.sub(r"[^a-z0-9]+", "_", plain)[:60].strip("_").lstrip("_0123456789") or "unnamed"
        name = f"{name}_{len(self._taken)}" if name in self._taken else name
        self._taken.append(name)
        source_name = path[0] if len(path) == 1 and name != path[0] else None
        return Column(
            name, type_, f"{'.'.join(path)} in the files.", source_name=source_name, path=path if len(path) > 1 else ()
        )

    def _typed(self, text: str, column: Column) -> tuple[Column, str]:
        """Return a column with the type and format that fit all its values, and these in SQL."""
        if column.type != "string":
            return column, text
        nulls = tuple(null for null in _NULLS if self._row(f"SELECT bool_or({text} = {_text(null)}) FROM rows")[0])
        point = re.escape(self._signs[0])
        [digits] = self._row(f"SELECT max(length(regexp_extract({text}, '{point}(\\d+)$', 1))) FROM rows")
        where = f"{text} NOT IN ({', '.join(map(_text, nulls))})" if nulls else "true"
        values = dict(_candidates(replace(column, nulls=nulls), text, self._signs, digits or 0))
        where += f" AND {text} IS NOT NULL"
        fits = [*self._fitting({one: f"{value} IS NOT NULL" for one, value in values.items()}, where)]
        if not fits:
            self._note_exceptions(text, column, values, where)
            return column, text
        first, *others = fits
        patterns = [one.pattern for one in others if first.pattern and one.pattern and one.type == first.type]
        if first.pattern or first.epoch:
            also = "".join(f", and {pattern}, too" for pattern in patterns)
            written = first.pattern or f"{first.epoch} since 1970"
            self._notes[first.name] = ("guess" if also else "sure", f"all its values are {written}{also}")
        return first, values[first]

    def _note_exceptions(self, text: str, column: Column, values: Mapping[Column, str], where: str) -> None:
        """Say so where one value in ten or fewer keeps a column from being a number, a date or a time."""
        others = [f"count(*) FILTER (WHERE ({value}) IS NULL)" for value in values.values()]
        if not others:
            return
        [rows, *counts] = self._row(f"SELECT count(*), {', '.join(others)} FROM rows WHERE {where}")
        count, (nearly, value) = min(zip(counts, values.items(), strict=True), key=lambda pair: pair[0])
        if 0 < count * 10 <= rows:
            [example] = self._row(f"SELECT min({text}) FROM rows WHERE {where} AND ({value}) IS NULL")
            note = f"text, for {count} of {rows} values fit no {nearly.type}, such as {example!r}"
            self._notes[column.name] = ("guess", f"{note}; declared {nearly.type}, such rows are refused")

    def _fitting(self, conditions: Mapping[Any, str], where: str = "true") -> Iterator[Any]:
        """Yield the types that fit all rows; a few rows rule out most of them."""
        for source, of_none in (("(FROM rows LIMIT 200)", "true"), ("rows", "false")):
            asked = ", ".join(f"coalesce(bool_and({each}), {of_none})" for each in conditions.values()) or "true"
            fits = self._row(f"SELECT {asked} FROM {source} WHERE {where}")
            conditions = {one: each for (one, each), fit in zip(conditions.items(), fits, strict=False) if fit}
        yield from conditions

    def _event_time(self, columns: Sequence[Column], whole: Mapping[str, Column]) -> str:
        moments = [column for column in columns if column.type in ("date", "timestamp")]
        if not moments:
            had = ", ".join(f"{column.name} ({column.type})" for column in columns)
            raise InferenceError(
                f"{self._file} has no column of dates or times, and each row belongs to a day. It has {had}.",
                "Have its source add one, as the day of the export. Dates that are written otherwise need a `pattern`: "
                "begin with `platform-assets init NAME` and declare it by hand, docs/file-formats.md.",
            )
        moments.sort(
            key=lambda c: (bool(_IS_CHANGE.search(c.name)), c.name not in whole, not _IS_MOMENT.search(c.name))
        )
        first, *names = (column.name for column in moments)
        others = "".join(f"; {name} could be, too" for name in names if not _IS_CHANGE.search(name))
        self._notes["event_time"] = ("guess" if others else "sure", f"its date is the day of a row{others}")
        return first

    def _key(self, whole: Mapping[str, Column], updated_at: str | None, rows: int) -> tuple[str, ...]:
        """Return the fewest columns that distinguish all rows, the likeliest by names and numbers of values."""
        able = [name for name, column in whole.items() if column.type in (*_ORDERS, "string") and name != updated_at]
        values = {name: self._row(f"SELECT count(DISTINCT {quoted(name)}) FROM typed")[0] for name in able}
        able = sorted(able, key=lambda name: (not _IS_ID.search(name), -values[name]))[:12]
        if not able:
            what = f"{self._file} has no column without gaps that could be a key."
            raise InferenceError(what, "Have its source number its rows.")
        best: dict[tuple[str, ...], int] = {}
        for size, order in product(range(1, min(len(able), 4) + 1), [(), (updated_at,)] if updated_at else [()]):
            sets = [names for names in combinations(able, size) if not order or _IS_ID.search(names[0])]
            counts = (f"count(DISTINCT ({', '.join(map(quoted, (*names, *order)))}))" for names in sets)
            found = self._row(f"SELECT {', '.join(counts) or 0} FROM typed")
            best |= dict(zip(sets, found, strict=False))
            unique = [names for names in sets if best[names] == rows]
            if unique := [names for names in unique if _IS_ID.search(names[0])] or unique:
                others = "".join(f"; so does {', '.join(names)}" for names in unique[1:4] if not order)
                is_sure = size == 1 and _IS_ID.search(unique[0][0]) and not others and not order
                each = f" with {updated_at}" if order else ""
                self._notes["key"] = ("sure" if is_sure else "guess", f"tells all {rows:,} rows apart{each}{others}")
                return unique[0]
        key = max(best, key=lambda names: best[names])
        lost = f"{rows - best[key]:,} of {rows:,} rows have the key of another one with other content"
        self._notes["key"] = ("guess", f"NOT UNIQUE: {lost}, and would not count; have the source number its rows")
        return key

    def _texts(self, columns: Sequence[Column], suffix: str) -> list[dict[str, str | None]]:
        read = ", ".join(f"CAST({quoted(column.name + suffix)} AS VARCHAR)" for column in columns)
        rows = self._database.execute(f"SELECT {read} FROM two").fetchall()
        return [{column.name: value for column, value in zip(columns, row, strict=True)} for row in rows]

    def _row(self, query: str) -> Sequence[Any]:
        return self._database.execute(query).fetchone() or ()


def _candidates(column: Column, text: str, signs: tuple[str, str], digits: int) -> Iterator[tuple[Column, str]]:
    """Yield possible types of a text column, narrowest first, each with its value in SQL, null if it does not fit."""

    def one(type_: str, value: str, like: str, **written: Any) -> tuple[Column, str]:
        found = replace(column, type=type_, **written)
        return found, f"CASE WHEN {_matches(text, like)} THEN {value} END"

    def written(type_: str, pattern: str) -> tuple[Column, str]:
        value = f"CAST(try_strptime({text}, {_text(pattern)}) AS {type_})"
        return one(type_, value, date_pattern(pattern, type_)[0], pattern=pattern)

    yield one("boolean", f"TRY_CAST({text} AS BOOLEAN)", "(?i)true|false|yes|no")
    yield written("date", "%Y%m%d")
    for unit, (length, factor) in _EPOCHS.items() if _IS_MOMENT.search(column.name) else ():
        value = f"make_timestamp(TRY_CAST({text} AS BIGINT) {factor})"
        yield one("timestamp", value, rf"\d{{{length}}}", epoch=unit)
    plain = f"replace(replace({text}, {_text(signs[1])}, ''), {_text(signs[0])}, '.')"
    scale = min(max(digits, 2), 9)
    ends = {"BIGINT": "", f"decimal(18,{scale})": rf"(\d{{0,{scale}}})?", "DOUBLE": r"(\d*)?([eE][+-]?\d+)?"}
    for sql, end in ends.items():
        type_ = {"BIGINT": "long", "DOUBLE": "double"}.get(sql, sql)
        yield one(type_, f"TRY_CAST({plain} AS {sql})", _number(signs, end), additive=not _IS_RATE.search(column.name))
    yield one("date", f"TRY_CAST({text} AS DATE)", r"\d{4}-\d{2}-\d{2}")
    clock = r"[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)? ?(Z|UTC|[+-]\d{2}:?\d{2})?"
    yield one("timestamp", f"TRY_CAST({text} AS TIMESTAMPTZ)", rf"\d{{4}}-\d{{2}}-\d{{2}}({clock})?")
    yield from (written("date", pattern) for pattern in _DATES)
    yield from (written("timestamp", "".join(parts)) for parts in product(("%Y-%m-%d", *_DATES), " T", _TIMES))


def _number(signs: tuple[str, str], end: str = r"(\d*)?([eE][+-]?\d+)?") -> str:
    """Return a pattern of numbers; digits with a leading zero are a name."""
    point, between = map(re.escape, signs)
    grouped = rf"|[1-9]\d{{0,2}}({between}\d{{3}})+" if between else ""
    return rf"[+-]?(0|[1-9]\d*{grouped}){end.replace('(', f'({point}', 1)}"


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {_text(pattern)})"


def _leaves(form: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths in objects to values or lists, which are texts."""
    for name, inner in form.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, (*above, name))
        else:
            yield (*above, name)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
