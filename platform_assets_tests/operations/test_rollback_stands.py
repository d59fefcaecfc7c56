"""What a person put back stays so, also where its publisher failed, until its own input is another one."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy.exc import OperationalError

from platform_assets.engine.circuits import CircuitOpenError
from platform_assets.engine.pending import waiting as all_that_waits
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, readiness
from platform_assets.errors import PlatformError
from platform_assets.lakehouse import publish as publishing
from platform_assets.lakehouse.errors import InterruptedPublicationError
from platform_assets.ledger import ledger as indexing
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.sync import rebuild
from platform_assets.operations import rollback as rolling_back
from platform_assets.operations.breaker import close, freeze
from platform_assets.operations.lineage.day_history import rollback_of
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import lift_rollbacks, rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.configuration import Configuration
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets.records.code_version import Attempt
from platform_assets.records.decisions import LiftDecision, from_content
from platform_assets.records.history import LASTING, ROLL_BACK, Hold
from platform_assets.settings import load_settings
from platform_assets_tests.support.days_on_paper import (
    DAY,
    DAYS,
    GOLD,
    RAW,
    SILVER,
    correct,
    digest,
    opened,
    publish,
    publish_all,
    put_back,
    settings_in,
    taken,
)
from platform_assets_tests.support.history import DAILY, TILLS
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.shelf import in_process, killed


def corrected_and_put_back(platform: Platform) -> None:
    """A correction of a day is computed, and what came of it is rolled back."""
    put_back(platform, correct(platform))


def waiting(platform: Platform, table: str) -> dict[date, Reasons]:
    """The days of a table that the next tick leaves to a person."""
    plan = plan_steps(platform, AUTOMATIC)
    return {day: why for step in plan.waiting if step.table == table for day, why in step.reasons.items()}


def is_refused(platform: Platform, table: str) -> bool:
    state = readiness(platform.catalogue[table], [DAY], LakeSnapshot.now(platform))
    assert DAY in {*state.held, *state.ready}
    return DAY in state.held


def test_an_edit_of_another_tables_code_undoes_no_rollback(platform: Platform) -> None:
    corrected_and_put_back(platform)
    for request in (AUTOMATIC, BY_PERSON):
        assert taken(platform, SILVER, request) == {}
    platform.code_versions[GOLD] = "other"
    for request in (AUTOMATIC, BY_PERSON):
        assert taken(platform, SILVER, request) == {}
    assert is_refused(platform, SILVER)


@pytest.mark.parametrize("what", ["code", "configuration"])
def test_other_code_or_another_contract_of_its_own_waits_for_a_person_and_is_then_tried(
    platform: Platform, what: str
) -> None:
    corrected_and_put_back(platform)
    if what == "code":
        platform.code_versions[SILVER] = "other"
    else:
        rules = Configuration({**platform.configurations[SILVER].parts, "rules": {"warm": "celsius > 0"}})
        platform.configurations[SILVER] = rules
    assert taken(platform, SILVER, AUTOMATIC) == {}
    assert waiting(platform, SILVER)[DAY] == (what,)
    assert DAY in taken(platform, SILVER, BY_PERSON)
    assert not is_refused(platform, SILVER)


def test_what_wrong_code_made_of_the_same_input_is_not_made_again_until_the_code_is_another(platform: Platform) -> None:
    good = platform.code_versions[SILVER]
    platform.code_versions[SILVER] = "wrong"
    put_back(platform, publish(platform, SILVER, [DAY], 2))
    assert taken(platform, SILVER, AUTOMATIC) == {}
    assert is_refused(platform, SILVER), "nor by a person's refresh, while the wrong code is there"
    assert [day.hold.day for day in held_days(platform, platform.ledger.holds())] == [DAY]
    rebuild(platform.lake, platform.ledger)
    assert is_refused(platform, SILVER)
    platform.code_versions[SILVER] = good
    for request in (AUTOMATIC, BY_PERSON):
        assert taken(platform, SILVER, request) == {}, "it is what it would become"
    assert not held_days(platform, platform.ledger.holds()), "what is refused of it, nobody would make now"
    platform.code_versions[SILVER] = "mended"
    assert not is_refused(platform, SILVER)


def test_a_day_that_had_nothing_before_is_taken_by_a_person_once_its_code_is_another(platform: Platform) -> None:
    put_back(platform, platform.ledger.current_days(SILVER)[DAY].publication)
    assert DAY not in platform.ledger.current_days(SILVER)
    for request in (AUTOMATIC, BY_PERSON):
        assert taken(platform, SILVER, request) == {}
    platform.code_versions[SILVER] = "mended"
    assert taken(platform, SILVER, AUTOMATIC) == {}
    assert DAY in taken(platform, SILVER, BY_PERSON)


def test_other_code_upstream_that_makes_the_same_undoes_no_rollback_of_what_reads_it(platform: Platform) -> None:
    publish(platform, RAW, [DAY], 2)
    publish(platform, SILVER, [DAY], 2)
    put_back(platform, publish(platform, GOLD, DAYS[7:], 2))
    assert {(hold.table, hold.day, hold.gate) for hold in platform.ledger.holds()} == {
        (GOLD, day, ROLL_BACK) for day in DAYS[7:]
    }
    platform.code_versions[SILVER] = "other"
    publish(platform, SILVER, [DAY], 2)
    assert taken(platform, GOLD, AUTOMATIC) == {}
    assert is_refused(platform, GOLD)


def test_of_a_day_that_went_back_with_what_it_is_made_from_no_rollback_is_said_to_end(platform: Platform) -> None:
    """It is not held; what was taken back would count again only where its input's hold ends, which says so."""
    publish(platform, RAW, [DAY], 2)
    wrong = [publish(platform, table, [DAY], 2) for table in (SILVER, GOLD)]
    records = tuple(record for name in wrong for record in chosen_publications(platform, name))
    rollback(platform, records, Author("undo", "it was wrong", "Zoë"))
    stood = platform.ledger.holds()
    assert [(hold.table, hold.day) for hold in stood] == [(SILVER, DAY)]
    publish(platform, RAW, [DAY], 3)
    for table in (SILVER, GOLD):
        publish(platform, table, [DAY], 3)
    platform.ledger.drop(stood)
    assert rollback_of(platform, GOLD, DAY, stale=False) is None
    ended = rollback_of(platform, SILVER, DAY, stale=False)
    assert ended is not None
    assert ended.table == SILVER


def test_what_is_rolled_forward_again_is_refused_no_more(platform: Platform) -> None:
    platform.code_versions[SILVER] = "first"
    publish(platform, RAW, [DAY], 2)
    wrong = publish(platform, SILVER, [DAY], 2)
    platform.code_versions[SILVER] = "second"
    put_back(platform, wrong)
    refused = [hold.refused for hold in platform.ledger.holds(SILVER)]
    assert {one.made_by.code for one in refused if isinstance(one, Attempt)} == {
        "first",
        "second",
    }, "neither what was rolled back, nor the same by today's code"
    forward = platform.ledger.current_days(SILVER)[DAY].publication
    somebody = Author("r", "a test", "zoe")
    freeze(platform, SILVER, somebody)
    with pytest.raises(CircuitOpenError, match="nothing was published"):
        put_back(platform, forward)
    close(platform, SILVER, somebody)
    put_back(platform, forward)
    again = platform.ledger.current_days(SILVER)[DAY]
    assert again.digest == "0-2-0-0-0"
    made = again.fingerprint
    assert [hold for hold in platform.ledger.holds(SILVER) if hold.refuses(made)] == []


def test_only_the_days_that_are_forced_are_made_again(platform: Platform) -> None:
    corrected_and_put_back(platform)
    contract, other = platform.catalogue[SILVER], DAYS[0]
    state = readiness(contract, [other, DAY], LakeSnapshot.now(platform), forced=[other])
    assert (state.ready, list(state.held)) == ((other,), [DAY])
    assert readiness(contract, [DAY], LakeSnapshot.now(platform), forced=[DAY]).ready == (DAY,)


def test_until_it_is_lifted_neither_input_nor_code_nor_force_makes_a_day_again_and_readers_go_on(
    platform: Platform,
) -> None:
    chosen = chosen_publications(platform, correct(platform))
    rollback(platform, chosen, Author("undo", "it was wrong", "Zoë", decides=LASTING))
    publish(platform, RAW, [DAY], 3)
    platform.code_versions[SILVER] = "other"
    state = readiness(platform.catalogue[SILVER], [DAY], LakeSnapshot.now(platform), forced=[DAY])
    assert (state.ready, list(state.held)) == ((), [DAY])
    for request in (AUTOMATIC, BY_PERSON):
        assert DAY not in taken(platform, SILVER, request)
    forced = plan_steps(platform, Request(frozenset({SILVER}), frozenset({DAY}), by_person=True, force=True))
    assert not forced.steps
    assert list(forced.blocked[SILVER]) == [DAY]
    publish(platform, SILVER, [DAYS[3]], 4)
    assert DAY in taken(platform, GOLD), "what reads the day reads what was put back"
    lift_rollbacks(platform, SILVER, None, Author("lift", "it was right", "Ann"))
    assert DAY in taken(platform, SILVER, BY_PERSON)


def test_whoever_makes_by_force_what_was_put_back_has_decided_so(platform: Platform) -> None:
    corrected_and_put_back(platform)
    publish(platform, SILVER, [DAY], 2)
    decided = [from_content(entry.content) for entry in platform.ledger.decision_chain()]
    assert [decision.kind for decision in decided] == ["roll back", "lift"]
    lift = decided[-1]
    assert isinstance(lift, LiftDecision)
    assert (lift.table, lift.days) == (SILVER, (DAY,))
    assert lift.publication == platform.ledger.current_days(SILVER)[DAY].publication


def test_what_was_made_from_a_day_that_is_gone_is_named_until_it_is_there_again(platform: Platform) -> None:
    put_back(platform, platform.ledger.current_days(SILVER)[DAY].publication, days=[DAY])
    assert DAY not in platform.ledger.current_days(SILVER)
    plan = plan_steps(platform, BY_PERSON)
    assert plan.is_empty
    [lost] = plan.bereft.values()
    assert {day: (why.table, why.day) for day, why in lost.items()} == dict.fromkeys(
        DAYS[DAYS.index(DAY) :], (SILVER, DAY)
    )


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(minutes=5)], ids=["clocks agree", "the gate's is ahead"])
def test_what_reads_a_day_that_was_put_back_follows_though_a_gate_had_refused_newer_rows_of_it(
    tmp_path: Path, ahead: timedelta
) -> None:
    raw, silver, gold = "raw.transactions", "silver.transactions", "gold.daily_sales"
    settings = load_settings(
        state=tmp_path / "sales", domains=DAILY, calendar_first=DAYS[0], calendar_last=DAY, today=DAY
    )
    with open_platform(settings) as platform:
        for table in (raw, "raw.products", silver, "silver.products", gold):
            publish(platform, table, DAYS[:8], 1)
        publish(platform, raw, [DAY], 2)
        wrong = publish(platform, silver, [DAY], 2)
        publish(platform, gold, [DAY], 2)
        publish(platform, raw, [DAY], 3)
        snapshot = LakeSnapshot.now(platform)
        refused = fingerprints(platform.catalogue[silver], [DAY], {raw: snapshot.digests(raw)}, platform.calendar, {})[
            DAY
        ]
        mark = Attempt(refused, platform.version(silver))
        platform.ledger.hold([Hold(silver, DAY, mark, "volume", "too few rows", "r", datetime.now(UTC) + ahead)])
        put_back(platform, wrong)
        assert readiness(platform.catalogue[gold], [DAY], LakeSnapshot.now(platform)).ready == (DAY,)
        assert set(taken(platform, gold, AUTOMATIC)) == set(all_that_waits(platform, 100).stale[gold]) == {DAY}


def test_a_silver_table_without_a_contract_here_is_not_rolled_back(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        wrong = correct(platform)
        was = digest(platform)
    without = settings_in(tmp_path / "state").model_copy(update={"domains": (TILLS,)})
    with (
        open_platform(without) as platform,
        pytest.raises(PlatformError, match=r"(?s)No contract declares silver\.readings .*PLATFORM_DOMAINS"),
    ):
        put_back(platform, wrong)
    with opened(tmp_path / "state") as platform:
        assert digest(platform) == was
        put_back(platform, wrong)
        assert digest(platform) != was
        assert not taken(platform)


def test_a_gold_table_without_a_contract_here_stays_as_it_was_put_back(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        good = platform.ledger.current_days(GOLD)[DAY].digest
        correct(platform)
        wrong = publish(platform, GOLD, [DAY], 2)
        assert DAY not in taken(platform, GOLD)
    without = settings_in(tmp_path / "state").model_copy(update={"domains": (TILLS,)})
    with open_platform(without) as platform:
        put_back(platform, wrong)
    with opened(tmp_path / "state") as platform:
        assert platform.ledger.current_days(GOLD)[DAY].digest == good
        assert DAY not in taken(platform, GOLD)


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


@pytest.mark.parametrize(
    ("where", "point", "fails", "with_error"),
    [
        (publishing, "publish.before_release", full_disk, InterruptedPublicationError),
        (indexing, "ledger.recording", gone_server, LedgerError),
    ],
    ids=["a full disk between the table's commit and the release", "a lost ledger after the release"],
)
def test_a_rollback_that_failed_half_way_is_finished_by_the_next_and_undone_by_no_tick(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: ModuleType,
    point: str,
    fails: Callable[[], None],
    with_error: type[Exception],
) -> None:
    """Somebody else is next, or the same rollback is made again, which is refused as already done."""
    bad = corrected(tmp_path / "state")
    with opened(tmp_path / "state") as platform, opened(tmp_path / "state") as run_at_work:
        once_at(monkeypatch, where, point, fails)
        with pytest.raises(with_error):
            put_back(platform, bad)
        run_at_work.current_release()  # as every step of a run asks for it
    with opened(tmp_path / "state") as platform:
        platform.settle()
        for _ in range(2):
            assert digest(platform) == GOOD, "readers see it"
            assert taken(platform) == {}, "no tick undoes it"
            with suppress(PlatformError):
                put_back(platform, bad)


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
