"""Find rows of a key: where they can be by the contracts, where they are, and what an erasure cannot reach."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING
from unicodedata import normalize

from platform_assets.contracts import DAY, Catalogue, Contract
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.erasures import made, written
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.schema import schema_at, types_in
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_bytes, parsed, published
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damaged, opened
from platform_assets.operations.plan_record import all_records
from platform_assets.planning.rows_aside import late_table
from platform_assets.progress import OnProgress, Progress
from platform_assets.records.erased_keys import (
    AS_DELIVERED,
    BY_NAME,
    KEY_TYPES,
    ErasedKeys,
    Written,
    canonical,
    hash_of,
)
from platform_assets.records.manifest import is_publication
from platform_assets.sources.listing import landing_area

if TYPE_CHECKING:
    import pyarrow as pa


Fields = Mapping[str, str]
"""The value of each field of a key, as text."""
_BOUND = 32
"""Characters of a text that statistics have; of the greatest, one more follows where it was cut."""
ELSEWHERE = (
    (
        "generations of backups from before: the next `admin backup` has none of the rows; remove older ones with "
        "`--keep 1`"
    ),
    "exports, and what readers made of the tables in other systems",
    "Dagster's storage and logs, where values of columns that are not `sensitive` stand in examples and previews",
)
"""What no installation knows of itself."""


@dataclass(frozen=True)
class Request:
    """A request to erase a key.

    Args:
        also: other tables, each with the field that has the same value.
    """

    table: str
    key: Fields
    also: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Place:
    """A table that can hold rows of a key.

    Args:
        types: types of the key's fields there, by field.
        values: canonical texts of the key, by field.
        is_payload: whether its rows were set aside, and are kept as one text each.
        written: how files write the fields.
    """

    table: str
    types: Mapping[str, str]
    values: Fields
    is_payload: bool = False
    written: Written = BY_NAME

    def hashes(self, secret: bytes) -> dict[str, str]:
        """Return the hashes of the key's fields, which are stored instead of values."""
        return {field: hash_of(secret, field, text) for field, text in self.values.items()}

    def keys(self, secret: bytes) -> ErasedKeys:
        """Return the values that identify rows of the key."""
        return ErasedKeys(secret, [self.hashes(secret)], self.types, self.written)


@dataclass(frozen=True)
class Reach:
    """Scope of an erasure.

    Args:
        places: tables that can hold the key, inputs first, each followed by its tables of rows set aside.
        raw: raw tables among them.
        derived: every table computed from one of them, with or without the key.
        namesakes: tables with the same fields but other sources; they are not searched.
    """

    places: tuple[Place, ...]
    raw: tuple[Contract, ...]
    derived: tuple[str, ...]
    namesakes: tuple[str, ...]


def reach(catalogue: Catalogue, table: str, key: Fields, also: Collection[tuple[str, str]] = ()) -> Reach:
    """Return where rows of the key can be.

    These are the tables upstream and downstream of the named one that have all fields of the key, and their tables of
    rows set aside.
    """
    if also and len(key) > 1:
        raise PlatformError(
            "--also names one field, and the key has several.", "Erase the rows of the other tables by themselves."
        )
    own = _family(catalogue, catalogue[table], frozenset(key), key)
    named = {name: (frozenset(key), key) for name in own}
    for other, column in also:
        value = dict.fromkeys([column], next(iter(key.values())))
        for name in _family(catalogue, catalogue[other], frozenset(value), value):
            named.setdefault(name, (frozenset(value), value))
    for contract in catalogue:
        if contract.name in named and contract.source is not None and contract.source.replaces:
            raise PlatformError(
                f"{contract.name} takes arrivals that replace the days they bring, or all (`replaces`): a delivery "
                "that lost its last row would no longer replace the ones before it.",
                "Deliver each such day, or the table, without these rows, withdraw the deliveries that hold them, and "
                "run `platform-assets admin maintenance` once no release within the window has them.",
            )
    places: list[Place] = []
    for contract in catalogue:
        if contract.name in named:
            places += _places(catalogue, contract, named[contract.name][1])
        elif contract.layer == "silver" and contract.inputs and (of := contract.inputs[0].table) in named:
            # It has no such column, but keeps the rows that broke its rules as they were delivered.
            places.append(_aside(quarantine_table(contract.name), catalogue[of], named[of][1]))
    derived: set[str] = set()
    for contract in catalogue:
        if any(read.table in named or read.table in derived for read in contract.inputs):
            derived.add(contract.name)
    return Reach(
        tuple(places),
        tuple(contract for contract in catalogue if contract.name in named and contract.source is not None),
        tuple(name for name in catalogue.names if name in derived),
        tuple(
            contract.name
            for contract in catalogue
            if contract.name not in named and set(key) <= set(contract.column_names)
        ),
    )


def refuse_named_value(where: Reach, request: Request, author: Author) -> None:
    """Refuse a reason or author that contains the value to erase: decisions are kept for ever."""
    values = {*request.key.values(), *(value for place in where.places for value in place.values.values())}
    # No \b: a value may begin and end with signs, as +49 30 901820 does. 0042 is 42, too.
    signs = [re.compile(rf"(?<!\w)0*{re.escape(_plain(value))}(?!\w)") for value in values]
    for what, text, instead in (("reason", author.why, "a ticket"), ("author", author.who, "a role, with --by,")):
        if any(sign.search(_plain(text)) for sign in signs):
            raise PlatformError(
                f"The {what} names the value that is to be erased, and would be kept for ever.",
                f"Name {instead} instead.",
            )


def _plain(text: str) -> str:
    """Return a text in a form common to its spellings, without capitals and separate accents."""
    return normalize("NFKC", text).casefold()


def _family(catalogue: Catalogue, contract: Contract, fields: frozenset[str], key: Fields) -> set[str]:
    _require(catalogue, contract, key)
    family, look = {contract.name}, [contract]
    while look:
        for read in look.pop().inputs:
            source = catalogue[read.table]
            if fields <= set(source.column_names) and source.name not in family:
                family.add(source.name)
                look.append(source)
    for other in catalogue:
        if fields <= set(other.column_names) and any(read.table in family for read in other.inputs):
            family.add(other.name)
    return family


def _require(catalogue: Catalogue, contract: Contract, key: Fields) -> None:
    for name, text in key.items():
        if name not in contract.column_names:
            having = [other.name for other in catalogue if set(key) <= set(other.column_names)]
            tables = (
                f"Tables that have it: {', '.join(having)}."
                if having
                else f"It has {', '.join(contract.column_names)}."
            )
            raise PlatformError(
                f"{contract.name} has no column {name}.", did_you_mean(name, contract.column_names) + tables
            )
        _value(contract, name, text)


def _value(contract: Contract, field: str, text: str) -> str:
    """Return the canonical text of a field's value; no message contains the value."""
    type_ = contract.column(field).type
    if type_ not in KEY_TYPES:
        raise PlatformError(
            f"{field} of {contract.name} is a {type_}, which cannot identify a person.",
            f"Name fields of the types {', '.join(KEY_TYPES)}.",
        )
    value = canonical(text, type_)
    is_one = {"string": _is_text(value), "date": _is_date(value)}.get(type_, bool(re.fullmatch(r"-?[0-9]+", value)))
    if not is_one:
        raise PlatformError(f"The value of {field} is no {type_}, as {contract.name} has it.", "Correct the value.")
    return value


def _is_text(text: str) -> bool:
    """Return whether a table can hold the text: an argument may have invalid bytes."""
    return bool(text) and not any("\ud800" <= character <= "\udfff" for character in text)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _places(catalogue: Catalogue, contract: Contract, key: Fields) -> list[Place]:
    types = {field: contract.column(field).type for field in key}
    values = {field: _value(contract, field, text) for field, text in key.items()}
    places = [Place(contract.name, types, values)]
    if contract.source is not None:
        places += [
            Place(late_table(contract.name), types, values),
            _aside(refused_table(contract.name), contract, key),
        ]
    elif contract.layer == "silver":
        source = catalogue[contract.inputs[0].table]
        fields = key if set(key) <= set(source.column_names) else {}
        places += [_aside(quarantine_table(contract.name), source, fields)] if fields else []
    return places


def _aside(table: str, source: Contract, key: Fields) -> Place:
    """Return the tables that keep rows of a raw table as delivered."""
    types = {field: source.column(field).type for field in key}
    values = {field: _value(source, field, text) for field, text in key.items()}
    return Place(table, types, values, is_payload=True, written=written(source))


@dataclass(frozen=True)
class Unreached:
    """Copies that stay.

    Args:
        landing: files below the landing root that brought such rows and are still there.
        bounds: number of files whose statistics in logs and manifests, which are kept for ever, have the value as
            minimum or maximum of a column, by table.
        undeclared: tables of the lake with such columns that no domain declares.
        plans: plans whose stored files have the value among their keys.
        scopes: publications whose manifests, kept for ever, say that they computed only rows of the value.
    """

    landing: tuple[str, ...] = ()
    bounds: tuple[tuple[str, int], ...] = ()
    undeclared: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


def unreached(platform: Platform, where: Reach, secret: bytes) -> Unreached:
    """Return the copies of a key that stay, as far as the installation knows."""
    keys = {place.table: place.hashes(secret) for place in where.places}
    brought: set[str] = set()
    for _, erasures in made(platform):
        for erasure in erasures:
            if keys.get(erasure.table) == erasure.key:
                brought |= erasure.arrivals.keys()
    for contract in where.raw:
        known = {arrival.path: arrival for arrival in platform.ledger.arrivals(contract.name)}
        # What a person approved later came in the file that it waited from.
        brought |= {known[path].origin or path for path in brought & known.keys()}
        brought |= {path for path, arrival in known.items() if arrival.erased}
    area = landing_area(platform.settings)
    landing = tuple(sorted(path for path in brought if not area.has_gone(path)))
    bounds = ((place.table, _bounded(platform.lake, place)) for place in where.places)
    return Unreached(
        landing,
        tuple((table, files) for table, files in bounds if files),
        _undeclared(platform, where),
        plans=tuple(
            record.name for record in all_records(platform.lake)[0] if is_among(record.file.only or {}, where.places)
        ),
        scopes=tuple(_scoped(platform.lake, where.places)),
    )


def _scoped(lake: Lake, places: Collection[Place]) -> Iterator[str]:
    tables = {place.table for place in places}
    for _, publication in published(lake):
        content = manifest_bytes(lake, publication)
        if b'"scope":{' not in content:  # as of most, which need not be taken apart
            continue
        changes = [change for change in parsed(lake, publication, content).tables if change.table in tables]
        scopes = (day.scope for change in changes for day in change.days.values() if day.scope)
        if any(is_among(scope.keys, places) for scope in scopes):
            yield publication


def is_among(keys: Mapping[str, Collection[str]], places: Collection[Place]) -> bool:
    """Return whether some fields' values equal those of a key, in any spelling."""
    return any(
        canonical(text, place.types[field]) == value
        for place in places
        for field, value in place.values.items()
        for text in keys.get(field, ())
    )


def _undeclared(platform: Platform, where: Reach) -> tuple[str, ...]:
    fields = [set(place.values) for place in where.places if not place.is_payload]
    found = []
    for table, version in platform.current_release().versions.items():
        if table not in platform.catalogue.names and table.startswith(("raw.", "silver.", "gold.")):
            columns = types_in(schema_at(platform.lake.table_path(table), version)).keys()
            found += [table] if any(named <= columns for named in fields) else []
    return tuple(found)


def _bounded(lake: Lake, place: Place) -> int:
    """Return how many files of a table ever had a value of the key as minimum or maximum."""
    path = lake.table_path(place.table)
    actions = (action for at in range(commits.head_version(path) + 1) for action in commits.actions(path, at))
    return sum(
        any(
            is_told_by(str(bound), value, is_payload=place.is_payload)
            for stats in [json.loads(action["add"].get("stats") or "{}")]
            for side in ("minValues", "maxValues")
            for field, value in place.values.items()
            for bound in [stats.get(side, {}).get("_payload" if place.is_payload else field)]
        )
        for action in actions
        if "add" in action
    )


def is_told_by(bound: str, value: str, *, is_payload: bool = False) -> bool:
    """Return whether a bound is a value or Delta's prefix of it; in rows kept as text, whether it contains it."""
    is_cut = len(value) > _BOUND and bound[:_BOUND] == value[:_BOUND]
    return bound == value or is_cut or (is_payload and value in bound)


_ROWS = 65_536

Hits = Mapping[date, Mapping[str, int]]
"""How many rows of the key files have, by day and path."""


@dataclass(frozen=True)
class Found:
    """Rows of a key that were found.

    Args:
        live: rows in files that readers see, by table; only tables with rows.
        older: rows in files that only older releases show, or that a dead process left, by table.
    """

    live: Mapping[str, Hits] = field(default_factory=dict)
    older: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, dict[date, int]]:
        """Return how many of the rows readers see, by table and day."""
        return {
            table: {day: sum(files.values()) for day, files in sorted(hits.items())}
            for table, hits in self.live.items()
        }

    def __bool__(self) -> bool:
        return bool(self.live or self.older)


def search(snapshot: LakeSnapshot, places: Collection[Place], secret: bytes, progress: OnProgress) -> Found:
    """Search every file of some tables, whether a release shows it or not."""
    lake = snapshot.platform.lake
    live: dict[str, dict[date, dict[str, int]]] = {}
    older: dict[str, int] = {}
    for place in places:
        path, keys = lake.table_path(place.table), place.keys(secret)
        seen = {file.path: day for day, files in snapshot.files(place.table).items() for file in files}
        paths = sorted({*seen, *_data_files(lake, place.table)})
        for number, name in enumerate(paths, start=1):
            progress(Progress("searching", place.table, number, len(paths), "file", finished=number == len(paths)))
            rows = _rows_in(path / name, place, keys, is_shown=name in seen)
            if rows and name in seen:
                live.setdefault(place.table, {}).setdefault(seen[name], {})[name] = rows
            elif rows:
                older[place.table] = older.get(place.table, 0) + rows
    return Found(live, older)


def _data_files(lake: Lake, table: str) -> Iterator[str]:
    for name in lake.table_path(table).files():
        publication = name.partition("/")[0]  # what others have put beside publications may lie in no folder
        if is_publication(publication) and f"/{DAY}=" in name and name.endswith(".parquet"):
            yield name


def _rows_in(file: Location, place: Place, keys: ErasedKeys, *, is_shown: bool) -> int:
    """Return how many rows of the key a file has; 0 for a file deleted during the search or half written."""
    import pyarrow as pa

    try:
        with opened(file) as parquet:
            there = set(parquet.schema_arrow.names)
            wanted = [name for name in (*place.types, *AS_DELIVERED) if name in there]
            return sum(_matching(batch, place, keys) for batch in parquet.iter_batches(_ROWS, columns=wanted))
    except FileNotFoundError:
        return 0
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, pa.ArrowInvalid) and not is_shown:
            return 0
        raise damaged(file, f"cannot be read ({str(error).splitlines()[0].rstrip('.')})") from error


def _matching(batch: pa.RecordBatch, place: Place, keys: ErasedKeys) -> int:
    names = batch.schema.names
    matches = _by_values(batch, place) if set(place.values) <= set(names) else [False] * batch.num_rows
    kept = [name for name in AS_DELIVERED if name in names]
    if any(batch.column(names.index(name)).null_count < batch.num_rows for name in kept):
        texts = [_texts(batch, name) for name in (*keys.fields, *kept)]
        matches = [
            known or (any(row[len(keys.fields) :]) and keys.has_row(*row))
            for known, row in zip(matches, zip(*texts, strict=True), strict=True)
        ]
    return sum(matches)


def _texts(batch: pa.RecordBatch, name: str) -> list[str | None]:
    import pyarrow.compute as pc

    if (index := batch.schema.get_field_index(name)) < 0:
        return [None] * batch.num_rows
    texts: list[str | None] = pc.cast(batch.column(index), "string").to_pylist()
    return texts


def _by_values(batch: pa.RecordBatch, place: Place) -> list[bool]:
    import pyarrow.compute as pc

    matches = None
    for name, value in place.values.items():
        texts = pc.cast(batch.column(batch.schema.get_field_index(name)), "string")
        equal = pc.fill_null(pc.equal(texts, value), False)
        matches = equal if matches is None else pc.and_(matches, equal)
    found: list[bool] = matches.to_pylist() if matches is not None else []
    return found
