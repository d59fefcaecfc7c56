"""Notes of arrivals about columns are read back as what they were written of."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from platform_assets.records.schema_drift import (
    Drift,
    Noted,
    drift_in,
    events,
    extra_notes,
    missing_note,
    wider_note,
)


@pytest.mark.parametrize("name", ["channel", "kept in more", "a refused", "Shop No", "line\nend", "é" * 110])
@pytest.mark.parametrize("outcome", ["kept in _rescued", "kept in more", "left out", "refused"])
def test_a_note_of_an_extra_column_is_read_back_whatever_its_name(name: str, outcome: str) -> None:
    [note] = extra_notes([name], outcome)
    assert drift_in(note) == Drift("extra", name, outcome)


def test_long_names_are_cut_and_only_the_first_hundred_columns_are_named() -> None:
    notes = list(extra_notes(["x" * 500, *map(str, range(500))], "left out"))
    assert len(notes) == 100
    assert max(map(len, notes)) < 200


def test_a_missing_column_is_read_back_with_what_may_be_its_new_name() -> None:
    assert drift_in(missing_note("price", "")) == Drift("missing", "price", "is missing")
    found = drift_in(missing_note("price", "unit price"))
    assert found == Drift("missing", "price", "is missing, and unit price may be its new name")
    assert drift_in("has the same content as a.csv") is None


@pytest.mark.parametrize(
    ("came", "declared", "is_wider"),
    [
        ("long", "int", True),
        ("int", "long", False),
        ("int", "int", False),
        ("decimal(12,4)", "decimal(12,2)", True),
        ("decimal(14,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,2)", False),
        ("decimal(9,0)", "int", False),
        ("decimal(10,2)", "long", True),
        ("long", "string", False),
        ("", "int", False),
    ],
)
def test_a_type_is_wider_if_it_holds_more_digits_on_either_side(came: str, declared: str, is_wider: bool) -> None:
    note = wider_note("n", came, declared)
    assert (note is not None) == is_wider
    assert note is None or drift_in(note) == Drift("wider", "n", note.removeprefix("column n "))


def test_events_are_told_by_the_first_file_and_count_all_of_them() -> None:
    early, late = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC)
    extra, other = "extra column a left out", "extra column b left out"
    noted = [
        Noted("raw.x", [extra, other], "x/2.csv", date(2026, 3, 2), late, late, 2),
        Noted("raw.x", [extra, "empty file: no rows"], "x/1.csv", date(2026, 3, 1), early, early, 3),
    ]
    assert [(event.drift.column, event.first, event.since, event.last, event.files) for event in events(noted)] == [
        ("a", "x/1.csv", early, late, 5),
        ("b", "x/2.csv", late, late, 2),
    ]
