"""Stores whose lines are corrected, moved, voided and withdrawn, and on paper what each table must hold of them.

The paper knows nothing of the platform: a plan of some keys changes the rows of these keys to what is true then, and no
others; a refresh changes all. Of every row it knows the lines that it counts, so that it can tell whether one counts
twice, or counted before and is lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Self

from platform_assets.engine.platform import Platform
from platform_assets.engine.refresh import refresh
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.selection import Request
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.stores import author
from platform_assets_tests.support.world import World

DOMAIN = "platform_assets_tests.support.domains.registers"
DAYS = tuple(date(2017, 1, day) for day in range(1, 6))
STORE_DAYS, STORE_SPANS, STORE_MONTHS = "gold.store_days", "gold.store_spans", "gold.store_months"
GOLDS = (STORE_DAYS, STORE_SPANS, STORE_MONTHS)
IN_TIME, LATE = "2017-01-12", "2017-03-12"
"""When files arrive whose lines are taken, and whose lines wait."""

Key = tuple[str, ...]
Counted = Mapping[Key, frozenset[int]]
"""The lines behind every row, by its key."""


@dataclass(frozen=True)
class Line:
    """One version of a line, written so many minutes after all were."""

    line: int
    day: int
    store: str | None
    written: int = 0
    good: int = 1
    amount: int | None = 100
    voided: bool = False

    def row(self) -> dict[str, Any]:
        """As a till delivers it."""
        return {
            "line": self.line,
            "store": self.store,
            "good": self.good,
            "amount": self.amount,
            "sold_at": f"2017-01-{self.day:02}T10:00:00Z",
            "updated_at": f"2017-01-11T{self.written // 60:02}:{self.written % 60:02}:00Z",
            "voided": self.voided,
        }


@dataclass
class Registers:
    """An installation, and on paper what was delivered to it and what its gold tables hold."""

    world: World
    files: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    goods: dict[tuple[int, int], str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    content: dict[str, dict[date, dict[Key, tuple[int, int]]]] = field(default_factory=dict)
    counted: dict[str, dict[date, Counted]] = field(default_factory=dict)
    written: int = 0

    def copied_to(self, state: Path) -> Self:
        """The same story of a copy of the installation."""
        return replace(
            self,
            world=self.world.copied_to(state),
            files=dict(self.files),
            goods=dict(self.goods),
            waiting=set(self.waiting),
            gone=set(self.gone),
            content={table: dict(days) for table, days in self.content.items()},
            counted={table: dict(days) for table, days in self.counted.items()},
        )

    def copied_paper(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the gold tables hold, and count, to be put back."""
        return (
            {table: dict(days) for table, days in self.content.items()},
            {table: dict(days) for table, days in self.counted.items()},
        )

    def deliver(self, *lines: Line, arrival: str = IN_TIME) -> str:
        """Land a file of lines, each written after all before it."""
        self.written += 1
        lines = tuple(replace(line, written=self.written) for line in lines)
        name = f"{self.written:03}.jsonl"
        self.world.deliver_rows("lines", arrival, name, [line.row() for line in lines])
        path = f"lines/{arrival}/{name}"
        self.files[path] = lines
        if arrival == LATE:
            self.waiting.add(path)
        return path

    def categorise(self, good: int, since: int, category: str) -> None:
        """Land what a good is from a day on."""
        self.written += 1
        row = {
            "good": good,
            "since": f"2017-01-{since:02}",
            "category": category,
            "updated_at": f"2017-01-11T{self.written // 60:02}:{self.written % 60:02}:00Z",
        }
        self.world.deliver_rows("goods", IN_TIME, f"{self.written:03}.jsonl", [row])
        self.goods[good, since] = category

    def refresh(self) -> None:
        """Take everything, compute everything that is stale, and write it down."""
        self.world.refresh()
        self.now_true(GOLDS, DAYS)

    def now_true(self, tables: Collection[str], days: Iterable[date], stores: Collection[str] | None = None) -> None:
        """Write down that rows of some stores, or all, were computed."""
        days = tuple(days)
        for table in GOLDS:
            for day in days if table in tables else ():
                true, counted = self._true(table, day)
                theirs = {key for key in true if stores is None or key[0] in stores}
                of_day, lines = self.content.setdefault(table, {}), self.counted.setdefault(table, {})
                before, lines_before = of_day.get(day, {}), lines.get(day, {})
                kept = {key for key in before if stores is not None and key[0] not in stores}
                of_day[day] = {key: before[key] for key in kept} | {key: true[key] for key in theirs}
                lines[day] = {key: lines_before[key] for key in kept} | {key: counted[key] for key in theirs}

    def contradicts(self, table: str, day: date, stores: Collection[str]) -> bool:
        """Whether a line would count twice, or no more though it is there, if only these stores were computed."""
        before, (_, now) = self.counted[table][day], self._true(table, day)
        kept = [lines for key, lines in before.items() if key[0] not in stores]
        made = [lines for key, lines in now.items() if key[0] in stores]
        counts: dict[int, int] = defaultdict(int)
        for lines in (*kept, *made):
            for line in lines:
                counts[line] += 1
        there = frozenset().union(*now.values())
        counted_before = frozenset().union(*before.values())
        return any(count > 1 for count in counts.values()) or bool((there & counted_before) - counts.keys())

    def found(self, table: str, day: date) -> dict[Key, tuple[int, int]]:
        """What readers see of a day."""
        rows = self.world.rows(table, str(day))
        by_key = {_key(row): (row["lines"], row["amount"]) for row in rows}
        assert len(by_key) == len(rows)
        return by_key

    def check(self) -> None:
        """Every row of every gold table, and no other, is there."""
        for table in GOLDS:
            for day in DAYS:
                assert self.found(table, day) == self.content[table][day], (table, day)

    def silver(self) -> dict[int, Line]:
        """The lines that count."""
        newest: dict[int, Line] = {}
        for path, lines in self.files.items():
            if path in self.gone or path in self.waiting:
                continue
            for line in lines:
                good = line.voided or (line.amount is not None and line.amount >= 0)
                if good and (line.line not in newest or newest[line.line].written < line.written):
                    newest[line.line] = line
        return {number: line for number, line in newest.items() if not line.voided}

    def _true(self, table: str, day: date) -> tuple[dict[Key, tuple[int, int]], dict[Key, frozenset[int]]]:
        if table == STORE_MONTHS:
            return self._month(day)
        first = day - timedelta(2) if table == STORE_SPANS else day
        rows: dict[Key, tuple[int, int]] = {}
        counted: dict[Key, frozenset[int]] = {}
        for number, line in self.silver().items():
            if line.store is not None and first <= DAYS[0].replace(day=line.day) <= day:
                key = (line.store,) if table == STORE_SPANS else (line.store, self._category(line.good, day))
                lines, amount = rows.get(key, (0, 0))
                rows[key] = lines + 1, amount + (line.amount or 0)
                counted[key] = counted.get(key, frozenset()) | {number}
        return rows, counted

    def _month(self, day: date) -> tuple[dict[Key, tuple[int, int]], dict[Key, frozenset[int]]]:
        rows: dict[Key, tuple[int, int]] = {}
        counted: dict[Key, frozenset[int]] = {}
        for one in DAYS:
            if one <= day:
                for key, (lines, amount) in self.content[STORE_DAYS][one].items():
                    before = rows.get(key, (0, 0))
                    rows[key] = before[0] + lines, before[1] + amount
                    counted[key] = counted.get(key, frozenset()) | self.counted[STORE_DAYS][one][key]
        return rows, counted

    def _category(self, good: int, day: date) -> str:
        known = [since for one, since in self.goods if one == good and since <= day.day]
        return self.goods[good, max(known)] if known else "?"


def _key(row: Mapping[str, Any]) -> Key:
    return (row["store"], row["category"]) if "category" in row else (row["store"],)


STORES = ("A", "B", "A\u0308", 'x"y', "O'Neil, 3")
"""Letters, of which one is a letter and its dots, and such as no command line likes."""


def five_stores(lakes: Lakes) -> Registers:
    """Five days of five stores with two lines each, and two that no store is known of; loaded."""
    world = lakes.new(days=len(DAYS), today=date(2017, 7, 1), domains=DOMAIN)
    found = Registers(world)
    for good in (1, 2):
        found.categorise(good, 1, f"c{good}")
    for day in DAYS:
        lines = [
            Line(100 * day.day + 10 * at + good, day.day, store, good=good, amount=10 * day.day + at)
            for at, store in enumerate((*STORES, None))
            for good in (1, 2)
        ]
        found.deliver(*lines, arrival=str(day))
    found.refresh()
    return found


def plan(stores: Collection[str], name: str = "some", tables: Collection[str] = GOLDS, **fields: Any) -> PlanFile:
    said = {
        "name": name,
        "reason": "their tills were set up wrong",
        "owner": "ada",
        "tables": list(tables),
        "days": {"range": f"{DAYS[0]}..{DAYS[-1]}"},
        "downstream": False,
        "only": {"store": list(stores)},
        "rollout": [100],
    }
    return PlanFile.model_validate(said | fields)


def applied(found: Registers, platform: Platform, file: PlanFile, **more: Any) -> BackfillRecord:
    record = apply(platform, lambda: found.world.spark, file, author(), **more)
    assert record.state == "published"
    assert file.only is not None
    found.now_true(file.tables, sorted(file.days.named_days() or ()), file.only["store"])
    return record


def take(found: Registers, platform: Platform) -> None:
    """What was delivered, up to silver: gold is stale."""
    request = Request(frozenset(["silver.lines", "silver.goods"]), by_person=True)
    refresh(platform, lambda: found.world.spark, author(), request=request)


def golds(found: Registers) -> dict[str, dict[date, str]]:
    digests = found.world.digests()
    return {table: digests[table] for table in GOLDS}
