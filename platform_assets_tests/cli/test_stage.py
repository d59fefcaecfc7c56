"""Stages as commands show them, without Spark: listed, looked at, published, dropped; mistakes are told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import OpenStage
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.operations.stages.store import write_stage
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold, StagedDays
from platform_assets.records.manifest import TableChange, Warned
from platform_assets.settings import Settings
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets_tests.support.cli.commands import Run, assert_refused
from platform_assets_tests.support.cli.products import SILVER, computed, publish_on_paper
from platform_assets_tests.support.places import on_disk

DAY, BAD = date(2017, 1, 2), date(2017, 1, 3)


@pytest.fixture
def platform(products: Settings) -> Iterator[Platform]:
    with open_platform(products) as platform:
        yield platform


@pytest.fixture
def trial(platform: Platform) -> OpenStage:
    """One day of silver that became empty, and another that failed a gate."""
    [(_, publication)] = published(platform.lake, after=current_release(platform.lake).number - 1)
    version, parts = platform.version(SILVER), platform.configurations[SILVER].parts
    now = datetime.now(UTC)
    release = current_release(platform.lake)
    live = files_at(platform.lake, SILVER, release.versions.get(SILVER))
    content = computed(platform, SILVER)[DAY].model_copy(
        update={
            "digest": "0-1-1-1-1",
            "base": tuple(file.path for file in live.get(DAY, ())),
            "warnings": (Warned(gate="volume", found="1 row", expected="9 rows [/b]"),),
        }
    )
    change = TableChange(
        table=SILVER,
        schema_string=spark_schema(platform.catalogue[SILVER]).json(),
        days={DAY: content},
        code_version=version.code,
        configuration=parts,
    )
    held = Hold(SILVER, BAD, Attempt("f"), "contract", "[bold] is null", "r", now)
    stage = OpenStage(
        name="trial", release=release.number, publication=publication, opened_at=now, changed_at=now, who="Zoë",
        why="a new rule [/b]", staged=StagedDays().with_days([change], [held]), reasons={SILVER: {DAY: ("code",)}},
    )  # fmt: skip
    write_stage(platform.lake, stage)
    return stage


def test_no_stage_is_no_mistake(run: Run, products: Settings) -> None:
    assert "No stage is open" in run("status", "stages").out
    assert run("status", "stages", "--json").json == []


def test_a_stage_is_listed_and_shown(run: Run, trial: OpenStage) -> None:
    [listed] = run("status", "stages", "--json").json
    assert (listed["name"], listed["who"], listed["release"]) == ("trial", "Zoë", trial.release)
    assert listed["tables"][SILVER][0]["reasons"] == ["code"]
    assert "a new rule [/b]" in run("status", "stages").out
    shown = run("status", "stages", "trial").out
    warned = f"warned {SILVER} {DAY} volume: 1 row; expected: 9 rows [/b]"
    for part in (f"over release {trial.release}", "2017-01-02", "code", f"held {SILVER} {BAD}: [bold] is null", warned):
        assert part in shown
    assert run("status", "stages", "trial", "--json").json["of_other_code"] == {}


def test_it_is_compared_published_and_closed(run: Run, platform: Platform, trial: OpenStage) -> None:
    compared = run("diff", "stage:trial", "--json")
    assert compared.code == 0, compared.err
    [day] = compared.json["days"]
    assert (day["table"], day["day"], day["equal"]) == (SILVER, str(DAY), True)
    assert "Stage trial beside release" in run("diff", "stage:trial").out
    done = run("publish", "trial", "--reason", "looked at", "--json")
    assert done.code == 0, done.err
    assert (done.json["release"], done.json["days"]) == (trial.release + 1, {SILVER: [str(DAY)]})
    assert platform.ledger.current_days(SILVER)[DAY].digest == "0-1-1-1-1"
    assert [hold.day for hold in platform.ledger.holds(SILVER)] == [BAD]
    assert [warning["day"] for warning in run("status", "warnings", "--json").json] == [str(DAY)]
    newest = run("status", "releases", "--json").json[0]
    assert newest["why"] == "looked at"
    assert "There is no stage 'trial'" in run("publish", "trial", "--reason", "once more").err


def test_it_is_dropped(run: Run, platform: Platform, trial: OpenStage) -> None:
    before = platform.ledger.current_days(SILVER)
    assert f"1 day of {SILVER}" in run("undo", "stage:trial").out
    assert platform.ledger.current_days(SILVER) == before
    assert "No stage is open" in run("status", "stages").out


def test_a_plan_on_a_stage_counts_what_is_staged(run: Run, platform: Platform, trial: OpenStage) -> None:
    def planned(*args: str) -> dict[str, int]:
        steps = run("refresh", "--explain", "--json", *args).json["plan"]["steps"]
        return {step["table"]: step["days"] for step in steps}

    publish_on_paper(platform, SILVER, computed(platform, SILVER), code_version="old")
    assert planned()[SILVER] > planned("--stage", "trial").get(SILVER, 0)


def test_into_the_stage_of_a_plan_nobody_else_computes(run: Run, platform: Platform, trial: OpenStage) -> None:
    said = {"name": "q1", "reason": "a", "owner": "ada", "tables": [SILVER], "days": {"stale": True}}
    record = BackfillRecord(name="q1", hash="25ae4916c48caffb", file=PlanFile.model_validate(said), steps=())
    write_record(platform.lake, record)
    write_stage(platform.lake, trial.model_copy(update={"name": "plan-q1"}))
    for command in (["refresh", "--stage", "plan-q1"], ["publish", "plan-q1", "--reason", "a", "--by", "b"]):
        refused = run(*command)
        assert (refused.code, "is filled by the plan q1" in refused.err) == (3, True)
    assert run("refresh", "--stage", "plan-q1", "--explain").code == 0
    write_record(platform.lake, record.with_event("no need", state="cancelled"))
    assert "is filled by" not in run("refresh", "--stage", "plan-q1", "--days", "2017-02-30").err


def test_mistakes_are_told(run: Run, trial: OpenStage) -> None:
    cases = (
        (["status", "stages", "trail"], "Did you mean trial"),
        (["status", "stages", "a/b"], "cannot name a stage"),
        (["publish", "nobody-s", "--reason", "x"], "There is no stage 'nobody-s'"),
        (["diff", "stage:trial", "gold.daily_sales"], f"It holds days of {SILVER}"),
        (["diff", "stage:trial", "silver.product"], f"Did you mean {SILVER}?"),
        (["diff", "stage:trial", "--days", "2017-02-30"], "is not a day"),
        (["read", "--stage", "trial", "gold.dayly_sales"], "There is no table"),
        (["read", "--stage", "trial", SILVER, "--format", "xml"], "Invalid value for '--format'"),
    )
    assert_refused(run, cases=cases)


def test_a_damaged_stage_hides_no_other(run: Run, platform: Platform, trial: OpenStage) -> None:
    write_stage(platform.lake, trial.model_copy(update={"name": "other"}))
    on_disk(platform.lake.open_stages_path / "other.json").write_text("{", encoding="utf-8")
    said = run("status", "stages")
    assert said.code == 1
    assert "trial" in said.out
    assert "The stage other is damaged" in said.out
    assert "staged files are unknown" in run("undo", "stage:other").out
