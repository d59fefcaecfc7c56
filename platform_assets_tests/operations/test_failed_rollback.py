"""What was put back is held with the release that shows it, also where its publisher failed half-way or died.

Whoever learns of the release, by finishing it, by indexing it or by a rebuild of the ledger, holds the days with it.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from platform_assets.lakehouse import recovery
from platform_assets.lakehouse.errors import InterruptedPublicationError
from platform_assets.ledger import ledger as indexing
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.rollback import rollback as rolling_back
from platform_assets.operations.rollback.selection import RollbackError
from platform_assets.planning.selection import BY_PERSON
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.readings import (
    DAY,
    SILVER,
    correct,
    digest,
    opened,
    publish_all,
    put_back,
    taken,
)
from platform_assets_tests.support.shelf import in_process, killed

GOOD, BAD = "0-1-0-0-0", "0-2-0-0-0"


def full_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def gone_server() -> None:
    raise OperationalError("INSERT", None, Exception("server closed the connection unexpectedly"))


def corrected(state: Path) -> str:
    """The publication of a correction that turns out to be wrong."""
    with opened(state) as platform:
        publish_all(platform)
        return correct(platform)


def put_back_in(state: Path, publication: str) -> None:
    with opened(state) as platform:
        put_back(platform, publication)


@pytest.mark.parametrize("again", [False, True], ids=["somebody else is next", "the same rollback again"])
def test_a_rollback_that_failed_half_way_is_finished_by_the_next_and_undone_by_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """A full disk, or a lost database session, between the table's commit and the release."""
    bad = corrected(tmp_path / "state")
    with opened(tmp_path / "state") as platform:
        once_at(monkeypatch, recovery, "publish.before_release", full_disk)
        with pytest.raises(InterruptedPublicationError):
            put_back(platform, bad)
        assert platform.ledger.holds() == (), "readers see what was there, and it is not refused yet"
    with opened(tmp_path / "state") as platform:
        platform.settle()
        assert digest(platform) == GOOD, "the next publisher has finished it"
        if again:
            with suppress(RollbackError):  # refused as already done
                put_back(platform, bad)
        assert taken(platform) == {}, "no tick undoes it"
        assert digest(platform) == GOOD


def test_a_rollback_that_failed_before_its_first_commit_leaves_what_an_earlier_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = corrected(tmp_path / "state")
    with opened(tmp_path / "state") as platform:
        put_back(platform, bad)
        held, undone = platform.ledger.holds(), list(platform.ledger.indexed())[-1]
        once_at(monkeypatch, rolling_back, "rollback.planned", full_disk)
        with pytest.raises(OSError, match="No space left"):
            put_back(platform, undone)
        assert platform.ledger.holds() == held != ()
        assert taken(platform) == {}


def test_a_rollback_that_could_not_be_indexed_is_undone_by_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's server is gone for a moment after the release; a run that is at work indexes it a moment later."""
    bad = corrected(tmp_path / "state")
    with opened(tmp_path / "state") as platform, opened(tmp_path / "state") as run_at_work:
        once_at(monkeypatch, indexing, "ledger.recording", gone_server)
        with pytest.raises(LedgerError):
            put_back(platform, bad)
        run_at_work.current_release()  # as every step of a run asks for it
    with opened(tmp_path / "state") as platform:
        assert digest(platform) == GOOD, "readers see it"
        assert taken(platform) == {}, "no tick undoes it"


def test_a_rollback_beside_a_rebuild_of_the_ledger_is_undone_by_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = corrected(tmp_path / "state")
    with opened(tmp_path / "state") as platform:
        once_at(monkeypatch, rolling_back, "rollback.planned", lambda: rebuild(platform.lake, platform.ledger))
        put_back(platform, bad)
        rebuild(platform.lake, platform.ledger)
        assert digest(platform) == GOOD
        assert taken(platform) == {}, "no tick undoes it"


def test_a_rollback_that_died_half_way_before_a_rebuild_of_the_ledger_is_undone_by_no_tick(tmp_path: Path) -> None:
    """Killed after the table's commit; somebody rebuilds the ledger; the next run finishes the rollback."""
    bad = corrected(tmp_path / "state")
    assert killed(in_process(put_back_in, tmp_path / "state", bad, failpoint="publish.before_release"))
    with opened(tmp_path / "state") as platform:
        rebuild(platform.lake, platform.ledger)
        assert digest(platform) == BAD, "nobody has finished it"
    with opened(tmp_path / "state") as platform:
        platform.settle()
        assert digest(platform) == GOOD
        assert taken(platform) == {}, "no tick undoes it"


def test_what_a_person_took_up_again_is_not_held_by_a_rebuild_of_the_ledger(tmp_path: Path) -> None:
    """By force the day is made once more, of just the input that was refused."""
    bad = corrected(tmp_path / "state")
    with opened(tmp_path / "state") as platform:
        put_back(platform, bad)
        assert platform.ledger.holds(SILVER)
        publish(platform, SILVER, [DAY], 2)
        assert platform.ledger.holds(SILVER) == ()
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.holds(SILVER) == ()
        put_back(platform, list(platform.ledger.indexed())[-1])
        platform.ledger.drop(platform.ledger.holds())
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.holds() == (), "who lifted them wanted so"
        assert DAY in taken(platform, SILVER, BY_PERSON)
