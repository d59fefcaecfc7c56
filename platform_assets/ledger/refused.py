"""What is refused of a held day, as columns: written and read here alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from platform_assets.ledger.queries import Row
from platform_assets.records.code_version import Version
from platform_assets.records.history import Hold
from platform_assets.records.notes import AnnouncedDay
from platform_assets.records.refused import Attempt, TiedTo

_COLUMNS = ("refused_day", "fingerprint", "code_version", "configuration")


def with_columns(held: Hold | AnnouncedDay) -> Row:
    """A hold, or what was announced of one, as a row."""
    day, tried = (held.refused.day, Attempt("")) if isinstance(held.refused, TiedTo) else (held.day, held.refused)
    values = (day, tried.fingerprint, tried.made_by.code, tried.made_by.configuration)
    others = {name: value for name, value in vars(held).items() if name != "refused"}
    return others | dict(zip(_COLUMNS, values, strict=True))


def without_columns(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of the hold, or of what was announced of one, that a row is of."""
    refused_day, fingerprint, *made_by = (row[name] for name in _COLUMNS)
    refused = Attempt(fingerprint, Version(*made_by)) if refused_day == row["day"] else TiedTo(refused_day)
    return {name: value for name, value in row.items() if name not in _COLUMNS} | {"refused": refused}
