"""Publishing where others are faster: what still holds is published, and who is overtaken for ever is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import Met, Rest, in_turns, publish_changes, publish_rest, replaced
from platform_assets.lakehouse.errors import Conflict, OvertakenError
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import TableChange, new_publication
from platform_assets.settings import load_settings
from platform_assets_tests.support.shelf import SALES, Days, change, contents, day, stage

ME, OTHERS = Author("mine", "a test"), Author("theirs", "a test")
MINE: Days = {day(n): [("mine", n)] for n in range(3)}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A lake with three days of sales."""
    with open_platform(load_settings(state=tmp_path / "state")) as platform:
        publish_theirs(platform, *MINE)
        yield platform


def staged(platform: Platform, days: Days) -> tuple[str, TableChange]:
    publication = stage(platform.lake, SALES, days)
    return publication, change(platform.lake, SALES, publication)


def publish_theirs(platform: Platform, *days: object) -> None:
    publication, theirs = staged(platform, {when: [("theirs", 0)] for when in MINE if when in days})
    publish_changes(platform, publication, "recompute", [theirs], OTHERS)


def whose(platform: Platform) -> list[str]:
    return [rows[0][0] for rows in contents(platform.lake, SALES).values()]


def test_days_that_others_replaced_are_left_out_however_often_they_do_it(platform: Platform) -> None:
    publication, mine = staged(platform, MINE)
    publish_theirs(platform, day(0))

    def and_once_more(met: Met, changes: Sequence[TableChange]) -> Rest:
        if day(0) in changes[0].days:
            publish_theirs(platform, day(1))
        return replaced(met)

    met = publish_rest(platform, publication, "recompute", [mine], ME, and_once_more)
    assert met == (day(0), day(1))
    assert whose(platform) == ["theirs", "theirs", "mine"]


def test_what_was_staged_goes_if_others_replaced_all_of_it(platform: Platform) -> None:
    publication, mine = staged(platform, MINE)
    publish_theirs(platform, *MINE)
    before = current_release(platform.lake).number
    assert publish_rest(platform, publication, "recompute", [mine], ME) == tuple(MINE)
    assert current_release(platform.lake).number == before
    assert not platform.lake.stage_path(SALES, publication).exists()


def test_days_go_on_the_release_that_was_looked_at_and_on_no_other(platform: Platform) -> None:
    publication, mine = staged(platform, MINE)
    read = current_release(platform.lake).number
    publish_theirs(platform, day(2))
    seen: list[str] = []

    def looked_at(met: Met, changes: Sequence[TableChange]) -> Rest:
        seen.append(type(met).__name__)
        now = current_release(platform.lake).number
        if len(seen) == 1:
            publish_theirs(platform, day(1))
        return Rest(replaced(met).left_out, now)

    met = publish_rest(platform, publication, "recompute", [mine], ME, looked_at, on_release=read)
    assert seen == ["OvertakenError", "OvertakenError", "Conflict"]
    assert met == (day(1), day(2))
    assert whose(platform) == ["mine", "theirs", "theirs"]


@pytest.mark.parametrize("error", [OvertakenError(1, 2), Conflict({SALES: (day(0),)})])
def test_who_is_overtaken_again_and_again_is_told(error: Met) -> None:
    turns: list[str] = []

    def overtaken() -> None:
        turns.append(new_publication())
        raise error

    with pytest.raises(type(error)):
        in_turns(overtaken)
    assert len(turns) == 20


def test_who_wants_no_other_turn_gives_up_at_once() -> None:
    turns: list[int] = []

    def overtaken() -> None:
        turns.append(1)
        raise OvertakenError(1, 2)

    def gives_up(met: Met) -> None:
        raise met

    with pytest.raises(OvertakenError):
        in_turns(overtaken, gives_up)
    assert len(turns) == 1
