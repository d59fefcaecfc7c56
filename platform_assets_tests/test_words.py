"""Numbers in sentences."""

import pytest

from platform_assets.words import alike, counted


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(0, "file"), "0 files"),
        (counted(1, "file"), "1 file"),
        (counted(2_000, "file"), "2,000 files"),
        (counted(1, "row", "wait"), "1 row waits"),
        (counted(2, "row", "wait"), "2 rows wait"),
    ],
)
def test_one_is_not_many(said: str, expected: str) -> None:
    assert said == expected


def test_files_of_which_the_same_is_to_be_said_but_for_figures_share_a_line() -> None:
    told = {
        "a.csv": "was replaced: 10 bytes with sha256 0a1b were taken, now 11",
        "b.csv": "was replaced: 20 bytes with sha256 ff12 were taken, now 21",
        "c.csv": "lacks the column 'c1'",
        "d.csv": "lacks the column 'c2'",
        "e.csv": "is empty",
    }
    assert list(alike(told.items(), 3)) == [
        "a.csv (and 1 other file likewise) was replaced: 10 bytes with sha256 0a1b were taken, now 11",
        "c.csv lacks the column 'c1'",
        "d.csv lacks the column 'c2'",
        "1 more file, for 1 other reason",
    ]
