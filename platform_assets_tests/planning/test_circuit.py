"""A circuit opens, is tried and closes exactly as its policy says, whatever verdicts, decisions and clocks come."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Circuit, ContractError
from platform_assets.planning.circuit import OVERRIDE_ENDED, ROLLED_BACK, CircuitState, TableVerdict, circuit
from platform_assets.records.decisions import CircuitDecision
from platform_assets_tests.support.models.circuit import TABLE, Model, at, decision, verdict

FIVE = [verdict(n, n, "volume") for n in range(1, 6)]
ONCE = Circuit(at_once=("contract",))
OPENED = [verdict(1, 0, "contract")]
TWICE_RIGHT, MISSING = replace(ONCE, successes=2), Circuit(at_once=("missing",), verdict_within_minutes=9)
CONTRACT, FROZEN = verdict(3, 6, "contract"), decision("freeze", 0, scope="all")


def tried(number: int, failed: str = "", *, after: int) -> TableVerdict:
    return verdict(number, 60, failed, is_try=True, tries=after)


TWICE = [verdict(1, 0, ROLLED_BACK, publication="p1"), verdict(2, 60, ROLLED_BACK, publication="p2")]


@pytest.mark.parametrize(
    ("state", "policy", "verdicts", "decisions", "now"),
    [
        ("closed", Circuit(), FIVE[:4], [], 5),
        ("open", Circuit(), FIVE, [], 5),
        ("closed", Circuit(), [replace(each, run="one") for each in FIVE], [], 5),
        ("closed", Circuit(), [*FIVE[:4], verdict(5, 5), verdict(6, 6, "volume")], [], 6),
        ("open", Circuit(failures=(2, 3)), [FIVE[0], verdict(2, 2), FIVE[2]], [], 5),
        ("closed", Circuit(failures=(2, 3), classes=("code",)), FIVE, [], 5),
        ("closed", Circuit(failures=(2, 3), per="dates"), FIVE, [], 5),
        ("open", Circuit(failures=(2, 3), per="dates"), [FIVE[0], verdict(2, 1500, "volume")], [], 1500),
        ("closed", Circuit(failures=(1, 1)), [verdict(1, 0, warned={"volume": "few"})], [], 0),
        ("open", Circuit(failures=(1, 1), warnings=True), [verdict(1, 0, warned={"volume": "few"})], [], 0),
        ("open", ONCE, OPENED, [], 0),
        ("closed", ONCE, [verdict(1, 0, "volume")], [], 0),
        ("closed", Circuit(), TWICE, [], 60),
        ("open", Circuit(rollbacks=(2, 1)), TWICE, [], 60),
        ("half-open", ONCE, OPENED, [], 60),
        ("open", ONCE, [*OPENED, verdict(2, 60, "volume", is_try=True)], [], 179),
        ("half-open", ONCE, [*OPENED, verdict(2, 60, "volume", is_try=True)], [], 180),
        ("closed", ONCE, [*OPENED, verdict(2, 60, is_try=True)], [], 60),
        ("half-open", replace(ONCE, successes=2), [*OPENED, verdict(2, 60, is_try=True)], [], 60),
        ("open", ONCE, [*OPENED, verdict(2, 60)], [], 59),
        ("closed", ONCE, OPENED, [decision("close", 1)], 0),
        ("open", ONCE, [*OPENED, verdict(2, 9, "contract")], [decision("close", 1)], 9),
        ("frozen", Circuit(), [], [decision("freeze", 0)], 0),
        ("frozen", Circuit(), [], [decision("freeze", 0, scope="all"), decision("close", 0)], 0),
        ("closed", Circuit(), [], [decision("freeze", 0, scope="all"), decision("close", 0, scope="all")], 0),
        ("open", ONCE, OPENED, [decision("freeze", 1, scope="all"), decision("close", 1, scope="all")], 5),
        ("frozen", ONCE, OPENED, [decision("freeze", 1, scope="all"), decision("close", 1)], 5),
        ("closed", ONCE, OPENED, [decision("freeze", 1), decision("close", 1)], 5),
        ("overridden", ONCE, OPENED, [decision("override", 1, until=30)], 29),
        ("open", ONCE, OPENED, [decision("override", 1, until=30)], 30),
        ("frozen", ONCE, OPENED, [decision("override", 1, until=30), decision("freeze", 1)], 29),
        ("open", ONCE, [*OPENED, verdict(2, 5, is_try=True), CONTRACT], [decision("override", 1, until=30)], 7),
        ("open", ONCE, [CONTRACT], [FROZEN, decision("override", 0, until=30), decision("close", 0, scope="all")], 7),
        ("open", ONCE, [CONTRACT], [decision("override", 0, until=30)], 7),
        (
            "open",
            ONCE,
            [CONTRACT],
            [FROZEN, decision("override", 0, until=30), decision("close", 3, 7, scope="all")],
            8,
        ),
        ("closed", Circuit(), [verdict(1, 0, is_pending=True)], [], 999),
        ("closed", MISSING, [verdict(1, 0, is_pending=True)], [], 9),
        ("open", MISSING, [verdict(1, 0, is_pending=True)], [], 10),
        # A batch that was at work when a person decided is missing later: neither passed nor closed by that.
        ("frozen", MISSING, [verdict(1, 0, is_pending=True)], [FROZEN, decision("override", 1, 5, until=60)], 10),
        ("open", MISSING, [verdict(1, 0, is_pending=True)], [decision("freeze", 1, 4), decision("close", 1, 5)], 10),
        # A circuit that opens after an override of a freeze is not passed either.
        ("frozen", ONCE, [CONTRACT], [FROZEN, decision("override", 0, until=30)], 7),
        # An override that ended stays so whatever the clock says later, once anything has happened after its end.
        ("open", ONCE, [*OPENED, verdict(2, 31)], [decision("override", 1, until=30)], 7),
        ("open", ONCE, [*OPENED, verdict(2, 30, OVERRIDE_ENDED)], [decision("override", 1, until=30)], 7),
        # A try that began before the circuit was closed, or beside another, says nothing of the next opening, or try.
        ("open", ONCE, [*OPENED, CONTRACT, verdict(4, 7, is_try=True, tries=1)], [decision("close", 1)], 8),
        ("half-open", TWICE_RIGHT, [*OPENED, tried(2, after=1), tried(3, after=1)], [], 60),
        ("closed", TWICE_RIGHT, [*OPENED, tried(2, after=1), tried(3, after=2)], [], 60),
        ("half-open", ONCE, [*OPENED, tried(2, "code", after=1), tried(3, "code", after=1)], [], 180),
        ("open", ONCE, OPENED, [], -999),
        # Thousands of verdicts that open nothing are read in a moment.
        ("closed", Circuit(), [verdict(n, n, *["volume"] * (n % 2)) for n in range(1, 10_001)], [], 10_000),
    ],
)
def test_where_a_circuit_stands(
    state: str, policy: Circuit, verdicts: list[TableVerdict], decisions: list[CircuitDecision], now: float
) -> None:
    found = circuit(verdicts, policy, decisions, at(now))
    assert found.state == state, found
    assert found.stops == (state in ("open", "half-open", "frozen"))
    assert bool(found.why) == bool(found.since) == (state != "closed")


def test_its_history_has_what_each_decision_came_to() -> None:
    around = [decision("freeze", 1, 5, scope="all"), decision("close", 1, 6, scope="all"), decision("close", 1, 7)]
    changes = circuit(OPENED, ONCE, around, at(9)).changes
    assert [change.state for change in changes] == ["open", "frozen", "open", "closed"]


def test_the_newest_day_that_failed_is_tried_and_not_the_one_that_failed_last() -> None:
    days = [date(2017, 1, 10), date(2017, 1, 11), date(2016, 12, 1)]
    failed = [verdict(number, number, "volume", day=day) for number, day in enumerate(days, 1)]
    found = circuit(failed, Circuit(failures=(3, 3)), [], at(5))
    assert (found.state, found.failing[-1].day) == ("open", date(2017, 1, 11))


def test_it_says_why_since_when_and_what_comes_next() -> None:
    opened = circuit(OPENED, ONCE, [], at(5))
    assert opened.sentence(TABLE) == (
        "the circuit of silver.lines is open since 2017-01-01 00:00 UTC: contract: it failed by contract; "
        "next try at 2017-01-01 01:00 UTC, or when its input or code is new"
    )
    again = circuit([*OPENED, verdict(2, 60, "volume", is_try=True)], ONCE, [], at(61))
    assert again.next_try == at(180)
    assert again.why.endswith("; the try at 2017-01-01 01:00 UTC failed by volume: it failed by volume")
    assert [change.state for change in again.changes] == ["open", "open"]


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"failures": (6, 5)}, "6 of the last 5 runs cannot fail"),
        ({"failures": (0, 5)}, "failures[0]=0"),
        ({"wait_minutes": 90, "longest_wait_minutes": 60}, "waits 90 minutes, and at most 60"),
        ({"at_once": ("missing",)}, "does not say when one is missing"),
        ({"at_once": ("nothing",)}, "at_once[0]='nothing'"),
        ({"per": "weeks"}, "per='weeks'"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_with_its_field(declared: dict[str, Any], says: str) -> None:
    with pytest.raises(ContractError) as refused:
        Circuit(**declared)
    assert says in refused.value.what
    assert refused.value.field in declared or refused.value.field == "verdict_within_minutes"


KINDS = st.sampled_from(
    ["passed", "volume", "contract", "begun", "ended", "try", "tried", "tried in vain", "freeze", "close", "override"]
)
MINUTES = st.sampled_from([-30, 0, 1, 5, 20, 60, 120, 400])
EVENTS = st.lists(st.tuples(KINDS, MINUTES, st.integers(0, 3)), min_size=9, max_size=30)
POLICIES = st.builds(
    Circuit,
    failures=st.sampled_from([(1, 1), (2, 2), (2, 3), (3, 5)]),
    at_once=st.just(("contract", "missing")),
    verdict_within_minutes=st.integers(1, 300),
    wait_minutes=st.integers(1, 90),
    longest_wait_minutes=st.integers(90, 500),
    successes=st.integers(1, 3),
)


@settings(max_examples=300, deadline=None)
@given(events=EVENTS, policy=POLICIES)
def test_it_is_in_the_state_of_a_model_after_every_event(events: list[tuple[str, int, int]], policy: Circuit) -> None:
    """The clock may go back by half an hour between events; verdicts of a run may come in several batches.

    Batches and tries begin, and end in another order or, killed, never; each try says what it saw when it began. What
    was kept for a batch that has come is left out, as the ledger leaves it out.
    """
    model, clock, number = Model(policy), 0, 0
    verdicts: list[TableVerdict] = []
    decisions: list[CircuitDecision] = []
    tries: list[int] = []

    def write(judged: TableVerdict) -> None:
        nonlocal number
        number += 1
        verdicts.append(replace(judged, number=number))
        model.see(verdicts[-1])

    for place, (kind, minutes, run) in enumerate(events, 1):
        clock += minutes
        for noted in circuit(verdicts, policy, decisions, at(clock)).by_clock:  # as whoever writes does before
            verdicts[:] = [each for each in verdicts if not (each.is_pending and each.number == noted.number)]
            write(noted)
        if kind in ("freeze", "close", "override"):
            event = decision(kind, number, clock, until=clock + 40 if kind == "override" else None)
            decisions.append(event)
            model.see(event)
        elif kind == "begun":
            number += 1
            verdicts.append(verdict(number, clock, run=f"{run}", is_pending=True))
        elif kind == "ended":
            over = next((each for each in reversed(verdicts) if each.is_pending), None)
            verdicts[:] = [each for each in verdicts if each is not over]
        elif kind == "try":
            tries += filter(None, [circuit(verdicts, policy, decisions, at(clock)).follows])
        elif "tried" not in kind or tries:
            failed = {"tried in vain": "code", "passed": "", "tried": ""}.get(kind, kind)
            its = {"is_try": True, "tries": tries.pop(run % len(tries))} if "tried" in kind else {}
            write(verdict(0, clock, failed, run=f"{run}", **its))
        for later in (0, 50, 500) if place == len(events) else (0,):
            now = at(clock + later)
            found: CircuitState = circuit(verdicts, policy, decisions, now)
            model_now = model.with_missing(verdicts, now)
            assert found.state == model_now.state(now), (kind, later, found)
            if found.state in ("open", "half-open"):
                assert (found.since, found.next_try) == (model_now.opened, model_now.next_try)
