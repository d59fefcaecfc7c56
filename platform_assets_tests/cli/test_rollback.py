"""What was published is listed and rolled back; what ends that, and what does not, is told before and after."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta

import pytest

from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.operations.lineage.day_history import ended_rollbacks
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.planning.backfill.days import RolloutStep
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival, DayContent, TableChange, new_publication
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets_tests.support.cli.commands import FIRST, LAST, Run, assert_refused
from platform_assets_tests.support.cli.products import (
    A_TEST,
    DAY,
    RAW,
    SILVER,
    arrive,
    compute,
    computed,
    deliver,
    publish_on_paper,
)


def digest() -> str:
    with open_platform(load_settings()) as platform:
        return platform.ledger.current_days(SILVER)[DAY].digest


def test_what_was_published_is_listed_newest_first(run: Run, corrected: str) -> None:
    newest, *older = run("status", "releases", "--json").json
    assert (newest["publication"], newest["days"]) == (corrected, {SILVER: 1})
    assert [one["release"] for one in older] == [1, 0]
    shown = run("status", "releases", "--limit", "1").out
    assert corrected in shown.replace("\n", "")
    assert "2 older ones" in shown


def test_a_dry_run_shows_and_a_rollback_does(run: Run, corrected: str) -> None:
    before = run("undo", f"publication:{corrected}", "--dry-run")
    assert before.code == 0, before.err
    assert "Nothing was changed" in before.out
    assert digest() == "0-1-1-1-1"
    done = run("undo", f"publication:{corrected}", "--reason", "a wrong rule [/b]", "--by", "Zoë", "--json")
    assert done.code == 0, done.err
    assert done.json["days"][0]["digest"] == {"before": "0-1-1-1-1", "after": "0-0-0-0-0"}
    assert digest() == "0-0-0-0-0"
    [newest, *_] = run("status", "releases", "--json").json
    assert (newest["kind"], newest["who"], newest["why"]) == ("roll back", "Zoë", "a wrong rule [/b]")
    assert "roll back" in run("why", SILVER, str(DAY)).out


@pytest.mark.parametrize("args", [["--dry-run"], ["--reason", "a wrong rule"]])
def test_a_rollback_says_beforehand_and_afterwards_what_ends_it_and_what_lasts(
    run: Run, corrected: str, args: list[str]
) -> None:
    said = run("undo", f"publication:{corrected}", *args).out
    assert "One new row in what such a day is made from ends the rollback" in said
    assert "For good, `undo` what was delivered wrongly, correct the code, or roll back with --until-lifted" in said
    assert ("would be held" in said) is ("--dry-run" in args)


def test_a_plan_is_rolled_back_with_the_same_sentences_and_only_once(run: Run, corrected: str) -> None:
    file = {"name": "mend", "reason": "a", "owner": "ada", "tables": [SILVER], "days": {"list": [str(DAY)]}}
    plan = PlanFile.model_validate_json(json.dumps(file))
    steps = (RolloutStep(share=100, days={SILVER: (DAY,)}),)
    with open_platform(load_settings()) as platform:
        write_record(
            platform.lake,
            BackfillRecord(
                name="mend", hash="0", file=plan, steps=steps, done=1, state="published", publication=corrected
            ),
        )
    said = run("undo", "backfill:mend", "--reason", "a wrong rule", "--by", "Zoë")
    assert said.code == 0, said.err
    assert "Rolled back in release 3: a wrong rule" in said.out
    assert f"{SILVER}  {DAY}" in said.out
    assert "One new row in what such a day is made from ends the rollback" in said.out
    again = run("undo", "backfill:mend", "--reason", "once more", "--by", "bob")
    assert again.code != 0
    assert "The plan mend is rolled back already, by Zoë in release 3: a wrong rule" in again.error


def test_of_days_without_content_before_readers_see_nothing(run: Run, corrected: str) -> None:
    planned = run("undo", "since:0", "--dry-run").out
    assert f"3 days had no content before: readers would see nothing of {SILVER} {FIRST}..{LAST}, as if" in planned
    done = run("undo", "since:0", "--days", str(DAY), "--reason", "wrong").out
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
    said = run("undo", f"publication:{name}", *args).out
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
    assert run("undo", "run:wrong", "--reason", "sensor misread", "--by", "zoe").code == 0
    [newest, *_] = run("status", "releases", "--json").json
    said = run("undo", "run:wrong", *again)
    by = f"by zoe in release {newest['release']}: sensor misread"
    assert said.code != 0
    assert f"{SILVER} {DAY} was rolled back since, {by}; nothing was rolled back." in said.err
    assert "Roll back" not in said.err
    assert digest() == "0-0-0-0-0"


def test_where_some_days_are_rolled_back_already_the_others_can_be_still(run: Run, products: Settings) -> None:
    publish_wrong(products, DAY, LAST)
    assert run("undo", "run:wrong", "--days", str(DAY), "--reason", "misread", "--by", "zoe").code == 0
    said = run("undo", "run:wrong", "--dry-run").err
    assert f"{SILVER} {DAY} was rolled back since, by zoe in release" in said
    assert "undo the later work, too: --cascade; or leave the day out with --days" in said
    assert run("undo", "run:wrong", "--cascade", "--reason", "misread").code == 0
    with open_platform(products) as platform:
        assert {record.digest for record in platform.ledger.current_days(SILVER).values()} == {"0-0-0-0-0"}


def test_mistakes_are_told(run: Run, corrected: str) -> None:
    cases: tuple[tuple[list[str], str], ...] = (
        ([], "Missing argument"),
        (["p", "run:r", "--dry-run"], "There is nothing of the name 'p' to undo."),
        (["run:r", "--days", "2017-02-30", "--dry-run"], "'2017-02-30' is not a day"),
        (["run:none", "--dry-run"], "No run 'none' published anything"),
    )
    assert_refused(run, "undo", cases=cases)
    assert digest() == "0-1-1-1-1"


@pytest.fixture
def put_back(run: Run, products: Settings) -> Settings:
    """A day that was computed from a bad file, too, and rolled back, in release 8."""
    arrive(products, "good.csv", 2)
    compute(products)
    arrive(products, "bad.csv", 3)
    assert run("undo", f"publication:{compute(products)}", "--reason", "prices were wrong", "--by", "zoe").code == 0
    return products


NAME = f"the rollback of 1 day of {SILVER} ({DAY}; release 8, zoe: prices were wrong)"


def test_a_file_that_ends_a_rollback_is_named_by_the_plan_and_by_why_before_and_after(
    run: Run, put_back: Settings
) -> None:
    assert "look" not in run("refresh", "--explain").out
    stays = run("why", SILVER, str(DAY)).words
    assert "rolled back by zoe: prices were wrong" in stays
    assert f"bad.csv --reason '{SILVER} {DAY} was rolled back'" in stays

    other = arrive(put_back, "other.csv", 4)
    ends = f"look {NAME} ends once that is computed, because {other} changed it"
    assert ends in run("refresh", "--explain").words
    assert run("refresh", "--explain", "--json").json["rollbacks_ending"][0]["files"] == [other]
    assert ends in run("why", SILVER, str(DAY)).words

    with open_platform(put_back) as platform:
        stood = platform.ledger.holds()
        assert ended_rollbacks(platform, stood) == ()
        compute(put_back)
        platform.ledger.drop(stood)
        [ended] = ended_rollbacks(platform, stood)
        assert ended.sentence == f"{NAME} ended because {other} changed it; what it had taken back counts again"
    assert f"look {ended.sentence}" in run("why", SILVER, str(DAY)).words
    assert run("why", SILVER, str(DAY), "--json").json["rollback_ended"]["files"] == [other]
    compute(put_back)
    assert "rollback" not in run("why", SILVER, str(DAY)).out, "what came after that is no news of it"


def withdraw(settings: Settings, path: str, still_there: str) -> None:
    """A file taken out again, as a publication has it: its rows, or those of another, still lie in the raw day."""
    gone = Arrival(
        table=RAW, path=f"w/{path}", arrival_date=DAY, size=1, sha256="w", modified_ns=1, kind="withdrawal", origin=path
    )
    deliver(settings, DAY, 4, still_there, [gone])


def test_what_was_rolled_back_and_then_withdrawn_is_a_note_and_no_warning(run: Run, put_back: Settings) -> None:
    bad = f"products/{DAY}/bad.csv"
    withdraw(put_back, bad, bad)
    said = run("refresh", "--explain").words
    assert f"note {bad} was withdrawn, so {NAME} is no longer needed: its days are computed without it" in said
    assert "look" not in said
    assert run("refresh", "--explain", "--json").json["rollbacks_ending"][0]["withdrawn"] == [bad]
    with open_platform(put_back) as platform:
        stood = platform.ledger.holds()
        compute(put_back)
        platform.ledger.drop(stood)
        [ended] = ended_rollbacks(platform, stood)
    assert ended.is_done
    assert "is no longer" not in ended.sentence
    assert "was no longer needed: its days were computed without it" in run("why", SILVER, str(DAY)).words


def test_where_another_file_was_withdrawn_what_was_rolled_back_counts_again(run: Run, put_back: Settings) -> None:
    good = f"products/{DAY}/good.csv"
    withdraw(put_back, good, f"products/{DAY}/bad.csv")
    said = run("refresh", "--explain").words
    assert f"look {NAME} ends once that is computed" in said, "the file that was rolled back lies there and counts"
    withdraw(put_back, good, good)
    said = run("refresh", "--explain").words
    assert f"look {NAME} ends once that is computed, because {good} was withdrawn; what it had" in said


def test_files_that_wait_may_end_a_rollback(run: Run, put_back: Settings) -> None:
    file = put_back.landing_folder / "products" / str(DAY) / "waits.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("product_id\n1\n")
    os.utime(file, (1, 1))
    said = run("refresh", "--explain").words
    assert f"look {NAME} ends if a delivery for raw.products touches it" in said


def test_a_rollback_that_a_person_ends_is_told_with_who_and_why(put_back: Settings, run: Run) -> None:
    compute(put_back)
    assert f"look {NAME} ended with release 9 by " in run("why", SILVER, str(DAY)).words


def test_what_a_gate_refuses_after_a_rollback_is_told_first_and_the_rollback_too(run: Run, put_back: Settings) -> None:
    other = arrive(put_back, "other.csv", 1)
    later = datetime.now(UTC) + timedelta(seconds=1)
    with open_platform(put_back) as platform:
        refused = Attempt(computed(platform, SILVER)[DAY].fingerprint, platform.version(SILVER))
        message = f"{SILVER} on {DAY}: too few rows: 1 row"
        platform.ledger.hold([Hold(SILVER, DAY, refused, "volume", message, "a run", later)])
    for said in (run("status").words, run("why", SILVER, str(DAY)).words):
        first, rest = said.split("too few rows: 1 row; and since ")
        assert first.endswith(" UTC: ")
        assert "UTC: rolled back by zoe: prices were wrong; readers see what was put back, 0 rows of release 8" in rest
        assert f"{other} --reason 'volume holds {SILVER} {DAY}'" in said
    [held] = run("why", SILVER, str(DAY), "--json").json["held_by"]
    assert (held["gate"], held["held_before"]["reason"]) == ("volume", "rolled back by zoe: prices were wrong")
    assert (
        f"{SILVER} {DAY}, held by volume"
        in run("accept", SILVER, "--days", str(DAY), "--reason", "few", "--by", "zoe", "--dry-run").out
    )


LIFT = ("rollback", "--lift", SILVER, "--days", str(DAY))
HELD = "rolled back by zoe, until it is lifted: prices were wrong"
SIGNED = ("--reason", "finance agrees", "--by", "ann")


def planned(run: Run) -> list[str]:
    """The days of silver that the next refresh computes."""
    steps = run("refresh", "--explain", "--json").json["plan"]["steps"]
    return [days["first"] for step in steps if step["table"] == SILVER for days in step["ranges"]]


@pytest.fixture
def put_back_until_lifted(run: Run, products: Settings) -> Settings:
    """A day that was computed from a bad file, too, rolled back until it is lifted; and another file came since."""
    arrive(products, "good.csv", 2)
    compute(products)
    arrive(products, "bad.csv", 3)
    bad = compute(products)
    beforehand = run("undo", f"publication:{bad}", "--until-lifted", "--dry-run").words
    assert "All of these days would be held until a person lifts that, also with new input or code" in beforehand
    assert "One new row" not in beforehand
    done = run("undo", f"publication:{bad}", "--until-lifted", "--reason", "prices were wrong", "--by", "zoe")
    assert "All of these days are held until a person lifts that" in done.words, done.err
    arrive(products, "other.csv", 4)
    return products


def test_a_rollback_until_it_is_lifted_is_ended_by_no_later_row_and_every_page_says_why(
    run: Run, put_back_until_lifted: Settings
) -> None:
    assert planned(run) == []
    assert "ends" not in run("refresh", "--explain").out
    for command in (("status",), ("why", SILVER, str(DAY))):
        said = run(*command).words
        assert HELD in said
        assert "1 newer file waits until it is lifted" in said
        assert f"`platform-assets undo rollback:{SILVER} --days {DAY}" in said


def test_who_asks_for_the_day_by_name_is_refused_by_name(run: Run, put_back_until_lifted: Settings) -> None:
    asked = run("refresh", SILVER, "--days", str(DAY), "--force")
    assert asked.code == 1
    assert f"{SILVER} {DAY} (asked for): {SILVER} is held on {DAY}: {HELD}" in asked.words
    again = run("undo", "since:0", "--dry-run")
    assert f"{SILVER} {DAY} was {HELD}: this ends that." in again.words


def test_it_lasts_and_stays_lifted_though_the_ledger_is_lost(run: Run, put_back_until_lifted: Settings) -> None:
    def rebuild() -> None:
        for file in put_back_until_lifted.state.glob("ledger.db*"):
            file.unlink()
        assert run("admin", "ledger", "--rebuild").code == 0

    rebuild()
    assert planned(run) == []
    assert HELD in run("status").words
    assert HELD in run(*LIFT, "--dry-run").words
    assert planned(run) == []
    lifted = run(*LIFT, *SIGNED)
    assert lifted.code == 0, lifted.err
    assert f"lifted {SILVER} {DAY}, {HELD}" in lifted.words
    newest = run("status", "releases", "--json").json[0]
    assert (newest["who"], newest["why"]) == ("ann", "finance agrees")
    for _ in range(2):
        assert planned(run) == [str(DAY)]
        rebuild()
    compute(put_back_until_lifted)
    with open_platform(put_back_until_lifted) as platform:
        assert platform.ledger.holds() == (), "what came meanwhile is computed"
    assert HELD not in run("status").words
    twice = run(*LIFT, *SIGNED)
    assert f"No rollback of {DAY} of {SILVER} lasts until it is lifted; nothing was lifted." in twice.error
