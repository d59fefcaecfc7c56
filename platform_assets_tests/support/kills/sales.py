"""A story of till lines, with Spark: ingest, a refresh that computes, judges and publishes, then compaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from platform_assets.domains.retail.transforms import gold
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.operations.maintenance import maintain
from platform_assets.operations.opening import open_platform
from platform_assets.records.raw_rows import TOMBSTONE
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.history import TODAY, WINDOWS
from platform_assets_tests.support.installation import Jvm
from platform_assets_tests.support.kills.harness import Command, Story, Sums
from platform_assets_tests.support.world import World, sale

RAW, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.household_28d"
DAYS = tuple(f"2017-01-{day:02}" for day in range(1, 5))
BASKETS = 3
"""On each day of the first delivery; the second day's first is corrected, the third day's second moves."""
HELD = 2
"""The household that the transform loses on the last day, so that a gate holds it."""


def settings(state: Path) -> Settings:
    """Of four days, in small batches."""
    return load_settings(
        state=state,
        domains=WINDOWS,
        calendar_first=DAYS[0],
        calendar_last=DAYS[-1],
        today=TODAY,
        batch_days=2,
        batch_mib=0,
        compaction_files=1,
    )


@dataclass(frozen=True)
class _Line:
    """A till line as delivered; `kept` where silver must have it in the end."""

    basket: int
    day: str
    value: str
    kept: bool = True
    hour: int = 11

    def row(self, **changes: Any) -> dict[str, Any]:
        return sale(
            self.basket,
            1,
            self.day,
            household_id=1 + self.basket % 2,
            sales_value=self.value,
            updated_at=f"{DAYS[-1]}T{self.hour}:00:00Z",
            **changes,
        )


def _lines(seed: int) -> tuple[list[_Line], list[_Line]]:
    """The first delivery and the correction; all that raw must have."""
    random = Random(seed)

    def price() -> str:
        return f"{random.randrange(1, 10**7) / 100:.2f}"

    corrected, moved = 10, 21
    first = [
        _Line(10 * number + n, day, price(), kept=10 * number + n not in (corrected, moved))
        for number, day in enumerate(DAYS[:3])
        for n in range(BASKETS)
    ]
    broken = _Line(11, DAYS[1], "-1.00", kept=False, hour=12)
    return first, [_Line(corrected, DAYS[1], price(), hour=12), _Line(moved, DAYS[1], price(), hour=12), broken]


def _begin(state: Path, seed: int, jvm: Jvm | None) -> None:
    assert jvm is not None
    world = World(settings(state), jvm.session())
    first, second = _lines(seed)
    for day in DAYS[:3]:
        world.deliver_rows("transactions", day, "sold.jsonl", [line.row() for line in first if line.day == day])
    world.refresh()
    refused = _Line(98, DAYS[3], "1.00").row() | {"basket_id": None}
    world.deliver_rows("transactions", DAYS[3], "corrected.jsonl", [*(line.row() for line in second), refused])
    world.deliver_rows("transactions", "2017-06-01", "late.jsonl", [_Line(99, DAYS[0], "1.00").row()])


_right = gold.household_28d


def _loses_a_household(transactions: Windowed) -> DataFrame:
    return _right(transactions).where(f"NOT (event_date = DATE'{DAYS[-1]}' AND household_id = {HELD})")


def _ingest(state: Path, seed: int, jvm: Jvm | None) -> None:
    """As a run of the raw table takes what was delivered."""
    with open_platform(settings(state)) as platform:
        ingest(platform, lambda: _session(jvm), platform.catalogue[RAW], Author("ingest", "a test"))


def _refresh(state: Path, seed: int, jvm: Jvm | None) -> None:
    gold.household_28d = _loses_a_household
    with open_platform(settings(state)) as platform:
        refresh(platform, lambda: _session(jvm), Author("refresh", "a test"))


def _compact(state: Path, seed: int, jvm: Jvm | None) -> None:
    with open_platform(settings(state)) as platform:
        maintain(platform, lambda: _session(jvm), "compaction", Author("maintenance run", "maintenance"))


def _session(jvm: Jvm | None) -> SparkSession:
    assert jvm is not None
    return jvm.session()


def _left(seed: int, command: str) -> list[_Line]:
    """The lines of silver after a command."""
    first, second = _lines(seed)
    return first if command == "ingest" else [line for line in (*first, *second) if line.kept]


def _expected(seed: int, command: str) -> Sums:
    first, second = _lines(seed)
    left = _left(seed, command)
    # Every household's trailing 28 days are all days up to the day; the last day is held and never had any content.
    spent = sum(Decimal(line.value) for day in DAYS[:-1] for line in left if line.day <= day)
    _, moved, _ = second  # whose old day has a tombstone, a copy of it
    in_raw = sum(Decimal(line.value) for line in (*first, *second, moved))
    return in_raw, sum(Decimal(line.value) for line in left), spent


def _lost_or_twice(state: Path, seed: int, command: str) -> list[str]:
    lake = Lake.at(settings(state).lake)
    wanted = {RAW: [line for lines in _lines(seed) for line in lines], SILVER: _left(seed, command)}
    return [
        f"{table} has the lines {found}, not {lines}"
        for table, delivered in wanted.items()
        if (found := sorted(_read(lake, table)))
        != (lines := sorted((line.basket, date.fromisoformat(line.day), Decimal(line.value)) for line in delivered))
    ]


def _read(lake: Lake, table: str) -> Iterator[tuple[int, date, Decimal]]:
    for row in read_arrow(lake, table).to_pylist():
        if row.get("_kind") != TOMBSTONE:
            yield row["basket_id"], row["event_date"], row["sales_value"]


SALES = Story(
    name="sales",
    columns=((RAW, "sales_value"), (SILVER, "sales_value"), (GOLD, "spend")),
    settings=settings,
    begin=_begin,
    commands=(Command("ingest", _ingest), Command("refresh", _refresh), Command("compact", _compact)),
    expected=_expected,
    lost_or_twice=_lost_or_twice,
)
