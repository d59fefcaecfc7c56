"""Erased keys: recognize the rows of an erased person without storing who it was.

A value is kept as a keyed hash. Spark's workers use this module as well, so it needs only Python's standard library.
"""

from __future__ import annotations

import csv
import hmac
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import NamedTuple

KEY_TYPES = ("string", "long", "int", "date")
"""Types of columns that can name a person: their values have one text each."""

_MOST_DIGITS = 40
"""Of what can be a whole number of a column, with some to spare."""

_BETWEEN = re.compile(r"[\s,;|\"'{}\[\]:=]+")
# An unclosed quote ends with the line, so that a line of quotes alone takes linear time.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?\Z)', re.DOTALL)

AS_DELIVERED = ("_rescued", "_payload")
"""Columns that may keep a row, or what no column took of it, as a text."""

Key = Mapping[str, str]
"""The keyed hash of each field's value, by field."""


def canonical(text: str, type_: str) -> str:
    """Return the common text of a value's spellings that can become it; another text is unchanged."""
    try:
        if type_ in ("long", "int"):
            number = Decimal(text.strip())
            if number.adjusted() >= _MOST_DIGITS:  # in no column, and writing 1e999999999 out takes hours
                return text
            return str(int(number)) if number == number.to_integral_value() else text
        if type_ == "date":
            return date.fromisoformat(text.strip()).isoformat()
    except (InvalidOperation, ValueError, OverflowError):
        pass
    return text


def hash_of(secret: bytes, field: str, text: str) -> str:
    """Return the keyed hash of a value.

    Args:
        text: canonical.
    """
    return hmac.digest(secret, json.dumps(["erased", field, text]).encode(), "sha256").hex()


class Written(NamedTuple):
    """How files write the rows of a table, if its contract declares that.

    Args:
        places: path to a field's value in a JSON object, by field.
        widths: widths of text fields, in characters.
    """

    places: Mapping[str, tuple[str | int, ...]] = {}
    delimiter: str = ","
    quote: str = '"'
    widths: tuple[int, ...] = ()


BY_NAME = Written()
"""Fields have their own names, in JSON lines and in CSV by RFC 4180."""


class ErasedKeys:
    """Recognize rows of erased keys. It is sent to Spark's workers, and its repr does not show its secret."""

    def __init__(
        self, secret: bytes, keys: Collection[Key], types: Mapping[str, str], written: Written = BY_NAME
    ) -> None:
        self.fields = tuple(sorted({field for key in keys for field in key}))
        self._written = written
        self._secret, self._types = secret, dict(types)
        # By their fields, so that a row takes no longer the more was erased.
        self._hashes: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for key in keys:
            named = tuple(sorted(key))
            self._hashes.setdefault(named, set()).add(tuple(key[field] for field in named))
        self._known: dict[tuple[str, str], str] = {}

    def __repr__(self) -> str:
        return f"ErasedKeys({', '.join(self.fields)})"

    def has_row(self, *texts: str | None) -> bool:
        """Return whether a row has an erased key, in columns or inside a text.

        Each field of the key must have its value somewhere in JSON. Any other text matches if every value of the key is
        between separators in it, or in quotes.

        Args:
            texts: texts of its values of `fields`, in their order, and then of `AS_DELIVERED`.
        """
        values, kept = texts[: len(self.fields)], [text for text in texts[len(self.fields) :] if text is not None]
        if not kept:
            return self.has(*values)
        hashes = self._in_payloads(kept)
        for field, text in zip(self.fields, values, strict=True):
            if text is not None:
                hashes[field].add(self._hash(field, text))
        return self._is_erased(hashes)

    def has(self, *texts: str | None) -> bool:
        """Return whether values belong to an erased key.

        Args:
            texts: texts of `fields`, in their order.
        """
        hashes = {
            field: self._hash(field, text) for field, text in zip(self.fields, texts, strict=True) if text is not None
        }
        return any(tuple(hashes.get(field, "") for field in named) in erased for named, erased in self._hashes.items())

    def _in_payloads(self, payloads: Collection[str]) -> dict[str, set[str]]:
        """Return the hashes of all possible values of fields in some texts, by field."""
        hashes: dict[str, set[str]] = {field: set() for field in self.fields}
        for payload in payloads:
            document, pairs = _read(payload)
            if document is not None:
                elsewhere = ((field, _at(document, place)) for field, place in self._written.places.items())
                for name, value in (*pairs, *elsewhere):
                    if name in hashes and not isinstance(value, dict | list | bool | None):
                        hashes[name].add(self._hash(name, str(value)))
            else:
                parts = set(_parts(payload, self._written))
                for field in self.fields:
                    hashes[field].update(self._hash(field, part) for part in parts)
        return hashes

    def _is_erased(self, hashes: Mapping[str, set[str]]) -> bool:
        return any(self._is_among(hashes, named, erased) for named, erased in self._hashes.items())

    @staticmethod
    def _is_among(hashes: Mapping[str, set[str]], named: tuple[str, ...], erased: set[tuple[str, ...]]) -> bool:
        if len(named) == 1:
            return any((hashed,) in erased for hashed in hashes[named[0]])
        return any(all(h in hashes[field] for field, h in zip(named, key, strict=True)) for key in erased)

    def _hash(self, field: str, text: str) -> str:
        if (field, text) not in self._known:
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[field, text] = hash_of(self._secret, field, canonical(text, self._types[field]))
        return self._known[field, text]


def _read(payload: str) -> tuple[dict[str, object] | None, list[tuple[str, object]]]:
    """Return a JSON object and every name with its value, also nested; None for anything else."""
    pairs: list[tuple[str, object]] = []

    def noted(of_object: list[tuple[str, object]]) -> dict[str, object]:
        pairs.extend(of_object)
        return dict(of_object)

    try:
        document = json.loads(payload, object_pairs_hook=noted)
    except (ValueError, RecursionError):
        return None, []
    return (document if isinstance(document, dict) else None), pairs


def _at(value: object, place: tuple[str | int, ...]) -> object:
    """Return the value at a place in a JSON object; None if there is none."""
    for step in place:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _parts(line: str, written: Written) -> Iterator[str]:
    """Yield all parts of a broken line that may have been a value."""
    yield from _BETWEEN.split(line)
    for quoted in _QUOTED.findall(line):
        yield quoted
        if "\\" in quoted:
            with suppress(ValueError):
                yield json.loads(f'"{quoted}"', strict=False)
    for delimiter, quote in {(",", '"'), (written.delimiter, written.quote)}:
        with suppress(csv.Error, ValueError):
            read = csv.reader([line], delimiter=delimiter, quotechar=quote)
            yield from (part.strip() for row in read for part in row)
    ends = accumulate(written.widths)
    yield from (line[end - width : end].strip() for width, end in zip(written.widths, ends, strict=True))
