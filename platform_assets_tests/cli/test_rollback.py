"""What was published is listed, and rolled back by name, run or release: the commands, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest

from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, RecordedStep, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.history import ROLL_BACK, Hold
from platform_assets.records.manifest import DayContent, TableChange, new_publication
from platform_assets.records.refused import Attempt
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets_tests.support.cli.commands import FIRST, LAST, Run
from platform_assets_tests.support.cli.products import A_TEST, DAY, SILVER, computed, publish_on_paper


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


@pytest.mark.parametrize("args", [["--dry-run"], ["--reason", "a wrong rule"]])
def test_a_rollback_says_beforehand_and_afterwards_what_ends_it_and_what_lasts(
    run: Run, corrected: str, args: list[str]
) -> None:
    said = run("rollback", corrected, *args).out
    assert "One new row in what such a day is made from ends the rollback" in said
    assert "For good, `withdraw` what was delivered wrongly, correct the code, or roll back with --until-lifted" in said
    assert ("would be held" in said) is ("--dry-run" in args)


def test_a_plan_is_rolled_back_with_the_same_sentences_and_only_once(run: Run, corrected: str) -> None:
    file = {"name": "mend", "reason": "a", "owner": "ada", "tables": [SILVER], "days": {"list": [str(DAY)]}}
    plan = PlanFile.model_validate_json(json.dumps(file))
    steps = (RecordedStep(share=100, days={SILVER: (DAY,)}),)
    with open_platform(load_settings()) as platform:
        write_record(
            platform.lake,
            BackfillRecord(
                name="mend", hash="0", file=plan, steps=steps, done=1, state="published", publication=corrected
            ),
        )
    said = run("plan", "rollback", "mend", "--reason", "a wrong rule", "--by", "Zoë")
    assert said.code == 0, said.err
    assert said.out.startswith("Rolled back in release 3: a wrong rule")
    assert f"{SILVER}  {DAY}" in said.out
    assert "One new row in what such a day is made from ends the rollback" in said.out
    again = run("plan", "rollback", "mend", "--reason", "once more", "--by", "bob")
    assert again.code != 0
    assert "The plan mend is rolled back already, by Zoë in release 3: a wrong rule" in " ".join(again.err.split())


def test_of_days_without_content_before_readers_see_nothing(run: Run, corrected: str) -> None:
    planned = run("rollback", "--to", "0", "--dry-run").out
    assert f"3 days had no content before: readers would see nothing of {SILVER} {FIRST}..{LAST}, as if" in planned
    done = run("rollback", "--to", "0", "--days", str(DAY), "--reason", "wrong").out
    assert f"1 day had no content before: readers see nothing of {SILVER} {DAY}, as if never computed." in done


@pytest.mark.parametrize(("args", "goes"), [(["--dry-run"], "would go"), (["--reason", "wrong"], "goes")])
def test_quarantine_that_goes_with_a_day_is_no_day_that_readers_miss(
    run: Run, products: Settings, args: list[str], goes: str
) -> None:
    with open_platform(products) as platform:
        broken = DayContent(files=(), base=(), digest="0-1-1-1-1", rows=1, bytes=0)
        days = {SILVER: computed(platform, SILVER)[DAY], quarantine_table(SILVER): broken}
        schema = spark_schema(platform.catalogue[SILVER]).json()
        changes = [
            TableChange(table=table, schema_string=schema, days={DAY: content}) for table, content in days.items()
        ]
        publish_changes(platform, name := new_publication(), "recompute", changes, A_TEST)
    said = run("rollback", name, *args).out
    assert f"The quarantine of 1 day ({DAY}) {goes}, too." in said
    assert "had no content before" not in said


WRONG = Author("wrong", "a test")


def publish_wrong(settings: Settings, *days: date) -> str:
    """What a run called wrong made of days of silver; its publication."""
    with open_platform(settings) as platform:
        wrong = {day: computed(platform, SILVER)[day].model_copy(update={"digest": "0-1-1-1-1"}) for day in days}
        publish_on_paper(platform, SILVER, wrong, name := new_publication(), WRONG)
    return name


@pytest.mark.parametrize("again", [["--dry-run"], ["--reason", "to be sure"]])
def test_what_is_rolled_back_already_is_not_advised_to_come_forward(
    run: Run, products: Settings, again: list[str]
) -> None:
    publish_wrong(products, DAY)
    assert run("rollback", "--run", "wrong", "--reason", "sensor misread", "--by", "zoe").code == 0
    [newest, *_] = run("releases", "--json").json
    said = run("rollback", "--run", "wrong", *again)
    by = f"by zoe in release {newest['release']}: sensor misread"
    assert said.code != 0
    assert f"This is rolled back already, {by}; nothing was rolled back." in said.err
    assert "`platform-assets releases` shows it." in said.err
    assert "Roll back" not in said.err
    assert digest() == "0-0-0-0-0"


def test_what_had_no_content_before_is_rolled_back_already_too(run: Run, products: Settings) -> None:
    with open_platform(products) as platform:
        first = platform.ledger.current_days(SILVER)[DAY].publication
    assert run("rollback", first, "--reason", "sensor misread", "--by", "zoe").code == 0
    assert "This is rolled back already, by zoe in release" in run("rollback", first, "--dry-run").err


def test_where_some_days_are_rolled_back_already_the_others_can_be_still(run: Run, products: Settings) -> None:
    publish_wrong(products, DAY, LAST)
    assert run("rollback", "--run", "wrong", "--days", str(DAY), "--reason", "misread", "--by", "zoe").code == 0
    said = run("rollback", "--run", "wrong", "--dry-run").err
    assert f"{SILVER} {DAY} is rolled back already, by zoe in release" in said
    assert "Let it be put back with the others: --cascade; or leave it out with --days" in said
    assert run("rollback", "--run", "wrong", "--cascade", "--reason", "misread").code == 0
    with open_platform(products) as platform:
        assert {record.digest for record in platform.ledger.current_days(SILVER).values()} == {"0-0-0-0-0"}


def test_a_rollback_that_brought_what_was_wrong_forward_is_still_advised_to_go_first(
    run: Run, products: Settings
) -> None:
    wrong = publish_wrong(products, DAY)
    assert run("rollback", wrong, "--reason", "misread").code == 0
    [back, *_] = run("releases", "--json").json
    assert run("rollback", back["publication"], "--reason", "it was right").code == 0
    said = run("rollback", wrong, "--dry-run").err
    assert "was published again since" in said


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
