"""What means the same in every command is spelt, explained and answered the same: held over the whole tree of them."""

from __future__ import annotations

import json
from inspect import unwrap
from types import FunctionType
from typing import Any

import pytest

from platform_assets_tests.support.cli.commands import TABLE
from platform_assets_tests.support.cli.tree import ALL, DECIDED, EXAMPLES, options

MAKE_DAYS = {"demo", "land"}
"""They make so many days of sales; all others choose among days that there are."""

MOMENTARY = {
    "audit decisions", "audit head", "audit show", "breaker close", "breaker list", "breaker open",
    "breaker override", "breaker show", "doctor", "engine list", "init", "late list", "late refuse", "outbox drop",
    "outbox list", "outbox retry", "plan approve", "plan cancel", "plan explain", "plan history", "plan new",
    "plan pause", "plan report", "plan resume", "plan status", "quarantine discard", "quarantine list",
    "quarantine show", "read", "release diff", "release pin", "release show", "release unpin", "releases",
    "stage drop", "stage list", "stage read", "stage show", "stale", "status", "views", "why",
}  # fmt: skip
"""They read the ledger, logs and footers, or print rows as they read them; all others tell how far they are."""

STARTS_NOTHING = sorted(
    {*EXAMPLES}
    - {"accept", "check", "demo", "erase", "up", "verify", "late approve", "late refuse", "withdraw", "land"}
    - {name for name in EXAMPLES if name.startswith("stage ") and name != "stage list"}
    - {
        name
        for name in EXAMPLES
        if name.startswith("plan ") and name not in ("plan history", "plan new", "plan status")
    }
    - {
        "breaker close",
        "breaker override",
        "engine compare",
        "engine verify",
        "ledger move",
        "maintenance delete",
        "outbox drop",
        "quarantine replay",
        "reconcile",
        "release unpin",
        "restore",
    }
)
"""Those of which the example can be carried out on what the tests have published, without Spark."""


def test_every_command_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_what_is_the_same_is_asked_for_and_told_in_one_way(name: str) -> None:
    asked, callback = options(name), unwrap(ALL[name].callback)
    assert asked["--json"].is_flag
    assert asked["--json"].help == "For programs: JSON, also of an error."
    assert tells(callback) == (name not in MOMENTARY), "it tells how far it is"
    assert ("--reason" in asked) == ("--by" in asked) or name == "reconcile"  # whose sides are compared by columns
    if "--reason" in asked:
        assert asked["--reason"].help == "Why, for the next person."
        assert asked["--by"].help == "Who decides; the user by default, who is recorded in any case."
        assert not asked["--reason"].required  # a missing one is explained in words
    if name in MAKE_DAYS:
        assert "int" in str(callback.__annotations__["days"])
        return
    days = asked.get("--days")
    assert days is asked.get("--day", days)
    assert days is None or (days.metavar, days.help) == (
        "DAYS",
        "Only these days: YYYY-MM-DD, A..B with both ends, or several with commas.",
    )
    assert "day" not in asked or (asked["day"].metavar, asked["day"].help) == ("DAY", "YYYY-MM-DD.")


def tells(command: FunctionType) -> bool:
    """Whether a command, or a function of its module that it calls, tells how far it is."""
    reached = [command]
    for function in reached:
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        own = (one for one in called if isinstance(one, FunctionType) and one.__module__ == command.__module__)
        reached += [one for one in own if one not in reached]
    return any({"telling", "computing"} & {*function.__code__.co_names} for function in reached)


@pytest.mark.parametrize("name", ALL)
def test_what_could_not_be_done_is_told_to_programs_in_their_way(run, monkeypatch, tmp_path, name):
    monkeypatch.setenv("PLATFORM_SETTLE_S", "-1")
    monkeypatch.chdir(tmp_path)
    said = run(*name.split(), *EXAMPLES[name], "--no-such-option", "--json")
    assert (said.code, said.out) == (2, "")
    assert error_in(said) == {
        "what": "No such option: --no-such-option",
        "do": "Add --help to see what it takes.",
        "code": 2,
    }
    said = run(*name.split(), *EXAMPLES[name], "--json")
    assert (said.code, said.out) == (3, "")
    error = error_in(said)
    assert error["code"] == 3
    assert all(isinstance(error[part], str) and error[part] for part in ("what", "do"))


@pytest.mark.parametrize("name", STARTS_NOTHING)
def test_what_is_printed_for_programs_is_one_json_document(run, published, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    said = run(*name.split(), *EXAMPLES[name], *(DECIDED if name == "rollback" else ()), "--json")
    assert said.code in (0, 1), said.err
    json.loads(said.out)


def test_a_day_that_is_none_is_told_to_programs_in_their_way(run, published):
    said = run("read", TABLE, "--days", "soon", "--json")
    assert (said.code, said.out) == (2, "")
    assert error_in(said)["what"] == "'soon' is not a day."


def error_in(said: Any) -> dict[str, Any]:
    [error] = json.loads(said.err.splitlines()[-1]).values()
    return dict(error)
