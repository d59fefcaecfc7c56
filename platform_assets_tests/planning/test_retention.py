"""Which releases stay, what of a folder goes, which days are crowded."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from platform_assets.planning.retention import (
    SMALL_BYTES,
    FileUsage,
    RetainedReleases,
    StagingFolder,
    days_to_compact,
    deletion_of,
    kept_releases,
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
        ([400], (), RetainedReleases(0, 0)),
        ([400, 300, 89], (), RetainedReleases(1, 2)),
        ([100, 90, 60, 30, 0], (), RetainedReleases(1, 4)),
        ([400, 300, 200, 10], (0, 3, 99), RetainedReleases(1, 3, (0,))),
        ([400, 50, 300, 200], (), RetainedReleases(0, 3)),
    ],
    ids=["the only one", "replaced in the window", "to the day", "pins", "a clock set back"],
)
def test_releases_stay_until_they_were_replaced_a_window_ago(
    days_ago: list[int], pins: tuple[int, ...], kept: RetainedReleases
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
    assert kept_releases(quarterly, (), NOW, WINDOW) == RetainedReleases(6, 8)
    assert kept_releases(quarterly, (), NOW, timedelta(days=7)) == RetainedReleases(7, 8)


def test_before_an_erasure_nothing_stays() -> None:
    released = [(n, ago(8 - n)) for n in range(9)]
    assert kept_releases(released, (3, 6), NOW, WINDOW, cut=5) == RetainedReleases(5, 8)
    assert kept_releases(released, (3, 6), NOW, timedelta(days=1), cut=5) == RetainedReleases(7, 8, (6,))


def folder(*files: str, published: bool = True, idle_days: float = 30, in_use: bool = False) -> StagingFolder:
    return StagingFolder("gold.x", P, dict.fromkeys(files, 10), ago(idle_days), published, in_use)


def test_what_a_release_needs_stays_and_the_folder_goes_with_its_last_file() -> None:
    use = FileUsage(frozenset({ONE, TWO}), {TWO: 5})
    part = deletion_of(folder(ONE, TWO, LOG), use, NOW, SAFE)
    assert part is not None
    assert (set(part.files), part.whole, part.is_history) == ({ONE}, False, True)
    nothing_needed = FileUsage(use.added)
    whole = deletion_of(folder(ONE, TWO, LOG), nothing_needed, NOW, SAFE)
    assert whole is not None
    assert (set(whole.files), whole.whole, whole.task) == ({ONE, TWO, LOG}, True, "deletion")
    left_by_a_crash = deletion_of(folder(LOG), nothing_needed, NOW, SAFE)
    assert left_by_a_crash is not None
    assert (left_by_a_crash.whole, left_by_a_crash.is_history) == (True, False)
    assert deletion_of(folder(ONE, TWO, LOG), FileUsage(use.added, {ONE: 5, TWO: 5}), NOW, SAFE) is None


def test_a_checksum_goes_with_its_file() -> None:
    beside = f"{P}/event_date=2017-01-01/.1.parquet.crc"
    gone = deletion_of(folder(ONE, beside, TWO), FileUsage(frozenset({ONE, TWO}), {TWO: 5}), NOW, SAFE)
    assert gone is not None
    assert set(gone.files) == {ONE, beside}


@pytest.mark.parametrize(("idle_days", "in_use", "goes"), [(8, False, True), (8, True, False), (6, False, False)])
def test_a_stage_goes_when_it_is_old_and_nobody_works_on_it(idle_days: float, in_use: bool, goes: bool) -> None:
    found = deletion_of(folder(ONE, LOG, published=False, idle_days=idle_days, in_use=in_use), FileUsage(), NOW, SAFE)
    assert (found is not None and found.task == "stages" and found.whole) == goes


def test_staged_rows_that_were_left_out_of_a_publication_wait_for_the_safe_age() -> None:
    use = FileUsage(frozenset({ONE}), {ONE: 5})
    assert deletion_of(folder(ONE, TWO, idle_days=1), use, NOW, SAFE) is None
    gone = deletion_of(folder(ONE, TWO), use, NOW, SAFE)
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
