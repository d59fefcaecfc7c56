"""Of two days between which a record has moved, none goes back, forward or beside others' work without the other one.

No rows are computed: what raw tells of moves, and what days say of what they were made from, is all that is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from platform_assets.engine.moves.ties import moved_meanwhile
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.settings import load_settings
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import TILLS, person

RAW, SILVER = "raw.transactions", "silver.transactions"
DAYS = [date(2017, 1, 1) + timedelta(days=n) for n in range(8)]
LEFT, CAME = DAYS[1], DAYS[4]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """Eight days, computed from raw without rows."""
    settings = load_settings(
        state=tmp_path / "state", domains=TILLS, calendar_first=DAYS[0], calendar_last=DAYS[-1], today=DAYS[-1]
    )
    with open_platform(settings) as opened:
        publish(opened, RAW, DAYS, 1)
        publish(opened, SILVER, DAYS, 1)
        yield opened


def a_record_moves(platform: Platform) -> None:
    """From one of the two days to the other; raw has told of it, silver does not know yet."""
    publish(platform, RAW, [LEFT], 2, told=CAME)
    publish(platform, RAW, [CAME], 2)


def undo(platform: Platform, publication: str, days: Collection[date] | None = None) -> str:
    """Roll back; the name of the publication that did."""
    rollback(platform, chosen_publications(platform, publication), person(), days=days)
    indexed = platform.ledger.indexed()
    return max(indexed, key=lambda name: indexed[name])


def digests(platform: Platform) -> dict[date, str]:
    return {day: found.digest for day, found in platform.ledger.current_days(SILVER).items() if day in (LEFT, CAME)}


def test_days_come_forward_as_they_went_back_both_or_none(platform: Platform) -> None:
    before = digests(platform)
    a_record_moves(platform)
    moved = publish(platform, SILVER, [LEFT, CAME], 2)
    after = digests(platform)
    for alone in (LEFT, CAME):
        with pytest.raises(PlatformError, match="moved between"):
            undo(platform, moved, [alone])
    back = undo(platform, moved)
    assert digests(platform) == before
    for alone in (LEFT, CAME):
        with pytest.raises(PlatformError, match="moved between"):
            undo(platform, back, [alone])
    assert digests(platform) == before
    undo(platform, back)
    assert digests(platform) == after


def test_days_that_knew_of_a_move_before_and_know_of_it_after_go_back_without_each_other(platform: Platform) -> None:
    """Of these made again, one goes back; another day beside it, to what it was before the move."""
    a_record_moves(platform)
    publish(platform, SILVER, [LEFT, CAME], 2)
    after = digests(platform)
    again = publish(platform, SILVER, [LEFT, DAYS[5]], 2)
    undo(platform, again)
    assert digests(platform) == after
    assert platform.ledger.history(SILVER, LEFT)[0].publication != again


def test_a_day_that_was_as_if_never_computed_comes_back_only_beside_one_that_knows_of_the_same_moves(
    platform: Platform,
) -> None:
    publish(platform, SILVER, DAYS[:1], 3)  # so that the days' first publication is not the newest
    first = platform.ledger.current_days(SILVER)[CAME].publication
    a_record_moves(platform)
    moved = publish(platform, SILVER, [LEFT, CAME], 2)
    rollback(platform, chosen_publications(platform, first), person(), days=[CAME], cascade=True)
    gone = platform.ledger.history(SILVER, CAME)[0].publication
    assert set(digests(platform)) == {LEFT} or not digests(platform)[CAME]
    knows = undo(platform, gone)  # the other day knows of the move as well
    undo(platform, knows)
    gone = platform.ledger.history(SILVER, CAME)[0].publication
    undo(platform, moved, [LEFT])  # nothing is shown twice, since the other day is not shown
    with pytest.raises(PlatformError, match=f"moved between {CAME} and {LEFT}"):
        undo(platform, gone)


def test_an_older_version_that_came_late_ties_no_day_to_one_that_would_come_out_the_same(platform: Platform) -> None:
    publish(platform, SILVER, DAYS[:1], 3)
    first = platform.ledger.current_days(SILVER)[LEFT].publication
    publish(platform, RAW, [LEFT], 2, told=CAME)
    publish(platform, SILVER, [LEFT], 2)
    rollback(platform, chosen_publications(platform, first), person(), days=[LEFT], cascade=True)
    undo(platform, platform.ledger.history(SILVER, LEFT)[0].publication)
    assert digests(platform)[LEFT] == "0-2-0-0-0"


def test_what_others_published_of_a_move_is_seen_from_either_side(platform: Platform) -> None:
    snapshot = LakeSnapshot.now(platform)
    a_record_moves(platform)
    contract = platform.catalogue[SILVER]
    assert moved_meanwhile(contract, [LEFT], snapshot, LakeSnapshot.now(platform)) == set(), "of that day nothing yet"
    publish(platform, SILVER, [DAYS[6]], 2)
    assert moved_meanwhile(contract, [LEFT, CAME], snapshot, LakeSnapshot.now(platform)) == set(), "nothing moved there"
    publish(platform, SILVER, [CAME], 2)
    assert moved_meanwhile(contract, [LEFT], snapshot, LakeSnapshot.now(platform)) == {(LEFT, CAME)}
    older = LakeSnapshot(platform, LakeSnapshot.now(platform).release)
    publish(platform, SILVER, [LEFT], 2)
    assert moved_meanwhile(contract, [CAME], older, LakeSnapshot.now(platform)) == set(), "both know of it"
    assert moved_meanwhile(contract, [CAME], snapshot, LakeSnapshot.now(platform)) == {(LEFT, CAME)}
