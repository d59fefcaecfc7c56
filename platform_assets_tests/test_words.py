"""Numbers in sentences."""

import pytest

from platform_assets.words import counted


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
