"""Which releases stay, what of a folder goes, which days are crowded."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from platform_assets.planning.retention import (
    SMALL_BYTES,
    Folder,
    Kept,
    Use,
    days_to_compact,
    kept_releases,
    removal,
    wants_checkpoint,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WINDOW, SAFE = timedelta(days=90), timedelta(days=7)
P = "20260101T000000000000Z-00000000"
ONE, TWO, LOG = f"{P}/event_date=2017-01-01/1.parquet", f"{P}/event_date=2017-01-02/2.parquet", f"{P}/_delta_log/0.json"


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.mark.parametrize(
    ("days_ago", "pins", "kept"),
    [
        ([400], (), Kept(0, 0)),
        ([400, 300, 89], (), Kept(1, 2)),
        ([100, 90, 60, 30, 0], (), Kept(1, 4)),
        ([400, 300, 200, 10], (0, 3, 99), Kept(1, 3, (0,))),
        ([400, 50, 300, 200], (), Kept(0, 3)),
    ],
    ids=["the only one", "replaced in the window", "to the day", "pins", "a clock set back"],
)
def test_releases_stay_until_they_were_replaced_a_window_ago(
    days_ago: list[int], pins: tuple[int, ...], kept: Kept
) -> None:
    assert kept_releases([(n, ago(days)) for n, days in enumerate(days_ago)], pins, NOW, WINDOW) == kept


@pytest.mark.parametrize("published_ahead", [0, 1, 20])
def test_a_clock_that_is_a_year_ahead_ends_half_a_window_and_no_more(published_ahead: int) -> None:
    """Whether only maintenance has it, or what is published just before has it too."""
    daily = [ago(days) for days in range(200, -1, -1)]
    ahead = [NOW + timedelta(days=365, minutes=n) for n in range(published_ahead)]
    kept = kept_releases([*enumerate([*daily, *ahead])], (), NOW + timedelta(days=365, hours=1), WINDOW)
    assert daily[kept.first + 1] == ago(44)


def test_where_nothing_is_published_for_long_what_was_shown_stays_longer() -> None:
    quarterly = [(n, ago(91 * (8 - n))) for n in range(9)]
    assert kept_releases(quarterly, (), NOW, WINDOW) == Kept(6, 8)
    assert kept_releases(quarterly, (), NOW, timedelta(days=7)) == Kept(7, 8)


def folder(*files: str, published: bool = True, idle_days: float = 30, in_use: bool = False) -> Folder:
    return Folder("gold.x", P, dict.fromkeys(files, 10), ago(idle_days), published, in_use)


def test_what_a_release_needs_stays_and_the_folder_goes_with_its_last_file() -> None:
    use = Use(frozenset({ONE, TWO}), {TWO: 5})
    part = removal(folder(ONE, TWO, LOG), use, NOW, SAFE)
    assert part is not None
    assert (set(part.files), part.whole, part.is_history) == ({ONE}, False, True)
    nothing_needed = Use(use.added)
    whole = removal(folder(ONE, TWO, LOG), nothing_needed, NOW, SAFE)
    assert whole is not None
    assert (set(whole.files), whole.whole, whole.task) == ({ONE, TWO, LOG}, True, "deletion")
    left_by_a_crash = removal(folder(LOG), nothing_needed, NOW, SAFE)
    assert left_by_a_crash is not None
    assert (left_by_a_crash.whole, left_by_a_crash.is_history) == (True, False)
    assert removal(folder(ONE, TWO, LOG), Use(use.added, {ONE: 5, TWO: 5}), NOW, SAFE) is None


def test_a_checksum_goes_with_its_file() -> None:
    beside = f"{P}/event_date=2017-01-01/.1.parquet.crc"
    gone = removal(folder(ONE, beside, TWO), Use(frozenset({ONE, TWO}), {TWO: 5}), NOW, SAFE)
    assert gone is not None
    assert set(gone.files) == {ONE, beside}


@pytest.mark.parametrize(("idle_days", "in_use", "goes"), [(8, False, True), (8, True, False), (6, False, False)])
def test_a_stage_goes_when_it_is_old_and_nobody_works_on_it(idle_days: float, in_use: bool, goes: bool) -> None:
    found = removal(folder(ONE, LOG, published=False, idle_days=idle_days, in_use=in_use), Use(), NOW, SAFE)
    assert (found is not None and found.task == "stages" and found.whole) == goes


def test_staged_rows_that_were_left_out_of_a_publication_wait_for_the_safe_age() -> None:
    use = Use(frozenset({ONE}), {ONE: 5})
    assert removal(folder(ONE, TWO, idle_days=1), use, NOW, SAFE) is None
    gone = removal(folder(ONE, TWO), use, NOW, SAFE)
    assert gone is not None
    assert (set(gone.files), gone.is_history) == ({TWO}, False)


def test_days_are_crowded_by_small_files_and_left_alone_while_they_are_held() -> None:
    small, large = {f"{n}": 10 for n in range(3)}, {"large": SMALL_BYTES}
    days = {date(2017, 1, 1): {**small, **large}, date(2017, 1, 2): small, date(2017, 1, 3): {"0": 1, **large}}
    assert days_to_compact(days, [date(2017, 1, 2)], 2) == {date(2017, 1, 1): ("0", "1", "2")}
    assert days_to_compact(days, [], 3) == {}


def test_a_log_is_summed_up_when_enough_was_committed() -> None:
    assert wants_checkpoint(9, -1)
    assert not wants_checkpoint(29, 20)
