"""`undo` finds out what a name means, says what it does with it, and does exactly that."""

from __future__ import annotations

import pytest

from platform_assets_tests.support.cli.commands import Run, assert_refused
from platform_assets_tests.support.cli.products import SILVER

WHY = ("--reason", "a test")


def test_a_dry_run_says_which_kind_of_undoing_it_is(run: Run, corrected: str) -> None:
    [newest, *_] = run("status", "releases", "--json").json
    number = newest["release"]
    forms = (corrected, f"publication:{corrected}", f"release:{number}", str(number), f"since:{number - 1}")
    shown = [run("undo", form, "--dry-run", "--json").json for form in forms]
    assert shown[0]["days"][0]["table"] == SILVER
    assert shown == [shown[0]] * len(forms)
    said = run("undo", corrected, "--dry-run")
    assert said.words.startswith("dry run publication: this rolls days back: exactly those of a publication")
    assert "Nothing was changed" in said.words
    assert run("status", "releases", "--json").json[0] == newest


def test_a_pin_and_a_lasting_rollback_are_found_by_name(run: Run, corrected: str) -> None:
    run("admin", "pin", "0", "--name", "books", *WHY)
    assert run("undo", "books", "--dry-run").words.startswith("dry run pin: this ends a pin")
    assert run("undo", "books", *WHY).code == 0
    assert run("status", "releases", "--pinned", "--json").json == []
    assert run("undo", corrected, "--until-lifted", *WHY).code == 0
    assert run("undo", SILVER, "--dry-run").words.startswith("dry run rollback: this lifts a rollback")
    lifted = run("undo", f"rollback:{SILVER}", *WHY, "--json").json
    assert [hold["table"] for hold in lifted] == [SILVER]


@pytest.mark.usefixtures("corrected")
def test_what_cannot_be_undone_is_explained(run: Run) -> None:
    run("admin", "pin", "0", "--name", SILVER.replace(".", "-"), *WHY)
    cases = (
        (("nothing",), "There is nothing of the name 'nothing' to undo."),
        (("silver-product",), "Did you mean silver-products?"),
        (("run:a", "stage:b"), "These are different kinds: run, stage."),
        (("run:a", "run:b"), "`undo` takes one name, not 2."),
        (("stage:x", "--cascade"), "`undo stage:…` has no --cascade."),
        (("foreign:x", "--dry-run"), "What another tool did cannot be tried."),
        (("a/b.csv",), "No arrival 'a/b.csv' was ever taken."),
        (("backfill:x",), "No plan 'x' was ever applied."),
        (("run:x",), "No run 'x' published anything."),
        (("stage:x",), "There is no stage"),
    )
    assert_refused(run, "undo", cases=[((*args, *WHY), says) for args, says in cases])
