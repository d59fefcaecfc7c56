"""Blocking gates: the contract's promises and the conservation of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Breach:
    """A day that did not pass a gate.

    Args:
        day: the day.
        gate: `contract` or `conservation`.
        message: what was expected and what was found.
    """

    day: date
    gate: str
    message: str


@dataclass(frozen=True)
class Fate:
    """What became of the raw rows of one day: `raw == kept + superseded + voided + quarantined`.

    Args:
        raw: rows delivered, tombstones not counted.
        kept: rows in silver.
        superseded: rows with a newer version of their key, on this day or another.
        voided: rows that withdrew their key.
        quarantined: rows that broke a rule.
    """

    raw: int
    kept: int
    superseded: int
    voided: int
    quarantined: int


def contract_breaches(
    table: str, day: date, nulls: Mapping[str, int], key: tuple[str, ...], repeated: int
) -> list[Breach]:
    """Nulls where the contract allows none, and keys that more than one row has."""
    breaches = [
        Breach(
            day,
            "contract",
            f"{table} on {day}: {count:,} rows have no {column}, which may not be null",
        )
        for column, count in nulls.items()
    ]
    if repeated:
        what = f"{table} on {day}: {repeated:,} keys ({', '.join(key)}) have more than one row"
        breaches.append(Breach(day, "contract", what))
    return breaches


def conservation_breaches(
    table: str,
    day: date,
    fate: Fate,
    *,
    expected: int,
    raw_recorded: int,
    quarantine_staged: int,
) -> list[Breach]:
    """Rows lost or won between raw and silver.

    Args:
        table: the silver table.
        day: the day.
        fate: what became of the rows, `kept` being what was really staged.
        expected: rows that must stay, counted from the keys alone.
        raw_recorded: rows the manifests say the raw day has.
        quarantine_staged: rows really staged for quarantine.
    """
    comparisons = (
        ("raw rows read", fate.raw, "recorded at ingest", raw_recorded),
        ("rows staged", fate.kept, "keys that stay", expected),
        (
            "rows staged for quarantine",
            quarantine_staged,
            "rows that broke a rule",
            fate.quarantined,
        ),
    )
    return [
        Breach(
            day,
            "conservation",
            f"{table} on {day}: {found:,} {what}, but {wanted:,} {against}",
        )
        for what, found, against, wanted in comparisons
        if found != wanted
    ]
