"""`breaker`: open for everybody when something is published, signed in the chain, closed again; its guide runs."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from random import Random
from typing import Any

import pytest
from sqlalchemy import delete

from platform_assets import contracts
from platform_assets.contracts import Catalogue, Circuit
from platform_assets.engine import circuits as engine_circuits
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.circuits import CircuitOpenError, circuits, record_verdict
from platform_assets.engine.pending import due_tries
from platform_assets.engine.platform import Author
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step import holds as step_holds
from platform_assets.engine.step.holds import announced_settled, failed_by, failures_recorded, write_holds
from platform_assets.lakehouse import publish as lake_publish
from platform_assets.lakehouse.publish import recover
from platform_assets.ledger import holds as ledger_holds
from platform_assets.ledger.schema import verdicts as verdicts_table
from platform_assets.operations import breaker, opening
from platform_assets.operations.opening import open_platform
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.circuit import CircuitState, TableVerdict, circuit
from platform_assets.records.code_version import UNTIL_LIFTED, Attempt
from platform_assets.records.decisions import CircuitDecision
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival, Warned
from platform_assets.settings import Settings, project_root
from platform_assets.spark.tables.failures import TransformError, users_code
from platform_assets_tests.support.cli.commands import LAST, Run, assert_refused
from platform_assets_tests.support.cli.products import (
    DAY,
    RAW,
    SILVER,
    arrive,
    compute,
    computed,
    deliver,
    publish_arrivals,
)
from platform_assets_tests.support.days_on_paper import stage
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.models.circuit import Model


def fail(settings: Settings, run: str, day: date = DAY, gate: str = "volume") -> None:
    """What a run writes down of a day that a gate refused, made from what is there now."""
    with open_platform(settings) as platform:
        refused = Attempt(computed(platform, SILVER)[day].fingerprint, platform.version(SILVER))
        reason = f"{SILVER} on {day}: no rows"
        platform.ledger.hold([Hold(SILVER, day, refused, gate, reason, run, datetime.now(UTC))])


SIGNED = ("--reason", "prices are wrong", "--by", "zoe")


def state_of(run: Run, table: str = SILVER) -> str:
    return next(str(each["state"]) for each in run("status", "circuits", "--json").json if each["table"] == table)


def test_after_five_failed_runs_nothing_is_published_and_every_page_says_why(run: Run, products: Settings) -> None:
    for number in range(4):
        fail(products, f"night-{number}")
    assert state_of(run) == "closed"
    compute(products)
    assert state_of(run) == "closed"
    for number in range(5):
        fail(products, f"later-{number}")
    assert state_of(run) == "open"
    arrive(products, "new.csv", 2)
    with pytest.raises(CircuitOpenError) as refused:
        compute(products)
    said = "5 of the last 5 runs failed, the last by volume: silver.products on 2017-01-02: no rows"
    assert said in refused.value.what
    assert "nothing was published" in refused.value.what
    shown = run("status", "circuits", SILVER)
    assert shown.code == 1
    assert said in shown.words
    explained = run("refresh", "--explain")
    assert f"stopped the circuit of {SILVER} is open since" in explained.words
    assert f"{SILVER} {DAY}" in explained.words
    forced = run("refresh", SILVER, "--days", str(DAY), "--force", "--explain")
    assert re.search(rf"cannot be computed {SILVER} {DAY} \(.*asked for\): the circuit", forced.words)
    in_a_stage = run("refresh", SILVER, "--days", str(DAY), "--force", "--stage", "mine", "--explain")
    assert "cannot be computed" not in in_a_stage.words, "nobody sees a stage"
    for command in (
        (
            "status",
            "stale",
        ),
        ("status",),
        ("why", SILVER, str(DAY)),
    ):
        assert "the circuit of silver.products is open" in run(*command).words, command


def test_a_person_opens_closes_and_overrides_with_reason_and_signature_in_the_chain(
    run: Run, products: Settings
) -> None:
    arrive(products, "new.csv", 2)
    opened = run("admin", "breaker", "--open", "domain:retail", *SIGNED, "--json")
    assert opened.code == 0, opened.err
    assert {each["state"] for each in opened.json} == {"frozen"}
    with pytest.raises(CircuitOpenError, match="opened for domain:retail by zoe: prices are wrong"):
        compute(products)
    with pytest.raises(
        CircuitOpenError, match=r"(?s)Every circuit of domain:retail is frozen.*status circuits raw\.products"
    ):
        arrive(products, "another.csv", 3)
    planned = run("refresh", "--explain").out
    assert [planned.count(word) for word in ("stopped every circuit of domain:retail", "cannot be computed ")] == [1, 1]
    alone = run("admin", "breaker", "--close", SILVER, *SIGNED)
    assert (alone.code, "is not open by itself" in alone.error) == (3, True)
    until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M}"
    assert run("admin", "breaker", SILVER, "--until", until, *SIGNED).code == 0
    assert (state_of(run), state_of(run, "gold.daily_sales")) == ("overridden", "frozen")
    compute(products)
    closed = run("admin", "breaker", "--close", "domain:retail", *SIGNED)
    assert closed.code == 0, closed.err
    assert run("status", "circuits").code == 0
    decisions = [each["decision"] for each in run("status", "decisions", "--json").json]
    assert [each["kind"] for each in decisions if each["about"] == "circuit"] == [
        "close",
        "override",
        "freeze",
    ]
    assert {(each["who"], each["reason"]) for each in decisions} == {("zoe", "prices are wrong")}
    assert run("admin", "audit").code == 0


def test_nothing_is_accepted_while_the_table_is_stopped(run: Run, products: Settings) -> None:
    """The day stays held, and nobody is told otherwise."""
    fail(products, "night")
    asked = ("accept", SILVER, "--days", str(DAY), *SIGNED)
    assert run(*asked, "--dry-run").code == 0
    assert run("admin", "breaker", "--open", "domain:retail", *SIGNED).code == 0
    for more in ((), ("--dry-run",)):
        refused = run(*asked, *more)
        assert (refused.code, refused.out) == (3, "")
        assert re.search(r"Nothing was accepted: .* is frozen since .*: opened for domain:retail", refused.error)
        assert f"`platform-assets status circuits {SILVER}` says how to close it" in refused.error
    assert "platform-assets admin breaker domain:retail --close" in run("status", "circuits", SILVER).out
    assert [each["decision"]["kind"] for each in run("status", "decisions", "--json").json] == ["freeze"]


def test_files_that_wait_for_stopped_tables_are_counted(run: Run, products: Settings) -> None:
    assert run("admin", "breaker", "--open", "domain:retail", *SIGNED).code == 0
    file = products.landing_folder / "products" / str(DAY) / "new.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("product_id,price\n1,2.00\n")
    os.utime(file, (time.time() - 60,) * 2)
    planned = run("refresh", "--explain").words
    assert "not taken 1 file waits for tables that cannot be published now" in planned
    assert "Nothing that can be published is stale." in planned


def test_what_makes_no_sense_is_refused_by_name_with_a_remedy(run: Run, products: Settings) -> None:
    cases = (
        (("--open", "silver.nothing", *SIGNED), "There is no table 'silver.nothing'"),
        (("--open", "domain:nothing", *SIGNED), "There is no domain 'nothing'"),
        (("--close", SILVER, *SIGNED), f"The circuit of {SILVER} is not open by itself"),
        ((SILVER, *SIGNED), "Choose one thing to do with the circuit"),
        ((SILVER, "--until", "soon", *SIGNED), "'soon' is not a time"),
        ((SILVER, "--until", "9999-12-31T23:59-12:00", *SIGNED), "is not a time"),
        ((SILVER, "--until", "2017-01-01T00:00", *SIGNED), "would be over already"),
        ((SILVER, "--until", "2999-01-01T00:00", *SIGNED), f"No circuit of {SILVER} is open"),
    )
    assert_refused(run, "admin", "breaker", cases=cases)
    assert_refused(run, "status", "circuits", cases=[(("silver.nothing",), "There is no table 'silver.nothing'")])


def with_circuit(monkeypatch: pytest.MonkeyPatch, **policy: object) -> None:
    """The table of products under another policy, for every platform that is opened from now on."""
    load = load_catalogue

    def changed(settings: Settings) -> Catalogue:
        domains = load(settings).domains
        tables = [
            replace(c, circuit=Circuit(**policy)) if c.name == SILVER else c  # type: ignore[arg-type]
            for c in domains[0].tables
        ]
        return Catalogue.of([replace(domains[0], tables=tuple(tables))])

    monkeypatch.setattr(opening, "load_catalogue", changed)


def test_opening_rolls_back_what_opened_it_and_says_so(
    run: Run, products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_circuit(monkeypatch, failures=(1, 1), warnings=True, rolls_back=True)
    arrive(products, "good.csv", 2)
    compute(products)
    arrive(products, "half.csv", 1)
    warned = compute(products, Warned(gate="volume", found="1 row", expected="about 2"))
    with open_platform(products) as platform:
        state = circuits(platform)[SILVER]
        now = platform.ledger.current_days(SILVER)[DAY]
    assert state.state == "open"
    assert now.publication != warned
    [newest, *_] = run("status", "releases", "--json").json
    assert (newest["kind"], newest["who"]) == ("roll back", "circuit breaker")
    assert "the circuit of silver.products opened: 1 of the last 1 runs failed, the last by volume" in newest["why"]
    decided = run("status", "decisions", "--json").json[0]["decision"]
    assert (decided["kind"], decided["who"]) == ("roll back", "circuit breaker")
    assert run("admin", "audit").code == 0
    assert len(run("status", "releases", "--json").json) == len(run("status", "releases", "--json").json), (
        "and not once more"
    )
    with open_platform(products) as platform:
        assert due_tries(platform) == {}, "what was put back would pass, and say nothing of what is to come"
    deliver(products, DAY, 9)
    with open_platform(products) as platform:
        assert due_tries(platform)[SILVER].day == DAY


def test_what_opened_a_circuit_is_not_forgotten_for_however_many_tries_that_fail(run: Run, products: Settings) -> None:
    for number in range(5):
        fail(products, f"night-{number}")
    with open_platform(products) as platform:
        (first, *_) = platform.ledger.verdicts.of([SILVER])[SILVER]
        for hour in range(301):
            at = first.at + timedelta(hours=hour + 1)
            platform.ledger.verdicts.add(replace(first, at=at, run=f"try-{hour}", is_try=True))
        state = circuits(platform, [SILVER])[SILVER]
    assert state.stops
    assert state.why.startswith("5 of the last 5 runs failed")


def test_failures_of_many_dates_open_a_circuit_however_many_runs_pass_on_each(
    products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_circuit(monkeypatch, failures=(5, 5), per="dates")
    fail(products, "night-0")
    with open_platform(products) as platform:
        ((first,),) = platform.ledger.verdicts.of([SILVER]).values()
        for date in range(1, 5):
            at = first.at + timedelta(days=date)
            platform.ledger.verdicts.add(replace(first, at=at, run=f"night-{date}"))
            for run in range(80):
                passed = replace(first, at=at, run=f"{date}-{run}", day=None, failed={}, publication=f"{date}-{run}")
                warned = {"volume": "few"} if run % 2 else {}
                platform.ledger.verdicts.add(replace(passed, warned=warned))
        assert circuits(platform, [SILVER])[SILVER].stops


def test_another_day_is_tried_while_an_input_of_the_one_that_failed_is_held(
    products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_circuit(monkeypatch, failures=(1, 1), wait_minutes=1)
    before = datetime.now(UTC) - timedelta(hours=1)
    with open_platform(products) as platform:
        failed = TableVerdict(table=SILVER, at=before, run="r", day=DAY, failed={"contract": "a key twice"})
        platform.ledger.verdicts.add(failed)
        assert due_tries(platform)[SILVER].day == DAY
    deliver(products, LAST, 7)
    with open_platform(products) as platform:
        platform.ledger.hold([Hold(RAW, DAY, UNTIL_LIFTED, "contract", "a key twice", "r", before)])
        assert due_tries(platform)[SILVER].day == LAST


def test_the_end_of_a_freeze_leaves_open_what_opened_by_itself(run: Run, products: Settings) -> None:
    for number in range(5):
        fail(products, f"night-{number}")
    assert run("admin", "breaker", "--open", "all", *SIGNED).code == 0
    assert state_of(run) == "frozen"
    assert run("admin", "breaker", "--close", "all", *SIGNED).code == 0
    assert state_of(run) == "open"
    assert run("admin", "breaker", "--close", SILVER, *SIGNED).code == 0
    assert run("status", "circuits").code == 0


def test_an_override_of_a_table_outlives_the_freeze_around_it_and_is_ended_by_its_own_scope(
    run: Run, products: Settings
) -> None:
    for number in range(5):
        fail(products, f"night-{number}")
    until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M}"
    assert run("admin", "breaker", "--open", "domain:retail", *SIGNED).code == 0
    assert run("admin", "breaker", SILVER, "--until", until, *SIGNED).code == 0
    compute(products)
    closed = run("admin", "breaker", "--close", "domain:retail", *SIGNED)
    assert f"overridden {SILVER}: overridden by zoe until" in closed.words
    assert state_of(run) == "overridden", "a good publication does not close what failures opened"
    assert run("admin", "breaker", "all", "--until", until, *SIGNED).code == 0
    ended = run("admin", "breaker", "--close", "all", *SIGNED)
    assert f"open {SILVER}: 5 of the last 5 runs failed" in ended.words
    assert run("admin", "breaker", "--close", "all", *SIGNED).code == 3, "there is nothing left to end"
    assert run("admin", "breaker", SILVER, "--until", until, *SIGNED).code == 0
    assert run("admin", "breaker", "--close", SILVER, *SIGNED).code == 0
    assert run("status", "circuits").code == 0


def test_an_override_that_was_seen_to_have_ended_stays_ended_when_the_clock_is_set_back(
    run: Run, products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        fail(products, f"night-{number}")
    until = f"{datetime.now(UTC) + timedelta(minutes=30):%Y-%m-%dT%H:%M}"
    assert run("admin", "breaker", SILVER, "--until", until, *SIGNED).code == 0
    monkeypatch.setattr(engine_circuits, "datetime", Clock)
    for ahead, state in ((0, "overridden"), (40, "open"), (0, "open")):
        monkeypatch.setattr(Clock, "ahead", timedelta(minutes=ahead))
        assert state_of(run) == state
    assert "end of an override: overridden by zoe until" in run("status", "circuits", SILVER).words


def test_an_override_does_not_pass_a_batch_that_was_at_work_then_and_is_missing_later(
    run: Run, products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_circuit(monkeypatch, at_once=("missing",), verdict_within_minutes=60)
    with open_platform(products) as platform:
        snapshot = LakeSnapshot.now(platform)
        with pytest.raises(KeyboardInterrupt), failures_recorded(snapshot, SILVER, "r", {DAY: "made of this"}):
            raise KeyboardInterrupt
    assert run("admin", "breaker", "--open", "all", *SIGNED).code == 0
    until = f"{datetime.now(UTC) + timedelta(hours=9):%Y-%m-%dT%H:%M}"
    assert run("admin", "breaker", "all", "--until", until, *SIGNED).code == 0
    assert state_of(run) == "overridden"
    monkeypatch.setattr(engine_circuits, "datetime", Clock)
    monkeypatch.setattr(Clock, "ahead", timedelta(minutes=61))
    assert (state_of(run), state_of(run, RAW)) == ("frozen", "overridden")
    assert run("admin", "breaker", "--close", "all", *SIGNED).code == 0
    assert "no verdict came within 60 minutes" in run("status", "circuits", SILVER).words


def test_a_stage_is_refused_whole_while_the_circuit_is_open_though_its_days_were_overtaken(
    products: Settings,
) -> None:
    arrive(products, "new.csv", 2)
    compute(products)
    author = Author("ada", "a test")
    with open_platform(products) as platform:
        stage(platform, "trial", {SILVER: {DAY: ("asked for",)}})
        deliver(products, DAY, 3)
        breaker.freeze(platform, SILVER, author)
        with pytest.raises(CircuitOpenError, match="nothing was published"):
            publish_stage(platform, no_session, author, "trial")
        assert list(stage_names(platform.lake)) == ["trial"]


def test_what_gates_refused_counts_though_another_table_keeps_the_run_from_publishing(
    products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_circuit(monkeypatch, at_once=("volume",))
    refused = Hold(SILVER, DAY, Attempt("made of this"), "volume", "no rows", "r", datetime.now(UTC))
    with open_platform(products) as platform:
        with pytest.raises(ZeroDivisionError), announced_settled(platform, lambda: [refused]):
            raise ZeroDivisionError("of another table")
        assert circuits(platform)[SILVER].why == "volume: no rows"
        assert platform.ledger.holds() == ()


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("[CAST_INVALID_INPUT] The value 'zoe@till.example' of the type \"STRING\" cannot be", "[CAST_INVALID_INPUT]"),
        ("gold.x fails: [NUMERIC_VALUE_OUT_OF_RANGE] 2345.25 cannot be", "gold.x fails: [NUMERIC_VALUE_OUT_OF_RANGE]"),
        ("[UNRESOLVED_COLUMN] A column `net` is not there", "[UNRESOLVED_COLUMN] A column `net` is not there"),
    ],
)
def test_a_verdict_keeps_no_value_that_spark_quotes(error: str, kept: str) -> None:
    assert failed_by(RuntimeError(error)) == {"code": f"RuntimeError: {kept}"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "missing"),
        (ConnectionResetError("by a JVM that is gone"), "missing"),
        (FileNotFoundError(errno.ENOENT, "rates.csv"), "code"),
    ],
)
def test_a_full_disk_within_a_transform_is_no_failure_of_its_code(error: OSError, kind: str) -> None:
    with pytest.raises((OSError, TransformError)) as raised, users_code(SILVER):
        raise error
    assert [*failed_by(raised.value)] == [kind]


def test_every_check_that_refuses_a_day_is_in_its_verdict(products: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with_circuit(monkeypatch, at_once=("reconciliation",))
    refused = Attempt("made of this")
    failed = {"contract": "a key twice", "reconciliation": "2.00, not 1.00"}
    hold = Hold(SILVER, DAY, refused, "contract", "a key twice", "r", datetime.now(UTC), failed)
    with open_platform(products) as platform:
        platform.ledger.hold([hold])
        assert platform.ledger.holds(SILVER) == (hold,)
        assert circuits(platform)[SILVER].why == "reconciliation: 2.00, not 1.00"


def _publish_for_ever(settings: Settings, started: object) -> None:
    started.set()  # type: ignore[attr-defined]
    while True:
        try:
            compute(settings)
        except CircuitOpenError:
            return


def test_of_two_processes_the_one_that_publishes_stops_at_the_moment_the_other_has_opened_the_circuit(
    products: Settings,
) -> None:
    """Whatever the other was about to publish is there before, or is refused."""
    arrive(products, "new.csv", 2)
    spawn = multiprocessing.get_context("spawn")
    started = spawn.Event()
    publisher = spawn.Process(target=_publish_for_ever, args=(products, started))
    publisher.start()
    assert started.wait(60)
    with open_platform(products) as platform:
        before = platform.current_release().number
        while platform.current_release().number < before + 3:
            time.sleep(0.02)
        breaker.freeze(platform, SILVER, Author("test", "a test"))
        after = platform.current_release().number
    publisher.join(60)
    assert publisher.exitcode == 0
    with open_platform(products) as platform:
        assert platform.current_release().number == after


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.proof)])
def test_two_processes_that_are_killed_now_and_then_agree_with_the_model_about_one_circuit(
    products: Settings, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Each has the platform open for itself; what a kill cuts off is there whole, or not at all."""
    policy: dict[str, Any] = {"failures": (2, 3), "at_once": ("contract", "missing"), "successes": 2}
    random, policy = Random(seed), policy | {"verdict_within_minutes": 60}
    with_circuit(monkeypatch, **policy)
    monkeypatch.setattr(engine_circuits, "datetime", Clock)
    monkeypatch.setattr(Clock, "ahead", timedelta())
    model, attempt, following = Model(Circuit(**policy)), Attempt("made of this"), list[int]()
    with open_platform(products) as one, open_platform(products) as other:
        for _ in range(80):
            platform, point = random.choice((one, other)), random.choice(POINTS)
            kind = random.choice(("volume", "volume", "contract", "passed", "try", "tried", "tried in vain", "close"))
            Clock.ahead += timedelta(minutes=random.choice((0, 0, 20, 40)))
            newest, run = one.ledger.verdicts.newest(), f"run-{random.randrange(6)}"
            open_now = circuits(platform).get(SILVER, CircuitState())
            with killed_at(monkeypatch, point) as failpoint:
                if kind in ("volume", "contract", "passed"):
                    reason = Hold(SILVER, DAY, attempt, kind, "it failed", run, datetime.now(UTC))
                    snapshot = LakeSnapshot.now(platform)
                    with announced_settled(platform):
                        with failures_recorded(snapshot, SILVER, run, {DAY: "made of this"}):
                            failpoint("gate.judged")
                        write_holds(snapshot, [reason] if kind != "passed" else (), {}, ())
                elif kind == "close" and open_now.state in ("open", "half-open"):
                    breaker.close(platform, SILVER, Author("r", "a test"))
                elif kind == "try":
                    following += filter(None, [open_now.follows])
                elif kind.startswith("tried") and following:
                    its = TableVerdict(table=SILVER, at=datetime.now(UTC), run=run, day=DAY, is_try=True)
                    failed = {} if kind == "tried" else {"code": "it failed"}
                    follows = following.pop(random.randrange(len(following)))
                    record_verdict(platform, replace(its, failed=failed, tries=follows))
            verdicts = one.ledger.verdicts.of([SILVER]).get(SILVER, ())
            if kind in ("volume", "contract", "passed"):
                new = [each for each in verdicts if each.number > newest and "missing" not in each.failed]
                if is_killed := point in ("gate.judged", "gate.before_holds", "ledger.holding"):
                    platform.held.close()  # the locks of a killed process are free
                    platform.__dict__.pop("lives_by", None)
                    platform.announced.clear()
                assert [(each.is_pending, list(each.failed)) for each in new] == (
                    [(True, [])] if is_killed else [(False, [kind])] if kind != "passed" else []
                )
            decisions = one.ledger.verdicts.decisions()
            model = Model(Circuit(**policy))
            for event in sorted(
                [each for each in verdicts if not each.is_pending] + list(decisions),
                key=lambda event: (event.after, 1) if isinstance(event, CircuitDecision) else (event.number, 0),
            ):
                model.see(event)
            model = model.with_missing(verdicts, Clock.now(UTC))
            states = [circuits(each).get(SILVER, CircuitState()) for each in (one, other)]
            assert states[0].state == states[1].state == model.state(Clock.now(UTC))
            assert [state.since for state in states] == [model.opened] * 2


POINTS = ("", "", "ledger.holding", "circuit.verdict", "circuit.decided", "gate.judged", "gate.before_holds")


class Clock(datetime):
    """A clock that is ahead of the machine's."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Clock:
        return datetime.now(tz) + cls.ahead  # type: ignore[return-value]


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[Callable[[str], None]]:
    """Within, this process dies at a fail point: nothing of it runs on."""

    class Killed(BaseException):
        pass

    def failpoint(name: str) -> None:
        if name == point:
            raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        for module in (ledger_holds, engine_circuits, breaker, lake_publish, step_holds):
            patch.setattr(module, "failpoint", failpoint)
        yield failpoint


def test_a_batch_that_is_cut_off_counts_as_failed_once_its_time_is_over(
    products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_circuit(monkeypatch, at_once=("missing", "code"), verdict_within_minutes=120)
    with open_platform(products) as platform:
        policy = platform.catalogue[SILVER].circuit
        snapshot = LakeSnapshot.now(platform)
        with pytest.raises(KeyboardInterrupt), failures_recorded(snapshot, SILVER, "r", {DAY: "made of this"}):
            raise KeyboardInterrupt
        assert circuits(platform)[SILVER].state == "closed"
        verdicts, now = platform.ledger.verdicts.of([SILVER])[SILVER], datetime.now(UTC)
        later = circuit(verdicts, policy, (), now + timedelta(minutes=121))
        assert later.why == "missing: no verdict came within 120 minutes"
        with pytest.raises(OSError, match="no space"), failures_recorded(snapshot, SILVER, "r", {DAY: "made of this"}):
            raise OSError("no space left")
        assert circuits(platform)[SILVER].why == "missing: OSError: no space left"
        breaker.close(platform, SILVER, Author("r", "a test"))
        with pytest.raises(ZeroDivisionError), failures_recorded(snapshot, SILVER, "s", {DAY: "made of this"}):
            raise ZeroDivisionError("a check")
        assert circuits(platform)[SILVER].why == "code: ZeroDivisionError: a check"


def test_a_batch_whose_verdict_comes_too_late_opens_the_circuit_too(
    products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "ahead", timedelta())
    with_circuit(monkeypatch, at_once=("missing",), verdict_within_minutes=120)
    monkeypatch.setattr(step_holds, "datetime", Clock)
    with open_platform(products) as platform:
        with failures_recorded(LakeSnapshot.now(platform), SILVER, "r", {DAY: "made of this"}):
            Clock.ahead = timedelta(minutes=121)
        assert circuits(platform)[SILVER].why == "missing: the verdict came after 121 minutes, not within 120"


def test_what_a_dead_publisher_began_is_there_before_a_failure_opens_the_circuit(
    products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_at(monkeypatch, "publish.before_release"):
        deliver(products, DAY, 2)
    with open_platform(products) as platform:
        before = platform.current_release().number
        for number in range(5):
            failed = TableVerdict(
                table=RAW, at=datetime.now(UTC), run=f"night-{number}", day=DAY, failed={"code": "it fails"}
            )
            record_verdict(platform, failed)
        assert circuits(platform)[RAW].state == "open"
        assert platform.current_release().number == before + 1
        assert recover(platform.lake) == []


def test_a_ledger_that_lost_its_verdicts_counts_new_ones_from_the_first(run: Run, products: Settings) -> None:
    for number in range(5):
        fail(products, f"night-{number}")
    assert run("admin", "breaker", "--close", SILVER, *SIGNED).code == 0
    with open_platform(products) as platform, platform.ledger._database.writing() as connection:
        connection.execute(delete(verdicts_table))
    for number in range(5):
        assert state_of(run) == "closed"
        fail(products, f"later-{number}")
    assert state_of(run) == "open"


def test_a_reload_that_is_refused_leaves_held_days_held(run: Run, products: Settings) -> None:
    path = f"products/{DAY}/broken.csv"
    broken = Arrival(
        table=RAW, path=path, arrival_date=DAY, size=1, sha256="1", modified_ns=1, landed=0, taken=0, reason="is odd"
    )
    with open_platform(products) as platform:
        publish_arrivals(platform, RAW, broken)
    fail(products, "night")
    assert run("admin", "breaker", "--open", RAW, *SIGNED).code == 0
    refused = run("admin", "reload", RAW, *SIGNED)
    assert (refused.code, "nothing was published" in refused.error) == (3, True)
    with open_platform(products) as platform:
        assert [hold.day for hold in platform.ledger.holds()] == [DAY]
        with pytest.raises(CircuitOpenError, match=RAW):  # nor is an arrival without rows published
            publish_arrivals(platform, RAW, broken.model_copy(update={"path": f"products/{DAY}/other.csv"}))


def test_a_ledger_that_is_made_anew_has_the_verdicts_of_what_was_published(run: Run, products: Settings) -> None:
    """So has one that catches up after a kill between a publication and its place in the index."""
    arrive(products, "half.csv", 1)
    compute(products, Warned(gate="volume", found="1 row", expected="about 2"))
    before = run("status", "circuits", SILVER, "--json").json["verdicts"]
    assert [list(each["warned"]) for each in before] == [["volume"]]
    for file in products.state.glob("ledger.db*"):
        file.unlink()
    assert run("admin", "ledger", "--rebuild").code == 0
    assert run("status", "circuits", SILVER, "--json").json["verdicts"] == before


def test_every_example_runs(run: Run, products: Settings) -> None:
    text = (project_root() / "docs" / "circuit.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    arrive(products, "empty.csv", 0)
    for number in range(5):
        fail(products, f"night-{number}")
    codes: list[tuple[str, int]] = []
    for language, block in blocks:
        if language == "python":
            exec(compile(block, "docs/circuit.md", "exec"), {**vars(contracts)})
        for line in block.splitlines() if language == "sh" else ():
            said = run(*shlex.split(line)[3:])
            codes.append((line.split()[3], said.code))
            if f"circuits {SILVER}" in line or line.endswith("refresh"):
                assert f"the circuit of {SILVER} is open since" in said.words
            if "--until" in line and SILVER in line:
                compute(products)
    look, done = 1, 0
    assert codes == [
        ("status", look),
        ("status", look),
        ("refresh", look),
        *[("admin", done)] * 4,
    ]
    assert run("status", "circuits").code == 0
    assert run("admin", "audit").code == 0
