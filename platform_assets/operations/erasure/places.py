"""Where the rows of a key can lie, told from contracts: which tables have its fields, and by which inputs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from unicodedata import normalize

from platform_assets.contracts import Catalogue, Contract
from platform_assets.contracts.dead_letters import quarantine_table, refused_table
from platform_assets.engine.platform import Author
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.planning.late_queue import late_table
from platform_assets.records.erased_keys import KEY_TYPES, ErasedKeys, canonical, hash_of

Fields = Mapping[str, str]
"""The value of each field of a key, as text."""


class ErasureError(PlatformError):
    """Rows cannot be erased as it was asked; nothing was changed."""


@dataclass(frozen=True)
class Request:
    """What somebody wants erased.

    Args:
        table: one that has the key.
        key: value of each field, by field.
        also: other tables, each with the field that has the same value there.
    """

    table: str
    key: Fields
    also: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Place:
    """A table that can hold rows of a key.

    Args:
        table: `<layer>.<table>`.
        types: of the fields of the key there, by field.
        values: of the key, canonical texts by field.
        is_payload: its rows were set aside, and kept as a text each.
    """

    table: str
    types: Mapping[str, str]
    values: Fields
    is_payload: bool = False

    def hashes(self, secret: bytes) -> dict[str, str]:
        """What is kept of the key."""
        return {field: hash_of(secret, field, text) for field, text in self.values.items()}

    def keys(self, secret: bytes) -> ErasedKeys:
        """What tells its rows of the key."""
        return ErasedKeys(secret, [self.hashes(secret)], self.types)


@dataclass(frozen=True)
class Reach:
    """All that an erasure looks at.

    Args:
        places: tables that can hold the key, inputs first, each followed by where its rows are set aside.
        raw: those of them that take deliveries.
        derived: every table that is made from one of them, whether it has the key or not.
        namesakes: tables that have the fields, too, and get their rows from elsewhere; they are not looked at.
    """

    places: tuple[Place, ...]
    raw: tuple[Contract, ...]
    derived: tuple[str, ...]
    namesakes: tuple[str, ...]


def reach(catalogue: Catalogue, table: str, key: Fields, also: Collection[tuple[str, str]] = ()) -> Reach:
    """Where the rows of a key can lie.

    These are the tables that the named one is made from and that have all fields of the key, and the tables that are
    made from those and have them; and where rows of all of these are set aside.

    Args:
        catalogue: all tables.
        table: that somebody names.
        key: by field.
        also: tables and the fields that have the same value there, which nothing tells by their names.

    Raises:
        UnknownTableError: one of the tables is not declared.
        ErasureError: a table lacks a field, or it is of a type that names nobody, or the value is none of that type; or
            arrivals of a raw table replace days.
    """
    if also and len(key) > 1:
        raise ErasureError(
            "--also names one field, and the key has several.", "Erase the rows of the other tables by themselves."
        )
    own = _family(catalogue, catalogue[table], frozenset(key), key)
    named = {name: (frozenset(key), key) for name in own}
    for other, field in also:
        value = dict.fromkeys([field], next(iter(key.values())))
        for name in _family(catalogue, catalogue[other], frozenset(value), value):
            named.setdefault(name, (frozenset(value), value))
    for contract in catalogue:
        if contract.name in named and contract.source is not None and contract.source.replaces:
            raise ErasureError(
                f"{contract.name} takes arrivals that replace the days they bring, or all (`replaces`): a delivery "
                "that lost its last row would no longer replace the ones before it.",
                "Deliver each such day, or the table, without these rows, withdraw the deliveries that hold them, and "
                "run `platform-assets maintenance run` once no release within the window has them.",
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
    """Have nobody write down for ever what is to be forgotten.

    Raises:
        ErasureError: the reason, or the name of who decides, has a value of the key, as given or as a table has it.
    """
    values = {*request.key.values(), *(value for place in where.places for value in place.values.values())}
    # No \b: a value may begin and end with signs, as +49 30 901820 does. 0042 is 42, too.
    signs = [re.compile(rf"(?<!\w)0*{re.escape(_plain(value))}(?!\w)") for value in values]
    if any(sign.search(_plain(author.why)) for sign in signs):
        raise ErasureError(
            "The reason names the value that is to be erased, and would be kept for ever.",
            "Name a request or a ticket instead.",
        )
    if any(sign.search(_plain(author.who)) for sign in signs):
        raise ErasureError(
            "The name of who decides has the value that is to be erased, and would be kept for ever.",
            "Name another one with --by: an office, or a role.",
        )


def _plain(text: str) -> str:
    """What ways to write a text have in common: capital letters, accents that are signs of their own."""
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
    for field, text in key.items():
        if field not in contract.column_names:
            having = [other.name for other in catalogue if set(key) <= set(other.column_names)]
            tables = f"Tables that have it: {', '.join(having)}." if having else f"It has {_listed(contract)}."
            raise ErasureError(
                f"{contract.name} has no column {field}.", did_you_mean(field, contract.column_names) + tables
            )
        _value(contract, field, text)


def _listed(contract: Contract) -> str:
    return ", ".join(contract.column_names)


def _value(contract: Contract, field: str, text: str) -> str:
    """The canonical text of a field's value; the value itself is in no message."""
    type_ = contract.column(field).type
    if type_ not in KEY_TYPES:
        raise ErasureError(
            f"{field} of {contract.name} is a {type_}, by which no person is told.",
            f"Name fields of the types {', '.join(KEY_TYPES)}.",
        )
    value = canonical(text, type_)
    is_one = {"string": _is_text(value), "date": _is_date(value)}.get(type_, bool(re.fullmatch(r"-?[0-9]+", value)))
    if not is_one:
        raise ErasureError(f"The value of {field} is no {type_}, as {contract.name} has it.", "Correct the value.")
    return value


def _is_text(text: str) -> bool:
    """Whether a table can hold it: an argument may have bytes that are none."""
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
    """Where rows of a raw table are kept as they were delivered."""
    types = {field: source.column(field).type for field in key}
    return Place(table, types, {field: _value(source, field, text) for field, text in key.items()}, is_payload=True)
