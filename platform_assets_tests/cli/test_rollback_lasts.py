"""A rollback that lasts: neither new input nor force ends it, until a person lifts it."""

from __future__ import annotations

import pytest

from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAY, SILVER, arrive, compute

LIFT = ("rollback", "--lift", SILVER, "--days", str(DAY))
HELD = "rolled back by zoe, until it is lifted: prices were wrong"
SIGNED = ("--reason", "finance agrees", "--by", "ann")


def words(text: str) -> str:
    return " ".join(text.split())


def planned(run: Run) -> list[str]:
    """The days of silver that the next refresh computes."""
    steps = run("refresh", "--explain", "--json").json["plan"]["steps"]
    return [days["first"] for step in steps if step["table"] == SILVER for days in step["ranges"]]


@pytest.fixture
def put_back(run: Run, products: Settings) -> Settings:
    """A day that was computed from a bad file, too, rolled back until it is lifted; and another file came since."""
    arrive(products, "good.csv", 2)
    compute(products)
    arrive(products, "bad.csv", 3)
    bad = compute(products)
    beforehand = words(run("rollback", bad, "--until-lifted", "--dry-run").out)
    assert "All of these days would be held until a person lifts that, whatever input or code comes" in beforehand
    assert "One new row" not in beforehand
    done = run("rollback", bad, "--until-lifted", "--reason", "prices were wrong", "--by", "zoe")
    assert "All of these days are held until a person lifts that" in words(done.out), done.err
    arrive(products, "other.csv", 4)
    return products


def test_a_rollback_until_it_is_lifted_is_ended_by_no_later_row_and_every_page_says_why(
    run: Run, put_back: Settings
) -> None:
    assert planned(run) == []
    assert "ends" not in run("refresh", "--explain").out
    for command in (("status",), ("why", SILVER, str(DAY))):
        said = words(run(*command).out)
        assert HELD in said
        assert "1 newer file waits until it is lifted" in said
        assert f"`platform-assets rollback --lift {SILVER} --days {DAY}" in said


def test_who_asks_for_the_day_by_name_is_refused_by_name(run: Run, put_back: Settings) -> None:
    asked = run("refresh", SILVER, "--days", str(DAY), "--force")
    assert asked.code == 1
    assert f"{SILVER} {DAY} (asked for): {SILVER} is held on {DAY}: {HELD}" in words(asked.out)
    again = run("rollback", "--to", "0", "--dry-run")
    assert f"{SILVER} {DAY} was {HELD}: this ends that." in words(again.out)


@pytest.mark.parametrize("loses_ledger", [False, True])
def test_it_lasts_and_stays_lifted_though_the_ledger_is_made_anew(
    run: Run, put_back: Settings, loses_ledger: bool
) -> None:
    def rebuild() -> None:
        if loses_ledger:
            for file in put_back.state.glob("ledger.db*"):
                file.unlink()
        assert run("ledger", "rebuild").code == 0

    rebuild()
    assert planned(run) == []
    assert HELD in words(run("status").out)
    assert HELD in words(run(*LIFT, "--dry-run").out)
    assert planned(run) == []
    lifted = run(*LIFT, *SIGNED)
    assert lifted.code == 0, lifted.err
    assert f"lifted {SILVER} {DAY}, {HELD}" in words(lifted.out)
    newest = run("releases", "--json").json[0]
    assert (newest["who"], newest["why"]) == ("ann", "finance agrees")
    for _ in range(2):
        assert planned(run) == [str(DAY)]
        rebuild()
    twice = run(*LIFT, *SIGNED)
    assert f"No rollback of {DAY} of {SILVER} lasts until it is lifted; nothing was lifted." in words(twice.err)


def test_what_came_meanwhile_is_computed_once_it_is_lifted(run: Run, put_back: Settings) -> None:
    run(*LIFT, *SIGNED)
    compute(put_back)
    with open_platform(put_back) as platform:
        assert platform.ledger.holds() == ()
    assert HELD not in words(run("status").out)
