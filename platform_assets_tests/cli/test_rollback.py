"""What was published is listed, and rolled back by name, run or release: the commands, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.operations.opening import open_platform
from platform_assets.records.history import ROLL_BACK, Hold
from platform_assets.records.refused import Attempt
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAY, SILVER


def digest() -> str:
    with open_platform(load_settings()) as platform:
        return platform.ledger.current_days(SILVER)[DAY].digest


def test_what_was_published_is_listed_newest_first(run: Run, corrected: str) -> None:
    newest, *older = run("releases", "--json").json
    assert (newest["publication"], newest["days"]) == (corrected, {SILVER: 1})
    assert [one["release"] for one in older] == [1, 0]
    shown = run("releases", "--limit", "1").out
    assert corrected in shown.replace("\n", "")
    assert "2 older ones" in shown


def test_a_dry_run_shows_and_a_rollback_does(run: Run, corrected: str) -> None:
    before = run("rollback", corrected, "--dry-run")
    assert before.code == 0, before.err
    assert "Nothing was changed" in before.out
    assert digest() == "0-1-1-1-1"
    done = run("rollback", corrected, "--reason", "a wrong rule [/b]", "--by", "Zoë", "--json")
    assert done.code == 0, done.err
    assert done.json["days"][0]["digest"] == {"before": "0-1-1-1-1", "after": "0-0-0-0-0"}
    assert digest() == "0-0-0-0-0"
    [newest, *_] = run("releases", "--json").json
    assert (newest["kind"], newest["who"], newest["why"]) == ("roll back", "Zoë", "a wrong rule [/b]")
    assert "roll back" in run("why", SILVER, str(DAY)).out


def test_of_days_without_content_before_readers_see_nothing(run: Run, corrected: str) -> None:
    planned = run("rollback", "--to", "0", "--dry-run").out
    assert "3 days had no content before: readers would see nothing of them, as if never computed." in planned
    done = run("rollback", "--to", "0", "--days", str(DAY), "--reason", "wrong").out
    assert "1 day had no content before: readers see nothing of it, as if never computed." in done


def test_readers_of_a_day_that_was_put_back_see_what_was(run: Run, corrected: str) -> None:
    run("rollback", corrected, "--reason", "wrong")
    with open_platform(load_settings()) as platform:
        record, now = platform.ledger.current_days(SILVER)[DAY], datetime.now(UTC)
        hold = Hold(SILVER, DAY, Attempt(record.fingerprint), ROLL_BACK, "wrong", "r", now)
        # Of days on paper nothing that they are made from is another, so that no hold stands by itself.
        day = HeldDay(hold, now, record, platform.ledger.head(record.publication), ())
    assert "; readers see what was put back, 0 rows of release 3 of " in day.sentence


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "Name what to roll back"),
        (["p", "--run", "r"], "Name what to roll back"),
        (["--to", "1"], "needs --reason"),
        (["--to", "1", "--reason", " "], "needs --reason"),
        (["--run", "r", "--days", "2017-02-30", "--dry-run"], "'2017-02-30' is not a day"),
        (["--run", "nobody-s", "--dry-run"], "No run 'nobody-s' published anything"),
    ],
)
def test_mistakes_are_told(run: Run, corrected: str, args: list[str], says: str) -> None:
    said = run("rollback", *args)
    assert said.code in (2, 3)
    assert says in said.err
    assert "What to do" in said.err
    assert digest() == "0-1-1-1-1"
