"""A circuit opens, is tried and closes exactly as its policy says, whatever verdicts, decisions and clocks come."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Circuit, ContractError
from platform_assets.planning.circuit import ROLLED_BACK, CircuitState, TableVerdict, circuit
from platform_assets.records.decisions import CircuitDecision
from platform_assets_tests.support.models.circuit import TABLE, Model, at, decision, verdict

FIVE = [verdict(n, n, "volume") for n in range(1, 6)]
ONCE = Circuit(at_once=("contract",))
OPENED = [verdict(1, 0, "contract")]
CONTRACT, FROZEN = verdict(3, 6, "contract"), decision("freeze", 0, scope="all")
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
        ("closed", Circuit(at_once=("missing",), verdict_within_minutes=9), [verdict(1, 0, is_pending=True)], [], 9),
        ("open", Circuit(at_once=("missing",), verdict_within_minutes=9), [verdict(1, 0, is_pending=True)], [], 10),
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


KINDS = st.sampled_from(["passed", "volume", "contract", "tried", "tried in vain", "freeze", "close", "override"])
EVENTS = st.lists(st.tuples(KINDS, st.integers(-30, 400), st.integers(0, 3)), max_size=40)
POLICIES = st.builds(
    Circuit,
    failures=st.sampled_from([(1, 1), (2, 2), (2, 3), (3, 5)]),
    at_once=st.just(("contract",)),
    wait_minutes=st.integers(1, 90),
    longest_wait_minutes=st.integers(90, 500),
    successes=st.integers(1, 3),
)


@settings(max_examples=300, deadline=None)
@given(events=EVENTS, policy=POLICIES)
def test_it_is_in_the_state_of_a_model_after_every_event(events: list[tuple[str, int, int]], policy: Circuit) -> None:
    """The clock may go back by half an hour between events; verdicts of a run may come in several batches."""
    model, clock = Model(policy), 0
    verdicts: list[TableVerdict] = []
    decisions: list[CircuitDecision] = []
    for kind, minutes, run in events:
        clock += minutes
        number = len(verdicts) + 1
        if kind in ("freeze", "close", "override"):
            event = decision(kind, number - 1, clock, until=clock + 100 if kind == "override" else None)
            decisions.append(event)
            model.see(event)
        else:
            failed = {"tried in vain": "code", "passed": "", "tried": ""}.get(kind, kind)
            judged = verdict(number, clock, failed, run=f"{run}", is_try="tried" in kind)
            verdicts.append(judged)
            model.see(judged)
        for later in (0, 50, 500):
            now = at(clock + later)
            found: CircuitState = circuit(verdicts, policy, decisions, now)
            assert found.state == model.state(now), (kind, later, found)
            if found.state in ("open", "half-open"):
                assert (found.since, found.next_try) == (model.opened, model.next_try)
