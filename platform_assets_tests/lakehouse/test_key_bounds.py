"""No file is left out that holds a key of another."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.lakehouse.delta.key_bounds import may_hold, may_share_keys
from platform_assets.records.manifest import DataFile

keys = st.tuples(st.integers(0, 5), st.text("ab", max_size=1))
some_files = st.lists(st.tuples(st.sets(keys, min_size=1, max_size=4), st.booleans()), max_size=6)


def as_files(held: list[tuple[set[tuple[int, str]], bool]], name: str) -> dict[date, list[DataFile]]:
    """A file for each set of keys, some without statistics, spread over three days."""
    found: dict[date, list[DataFile]] = {}
    for number, (rows, told) in enumerate(held):
        columns = list(zip(*rows, strict=True))
        low, high = ({"n": f(columns[0]), "s": f(columns[1])} for f in (min, max))
        stats = {"minValues": low, "maxValues": high} if told else {}
        file = DataFile(path=f"{name}{number}", size=1, modified_ms=0, stats=json.dumps(stats))
        found.setdefault(date(2017, 1, 1 + number % 3), []).append(file)
    return found


@given(some_files, some_files)
def test_what_shares_a_key_stays(files, others):
    found = may_share_keys(as_files(files, "f"), as_files(others, "o"), ["n", "s"])
    left = {file.path for of_day in found.values() for file in of_day}
    sought = {key for rows, _ in others for key in rows}
    assert {f"f{number}" for number, (rows, _) in enumerate(files) if rows & sought} <= left
    assert all(found.values())


@given(some_files, st.text("abc", max_size=3))
def test_a_file_with_a_value_may_hold_it(files, value):
    found = {file.path for of_day in as_files(files, "f").values() for file in of_day if may_hold(file, "s", value)}
    holders = {f"f{number}" for number, (rows, _) in enumerate(files) if value in {text for _, text in rows}}
    certain = {f"f{number}" for number, (rows, told) in enumerate(files) if told and min(rows, key=_text)[1] > value}
    assert holders <= found
    assert not certain & found


def _text(key: tuple[int, str]) -> str:
    return key[1]


def test_what_cannot_is_left_out():
    files = as_files([({(1, "a"), (5, "b")}, True), ({(20, "a"), (30, "b")}, True), ({(35, "a")}, False)], "f")
    others = as_files([({(4, "a")}, True), ({(31, "a"), (40, "b")}, True)], "o")
    left = may_share_keys(files, others, ["n"])
    assert {file.path for of_day in left.values() for file in of_day} == {"f0", "f2"}
    assert may_share_keys(files, as_files([({(4, "a")}, False)], "o"), ["n"]) == {
        day: tuple(of_day) for day, of_day in files.items()
    }


@pytest.mark.parametrize("bounds", [(1.0, 2.0), (1, 2.5), ("+12921-08-18", "+12922-01-01"), (None, 3), ([1], [2])])
def test_bounds_that_may_have_lost_digits_or_are_in_another_order_leave_nothing_out(bounds):
    stats = {"minValues": {"n": bounds[0]}, "maxValues": {"n": bounds[1]}}
    file = DataFile(path="f", size=1, modified_ms=0, stats=json.dumps(stats))
    others = as_files([({(40, "a")}, True)], "o")
    assert may_share_keys({date(2017, 1, 1): [file]}, others, ["n"]) == {date(2017, 1, 1): (file,)}
    assert may_share_keys(others, {date(2017, 1, 1): [file]}, ["n"]) == {
        day: tuple(of_day) for day, of_day in others.items()
    }
