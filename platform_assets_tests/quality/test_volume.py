"""A day with half its rows is found, a day like its fellows is left alone, and a run of odd days blocks.

Whether days are alike, their windows say. A loss that no history can judge is told until it is mended.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import (
    AllHistory,
    Catalogue,
    Checks,
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
from platform_assets.domains.retail.contracts import DAILY_SALES, SILVER_PRODUCTS, SILVER_TRANSACTIONS
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.quality.baseline import (
    Interval,
    Rhythm,
    RowHistory,
    Undecided,
    loss_finding,
    not_missed,
    rhythm_of,
    rows_before,
    scant_finding,
    volume_finding,
    volume_verdicts,
    with_rows_before,
)
from platform_assets.quality.findings import DayChecks, Finding, checked
from platform_assets.records.history import DayRecord
from platform_assets_tests.support.domains.windows import DOMAIN as SAME_DAY

MONDAY = date(2017, 1, 2)
RHYTHM = Rhythm(Calendar(date(2016, 1, 1), date(2019, 1, 1)))
WEEK = (1.0, 0.9, 0.95, 1.0, 1.2, 1.5, 1.4)


def days(rows):
    """Rows of consecutive days from a Monday on."""
    return {MONDAY + timedelta(days=n): count for n, count in enumerate(rows)}


def noisy(seed, weeks, deviation=0.08, level=4000):
    noise = random.Random(seed)
    return days(round(level * WEEK[n % 7] * math.exp(noise.gauss(0, deviation))) for n in range(7 * weeks))


def last(known):
    return max(known)


def finding_of(contract, verdict):
    finding = volume_finding(contract, verdict)
    assert finding is not None
    return finding


def judge(known, day, rows, contract=DAILY_SALES, rhythm=RHYTHM, refused=()):
    return volume_verdicts(contract, rhythm, {day: rows}, known, refused)[day]


@st.composite
def stable_series(draw):
    """Weekdays of very different levels, from which no day is further away than 6 %."""
    levels = draw(st.lists(st.integers(200, 10**7), min_size=7, max_size=7))
    weeks = draw(st.integers(6, 30))
    noise = draw(st.lists(st.floats(-0.06, 0.06), min_size=7 * weeks, max_size=7 * weeks))
    return days(round(levels[n % 7] * (1 + share)) for n, share in enumerate(noise))


def assert_found(verdict, side):
    """An odd day is a warning, unless others shortly before it were odd as well, as among few alike even 6 % can be."""
    least, _ = DAILY_SALES.checks.volume_blocks_after
    assert verdict.usual.side(verdict.rows) == side
    assert verdict.severity == ("warn" if verdict.lately < least else "block")


@given(stable_series(), st.data())
def test_a_halved_or_doubled_day_of_a_stable_week_is_always_found(known, data):
    day = data.draw(st.sampled_from(sorted(known)))
    assert_found(judge(known, day, known[day] // 2), -1)
    assert_found(judge(known, day, known[day] * 2), 1)


@given(stable_series(), st.data())
def test_a_few_bad_days_in_the_history_hide_nothing(known, data):
    day = data.draw(st.sampled_from(sorted(known)))
    alike = [other for other in known if other.weekday() == day.weekday() and other != day]
    dirty = data.draw(st.sets(st.sampled_from(alike), max_size=len(alike) // 5))
    broken = known | {other: known[other] // 2 for other in dirty}
    assert_found(judge(broken, day, known[day] // 4), -1)


@pytest.mark.parametrize(("weeks", "bound"), [(6, 0.10), (12, 0.04), (27, 0.015)])
def test_few_days_of_a_noisy_season_are_false_alarms_and_none_blocks(weeks, bound):
    severities = []
    for seed in range(40):
        known = noisy(seed, weeks)
        for day in sorted(known)[-7:]:
            earlier = {other: rows for other, rows in known.items() if other < day}
            severities.append(judge(earlier, day, known[day]).severity)
    assert severities.count("warn") / len(severities) <= bound
    assert "block" not in severities


@pytest.mark.parametrize(("weeks", "share"), [(6, 0.95), (12, 0.98), (27, 1.0)])
def test_halved_days_of_a_noisy_season_are_found(weeks, share):
    found = [judge(known := noisy(seed, weeks), last(known), known[last(known)] // 2).severity for seed in range(100)]
    assert sum(severity is not None for severity in found) / len(found) >= share


@pytest.mark.parametrize("level", [1, 3, 24, 1000])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_a_constant_series_does_not_alarm_at_one_row_more_or_less(level, step):
    assert judge(days([level] * 70), MONDAY + timedelta(days=70), level + step).severity is None


@pytest.mark.parametrize("level", [4, 24, 1000])
def test_half_of_a_constant_series_is_found(level):
    assert judge(days([level] * 70), MONDAY + timedelta(days=70), level // 2).severity == "warn"


def test_an_empty_day_blocks_where_rows_are_usual():
    known = noisy(1, 20)
    verdict = judge(known, last(known), 0)
    assert verdict.severity == "block"
    finding = finding_of(DAILY_SALES, verdict)
    assert finding.blocks
    assert finding.message.startswith(f"gold.daily_sales on {last(known)}: too few rows: 0 rows; ")
    assert "of 19 Sundays" in finding.message


def test_an_empty_day_is_fine_where_days_like_it_are_empty():
    known = days(0 if n % 7 == 6 else 500 for n in range(7 * 9))
    verdict = judge(known, last(known), 0)
    assert verdict.severity is None
    assert str(verdict) == "0 rows; not judged: Sundays usually have no rows"
    young = {day: rows for day, rows in known.items() if day < MONDAY + timedelta(days=20)}
    assert judge(young, MONDAY + timedelta(days=20), 0).severity is None


def test_a_table_that_seldom_has_rows_is_never_odd():
    known = days(92_000 if n == 0 else 40 if n % 9 == 0 else 0 for n in range(90))
    for rows in (0, 1, 500):
        assert judge(known, last(known), rows, SILVER_PRODUCTS).severity is None


def test_too_little_history_says_so():
    verdict = judge(days([500] * 13), MONDAY + timedelta(days=13), 1)
    assert verdict.severity is None
    assert str(verdict.usual) == "not judged: 13 of 14 days of history"
    assert volume_finding(DAILY_SALES, verdict) is None


def test_before_a_weekday_is_known_all_days_are_compared():
    verdict = judge(days([500] * 14), MONDAY + timedelta(days=14), 250)
    assert verdict.severity == "warn"
    assert "of 14 days" in str(verdict)


def test_an_old_day_is_compared_with_the_days_after_it_too():
    known = days([500] * 7 * 20)
    assert judge(known, MONDAY, 250).severity == "warn"


def test_only_the_nearest_days_count():
    known = days([100] * 7 * 40 + [1000] * 7 * 26)
    assert judge(known, MONDAY + timedelta(days=7 * 66), 1000).severity is None


def test_days_staged_together_do_not_vouch_for_each_other():
    staged = days([500] * 70)
    verdicts = volume_verdicts(DAILY_SALES, RHYTHM, staged, staged)
    assert all(isinstance(verdict.usual, Undecided) for verdict in verdicts.values())


def test_a_closed_day_gets_no_verdict_and_is_no_measure():
    closed = MONDAY + timedelta(days=70)
    rhythm = replace(RHYTHM, closed=frozenset({closed}))
    assert str(judge(days([500] * 70), closed, 0, rhythm=rhythm).usual) == "not judged: the day is closed"
    few = days([500] * 14)
    rhythm = replace(RHYTHM, closed=frozenset({MONDAY}))
    assert isinstance(judge(few, MONDAY + timedelta(days=14), 500, rhythm=rhythm).usual, Undecided)


def test_a_month_to_date_is_compared_with_the_same_day_of_other_months():
    first = date(2017, 1, 1)
    known = {first + timedelta(days=n): 30 * (first + timedelta(days=n)).day for n in range(365)}
    rhythm = replace(RHYTHM, season="day of month")
    assert judge(known, date(2018, 1, 1), 30, rhythm=rhythm).severity is None
    assert judge(known, date(2018, 1, 20), 300, rhythm=rhythm).severity == "warn"
    some = {day: rows for day, rows in known.items() if day < date(2017, 4, 1)}
    verdict = judge(some, date(2017, 4, 1), 30, rhythm=rhythm)
    assert str(verdict.usual) == "not judged: 3 of 5 months on day 1 of history"


def with_odd_days(factors, weeks=20):
    """A quiet history, and the same week's end multiplied day by day."""
    known = days([500] * 7 * weeks)
    start = last(known) + timedelta(days=1)
    return known, {start + timedelta(days=n): int(500 * factor) for n, factor in enumerate(factors)}


def test_the_third_odd_day_of_a_week_blocks():
    known, odd = with_odd_days([0.5, 1, 0.5, 1, 0.5])
    verdicts = list(volume_verdicts(DAILY_SALES, RHYTHM, odd, known).values())
    assert [verdict.severity for verdict in verdicts] == ["warn", None, "warn", None, "block"]
    finding = finding_of(DAILY_SALES, verdicts[-1])
    assert "3 of the last 7 days had too few" in finding.message


def test_odd_days_already_published_count_and_those_of_last_week_do_not():
    known, odd = with_odd_days([0.5, 0.5, 1, 1, 1, 1, 1, 1])
    third = last(known) + timedelta(days=3)
    assert judge(known | odd, third, 250).severity == "block"
    assert judge(known | odd, last(odd), 250).severity == "warn"


def test_odd_days_that_share_their_rows_are_one_oddity():
    known, odd = with_odd_days([0.5, 0.5, 0.5, 0.5, 0])
    verdicts = volume_verdicts(DAILY_SALES, replace(RHYTHM, overlapping=True), odd, known)
    assert [verdict.severity for verdict in verdicts.values()] == ["warn"] * 4 + ["block"]


def test_a_holiday_week_that_swings_both_ways_does_not_block():
    known, odd = with_odd_days([1.6, 1.6, 1, 0.5, 0.5])
    severities = [verdict.severity for verdict in volume_verdicts(DAILY_SALES, RHYTHM, odd, known).values()]
    assert severities == ["warn", "warn", None, "warn", "warn"]


def test_days_that_were_refused_keep_counting():
    known, odd = with_odd_days([0.5, 0.5, 0.5, 0.5])
    day = last(odd)
    refused = set(odd) - {day}
    assert judge(known, day, 250).severity == "warn"
    assert judge(known, day, 250, refused=refused).severity == "block"
    assert judge(known, day, 500, refused=refused).severity is None


@pytest.mark.parametrize(
    "checks", [Checks(volume="block"), Checks(volume_blocks_after=(1, 1)), Checks(volume_blocks_after=(1, 7))]
)
def test_a_contract_can_block_on_the_first_odd_day(checks):
    known, odd = with_odd_days([0.5])
    assert judge(known, last(odd), 250, replace(DAILY_SALES, checks=checks)).severity == "block"


def test_a_finding_has_the_figures():
    known, odd = with_odd_days([2])
    finding = finding_of(DAILY_SALES, judge(known, last(odd), 1000))
    assert finding.numbers == {
        "rows": 1000,
        "low": 461,
        "high": 542,
        "median": 500,
        "compared_days": 20,
        "outside_lately": 1,
    }
    assert finding.expected == "461 to 542 rows are usual (median 500 of 20 Mondays)"
    assert finding.message == f"gold.daily_sales on {last(odd)}: too many rows: 1,000 rows; {finding.expected}"


@pytest.mark.parametrize(
    ("shown", "staged", "severity", "says"),
    [
        (None, 0, "block", ""),
        (500, 0, "block", ""),
        (0, 0, "warn", "the 0 that readers have would be held as well"),
        (50_000, 0, "block", ""),
        (50, 600, "warn", "the 50 that readers have are farther from that"),
        (490, 600, "block", ""),
        (5_000, 250, "warn", "the 5,000 that readers have are farther from that"),
        (5_000, 20, "block", ""),
        (100, 98, "warn", "the 100 that readers have would be held as well"),
        (100, 3, "block", ""),
        (2_500, 2_600, "warn", "the 2,500 that readers have would be held as well"),
        (2_500, 250_000, "block", ""),
    ],
)
def test_what_readers_have_excuses_what_is_alike_or_nearer_and_nothing_that_is_far_worse(shown, staged, severity, says):
    known = days([500] * 7 * 20)
    day, strict = last(known), replace(DAILY_SALES, checks=Checks(volume="block"))
    there = {} if shown is None else {day: shown}
    verdict = volume_verdicts(strict, RHYTHM, {day: staged}, known, (), there)[day]
    assert (verdict.severity, says in str(verdict)) == (severity, True)


def test_few_rows_that_readers_have_are_no_excuse_for_none():
    known = noisy(3, 8)
    poor = [last(known) - timedelta(days=n) for n in range(3)]
    known |= dict.fromkeys(poor, 50)
    assert judge(known, poor[0], 50).severity == "block", "the third poor day in a row"
    verdict = volume_verdicts(DAILY_SALES, RHYTHM, {poor[0]: 0}, known, (), {poor[0]: 50})[poor[0]]
    assert verdict.severity == "block"


def test_a_row_or_two_more_are_nothing_odd_where_there_are_few_and_their_number_varies():
    """Groups of a small table come and go; a table of always the same three has lost something with one of them."""
    known = days([3, 3, 2, 3, 3, 4, 3, 3] * 8)
    for rows in (1, 2, 5, 6):
        assert judge(known, last(known) + timedelta(days=1), rows).severity is None
    for rows in (0, 15):
        assert judge(known, last(known) + timedelta(days=1), rows).severity is not None
    always = days([3] * 64)
    assert judge(always, last(always) + timedelta(days=1), 1).severity is not None


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


DAY = date(2017, 1, 2)
YOUNG = Undecided("3 of 14 days of history", lacks_history=True)
SHORT = Rhythm(Calendar(date(2017, 1, 1), date(2017, 3, 1)))


def loss(rows: int, before: int, gone: int = 0) -> Finding | None:
    return loss_finding(SILVER_TRANSACTIONS, DAY, rows, before, YOUNG, gone=gone)


def known_loss(rows: int, before: int, gone: int = 0) -> Finding:
    finding = loss(rows, before, gone)
    assert finding is not None
    return finding


def published(rows: int, *findings: Finding) -> DayRecord:
    """The record of a day that was published with what volume found."""
    day = DayChecks(rows, (checked("volume", findings, "", {}, judged=False),))
    return DayRecord("silver.transactions", DAY, "p", "d", "f", rows, 1, 1, day.figures, {}, "c", 0.0)


def test_a_halved_day_is_a_warning_with_both_numbers_and_says_why_nobody_can_judge_it() -> None:
    finding = known_loss(480, 1000)
    assert not finding.blocks
    assert finding.actual == "rows fell from 1,000 to 480 with too little history to judge"
    assert finding.message.startswith(f"silver.transactions on 2017-01-02: {finding.actual} (3 of 14 days of history)")
    assert checked("volume", [finding], "", {}, judged=False).outcome == "warned"


@pytest.mark.parametrize(
    ("before", "rows", "warns"),
    [
        (1000, 0, True),
        (1000, 498, True),
        (1000, 499, False),
        (1000, 3000, False),
        (3, 0, True),
        (3, 1, False),
        (1, 0, True),
        (0, 0, False),
    ],
)
def test_half_may_go_and_one_row_more(before: int, rows: int, *, warns: bool) -> None:
    assert (loss(rows, before) is not None) is warns


def test_what_people_took_out_is_not_missed_but_the_rest_is() -> None:
    assert loss(0, 1000, gone=1000) is None
    assert loss(0, 1000, gone=1200) is None, "rows that had counted for nothing were withdrawn as well"
    assert loss(400, 1000, gone=300) is None
    finding = known_loss(100, 1000, gone=300)
    assert finding.expected == "at least half of 700 rows; 300 are gone from its inputs"


def test_a_loss_stays_told_when_the_day_is_computed_again_and_ends_when_rows_come_back() -> None:
    first = known_loss(480, rows_before(published(1000)))
    second = known_loss(481, rows_before(published(480, first)))
    assert second.actual.startswith("rows fell from 1,000 to 481")
    assert loss(600, rows_before(published(481, second))) is None
    assert rows_before(published(600)) == 600


def test_rows_that_people_took_out_are_missed_where_others_came_in_their_place() -> None:
    """A truncated repair is the likeliest of all losses."""
    assert not_missed(withdrawn=10, came=0) == 10
    assert not_missed(withdrawn=10, came=1) == 0
    assert not_missed(withdrawn=-4, came=0) == 0, "they count again"
    assert not_missed(withdrawn=3, came=-2) == 3, "some were erased"


def test_what_was_withdrawn_from_a_day_that_is_warned_of_does_not_end_the_warning_once_it_comes_back() -> None:
    first = known_loss(6, rows_before(published(20)))
    second = known_loss(0, rows_before(published(6, first)), gone=14)
    third = known_loss(6, rows_before(published(0, second)))
    assert third.actual.startswith("rows fell from 20 to 6")


def test_a_step_of_all_days_has_no_other_days_and_still_knows_what_one_had_lost() -> None:
    odd = Finding("volume", DAY, "warn", "too few rows", "900 to 1,100 rows", "400 rows", numbers={"rows": 400})
    kept = with_rows_before(odd, 400, published(1000))
    assert rows_before(published(400, kept)) == 1000
    assert with_rows_before(odd, 400, published(500)) == odd
    assert with_rows_before(odd, 400, None) == odd


def test_only_a_lack_of_history_leaves_a_day_to_its_own_content() -> None:
    days = {DAY + timedelta(days=n): 500 for n in range(20)}
    rhythm = replace(SHORT, closed=frozenset({DAY}))
    filled_later = replace(SHORT, full=Calendar(date(2017, 1, 20), date(2017, 3, 1)))
    usual = {
        "known": RowHistory(days, SHORT).usual(DAY),
        "young": RowHistory(dict(list(days.items())[:5]), SHORT).usual(DAY),
        "no whole window": RowHistory(days, filled_later).usual(DAY),
        "closed": RowHistory(days, rhythm).usual(DAY),
        "mostly empty": RowHistory({DAY + timedelta(days=n): 0 for n in range(40)}, SHORT).usual(DAY),
        "one like it, empty": RowHistory({DAY + timedelta(days=7): 0}, SHORT).usual(DAY),
    }
    assert isinstance(usual.pop("known"), Interval)
    told = {name for name, undecided in usual.items() if isinstance(undecided, Undecided) and undecided.lacks_history}
    assert told == {"young", "no whole window", "one like it, empty"}


def test_half_a_day_among_whole_ones_that_come_at_once_is_warned_of():
    usual = Interval(low=900, high=1100, middle=1000, days=20, of="days")
    finding = scant_finding(SILVER_TRANSACTIONS, DAY, 165, usual, YOUNG)
    assert finding is not None
    assert (finding.check, finding.severity, finding.numbers) == ("volume", "warn", {"rows": 165})
    assert "165 rows, fewer than half as many as usual for the days that came with it; 900 to 1,100" in finding.message
    for rows, beside in ((600, usual), (5000, usual), (165, YOUNG)):
        assert scant_finding(SILVER_TRANSACTIONS, DAY, rows, beside, YOUNG) is None
