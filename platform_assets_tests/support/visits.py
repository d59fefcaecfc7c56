"""An installation in which one person's visits lie wherever rows can lie, or one that never had them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from platform_assets.engine.platform import Author
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.erasure import Erased, erase
from platform_assets.operations.erasure_places import Request
from platform_assets.settings import Settings
from platform_assets_tests.support.installation import Jvm
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World

DOMAIN = "platform_assets_tests.support.domains.visits"
WHO = 4711222
"""Found nowhere else in an installation, as a number or as a text."""
BY_WHO = Request("raw.visits", {"person": str(WHO)})
ZOE = Author("erase", "request 17 under the GDPR", "Zoë")
COMPUTED = ("silver.visits", "gold.persons", "gold.takings")


def visit(number: int, person: int | None, day: str, paid: str = "2.00", updated: str = "") -> dict[str, Any]:
    return {
        "person": person,
        "visit": number,
        "visited_at": f"{day}T10:00:00Z",
        "paid": paid,
        "updated_at": updated or f"{day}T11:00:00Z",
    }


@dataclass(frozen=True)
class Visits:
    """An installation to which visits are delivered, those of one person or not."""

    world: World
    has_who: bool = True

    def copied_to(self, state: Path) -> Self:
        return type(self)(self.world.copied_to(state), self.has_who)

    def deliver(self, arrival: str, name: str, *rows: dict[str, Any], broken: str = "") -> str:
        kept = [row for row in rows if self.has_who or str(WHO) not in map(str, row.values())]
        lines = [json.dumps(row) for row in kept] + ([broken] if broken and self.has_who else [])
        self.world.deliver("visits", arrival, f"{name}.jsonl", "".join(f"{line}\n" for line in lines))
        return f"visits/{arrival}/{name}.jsonl"

    def refresh(self) -> None:
        self.world.refresh()

    def erase(self, request: Request = BY_WHO) -> Erased:
        with self.world.open() as platform:
            return erase(platform, lambda: self.world.spark, request, ZOE)

    def records(self) -> list[dict[str, Any]]:
        """The raw rows that were delivered, without what tells of them on other days, wherever they stood in a file."""
        rows = [row for row in self.world.rows("raw.visits") if row["_kind"] == "record"]
        return [{name: value for name, value in row.items() if name != "_place"} for row in rows]

    def named_rows(self) -> dict[str, int]:
        """How many rows of the person readers see now, by table."""
        lake = Lake.at(self.world.settings.lake)
        shown = {table: read_arrow(lake, table).to_pylist() for table in current_release(lake).versions}
        counts = {table: sum(_is_of_who(row) for row in rows) for table, rows in shown.items()}
        return {table: rows for table, rows in counts.items() if rows}

    def digests(self, tables: Collection[str] = COMPUTED) -> dict[str, dict[date, str]]:
        return {table: days for table, days in self.world.digests().items() if table in tables}


def deliver_all(visits: Visits) -> None:
    """Sound rows, one of them in quarantine, two refused, one late, a correction and records that move to and from."""
    visits.deliver("2017-01-01", "a", visit(1, WHO, "2017-01-01"), visit(2, 8, "2017-01-01"), visit(3, 9, "2017-01-01"))
    visits.deliver("2017-01-02", "b", visit(4, WHO, "2017-01-02"), visit(5, 8, "2017-01-02"))
    visits.deliver(
        "2017-01-02", "c", visit(6, WHO, "2017-01-02", paid="-1.00"), visit(7, 8, "2017-01-02", paid="-1.00")
    )
    visits.deliver("2017-01-03", "d", visit(8, WHO, "2017-01-03", paid="much"), broken=f'{{"person": {WHO}, "visit": 9')
    visits.deliver("2017-01-03", "e", visit(10, WHO, "2016-11-01"), visit(11, 8, "2017-01-03"))
    visits.deliver(
        "2017-01-04",
        "f",
        visit(2, WHO, "2017-01-02", updated="2017-01-04T11:00:00Z"),  # moves from the 1st, and to them
        visit(1, 7, "2017-01-03", updated="2017-01-04T11:00:00Z"),  # moves from the 1st, and away from them
        visit(12, None, "2017-01-04"),
    )


def loaded(lakes: Lakes, has_who: bool) -> Visits:
    visits = Visits(lakes.new(days=4, domains=DOMAIN), has_who)
    deliver_all(visits)
    visits.refresh()
    return visits


def rows_on_disk(lake: Lake) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row of every Parquet file of the lake, whoever refers to it, with the file."""
    for file in on_disk(lake.root).rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            yield from (
                (str(file.relative_to(on_disk(lake.root))), row) for row in pq.ParquetFile(file).read().to_pylist()
            )


def files_with(lake: Lake) -> set[str]:
    """The files of a lake, whoever refers to them, with a row of the person."""
    return {file for file, row in rows_on_disk(lake) if _is_of_who(row)}


def _is_of_who(row: Mapping[str, Any]) -> bool:
    return any(str(WHO) in str(field) for field in row.values())


def erased_by_another(settings: Settings, jvm: Jvm) -> None:
    """An erasure in a process of its own."""
    Visits(World(settings, jvm.session())).erase()
