"""Deliveries of a few till lines, what must be left of them, and lakes that many tests begin with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author
from platform_assets.quality.findings import Checked
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import MakeWorld, World, product, sale

CALENDAR_DAYS = 8
TILLS, WINDOWS = "platform_assets_tests.support.domains.tills", "platform_assets_tests.support.domains.windows"
RETAIL = "platform_assets.domains.retail"
GOODS, NEXT_DAY = "platform_assets_tests.support.domains.goods", "platform_assets_tests.support.domains.next_day"
DAILY, TWO_GOLDS = "platform_assets_tests.support.domains.daily", "platform_assets_tests.support.domains.two_golds"
TODAY = date(2017, 7, 1)
"""Long after the calendar's last day, so that there can be late rows."""


@dataclass(frozen=True)
class Version:
    """One version of a basket's line, written at an hour of its own so that the newest is never in doubt."""

    basket: int
    day: int
    written: int
    price: str = "2.50"
    voided: bool = False
    keeps_rules: bool = True


@dataclass
class History:
    """An installation and every version that was delivered to it, by path of the file."""

    world: World
    files: dict[str, tuple[Version, ...]]

    def copied_to(self, state: Path) -> Self:
        """The same story of a copy of the installation."""
        return replace(self, world=self.world.copied_to(state), files=dict(self.files))

    def deliver(self, arrival: str, name: str, *versions: Version) -> str:
        """Land a file and return its path."""
        rows = [
            sale(
                version.basket,
                1,
                f"2017-01-{version.day:02}",
                sales_value=version.price,
                updated_at=f"2017-06-01T{version.written:02}:00:00Z",
                voided=version.voided,
                quantity=1 if version.keeps_rules else -1,
            )
            for version in versions
        ]
        self.world.deliver_rows("transactions", arrival, name, rows)
        path = f"transactions/{arrival}/{name}"
        self.files[path] = versions
        return path

    def expected(self, *, but: Collection[str] = (), late: Collection[str] = ()) -> set[tuple[int, str, str]]:
        """The lines that must be left; where the newest version lies after the calendar, none of the line is.

        Args:
            but: files that do not count.
            late: files of which rows more than 90 days late do not count.
        """
        newest: dict[int, Version] = {}
        for path, versions in self.files.items():
            arrived = date.fromisoformat(path.split("/")[1])
            for version in versions:
                is_late = (arrived - date(2017, 1, version.day)).days > 90
                if path in but or (path in late and is_late) or not (version.keeps_rules or version.voided):
                    continue
                if version.basket not in newest or newest[version.basket].written < version.written:
                    newest[version.basket] = version
        shown = [one for one in newest.values() if not one.voided and one.day <= CALENDAR_DAYS]
        return {(one.basket, f"2017-01-{one.day:02}", one.price) for one in shown}

    def kept(self) -> set[tuple[int, str, str]]:
        """The lines that are left."""
        rows = self.world.rows("silver.transactions")
        assert len({row["basket_id"] for row in rows}) == len(rows)
        return {(row["basket_id"], str(row["event_date"]), str(row["sales_value"])) for row in rows}

    def refresh(self) -> dict[str, set[int]]:
        """Take what was delivered and recompute what it reaches; nothing may be held.

        Returns:
            The days of January recomputed of each table.
        """
        result = self.world.refresh()
        for step in result.steps:
            assert not step.held, step.held
            for checks in step.checks.values():
                assert all(outcome(found) for found in checks.checks), checks
        return {step.table: {day.day for day in step.published} for step in result.steps}


def outcome(found: Checked) -> bool:
    """Whether a check that counts rows passed."""
    return found.check not in ("conservation", "contract", "reconciliation") or found.outcome == "passed"


def history(make_world: MakeWorld, domain: str = TILLS) -> History:
    """Eight days on which a file without rows was delivered."""
    world = make_world(days=CALENDAR_DAYS, today=TODAY, domains=domain)
    for day in range(1, CALENDAR_DAYS + 1):
        world.deliver("transactions", f"2017-01-{day:02}", "empty.jsonl", "")
    return History(world, {})


def person(reason: str = "checked with the till vendor") -> Author:
    """Somebody who decides."""
    return Author("test", reason, who="Zoë")


def no_session() -> SparkSession:
    """For what must start no Spark."""
    raise AssertionError("a session was asked for")


DAYS = [f"2017-01-{day:02}" for day in range(1, 5)]
LATER, LATEST = f"{DAYS[-1]}T12:00:00Z", f"{DAYS[-1]}T13:00:00Z"
"""When corrections of any of the four days were written."""


def four_days(lakes: Lakes, domain: str = DAILY) -> World:
    """Four days of five sales each, loaded."""
    world = lakes.new(days=len(DAYS), domains=domain)
    world.deliver_rows("products", DAYS[0], "p.jsonl", [product(1, DAYS[0], "MEAT")])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(10 * number + n, 1, day) for n in range(5)])
    world.refresh()
    return world


def correct(world: World, day: str, name: str, updated_at: str = LATER, value: str = "99.00") -> None:
    """Another value for the first sale of one of the four days, delivered."""
    row = sale(10 * DAYS.index(day), 1, day, updated_at=updated_at, sales_value=value)
    world.deliver_rows("transactions", DAYS[-1], f"{name}.jsonl", [row])


def two_lines_a_day(lakes: Lakes) -> History:
    """Two till lines a day from the 2nd to the 6th, loaded."""
    found = history(lakes.new)
    for day in range(2, 7):
        found.deliver(f"2017-01-{day:02}", "sold.jsonl", Version(day, day, 0), Version(10 + day, day, 0))
    found.refresh()
    return found
