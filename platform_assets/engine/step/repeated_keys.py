"""Keys of silver tables that lie on two days and so count twice, found in files without Spark."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import NamedTuple

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.day_contents import Files, staged_at
from platform_assets.engine.mistake import may_move
from platform_assets.engine.platform import Platform
from platform_assets.engine.raw.tombstones import bounded_key
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.delta.statistics import may_share_keys
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.quality.findings import Finding
from platform_assets.words import counted

_MOST_BYTES = 16 * 1024 * 1024
"""Of files that a step looks into; in larger ones the scheduled job `keys` looks."""


class Repeated(NamedTuple):
    """How many keys lie on the same two days, their oldest and their newest, and one of them for a person."""

    first: date
    last: date
    keys: int
    example: str

    def __str__(self) -> str:
        return f"{counted(self.keys, 'key')} on {self.first} and {self.last}, first {self.example}"


def keys_on_two_days(platform: Platform, tables: Collection[str]) -> dict[str, list[Repeated]]:
    """Look through whole silver tables, those whose records can move, at the current release."""
    snapshot = LakeSnapshot.now(platform)
    some = [platform.catalogue[name] for name in tables if may_move(platform.catalogue[name], platform.catalogue)]
    return {one.name: _repeated(platform, one, snapshot.files(one.name), 0) for one in some}


def repeated_keys(
    snapshot: LakeSnapshot, contract: Contract, publication: str, days: Collection[date], to_come: Collection[date]
) -> dict[date, Finding]:
    """Return a warning for each staged day with keys that lie further away, too, than keys are compared.

    Most tables have new keys on every day: the bounds in the log say so, and no file is opened.

    Args:
        to_come: days that the step computes later, and compares with these then.
    """
    if not may_move(contract, snapshot.platform.catalogue):
        return {}
    source = snapshot.platform.catalogue[contract.inputs[0].table]
    files = {day: of_day for day, of_day in snapshot.files(contract.name).items() if day not in {*days, *to_come}}
    staged = staged_at(snapshot.platform.lake, contract.name, publication)
    files |= staged
    shared: set[date] = set()
    for day, of_day in staged.items():
        far = {one: files[one] for one in files if abs((one - day).days) > source.moves_within_days}
        if meeting := may_share_keys(far, {day: of_day}, bounded_key(contract)):
            shared |= {day, *meeting}
    if not shared or sum(file.size for day in shared for file in files[day]) > _MOST_BYTES:
        return {}
    found = _repeated(snapshot.platform, contract, {day: files[day] for day in shared}, source.moves_within_days)
    by_day = {day: [one for one in found if day in (one.first, one.last)] for day in staged}
    return {day: _finding(contract, source, day, repeated) for day, repeated in by_day.items() if repeated}


def _repeated(platform: Platform, contract: Contract, files: Files, apart: int) -> list[Repeated]:
    """Return the keys that lie on two days more than `apart` days from each other, the oldest days first."""
    import duckdb  # which most steps do without

    if len(files) < 2:
        return []
    rows_of_days = rows_of_files(platform.lake.table_path(contract.name), files)
    if not set(contract.key) <= set(rows_of_days.schema.names):
        return []  # until the table follows its contract
    names, texts = (", ".join(f'"{name}"{cast}' for name in contract.key) for cast in ("", "::VARCHAR"))
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        by_key = database.from_arrow(rows_of_days).aggregate(
            f'{names}, min({DAY}) AS "_first", max({DAY}) AS "_last"', names
        )
        pairs = by_key.filter(f'"_last" - "_first" > {apart}').aggregate(
            f'"_first", "_last", count(*), min([{texts}])', '"_first", "_last"'
        )
        shown = platform.masking.shown_key
        return sorted(
            Repeated(first, last, keys, shown(contract, contract.key, key))
            for first, last, keys, key in pairs.fetchall()
        )


def _finding(contract: Contract, source: Contract, day: date, repeated: list[Repeated]) -> Finding:
    first, keys = repeated[0], sum(one.keys for one in repeated)
    more = " and other days" if len(repeated) > 1 else ""
    actual = (
        f"{counted(keys, 'key')} also on {first.last if day == first.first else first.first}{more}, further away than "
        f"{source.name} compares keys (moves_within_days={source.moves_within_days})"
    )
    return Finding(
        check="contract",
        day=day,
        severity="warn",
        message=f"{contract.name} on {day}: {actual}, and counted twice: {first}",
        expected=f"each key on one day; `platform-assets verify {contract.name} --keys` names those on two",
        actual=actual,
        examples=tuple(one.example for one in repeated),
        numbers={"keys_on_two_days": keys},
    )
