"""Any history of arrivals: confluence, the least work, and one row for one key, for the planner in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from random import Random
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from platform_assets.contracts import (
    AsOf,
    Catalogue,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    MonthToDate,
    Span,
)
from platform_assets.planning.day_states import Stale, TableStates, day_states
from platform_assets.planning.plan import left_to_do, make_plan
from platform_assets.planning.reasons import Past
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.records.code_version import Version
from platform_assets.records.history import DayMark

CALENDAR = Calendar(date(2017, 1, 29), date(2017, 2, 3))
"""Six days, two months."""
DAYS = CALENDAR.days()
OUTSIDE = (CALENDAR.first - timedelta(days=1), CALENDAR.last + timedelta(days=1))
"""Days whose rows wait in raw, and count all the same when versions are compared."""
_KEY = (Column("k", "long", "Key.", nullable=False), Column("at", "date", "When.", nullable=False))


def _table(name: str, *inputs: Input) -> Contract:
    if inputs:
        return Contract(name, "", "", _KEY[:1], ("k",), inputs=inputs)
    return Contract(name, "", "", _KEY, ("k",), source=LandingFiles(name.partition(".")[2]), event_time="at")


CATALOGUE = Catalogue.of(
    [
        Domain(
            "memory",
            (
                _table("raw.sales"),
                _table("raw.prices"),
                _table("silver.sales", Input("raw.sales", Span(0, 0))),
                _table("silver.prices", Input("raw.prices", Span(0, 0))),
                _table("gold.daily", Input("silver.sales", Span(0, 0)), Input("silver.prices", AsOf())),
                _table("gold.around", Input("silver.sales", Span(2, 1))),
                _table("gold.month", Input("gold.daily", MonthToDate())),
            ),
            "nowhere",
        )
    ]
)


BROKEN = 5
"""A value that breaks the rules."""


class Sale(NamedTuple):
    """One version of a sale; of those of a key that keep the rules, the greatest counts, wherever it lies.

    Args:
        version: when it was written.
        value: of the sale; None voids it, `BROKEN` breaks the rules.
        day: event date.
        key: of the sale.
    """

    version: int
    value: int | None
    day: date
    key: int


class Price(NamedTuple):
    """What a thing costs from a day on; the greatest of a day counts."""

    day: date
    price: int


Content = tuple[Any, ...]


class Made(NamedTuple):
    """What a day was made from: the rows of every input, and by which code."""

    given: tuple[Content, ...]
    code: int


def _order(sale: Sale) -> tuple[int, int, date]:
    return sale.version, -1 if sale.value is None else sale.value, sale.day


@dataclass
class Memory:
    """Raw rows, what was made of them, and what the ledger would know."""

    sales: dict[date, list[tuple[bool, Sale]]] = field(default_factory=dict)
    prices: dict[date, list[Price]] = field(default_factory=dict)
    content: dict[str, dict[date, Content]] = field(default_factory=lambda: {name: {} for name in CATALOGUE.names})
    marks: dict[str, dict[date, DayMark]] = field(default_factory=lambda: {name: {} for name in CATALOGUE.names})
    made: dict[tuple[str, date], Made] = field(default_factory=dict)
    code: dict[str, int] = field(default_factory=lambda: {c.name: 0 for c in CATALOGUE if c.inputs})

    def load_sales(self, sales: Iterable[Sale]) -> None:
        """Append versions; of every one, the days that have an older one of its key get a tombstone."""
        touched = set()
        for sale in sales:
            self.sales.setdefault(sale.day, []).append((True, sale))
            touched.add(sale.day)
            lying = [one for rows in self.sales.values() for there, one in rows if there and one.key == sale.key]
            for newer in lying:
                for day in {one.day for one in lying if _order(one) < _order(newer)} - {newer.day}:
                    if (False, newer) not in self.sales[day]:
                        self.sales[day].append((False, newer))
                        touched.add(day)
        for day in touched:
            self._publish("raw.sales", day, tuple(sorted(self.sales[day], key=repr)))

    def load_prices(self, prices: Iterable[Price]) -> None:
        """Append prices."""
        for price in prices:
            self.prices.setdefault(price.day, []).append(price)
            self._publish("raw.prices", price.day, tuple(sorted(self.prices[price.day])))

    def load_empty(self, day: date) -> None:
        """Nothing was delivered for a day, and that is known."""
        for table, rows in (("raw.sales", self.sales), ("raw.prices", self.prices)):
            if day not in self.content[table]:
                rows.setdefault(day, [])
                self._publish(table, day, ())

    def refresh(self, request: Request) -> list[tuple[str, date]]:
        """As the engine does it: plan, then step by step what is left of the plan."""
        tables = self._tables()
        states = {c.name: day_states(c, DAYS, tables) for c in CATALOGUE if c.inputs}
        plan = make_plan(CATALOGUE, tables, states, Past(), request)
        recomputed: list[tuple[str, date]] = []
        for step in plan.steps:
            left = left_to_do(step, day_states(CATALOGUE[step.table], step.days, self._tables()), request)
            assert {*left.days, *left.struck} == set(step.days), "what was explained is what is done"
            for day in left.days:
                self.compute(step.table, day)
                recomputed.append((step.table, day))
        return recomputed

    def brute_force(self, *, by_person: bool) -> set[tuple[str, date]]:
        """The days whose inputs, compared value by value, are not those they were made from, once all before are."""
        other = replace(
            self,
            content={table: dict(days) for table, days in self.content.items()},
            marks={table: dict(days) for table, days in self.marks.items()},
            made=dict(self.made),
        )
        found = set()
        for contract in CATALOGUE:
            for day in DAYS if contract.inputs else ():
                now = other.given(contract, day)
                if now is None:
                    continue
                made = other.made.get((contract.name, day))
                if made is None or made.given != now or (by_person and made.code != self.code[contract.name]):
                    other.compute(contract.name, day)
                    found.add((contract.name, day))
        return found

    def given(self, contract: Contract, day: date) -> tuple[Content, ...] | None:
        """The rows that a day would be made from; None while an input was never loaded."""
        inputs: list[Content] = []
        for read in contract.inputs:
            days = list(days_read(read.window, day, CALENDAR))
            have = self.content[read.table]
            if any(one not in have for one in days):
                return None
            if isinstance(read.window, AsOf):
                inputs.append(next((have[one] for one in reversed(days) if have[one]), ()))
            else:
                inputs.append(tuple((one, have[one]) for one in days))
        return tuple(inputs)

    def compute(self, table: str, day: date) -> None:
        """Make a day of what it reads now."""
        given = self.given(CATALOGUE[table], day)
        assert given is not None, f"{table} {day} was to be computed before its inputs were there"
        code = self.code[table]
        self.made[table, day] = Made(given, code)
        self._publish(table, day, _TRANSFORMS[table](code, *given))

    def _publish(self, table: str, day: date, content: Content) -> None:
        self.content[table][day] = content
        tables = self._tables()
        state = day_states(CATALOGUE[table], [day], replace(tables, marks={**tables.marks, table: {}}))[day]
        self.marks[table][day] = DayMark(
            day,
            digest=repr(content),
            fingerprint=state.fingerprint if isinstance(state, Stale) else "",
            code_version=str(self.code.get(table, "")),
            configuration="c" if isinstance(state, Stale) else "",
        )

    def _tables(self) -> TableStates:
        view = {day: repr(rows) for day, rows in sorted(self.content["silver.prices"].items()) if rows}
        versions = {table: Version(str(code), "c") for table, code in self.code.items()}
        return TableStates(self.marks, {}, CALENDAR, versions, {"silver.prices": view})


def _newest(code: int, raw: Content) -> Content:
    [(_, rows)] = raw
    keys: dict[int, tuple[bool, Sale]] = {}
    for there, sale in rows:
        if sale.value == BROKEN:
            continue
        if sale.key not in keys or (_order(sale), not there) > (_order(keys[sale.key][1]), not keys[sale.key][0]):
            keys[sale.key] = there, sale
    return tuple(sorted(sale for there, sale in keys.values() if there and sale.value is not None))


def _price(code: int, raw: Content) -> Content:
    [(_, rows)] = raw
    return (max(rows),) if rows else ()


def _total(days: Content) -> int:
    return sum(sale.value for _, rows in days for sale in rows)


# Remainders, so that another input often makes the same output.
_TRANSFORMS: Mapping[str, Callable[..., Content]] = {
    "silver.sales": _newest,
    "silver.prices": _price,
    "gold.daily": lambda code, sales, prices: ((_total(sales) * (prices[0].price if prices else 1) + code) % 3,),
    "gold.around": lambda code, sales: ((_total(sales) + code) % 4,),
    "gold.month": lambda code, daily: ((sum(total for _, (total,) in daily) + code) % 4,),
}


def derived(memory: Memory) -> dict[str, dict[date, Content]]:
    """Content of all tables that people read; raw keeps duplicates and tombstones on purpose."""
    return {name: days for name, days in memory.content.items() if not name.startswith("raw.")}


def all_sales(memory: Memory) -> Collection[Sale]:
    """Every row of silver, of all days."""
    return [sale for rows in memory.content["silver.sales"].values() for sale in rows]


def oracle(deliveries: Iterable[Sale]) -> dict[int, Sale]:
    """The sales that must be left, straight from everything delivered: those that lie in the calendar."""
    newest: dict[int, Sale] = {}
    for sale in deliveries:
        if sale.value == BROKEN:
            continue
        if sale.key not in newest or _order(newest[sale.key]) < _order(sale):
            newest[sale.key] = sale
    return {key: sale for key, sale in newest.items() if sale.value is not None and sale.day in CALENDAR}


def nth(n: int) -> date:
    """A day of the calendar, from 0."""
    return CALENDAR.first + timedelta(days=n)


days = st.sampled_from(DAYS)
any_days = st.sampled_from((*DAYS, *OUTSIDE))
sales = st.builds(Sale, st.integers(0, 9), st.one_of(st.none(), st.integers(1, BROKEN)), any_days, st.integers(1, 5))
prices = st.builds(Price, any_days, st.integers(1, 3))
tables = st.sampled_from([contract.name for contract in CATALOGUE if contract.inputs])


class AnyHistory(RuleBasedStateMachine):
    """Deliveries of any kind, and refreshes of anything in between."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory()
        self.delivered: list[list[Sale]] = []
        self.priced: list[list[Price]] = []

    @rule(batch=st.lists(sales, min_size=1, max_size=4))
    def sales_arrive(self, batch: list[Sale]) -> None:
        """New, late, moved and voided sales, corrected well or badly, in any order, outside the calendar too."""
        self.delivered.append(batch)
        self.memory.load_sales(batch)

    @precondition(lambda self: self.delivered)
    @rule(random=st.randoms(use_true_random=False))
    def sales_arrive_again(self, random: Random) -> None:
        """The same rows, delivered a second time."""
        self.sales_arrive(random.choice(self.delivered))

    @rule(batch=st.lists(prices, min_size=1, max_size=3))
    def prices_arrive(self, batch: list[Price]) -> None:
        """Reference data."""
        self.priced.append(batch)
        self.memory.load_prices(batch)

    @rule(up_to=st.integers(0, len(DAYS) - 1))
    def days_end(self, up_to: int) -> None:
        """What did not arrive for these days does not exist."""
        for day in DAYS[: up_to + 1]:
            self.memory.load_empty(day)

    @rule(table=tables)
    def code_changes(self, table: str) -> None:
        """A transform is written anew."""
        self.memory.code[table] += 1

    @rule(by_person=st.booleans())
    def everything_is_refreshed(self, by_person: bool) -> None:
        """Exactly the days are recomputed that must be, each once; nothing is stale afterwards."""
        request = BY_PERSON if by_person else AUTOMATIC
        needed = self.memory.brute_force(by_person=by_person)
        done = self.memory.refresh(request)
        assert len(done) == len(set(done))
        assert set(done) == needed
        assert self.memory.refresh(request) == []

    @rule(named=st.frozensets(tables, max_size=2), wanted=st.frozensets(days, min_size=1), by_person=st.booleans())
    def some_days_are_refreshed(self, named: frozenset[str], wanted: frozenset[date], by_person: bool) -> None:
        """No other days are recomputed than those that would be anyway."""
        needed = self.memory.brute_force(by_person=by_person)
        done = self.memory.refresh(Request(named, wanted, by_person))
        assert set(done) <= needed

    @rule(day=days, table=tables)
    def a_day_is_computed_once_more(self, day: date, table: str) -> None:
        """By force, and alone; its content stays if it was what it should be."""
        if (table, day) in self.memory.made:
            self.memory.refresh(Request(frozenset({table}), frozenset({day}), by_person=True, force=True))

    def teardown(self) -> None:
        """However it came about, the content is that of one load of everything in another order."""
        for day in DAYS:
            self.memory.load_empty(day)
        self.memory.refresh(BY_PERSON)
        kept = {sale.key: sale for sale in all_sales(self.memory)}
        assert len(kept) == len(all_sales(self.memory)), "a key has two rows"
        assert kept == oracle(sale for batch in self.delivered for sale in batch)
        other = Memory(code=dict(self.memory.code))
        rows = [sale for batch in self.delivered for sale in batch]
        Random(len(rows)).shuffle(rows)
        other.load_sales(rows)
        other.load_prices(price for batch in reversed(self.priced) for price in batch)
        for day in DAYS:
            other.load_empty(day)
        other.refresh(BY_PERSON)
        assert derived(self.memory) == derived(other)


AnyHistory.TestCase.settings = settings(max_examples=100, stateful_step_count=12)
TestAnyHistory = AnyHistory.TestCase


def test_a_price_that_was_replaced_before_a_day_does_not_reach_it() -> None:
    memory = Memory()
    memory.load_prices([Price(nth(0), 1), Price(nth(2), 2)])
    for day in DAYS:
        memory.load_empty(day)
    memory.refresh(BY_PERSON)
    memory.load_prices([Price(nth(0), 3)])
    done = memory.refresh(AUTOMATIC)
    assert {day for table, day in done if table == "gold.daily"} == {nth(0), nth(1)}
