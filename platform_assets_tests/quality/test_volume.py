"""A day with half its rows is found, a day like its fellows is left alone, and a run of odd days blocks."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Checks
from platform_assets.domains.retail.contracts import DAILY_SALES, SILVER_PRODUCTS
from platform_assets.planning.windows import Calendar
from platform_assets.quality.baseline import Rhythm, Undecided, volume_finding, volume_verdicts

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
    finding = volume_finding(DAILY_SALES, verdict)
    assert finding is not None
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
    finding = volume_finding(DAILY_SALES, verdicts[-1])
    assert finding is not None
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
    finding = volume_finding(DAILY_SALES, judge(known, last(odd), 1000))
    assert finding is not None
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


def test_what_readers_have_is_judged_alike_and_replaced_where_it_would_be_held_too():
    known = noisy(3, 8)
    day = last(known)
    for shown, severity in ((None, "block"), (known[day], "block"), (0, "warn")):
        there = {} if shown is None else {day: shown}
        verdict = volume_verdicts(DAILY_SALES, RHYTHM, {day: 0}, known, (), there)[day]
        assert verdict.severity == severity
        excused = "the 0 that readers have would be held as well" in str(verdict)
        assert excused == (severity == "warn")


def test_what_is_odd_in_the_other_direction_is_no_excuse():
    known = noisy(4, 8)
    day = last(known)
    strict = replace(DAILY_SALES, checks=Checks(volume="block"))
    verdict = volume_verdicts(strict, RHYTHM, {day: 0}, known, (), {day: 100 * known[day]})[day]
    assert verdict.severity == "block"


def test_a_day_is_not_held_for_being_closer_to_what_is_usual():
    known = days([500] * 7 * 20)
    day, strict = last(known), replace(DAILY_SALES, checks=Checks(volume="block"))
    for shown, staged, severity in ((50, 600, "warn"), (490, 600, "block"), (5_000, 250, "warn"), (5_000, 20, "block")):
        verdict = volume_verdicts(strict, RHYTHM, {day: staged}, known, (), {day: shown})[day]
        assert verdict.severity == severity, (shown, staged)
        assert (f"the {shown:,} that readers have are farther from that" in str(verdict)) == (severity == "warn")


def test_what_readers_have_is_no_excuse_for_what_is_far_worse():
    """Somebody accepted a poor day; what a correction then leaves of it is as unusual for that day as it was."""
    known = days([500] * 7 * 20)
    day, strict = last(known), replace(DAILY_SALES, checks=Checks(volume="block"))
    cases = ((100, 98, "warn"), (100, 3, "block"), (2_500, 2_600, "warn"), (2_500, 250_000, "block"))
    for shown, staged, severity in cases:
        verdict = volume_verdicts(strict, RHYTHM, {day: staged}, known, (), {day: shown})[day]
        assert verdict.severity == severity, (shown, staged)


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
