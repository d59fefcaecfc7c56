"""The days that stand for the others are those that tell most, and the same ones for the same seed."""

from __future__ import annotations

from datetime import date

from platform_assets.planning.selection import Draw, days_to_probe


def day(number: int) -> date:
    return date(2017, 1, number)


def test_the_day_with_most_rows_between_two_others_is_tried():
    assert days_to_probe({day(1): 90, day(2): 4, day(3): 7, day(4): 80}, 0) == (day(3),)
    assert days_to_probe({day(1): 90, day(2): 7, day(3): 7, day(4): 80}, 0) == (day(3),)
    assert days_to_probe({day(5): 1}, 0) == (day(5),)
    assert days_to_probe({day(5): 0, day(6): 0}, 0) == ()
    assert days_to_probe({}, 0) == ()


def test_of_two_days_both_are_tried():
    assert days_to_probe({day(1): 90, day(2): 4}, 0) == (day(1), day(2))
    assert days_to_probe({day(1): 90, day(2): 0, day(3): 80}, 0) == (day(1), day(3))
    assert days_to_probe({day(1): 0, day(2): 90, day(3): 80}, 0) == (day(2), day(3))


def test_only_more_days_than_ever_before_are_tried():
    days = {day(number): number for number in range(1, 5)}
    assert [days_to_probe(days, together) for together in range(6)] == [(day(3),)] * 4 + [()] * 2
    assert days_to_probe({day(5): 1}, 1) == ()
    assert days_to_probe({day(5): 1, day(6): 1}, 1) == (day(5), day(6))


def test_a_day_beside_an_empty_one_is_tried_until_two_with_rows_were():
    assert days_to_probe({day(5): 1, day(6): 0}, 1) == (day(5),)
    assert days_to_probe({day(5): 1, day(6): 0}, 2) == ()


def test_the_newest_day_is_always_verified_and_the_seed_chooses_the_others():
    days = [day(number) for number in range(1, 31)]
    found = Draw(3, seed=1).of(days)
    assert len(found) == 4
    assert found[-1] == day(30)
    assert list(found) == sorted(set(found))
    assert found == Draw(3, seed=1).of(days[::-1])
    assert len({Draw(3, seed).of(days) for seed in range(10)}) > 1
    assert Draw(0, seed=1).of(days) == (day(30),)
    assert Draw(9, seed=1).of(days[:2]) == (day(1), day(2))
    assert Draw(3, seed=1).of([]) == ()
