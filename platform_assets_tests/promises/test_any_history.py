"""Any history of arrivals: confluence, the least work, and one row for one key, for the planner in memory."""

from __future__ import annotations

from datetime import date
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets_tests.support.models.memory import (
    BROKEN,
    CATALOGUE,
    DAYS,
    OUTSIDE,
    Memory,
    Price,
    Sale,
    all_sales,
    derived,
    nth,
    oracle,
)

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
