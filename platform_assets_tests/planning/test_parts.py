"""In how many parts a day is computed and written."""

from __future__ import annotations

from datetime import date

from platform_assets.planning.steps import bytes_among, has_heavy_key, parts_of, whole_parts_of
from platform_assets.records.manifest import DataFile

SMALL, LARGE = date(2017, 1, 1), date(2017, 1, 2)


def test_only_days_of_more_than_one_part_have_any() -> None:
    assert parts_of({SMALL: 100, LARGE: 101}, 100) == {LARGE: 2}
    assert parts_of({LARGE: 1000}, 100) == {LARGE: 10}


def test_files_that_are_joined_do_not_become_small_again() -> None:
    assert whole_parts_of({SMALL: 199, LARGE: 1099}, 100) == {LARGE: 10}


def test_files_that_are_written_by_themselves_have_parts_by_themselves() -> None:
    """As those of other columns: few of them do not become as many files as all of the day."""
    old, new = (
        [DataFile(path=f"{name}{n}", size=size, modified_ms=0, stats="") for n in range(2)]
        for name, size in (("a", 1000), ("b", 40))
    )
    files = {LARGE: [*old, *new], SMALL: new[:1]}
    assert whole_parts_of(bytes_among(files, ["a0", "a1"]), 100) == {LARGE: 20}
    assert whole_parts_of(bytes_among(files, ["b0", "b1"]), 100) == {}
    assert bytes_among(files, ["b0"]) == {LARGE: 40, SMALL: 40}


def test_a_key_is_heavy_that_is_more_than_a_part_of_a_day_that_has_several() -> None:
    assert has_heavy_key(4, rows=100, most=26)
    assert not has_heavy_key(4, rows=100, most=25)
    assert not has_heavy_key(1, rows=100, most=100), "one task has the day whatever its keys"
