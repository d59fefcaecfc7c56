"""What readers must see of two tables, in plain Python: whatever was landed, refreshed, staged, published, rolled back.

Silver keeps the newest version of every key on its day, gold sums all days up to its own. A content is remembered with
what it was made from: that alone decides what is stale, and what a rollback holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DAYS = (1, 2, 3)
SILVER, GOLD = "silver", "gold"
Day = tuple[str, int]
"""Table and day."""


class Sale(NamedTuple):
    """One version of a sale; the newest of a key counts, and no two are equally new."""

    key: int
    version: int
    value: int

    @property
    def day(self) -> int:
        """A key stays on its day."""
        return DAYS[self.key % len(DAYS)]


class Made(NamedTuple):
    """The content of a day, and what it was made from."""

    content: Any = ()
    source: Any = None


Days = dict[Day, Made]


@dataclass
class View:
    """What a release shows, or a stage.

    Args:
        raw: every version that was taken, by day.
        made: content of silver and gold.
    """

    raw: dict[int, tuple[Sale, ...]] = field(default_factory=lambda: dict.fromkeys(DAYS, ()))
    made: Days = field(default_factory=dict)

    def would_be(self, table: str, day: int) -> Made:
        """A day as it would be made now."""
        if table == SILVER:
            newest: dict[int, Sale] = {}
            for sale in sorted(self.raw[day], key=lambda sale: sale.version):
                newest[sale.key] = sale
            return Made(tuple(sorted(newest.values())), self.raw[day])
        source = tuple(self.made[SILVER, one].content for one in DAYS if one <= day)
        with_sales = [one for one in DAYS if one <= day and self.made[SILVER, one].content]
        sales = [sale for content in source for sale in content]
        recency = (day - max(with_sales),) if with_sales else ()
        return Made((sum(sale.value for sale in sales), len(sales), *recency), source)

    def stale(self, refused: Mapping[Day, Any]) -> list[Day]:
        """The days that would be made from something else, and not from what is refused; inputs first."""
        return [day for table in (SILVER, GOLD) for day in self.stale_of(table, refused)]

    def stale_of(self, table: str, refused: Mapping[Day, Any]) -> list[Day]:
        """Those of one table."""
        found = []
        for number in DAYS:
            day, source = (table, number), self.would_be(table, number).source
            made = self.made.get(day)
            if (made is None or made.source != source) and (day not in refused or refused[day] != source):
                found.append(day)
        return found

    def compute(self, refused: Mapping[Day, Any]) -> Days:
        """Make every stale day, silver before gold; returns them."""
        done: Days = {}
        for table in (SILVER, GOLD):
            for day in self.stale_of(table, refused):
                done[day] = self.made[day] = self.would_be(*day)
        return done


@dataclass
class Model:
    """All that was done, and what came of it.

    Args:
        landed: and not taken yet.
        now: what the current release shows.
        history: what every release showed.
        refused: what each held day must not be made from.
        published: days and what they were before, of the publications that can be rolled back, newest last.
        stage: the open stage: its release's view, and its days.
    """

    landed: list[Sale] = field(default_factory=list)
    now: View = field(default_factory=View)
    history: dict[int, Days] = field(default_factory=dict)
    refused: dict[Day, Any] = field(default_factory=dict)
    published: list[tuple[int, Days, Days]] = field(default_factory=list)
    stage: tuple[View, Days] | None = None

    def ingest(self) -> None:
        """Take what was landed."""
        for sale in self.landed:
            self.now.raw[sale.day] = (*self.now.raw[sale.day], sale)
        self.landed.clear()

    def refresh(self) -> Days:
        """Ingest, and make what is stale."""
        self.ingest()
        before = dict(self.now.made)
        done = self.now.compute(self.refused)
        self._shown(before, done)
        return done

    def open_stage(self) -> Days:
        """Make what is stale into the stage."""
        base, over = self.stage or (deepcopy(self.now), {})
        view = View(base.raw, base.made | over)
        done = view.compute(self.refused)
        self.stage = base, over | done
        return done

    def publish_stage(self) -> Days:
        """Show the stage: days that are another one now, and those that read such, are made again if stale."""
        assert self.stage
        base, over = self.stage
        changed = {day for day, made in self.now.made.items() if base.made[day].content != made.content}
        changed |= {(SILVER, day) for day in DAYS if base.raw[day] != self.now.raw[day]}
        changed |= {day for day, source in self.refused.items() if day in over and over[day].source == source}
        again = {day for day in over if day in changed and day[0] == SILVER}
        moved = {day for table, day in changed | again if table == SILVER}
        again |= {(GOLD, day) for table, day in over if table == GOLD and any(one <= day for one in moved)}
        again |= {day for day in over if day in changed}
        kept = {day: made for day, made in over.items() if day not in again}
        view = View(self.now.raw, self.now.made | kept)
        for table in (SILVER, GOLD):
            for day in view.stale_of(table, self.refused):
                if day in again:
                    kept[day] = view.made[day] = view.would_be(*day)
        before = dict(self.now.made)
        self.now.made |= kept
        self._shown(before, kept)
        self.stage = None
        return kept

    def roll_back(self) -> Days:
        """Put back what the newest publication replaced, and refuse what that was made from."""
        _, done, before = self.published.pop()
        self.now.made |= before
        self.refused |= {day: made.source for day, made in done.items()}
        return before

    def _shown(self, before: Mapping[Day, Made], done: Days) -> None:
        for day in done:
            self.refused.pop(day, None)
        if done:
            self.published.append((len(self.published), dict(done), {day: before.get(day, Made()) for day in done}))
