"""Which days a withdrawal changes, and which are stale through it: looked up beforehand, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date

from platform_assets.contracts import DAY
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.reading import row_reader
from platform_assets.planning.windows import day_range, union_reached
from platform_assets.records.history import ArrivalRecord


@dataclass(frozen=True)
class Reached:
    """What it means that arrivals of one raw table are taken out.

    Args:
        days: of the raw table, that have rows of them.
        stale: computed days that read these, by table, inputs first: at most, since one whose input comes out as it was
            is left as it is.
        moves_within_days: so far from these days, older versions of their records may come back on others.
    """

    days: frozenset[date]
    stale: dict[str, frozenset[date]] = field(default_factory=dict)
    moves_within_days: int = 0


def reached_by(platform: Platform, parts: Sequence[ArrivalRecord]) -> Reached:
    """What taking some arrivals out of one raw table reaches.

    Args:
        platform: as it is now.
        parts: of one table, at least one.

    Raises:
        DamagedTableError: files of the raw table are gone.
    """
    table = parts[0].table
    days = frozenset(_days_of(platform, table, parts)) if any(part.taken for part in parts) else frozenset[date]()
    changed: dict[str, Collection[date]] = {table: {platform.counted_on(table, day) for day in days}}
    for contract in platform.catalogue:
        reached = {
            day
            for read in contract.inputs
            if changed.get(read.table)
            for span in union_reached(read.window, changed[read.table], platform.calendar)
            for day in day_range(*span)
        }
        if reached and (there := reached & platform.ledger.current_days(contract.name, among=reached).keys()):
            changed[contract.name] = there
    stale = {name: frozenset(of_it) for name, of_it in changed.items() if name != table}
    return Reached(days, stale, platform.catalogue[table].moves_within_days)


def published_with(platform: Platform, table: str, parts: Collection[ArrivalRecord]) -> set[date]:
    """Days of a raw table that were published together with some arrivals: all that may hold rows of them."""
    made = [platform.ledger.publication(name) for name in {part.publication for part in parts}]
    return {day.day for record in made if record is not None for day in record.days if day.table == table}


def _days_of(platform: Platform, table: str, parts: Collection[ArrivalRecord]) -> set[date]:
    paths, days = {part.path for part in parts}, set[date]()
    with row_reader(platform.lake, table, (DAY, "_arrival"), days=published_with(platform, table, parts)) as batches:
        for batch in batches:
            if batch.num_rows and paths & {*batch.column("_arrival").unique().to_pylist()}:
                days.add(batch.column(DAY)[0].as_py())  # a file has one
    return days
