"""Held days: those about which there is the same to say are told as one, and what a person may accept. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from platform_assets.cli.console import console, print_parts
from platform_assets.cli.held_view import held_parts
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.held_days import HeldDay, together
from platform_assets.operations.quarantine import Acceptance, accepted_together
from platform_assets.planning.day_states import Blocked, DayState, Held, Stale, UpToDate
from platform_assets.records.code_version import Attempt, TiedTo
from platform_assets.records.history import ROLL_BACK, ArrivalRecord, Hold

TABLE = "silver.sales"
DAYS = [date(2017, 1, n) for n in range(1, 6)]
NOW = datetime(2017, 2, 1, tzinfo=UTC)


def hold(day: date, gate: str = "volume", tied_to: date | None = None) -> Hold:
    refused = Attempt("f") if tied_to is None else TiedTo(tied_to)
    return Hold(TABLE, day, refused, gate if tied_to is None else "conservation", "why", "a run", NOW)


def states(*holds: Hold) -> dict[date, DayState]:
    return {**{day: UpToDate() for day in DAYS}, **{each.day: Held(each) for each in holds}}


def accepted(days: list[date], held: tuple[Hold, ...], now: dict[date, DayState]) -> Acceptance:
    return accepted_together(TABLE, days, held, now, {hold.day: "f" for hold in held})


def test_days_are_accepted_with_those_that_records_tie_to_them() -> None:
    held = (
        hold(DAYS[0]),
        hold(DAYS[1], tied_to=DAYS[0]),
        hold(DAYS[2], tied_to=DAYS[1]),
        hold(DAYS[3], "reconciliation"),
    )
    for asked in ([DAYS[0]], [DAYS[2]]):
        found = accepted(asked, held, states(*held))
        assert found.step.days == tuple(DAYS[:3])
        assert found.checks == {"volume"}
    assert accepted(DAYS[:4], held, states(*held)).checks == {"volume", "reconciliation"}


@pytest.mark.parametrize("gate", ["contract", "conservation"])
def test_a_broken_promise_and_a_lost_row_are_not_accepted_nor_what_is_tied_to_them(gate: str) -> None:
    held = hold(DAYS[0]), hold(DAYS[1], gate), hold(DAYS[2], tied_to=DAYS[1])
    for asked in (DAYS[:2], [DAYS[2]]):
        with pytest.raises(PlatformError, match=f"{TABLE} 2017-01-02 is held by {gate}, and what that finds"):
            accepted(asked, held, states(*held))


def test_a_day_that_is_not_held_or_put_back_or_would_be_tried_again_is_not_accepted() -> None:
    held = hold(DAYS[0]), hold(DAYS[1], ROLL_BACK), hold(DAYS[2])
    now = states(*held) | {DAYS[2]: Stale("other", by_data=True)}
    with pytest.raises(PlatformError) as refused:
        accepted(DAYS[:4], held, now)
    said = str(refused.value)
    assert "2017-01-01" not in said
    assert f"{TABLE} 2017-01-02 was rolled back by a person" in said
    assert f"{TABLE} 2017-01-03 is held, but would now become something that no gate has seen" in said
    assert f"{TABLE} 2017-01-04 is not held" in said


def test_what_a_gate_refused_of_a_day_after_it_was_put_back_is_accepted() -> None:
    """Readers have what was put back, and what the day would become now is the gate's to refuse."""
    put_back, refused = replace(hold(DAYS[0], ROLL_BACK), refused=Attempt("of before")), hold(DAYS[0])
    found = accepted(DAYS[:1], (put_back, refused), states(refused))
    assert found.checks == {"volume"}
    assert found.holds[DAYS[0]] == (refused,)


def test_a_day_that_waits_for_what_it_reads_is_not_said_to_be_tried_again() -> None:
    waits = Blocked("silver.goods", DAYS[1], hold(DAYS[1]), is_there=True)
    with pytest.raises(PlatformError, match=r"cannot be computed now: it waits for silver\.goods 2017-01-02"):
        accepted(DAYS[:1], (hold(DAYS[0]),), states() | {DAYS[0]: waits})


def test_all_that_gates_found_on_a_day_is_accepted_one_after_the_other() -> None:
    """A gate is asked only once what another found was accepted: both stand, and either alone would go on for ever."""
    held = hold(DAYS[0], "reconciliation"), hold(DAYS[0])
    for newest in held:
        found = accepted(DAYS[:1], held, states(newest))
        assert found.checks == {"reconciliation", "volume"}
        assert found.holds[DAYS[0]] == held
    with pytest.raises(PlatformError, match="is held by contract"):
        accepted(DAYS[:1], (hold(DAYS[0], "contract"), *held), states(held[1]))


def test_what_another_attempt_was_refused_for_is_not_accepted_with_it() -> None:
    before = replace(hold(DAYS[0], "reconciliation"), refused=Attempt("of other rows"))
    now = hold(DAYS[0])
    assert accepted(DAYS[:1], (before, now), states(now)).checks == {"volume"}


def arrival(name: str) -> ArrivalRecord:
    return ArrivalRecord(
        path=f"sales/2017-02-01/{name}", table="raw.sales", arrival_date=NOW.date(), size=1, sha256="0",
        modified_ns=0, publication="p",
    )  # fmt: skip


def held(number: int, *new: str, tied_to: int | None = None) -> HeldDay:
    day = date(2016, 12, 31) + timedelta(days=number)
    refused = Attempt("f") if tied_to is None else TiedTo(date(2016, 12, 31) + timedelta(days=tied_to))
    gate, reason = ("volume", "too few rows") if tied_to is None else ("conservation", "records moved")
    hold = Hold(TABLE, day, refused, gate, f"{TABLE} on {day}: {reason}", "a run", NOW)
    return HeldDay(hold, NOW, None, None, tuple(arrival(name) for name in new))


def numbers(days: list[HeldDay]) -> list[list[int]]:
    return [[day.hold.day.timetuple().tm_yday for day in group] for group in together(days)]


def test_many_days_with_the_same_to_say_are_one() -> None:
    days = [held(1, "a"), held(2, "a"), held(3, "b"), held(4, "a"), held(5, "b"), held(6)]
    assert numbers(days) == [[1, 2, 4], [3], [5], [6]]


def test_days_that_are_tied_to_another_are_one_whatever_is_new_on_them() -> None:
    days = [held(1, "a", tied_to=4), held(2, "b", tied_to=4), held(3, tied_to=4), held(4, "c"), held(5, tied_to=6)]
    assert numbers(days) == [[1, 2, 3], [4], [5]]


def test_what_is_printed_of_many_days_names_each_of_them_and_each_command_once() -> None:
    days = [held(n, "a") for n in (1, 2, 3, 5)] + [held(n, "b", tied_to=1) for n in (10, 11, 12)]
    with console.capture() as printed:
        print_parts(held_parts(days))
    said = " ".join(printed.get().split())
    assert f"held {TABLE}, 4 days: 2017-01-01..2017-01-03,2017-01-05; each for the like of 2017-01-01, since" in said
    assert f"held {TABLE}, 3 days: 2017-01-10..2017-01-12; each for the like of 2017-01-10, since" in said
    assert said.count("platform-assets undo") == 1
    assert "sales/2017-02-01/a" in said


def said_of(days: list[HeldDay], *, in_short: bool = False) -> str:
    with console.capture() as printed:
        print_parts(held_parts(days, in_short=in_short))
    return " ".join(printed.get().split())


def test_nobody_is_told_to_compute_by_force_what_was_put_back_without_hearing_that_it_ends_the_rollback() -> None:
    refused, other = held(1), held(2)
    put_back = replace(other, hold=replace(other.hold, gate=ROLL_BACK))
    assert "--force" not in said_of([refused])
    assert "tried again" not in said_of([put_back])
    assert "2017-01-02 --force` would end the rollback at once." in said_of([put_back])
    assert "tried again" in said_of([refused, put_back])


def test_whoever_sees_a_day_held_that_may_be_right_is_told_how_it_is_accepted() -> None:
    accept = "Right, only unusual? `platform-assets accept"
    assert f"{accept} {TABLE} --days 2017-01-01 --reason … --by …` publishes it." in said_of([held(1)])
    assert f"{accept} TABLE --days DAY" in said_of([held(1), held(2)])
    stopped = said_of([replace(held(1), is_stopped=True)])
    assert (accept in stopped, f"`platform-assets status circuits {TABLE}`" in stopped) == (False, True)
    assert "accept" not in said_of([held(1, tied_to=2)]), "what conservation found cannot be true"
