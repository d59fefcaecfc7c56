"""The scope of a recomputation: keys whose rows alone are computed, while all others of a day are carried over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from hashlib import sha256

from platform_assets.contracts import Contract
from platform_assets.errors import PlatformError
from platform_assets.records.erased_keys import canonical

MIXED = "mixed:"
"""How the fingerprint or code version of a day begins whose rows do not share one; no other begins so."""

_NEAREST = 3
"""Values that are named to choose from."""
_BITS = {"int": 32, "long": 64}


class ScopeError(PlatformError):
    """Rows of some keys cannot be computed apart from the rest of their days."""


@dataclass(frozen=True)
class KeyScope:
    """Keys by the values of their columns; a row belongs to it that has one of each column's.

    Args:
        keys: columns, each with the texts of its values, both in order.
    """

    keys: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return that have to have certain values."""
        return tuple(name for name, _ in self.keys)

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Return the scope as a manifest has it."""
        return dict(self.keys)

    def __str__(self) -> str:
        return shown_keys(self.texts)


def shown_keys(keys: Mapping[str, Collection[str]]) -> str:
    """Keys as a command takes them, and as a person reads them."""
    return " and ".join(f"{name}={','.join(map(_quoted, values))}" for name, values in keys.items())


def _quoted(text: str) -> str:
    is_plain = not (text.startswith('"') or any(mark in text for mark in ",\n\r"))
    return text if is_plain else '"{}"'.format(text.replace('"', '""'))


def scope_of(contract: Contract, asked: Mapping[str, Collection[str]]) -> KeyScope:
    """Return the scope that somebody names, held against the contract of a table.

    Raises:
        ScopeError: the table does not promise that its rows can be computed apart by a column, or a value is none of
            that column.
    """
    if not asked or not all(asked.values()):
        raise ScopeError("No key was named.", "Name a column and its values, as store_id=330,337.")
    for name in asked:
        if name not in contract.separable_by:
            by = ", ".join(contract.separable_by)
            raise ScopeError(
                f"{contract.name} does not promise that its rows can be computed by {name} alone.",
                (f"Name values of {by}, or " if by else f"Add {name} to its `separable_by` if that is so, or ")
                + "compute its days whole.",
            )
    return KeyScope(
        tuple(
            (name, tuple(sorted({_checked(contract, name, text) for text in texts})))
            for name, texts in sorted(asked.items())
        )
    )


def value_of(text: str, type_: str) -> int | str | date:
    """Return a value as Python has it."""
    if type_ == "date":
        return date.fromisoformat(text)
    return int(text) if type_ in _BITS else text


def nearest(text: str, there: Collection[str]) -> tuple[str, ...]:
    """Return the few values nearest to one that is not there; where none is near, the first of them."""
    near = get_close_matches(text, sorted(there), _NEAREST, 0.3)
    return tuple(near or sorted(there)[:_NEAREST])


def mixed(before: str, now: str) -> str:
    """Return the fingerprint, or code version, of a day some of whose rows were computed now and the others before.

    Where both are the same, it is that one. Else one that no day would ever get, so that the day stays stale for just
    this reason until it is computed whole; also if its input or its code becomes again what it was.
    """
    return now if before == now else MIXED + sha256(f"{before} {now}".encode()).hexdigest()[:16]


def is_mixed(*recorded: str) -> bool:
    """Return whether a day's fingerprint or code version says that its rows do not share one."""
    return any(text.startswith(MIXED) for text in recorded)


def _checked(contract: Contract, name: str, text: str) -> str:
    type_ = contract.column(name).type
    found = canonical(text, type_)
    try:
        value = value_of(found, type_)
        is_one = str(value) == found and (
            not isinstance(value, int) or -(2 ** (_BITS[type_] - 1)) <= value < 2 ** (_BITS[type_] - 1)
        )
    except ValueError:
        is_one = False
    if not is_one:
        raise ScopeError(f"{text!r} is no {type_}, as {name} of {contract.name} is.", "Correct the value.")
    return found
