"""Which files make up a table at a version, by day, with their statistics as the log has them.

Folded from the newest usable checkpoint and the commits after it. The log holds URL-encoded paths; everything above
this module, and deltalake's `AddAction`, works with decoded ones.

Statistics of staged files as a table's log may hold them: no bound is tighter than the values that it bounds.

A reader leaves a file out by its bounds, so one that lost digits on its way into JSON hides rows. Whole numbers, text,
truth values and days come through as they are. Decimal numbers of more digits than a double tells apart, which is what
readers make of a JSON number, are rounded outwards, and so are moments, which are cut to milliseconds.

A file has bounds of all its columns or of none: deltalake's Arrow datasets find nothing in a file that lacks those of
the column that is looked at. It has none where a column holds what no bound can say: numbers that are not finite, and
years that have no four digits, at which some readers stop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from platform_assets.contracts import DAY
from platform_assets.contracts.columns import digits_of
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log_state import checkpointed_schema, from_checkpoint, is_schema
from platform_assets.lakehouse.errors import (
    DamagedTableError,
    NullDayError,
    StagedFileError,
)
from platform_assets.lakehouse.layout import Lake, table_name
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.records.manifest import DataFile


@dataclass(frozen=True)
class TableSnapshot:
    """A table at a version.

    Args:
        metadata: id, columns and properties of the table, to see whether somebody altered it.
        days: the day of each file, by path; None for rows without one.
    """

    version: int
    schema_string: str
    metadata: tuple[str, ...]
    files: dict[str, DataFile]
    days: dict[str, date | None]

    def by_day(self) -> dict[date | None, dict[str, DataFile]]:
        """Return the live files of every day that has some, by path."""
        by_day: dict[date | None, dict[str, DataFile]] = {}
        for path, file in self.files.items():
            by_day.setdefault(self.days[path], {})[path] = file
        return by_day


def table_snapshot(table_path: Location, version: int | None = None) -> TableSnapshot:
    """Fold a table's log.

    Args:
        version: version wanted; the head by default.

    Raises:
        DamagedTableError: there is no such version, its log lacks what every log has, or the table needs Delta
            features beyond protocol 1/2.
    """
    wanted = commits.head_version(table_path) if version is None else version
    _require(table_path, wanted)
    start, state = from_checkpoint(table_path, wanted)
    for number in range(start + 1, wanted + 1):
        actions = commits.actions(table_path, number)
        try:
            state.apply(actions)
        except (KeyError, TypeError, ValueError) as error:
            what = f"an action without {error}" if isinstance(error, KeyError) else "an action that is none of Delta's"
            raise _damaged(table_path, number, what) from error
    if lacking := state.lacking():
        raise _damaged(table_path, wanted, lacking)
    return TableSnapshot(
        wanted, state.schema_string, state.metadata, state.files, {path: state.days[path] for path in state.files}
    )


def _damaged(table_path: Location, version: int, what: str) -> DamagedTableError:
    return DamagedTableError(
        f"The log of {table_name(table_path)} has {what}, at version {version}: {table_path / '_delta_log'}.",
        "Restore the folder from a backup; if another tool wrote the table, write it again with a whole log.",
    )


def head_of(table_path: Location) -> TableSnapshot | None:
    """Return the newest version of a table; None if there is no table yet.

    Raises:
        DamagedTableError: as `snapshot`.
    """
    return table_snapshot(table_path) if commits.head_version(table_path) >= 0 else None


def schema_string_at(table_path: Location, version: int) -> str:
    """Return the Delta schema of a table at a version, without looking at its files.

    Raises:
        DamagedTableError: there is no such version.
    """
    _require(table_path, version)
    summed_up = commits.checkpoint_hint(table_path)
    for number in range(version, -1, -1):
        for action in commits.actions(table_path, number):
            if "metaData" in action:
                schema = (action["metaData"] or {}).get("schemaString")
                return str(schema) if is_schema(schema) else table_snapshot(table_path, version).schema_string
        if number - 1 <= summed_up:
            break
    return checkpointed_schema(table_path, version) or table_snapshot(table_path, version).schema_string


def _require(table_path: Location, version: int) -> None:
    if version < 0 or not commits.has_commit(table_path, version):
        raise DamagedTableError(
            f"{table_name(table_path)} has no version {version}.",
            "Check that the lake's folder is complete; restore the table from a backup if it was deleted.",
        )


def live_files(table_path: Location, version: int | None = None) -> dict[date, tuple[DataFile, ...]]:
    """Return the live files of each day, sorted by path.

    Args:
        version: version wanted; the head by default.

    Raises:
        NullDayError: rows have no day.
        DamagedTableError: there is no such version.
    """
    return files_of_days(table_snapshot(table_path, version), table_name(table_path))


def staged_files(lake: Lake, table: str, publication: str) -> tuple[str, dict[date, tuple[DataFile, ...]]]:
    """Return the Delta schema that a publication staged for a table, and the files of each day relative to its folder.

    Raises:
        StagedFileError: nothing was staged.
        NullDayError: staged rows have no day.
    """
    folder = lake.stage_path(table, publication)
    if commits.head_version(folder) < 0:
        raise StagedFileError(
            f"Publication {publication} staged nothing for {table}: {folder} has no Delta log.",
            "Write the computed days there as a Delta table before publishing.",
        )
    staged = table_snapshot(folder)
    types = types_of(staged.schema_string)
    files = {
        day: tuple(
            file.model_copy(
                update={"path": f"{publication}/{file.path}", "stats": _stats(folder / file.path, file.stats, types)}
            )
            for file in files
        )
        for day, files in files_of_days(staged, table).items()
    }
    return staged.schema_string, files


def _stats(file: Location, stats: str, types: Mapping[str, Any]) -> str:
    """Statistics of a file that can be trusted; deltalake passes over parts of one whose bounds are no numbers."""
    if "double" in types.values():
        with opened(file) as parquet:
            if parquet.num_row_groups > 1:
                return without_bounds(stats)
    return trustworthy(stats, types)


def files_of_days(snapshot: TableSnapshot, table: str) -> dict[date, tuple[DataFile, ...]]:
    """Return the live files of each day of a table that was read, sorted by path.

    Raises:
        NullDayError: rows have no day.
    """
    by_day: dict[date, tuple[DataFile, ...]] = {}
    for day, files in snapshot.by_day().items():
        if day is None:
            raise NullDayError(
                f"{table} has rows without {DAY}, for example in {min(files)}.",
                f"Rows whose {DAY} is null belong to quarantine; filter them out before staging.",
            )
        by_day[day] = tuple(files[path] for path in sorted(files))
    return dict(sorted(by_day.items()))


Bounds = tuple[Any, Any]
"""The smallest and the greatest value."""

_SIDES = ("minValues", "maxValues")
_DIGITS = 15
"""Decimal numbers of so many digits are told apart as doubles, all of them."""
_MORE = Decimal("1e-14")
"""Part of a longer number by which its bounds are put outwards: more than any reader loses of it."""
_LEAST_PLAIN, _FIRST_NOT_PLAIN = Decimal("0.0001"), Decimal("1e16")
_EXPONENT = re.compile(r"\d[eE][-+]?\d")
_DOWN, _UP = (Context(prec=_DIGITS, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
_CUT = timedelta(microseconds=999)
_EXACT = {"byte": int, "short": int, "integer": int, "long": int, "boolean": bool, "string": str}
"""Types whose bounds come through as they are, with what JSON makes of them."""


def types_of(schema_string: str) -> dict[str, Any]:
    """Return the type of every column of a Delta schema but the day: a text, or a value of its own for a nested one."""
    fields = json.loads(schema_string)["fields"]
    return {field["name"]: field["type"] for field in fields if field["name"] != DAY}


def trustworthy(stats: str, types: Mapping[str, Any]) -> str:
    """Statistics of a file by which no reader misses a row; to the letter where its bounds can stay as they are.

    Args:
        types: of the columns, as `types_of` gives them.
    """
    parsed = json.loads(stats, parse_float=Decimal)
    low, high = (parsed.get(side) or {} for side in _SIDES)
    kept: dict[str, Bounds] = {}
    for name, type_ in types.items():
        if parsed.get("nullCount", {}).get(name, -1) == parsed.get("numRecords"):
            continue
        bounds = _bounds(type_, low.get(name), high.get(name))
        if bounds is None:
            return without_bounds(stats)
        kept[name] = bounds
    now = [{name: bounds[side] for name, bounds in kept.items()} for side in (0, 1)]
    if now == [low, high] and not _EXPONENT.search(stats):
        return stats
    return json.dumps(parsed | dict(zip(_SIDES, now, strict=True)), default=float, ensure_ascii=False)


def without_bounds(stats: str) -> str:
    """Statistics of a file of which only the rows and the nulls are known."""
    parsed = json.loads(stats)
    return json.dumps({name: value for name, value in parsed.items() if name not in _SIDES}, ensure_ascii=False)


def _bounds(type_: Any, low: Any, high: Any) -> Bounds | None:
    """Bounds of a column that holds values as they may stay; None where nothing can be said."""
    if not isinstance(type_, str):
        return None
    if type_ in _EXACT:
        return (low, high) if {type(low), type(high)} == {_EXACT[type_]} else None
    if type_ == "double":
        return _of_doubles(low, high)
    if type_ == "date":
        return (low, high) if _parsed(date, low) and _parsed(date, high) else None
    if type_ == "timestamp":
        greatest = _parsed(datetime, high)
        return (low, _last_of(greatest)) if _parsed(datetime, low) and greatest else None
    digits = digits_of(type_)
    return _of_decimals(low, high, *digits) if digits else None


def _of_doubles(low: Any, high: Any) -> Bounds | None:
    if not {type(low), type(high)} <= {int, Decimal}:
        return None
    # Of the two zeros some readers take one for less than the other.
    return (low or Decimal("-0.0"), high or Decimal("0.0"))


def _of_decimals(low: Any, high: Any, precision: int, scale: int) -> Bounds | None:
    if not {type(low), type(high)} <= {int, Decimal}:
        return None
    bounds = []
    for value, context, way in ((Decimal(low), _DOWN, -1), (Decimal(high), _UP, 1)):
        units = value.scaleb(scale)
        if units != units.to_integral_value() or abs(units) >= 10**_DIGITS:
            value = context.multiply(value, 1 + way * _MORE.copy_sign(value))
            if abs(value.scaleb(scale)) >= 10**precision:
                return None
        bounds.append(value)
    plain = (_plain(bounds[0], ROUND_FLOOR), _plain(bounds[1], ROUND_CEILING))
    return (low if plain[0] == low else plain[0], high if plain[1] == high else plain[1])


def _plain(bound: Decimal, outwards: str) -> Decimal | int:
    """Return a bound that JSON writes without an exponent, by which deltalake makes no number of a decimal."""
    if bound and abs(bound) < _LEAST_PLAIN:
        return bound.quantize(_LEAST_PLAIN, outwards)
    return int(bound) if abs(bound) >= _FIRST_NOT_PLAIN else bound


def _parsed(type_: type[date], text: Any) -> Any:
    try:
        return type_.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _last_of(moment: datetime) -> str:
    """Return the last microsecond of the millisecond that is written, which stands for all of it."""
    last = moment.replace(microsecond=moment.microsecond // 1000 * 1000) + _CUT
    return last.isoformat(timespec="microseconds").replace("+00:00", "Z")
