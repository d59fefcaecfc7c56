"""Which version of a row counts follows from what was delivered, and no rival goes untold.

An oracle in plain Python says which one it is, of versions with equal and unequal times, voids, files and replays.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from random import Random
from typing import Any, NamedTuple

import pytest

from platform_assets.contracts import LandingFiles
from platform_assets_tests.support.domains import stock
from platform_assets_tests.support.world import MakeWorld, World

DOMAIN = "platform_assets_tests.support.domains.stock"
DAYS, ITEMS = 3, 12
NUMBER = r"[a-z-](\d+)\."
Row = Mapping[str, Any]


class File(NamedTuple):
    arrival: str
    name: str
    modified: int
    rows: tuple[Row, ...]


def expected(files: list[File], order: tuple[str, ...], by: str | None) -> tuple[dict[int, Any], dict[date, int]]:
    """Amount and day of each item that is left, and of how many items of each day rivals are to be told."""

    def place(file: File) -> tuple[Any, ...]:
        natural = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)]
        found = re.search(NUMBER, file.name)
        numbers = {"modified": file.modified, NUMBER: int(found[1]) if found else -1}
        return file.arrival, numbers.get(by or "", 0), natural, file.name

    first = {content(file): file for file in sorted(files, key=place, reverse=True)}
    versions: dict[int, list[tuple[Any, ...]]] = {}
    for file in files:
        arrival, *of_file = place(first[content(file)])
        for number, row in enumerate(file.rows):
            if row["gone"] or row["amount"] >= 0:
                declared = (
                    *(row[name] for name in order),
                    arrival,
                    row["gone"],
                    *(of_file[: {None: 0, "modified": 1, NUMBER: 1, "name": 3}[by]]),
                )
                versions.setdefault(row["item"], []).append((declared, of_file, number, content(row)))
    tops = {item: max(of_item) for item, of_item in versions.items()}
    left = {item: json.loads(top[-1]) for item, top in tops.items()}
    shown = {item: (row["amount"], row["counted_at"][:10]) for item, row in left.items() if not row["gone"]}
    rivals = [i for i in shown if len({one[-1] for one in versions[i] if one[0] == tops[i][0]}) > 1]
    calendar = [date(2017, 1, day + 1) for day in range(DAYS)]
    return shown, {day: sum(shown[item][1] == str(day) for item in rivals) for day in calendar}


def content(of: File | Row) -> str:
    return json.dumps(of.rows if isinstance(of, File) else of)


def some_files(random: Random) -> list[File]:
    """Few items, times and numbers, so that nearly nothing is settled by them alone."""
    names = random.sample(["part-1", "part-2", "part-10", "part-02", "a", "b9", "b10"], 6)
    files = [
        File(
            f"2017-01-0{random.randint(3, 5)}",
            f"{name}.{random.choice(('csv', 'jsonl'))}",
            random.randint(1, 3),
            tuple(some_row(random) for _ in range(random.randint(1, 12))),
        )
        for name in names
    ]
    for number, file in enumerate(random.sample(files, 2)):  # sent again by another name
        arrival = f"2017-01-0{random.randint(3, 5)}"
        files.append(file._replace(arrival=arrival, name=f"again-{number}-{file.name}", modified=random.randint(1, 3)))
    random.shuffle(files)
    return files


def some_row(random: Random) -> Row:
    return {
        "item": random.randrange(ITEMS),
        "amount": random.randint(-1, 3),
        "counted_at": f"2017-01-0{random.choice((1, 1, 1, 2, 3))}T10:00:00Z",
        "updated_at": f"2017-01-0{random.randint(1, 2)}",
        "lsn": random.randint(1, 2),
        "gone": random.random() < 0.2,
    }


def land(world: World, file: File) -> None:
    if file.name.endswith("csv"):
        lines = [
            ",".join(file.rows[0]),
            *(",".join(json.dumps(v).strip('"') for v in row.values()) for row in file.rows),
        ]
        target = world.deliver("stock", file.arrival, file.name, "\n".join(lines) + "\n")
    else:
        target = world.deliver_rows("stock", file.arrival, file.name, file.rows)
    os.utime(target, (10**9, 10**9 + file.modified))


def left_of(world: World) -> tuple[dict[int, Any], dict[date, int]]:
    rows = world.rows("silver.stock")
    assert len({row["item"] for row in rows}) == len(rows)
    with world.open() as platform:
        days = platform.ledger.current_days("silver.stock")
    rivals = {day: found.figures.get("rivals", 0) for day, found in days.items()}
    return {row["item"]: (row["amount"], str(row["event_date"])) for row in rows}, rivals


ORDERS = [(), ("updated_at",), ("lsn",), ("updated_at", "lsn")]
BY = (None, "name", "modified", NUMBER)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(24), ids=lambda seed: f"seed {seed}")
def test_the_version_that_counts_follows_from_what_was_delivered_and_rivals_are_told(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Eight files are taken in three refreshes, in any order."""
    random = Random(seed)
    order, by = ORDERS[(seed + 3) % 4], BY[(seed + seed // 4) % 4]
    source = LandingFiles("stock", order=by)
    raw = replace(stock.RAW, updated_at=order or None, source=source)
    monkeypatch.setattr(stock, "DOMAIN", replace(stock.DOMAIN, tables=(raw, stock.SILVER)))
    world = make_world(days=DAYS, today=date(2017, 1, 9), domains=DOMAIN)
    for day in range(1, DAYS + 1):
        world.deliver("stock", f"2017-01-0{day}", "empty.jsonl", "")
    files = some_files(random)
    for batch in (files[:3], files[3:5], files[5:]):
        for file in batch:
            land(world, file)
        world.refresh()
    assert left_of(world) == expected(files, order, by), files
    assert not world.refresh().steps
