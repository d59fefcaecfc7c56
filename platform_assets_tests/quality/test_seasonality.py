"""Days can be compared only where everything they read is there, as brute force finds them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import (
    AllHistory,
    Catalogue,
    Column,
    Contract,
    Domain,
    EveryDays,
    Input,
    LandingFiles,
    MonthToDate,
    Span,
    offsets,
)
from platform_assets.domains.retail import DOMAIN
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.quality.baseline import rhythm_of
from platform_assets_tests.support.domains.windows import DOMAIN as SAME_DAY

EVER = Calendar(date(2010, 1, 1), date(2030, 1, 1))
KEY = Column("k", "long", "Key.", nullable=False)
AT = Column("at", "date", "When.", nullable=False)
YEAR = Calendar(date(2017, 1, 1), date(2018, 1, 1))
retail = Catalogue.of([DOMAIN])


def chain(windows):
    raw = Contract("raw.t0", "", "", (KEY, AT), ("k",), source=LandingFiles("t"), event_time="at")
    tables = [raw, Contract("silver.t1", "", "", (KEY,), ("k",), inputs=(Input("raw.t0", Span(0, 0)),))]
    for n, window in enumerate(windows, start=2):
        tables.append(Contract(f"gold.t{n}", "", "", (KEY,), ("k",), inputs=(Input(tables[-1].name, window),)))
    return Catalogue.of([Domain("chain", tuple(tables), "nowhere")])


windows = st.one_of(
    st.builds(Span, st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from([MonthToDate(), offsets(-20, -1), offsets(3)]),
)


@given(st.lists(windows, max_size=3), st.dates(date(2017, 1, 1), date(2017, 3, 1)), st.integers(0, 90))
def test_comparable_days_read_nothing_beyond_the_calendar(some, first, length):
    catalogue = chain(some)
    calendar = Calendar(first, first + timedelta(days=length))
    full = set(calendar.days())
    for window in some:
        full = {day for day in full if full.issuperset(days_read(window, day, EVER))}
    assert set(rhythm_of(catalogue, catalogue.names[-1], calendar).full.days()) == full


def test_the_first_days_of_a_trailing_window_are_not_compared():
    rhythm = rhythm_of(retail, "gold.household_28d", YEAR)
    assert rhythm.unfit(date(2017, 1, 27)) == "the days it reads reach beyond the calendar"
    assert rhythm.unfit(date(2017, 1, 28)) is None


def test_a_month_to_date_is_compared_by_day_of_month_and_so_is_what_reads_it():
    assert rhythm_of(retail, "gold.daily_sales", YEAR).season == "weekday"
    assert rhythm_of(retail, "gold.sales_month_to_date", YEAR).season == "day of month"
    catalogue = chain([MonthToDate(), Span(0, 0)])
    assert rhythm_of(catalogue, "gold.t3", YEAR).season == "day of month"


def test_reference_data_and_all_of_history_shorten_nothing():
    assert rhythm_of(retail, "gold.daily_sales", YEAR).full == YEAR
    assert rhythm_of(chain([Span(5, 0), AllHistory()]), "gold.t3", YEAR).full == YEAR


def test_a_closed_day_is_not_compared():
    assert rhythm_of(retail, "gold.daily_sales", YEAR).unfit(date(2017, 12, 25)) == "the day is closed"


def test_days_overlap_where_anything_above_is_read_through_more_than_the_same_day():
    overlapping = {contract.name for contract in retail if rhythm_of(retail, contract.name, YEAR).overlapping}
    assert overlapping == {"gold.household_28d", "gold.sales_month_to_date"}
    assert rhythm_of(chain([AllHistory(), Span(0, 0)]), "gold.t3", YEAR).overlapping


def test_a_table_that_reads_only_the_same_day_expects_rows_when_its_inputs_do() -> None:
    raw = replace(SAME_DAY.tables[0], delivers=EveryDays(14, date(2017, 1, 7)), closed_days=frozenset())
    catalogue = Catalogue.of([replace(SAME_DAY, tables=(raw, *SAME_DAY.tables[1:]))])
    january = Calendar(date(2017, 1, 1), date(2017, 1, 31))
    closed = rhythm_of(catalogue, "silver.transactions", january).closed
    assert {*january.days()} - closed == {date(2017, 1, 7), date(2017, 1, 21)}
    assert not rhythm_of(catalogue, "gold.household_28d", january).closed
