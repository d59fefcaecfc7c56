"""Reviewed plan files in Dagster: explained, refused, stopped by a gate, gone on with, published, shown, proved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableJob
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import new_plan
from platform_assets.operations.backfill.sitting import sitting_over
from platform_assets.operations.plan_record import BackfillRecord, pause, read_record, write_record
from platform_assets.orchestration import plans as steps
from platform_assets.orchestration.assets.publications import Cursor, published_elsewhere
from platform_assets.orchestration.automation.announcements import Present, announcements, failed_runs
from platform_assets.orchestration.build import build_definitions, materialize_range
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.plans import HASH_TAG, PLAN_TAG
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.outbox import Announced
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.orchestration.daemon import enter_world
from platform_assets_tests.support.orchestration.readings import DAYS, GOLD, land, refresh_on_paper
from platform_assets_tests.support.own_domain import PACKAGE, forget, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World

__all__ = ["run", "state"]
"""Fixtures of the command line."""

FIRST = date(2017, 1, 1)
LAST = FIRST + timedelta(days=3)
TILLS = dg.AssetKey(["gold.tills"])
WRONG = ('F.sum("paid")', 'F.sum(F.col("paid") * 2)')
MOOD = (
    ("functions as F\n", "functions as F\nimport os\n"),
    ('F.sum("paid")', '(F.sum("paid") + F.lit(int(os.environ["MOOD"])))'),
)
"""Code that looks around: what it gives changes with what no day was made from."""
PLANTED = ('F.sum("paid")', 'F.sum(F.col("paid") / 10)')
UNRECONCILED = ('("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)', '("till",), (Amount("n", "0", "0"),)')


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def folder(readings: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where plans lie, beside three days of readings that were computed on paper."""
    monkeypatch.setenv("PLATFORM_PLANS", str(tmp_path / "plans"))
    for day in DAYS[:3]:
        land(readings, day, day)
    with readings.open() as platform:
        refresh_on_paper(platform, None, Author("a", "refresh"))
    return tmp_path / "plans"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Where the code of the tills lies, which is wrong."""
    with importable(write_domain(tmp_path / "home", contracts=(UNRECONCILED,), gold=(WRONG,))):
        yield tmp_path / "home"


@pytest.fixture
def four_days(
    make_world: MakeWorld, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance
) -> World:
    """Sales of a till, computed by a run of Dagster's assets."""
    monkeypatch.setenv("PLATFORM_PLANS", str(tmp_path / "plans"))
    world = make_world(days=4, domains=PACKAGE)
    enter_world(world, monkeypatch)
    for number in range(4):
        day = str(FIRST + timedelta(number))
        world.deliver_rows("sales", day, "a.jsonl", [{"till": 1, "at": f"{day}T10:00:00Z", "paid": "10"}])
    assert not materialize_range(build_definitions(load_settings()), instance, FIRST, LAST).failures
    return world


def plan(**fields: Any) -> PlanFile:
    """Of the readings, unless told otherwise."""
    said = {
        "name": "discount",
        "reason": "taken twice",
        "owner": "ada",
        "tables": [GOLD],
        "days": {"range": f"{DAYS[0]}..{DAYS[2]}"},
        "rollout": [50, 100],
        "afterwards": {"verify": 1},
    }
    return PlanFile.model_validate(said | fields)


def launch(
    instance: dg.DagsterInstance, job: str, settings: Settings | None = None, **config: str
) -> dg.ExecuteInProcessResult:
    """A run of a job with what somebody typed at the launchpad."""
    definition = build_definitions(settings or load_settings()).resolve_job_def(job)
    return definition.execute_in_process(instance=instance, run_config=config, raise_on_error=False)


def failure(result: dg.ExecuteInProcessResult) -> tuple[str, str, dict[str, str]]:
    """The step that failed, what it says and shows; there is no trace."""
    [event] = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    assert data.error is not None
    assert (data.error.stack, data.error.cause) == ([], None)
    shown = data.user_failure_data.metadata if data.user_failure_data else {}
    return str(event.step_key), data.error.message, {name: str(value.value) for name, value in shown.items()}


def page(instance: dg.DagsterInstance, run_id: str, step: str, name: str) -> str:
    """Markdown of a step that succeeded."""
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_OUTPUT).records
    events = [record.event_log_entry.dagster_event for record in records]
    [output] = [event for event in events if event and event.step_key == step]
    value = output.step_output_data.metadata[name]
    assert isinstance(value, dg.MarkdownMetadataValue)
    return str(value.value)


def test_a_plan_is_explained_on_the_page_of_a_run(run: Run, folder: Path, instance: dg.DagsterInstance) -> None:
    said = (GOLD, "--days", f"{DAYS[0]}..{DAYS[2]}", "--reason", "taken twice", "--by", "ada")
    assert run("backfill", "new", "discount", *said).code == 0
    assert (folder / "discount.yaml").is_file()
    found = launch(instance, "plan_explain", plan="discount")
    assert found.success
    shown = page(instance, found.run_id, "explain", "plan")
    assert f"| {GOLD} | 3 |" in shown
    assert "| 10 % |" in shown
    tags = instance.get_runs()[0].tags
    assert tags[PLAN_TAG] == "discount"
    assert f"Hash `{tags[HASH_TAG]}`" in shown


def test_what_cannot_be_applied_is_refused_before_any_work_and_told_as_text(
    folder: Path, instance: dg.DagsterInstance, readings: World
) -> None:
    new_plan(plan(approvals={"above_days": 0}), folder / "2017" / "asks.yaml")
    (folder / "wrong.yml").write_text("name: wrong\nowner: ada\nreason: why\ntables: [gold.sensor_week]\ndayz: {}\n")
    new_plan(
        plan(gates=[{"table": GOLD, "metric": "sum", "column": "nett", "tolerance_percent": 5}]), folder / "odd.yaml"
    )
    (folder.parent / "outside.yaml").write_text((folder / "2017" / "asks.yaml").read_text())
    (folder / "linked.yaml").symlink_to(folder.parent / "outside.yaml")
    for named, says in (
        ("2017/ask", "Did you mean 2017/asks.yaml? There are 2017/asks.yaml, odd.yaml, wrong.yml."),
        ("../outside.yaml", "There is no plan '../outside.yaml'"),
        (str(folder / "wrong.yml"), "There is no plan '/"),
        ("linked", "There is no plan 'linked'"),
        ("", "There is no plan ''"),
        ("wrong", "wrong.yml, line 5, dayz: there is no such field. Did you mean days?"),
        ("odd", "odd.yaml, line "),
        ("2017/asks", "needs 1 approval of "),
    ):
        refused = launch(instance, "plan_apply", plan=named)
        step, message, shown = failure(refused)
        assert (step, says in message) == ("begin", True), message
        if "approval" in says:
            assert "Hash `" in shown["plan"], "what is to be approved is shown"
    with readings.open() as platform:
        assert not (platform.lake.plans_path / "discount.json").exists()


def test_a_plan_that_somebody_paused_stands_still_and_says_how_to_go_on(
    folder: Path, instance: dg.DagsterInstance, readings: World
) -> None:
    new_plan(plan(), folder / "discount.yaml")
    with readings.open() as platform:
        write_record(platform.lake, BackfillRecord.new(explain(platform, plan())).with_event("begun", "zoe"))
        pause(platform.lake, "discount", "lunch")
    stopped = launch(instance, "plan_apply", plan="discount", by="zoe")
    step, message, shown = failure(stopped)
    assert step == "stage"
    assert "it was paused" in message
    assert "re-execute this run or launch `plan_apply`" in message
    assert "it was paused" in shown["evidence"]
    record = recorded(readings)
    assert (record.state, record.runs, record.events[0].who) == ("paused", (stopped.run_id,), "zoe")


def test_a_plan_waits_for_a_backfill_and_an_explanation_for_nothing(settings: Settings) -> None:
    definitions = build_definitions(settings)
    for job, pools in (("plan_apply", {TABLES_POOL}), ("plan_explain", {None})):
        assert {node.definition.pool for node in definitions.resolve_job_def(job).nodes} == pools  # type: ignore[attr-defined]


def test_a_plan_stops_at_a_gate_goes_on_and_is_shown(
    run: Run, four_days: World, home: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Computed by Spark: four days, then a plan over them in two runs."""
    gate = {"table": "gold.tills", "metric": "sum", "column": "paid", "tolerance_percent": 60}
    days = {"range": f"{FIRST}..{LAST}"}
    new_plan(plan(tables=["gold.tills"], days=days, gates=[gate]), tmp_path / "plans" / "discount.yaml")
    new_plan(plan(name="second", tables=["gold.tills"], days=days), tmp_path / "plans" / "second.yaml")
    unplanned = run("status", "recomputed", "--json").json[0]
    assert (unplanned["plan"], unplanned["run"]) == (None, instance.get_runs()[0].run_id)
    before = four_days.digests()

    change_code(home, PLANTED)
    stopped = launch(instance, "plan_apply", plan="discount", by="zoe")
    step, message, shown = failure(stopped)
    assert step == "stage"
    assert "at 50 % 1 gate of the plan failed: gold.tills: sum of paid of 2 staged days 40.00 before" in message
    assert "re-execute this run or launch `plan_apply`" in message
    assert "95.00 % apart" in shown["evidence"]
    assert "50 %: gold.tills" in shown["gates"]
    assert four_days.digests() == before
    assert not any(event.is_step_materialization for event in stopped.all_events), "nobody sees what is staged"
    [announced] = announcements(Present(holds=(), failed=failed_runs(instance, ())), Announced())
    assert "at 50 % 1 gate of the plan failed" in announced.payload["text"]
    told = [entry.user_message for entry in instance.all_logs(stopped.run_id)]
    assert any("discount: staging at 0 %: 4 days of tables" in line and "s left" in line for line in told), told

    change_code(home)
    looked = launch(instance, "plan_explain", plan="second")
    assert "**in the way**: days: The plan discount comes to 4 days" in page(instance, looked.run_id, "explain", "plan")
    step, message, _ = failure(launch(instance, "plan_apply", plan="second"))
    assert step == "begin"
    assert "cannot begin: days: The plan discount comes to 4 days of the same tables" in message
    done = launch(instance, "plan_apply", plan="discount")
    assert done.success
    record = recorded(four_days)
    assert (record.state, record.runs) == ("published", (stopped.run_id, done.run_id))
    assert shown_elsewhere(four_days, instance) == 0
    assert instance.get_runs()[0].tags[HASH_TAG] == record.hash
    shown_days = materialized(instance, done.run_id, TILLS)
    assert [event.partition for event in shown_days] == [str(FIRST + timedelta(number)) for number in range(4)]
    kept = page(instance, done.run_id, "prove", "record")
    assert "# Plan discount: published" in kept
    assert "2 days computed once more and equal" in kept
    assert done.run_id in run("status", "backfills", "discount").out
    seconds, events = record.seconds, record.events
    assert tried_again(instance, dg.ReexecutionOptions(done.run_id))
    record = recorded(four_days)
    assert (record.seconds, record.events) == (seconds, events), "it is shown again, and neither computed nor proved"
    planned, unplanned = run("status", "recomputed", "--json").json[:2]
    assert (planned["plan"], unplanned["plan"]) == ("discount", None)
    assert "was applied before: published in release" in failure(launch(instance, "plan_apply", plan="discount"))[1]


def test_what_a_plan_published_is_shown_whatever_ended_its_run(
    folder: Path, readings: World, instance: dg.DagsterInstance
) -> None:
    """Published on paper by a process that died at once; then a run that dies, too, and another try of it."""
    file = plan(afterwards={"verify": 0})
    new_plan(file, folder / "discount.yaml")
    with readings.open() as platform, sitting_over(platform, no_spark, file, Author("dead", "a test")) as sitting:
        sitting.keep(sitting.record.with_event("publishing", done=2, state="publishing"))
        for day in DAYS[:3]:
            land(readings, day, day, name="more.jsonl")
        refresh_on_paper(platform, None, Author(sitting.record.run, "the plan"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "show_published", full_disk)
        died = launch(instance, "plan_apply", plan="discount")
    assert not died.success
    record = recorded(readings)
    assert (record.state, record.runs) == ("published", ("dead", died.run_id))
    assert shown_elsewhere(readings, instance) == 3, "the sensor shows what no run has shown"

    retry = dg.ReexecutionOptions.from_failure(died.run_id, instance)
    assert tried_again(instance, retry)
    done = instance.get_runs(limit=1)[0]
    assert shown_elsewhere(readings, instance) == 0
    shown = materialized(instance, done.run_id, dg.AssetKey([GOLD]))
    assert [event.partition for event in shown] == DAYS[:3]
    for event in shown:
        said = {name: value.value for name, value in event.metadata.items()}
        assert (said["plan"], said["plan hash"], said["publication"]) == ("discount", record.hash, record.publication)
    assert "# Plan discount: published" in page(instance, done.run_id, "prove", "record")
    checks = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [dg.AssetCheckKey(dg.AssetKey([GOLD]), "contract")]
    )
    assert [check.run_id for check in checks.values()] == [done.run_id]


def test_a_proof_that_waits_for_its_hours_says_so_and_a_plan_that_is_over_begins_by_no_other_file(
    folder: Path, readings: World, instance: dg.DagsterInstance
) -> None:
    """Published on paper, as the plan would; nothing has to be computed before the proof."""
    later = f"{datetime.now(UTC) + timedelta(hours=8):%H:00-%H:59}"
    file = plan(service={"hours": later})
    new_plan(file, folder / "discount.yaml")
    new_plan(plan(reason="another one"), folder / "2017" / "discount.yaml")
    place = folder / "discount.yaml"
    with (
        readings.open() as platform,
        sitting_over(platform, no_spark, file, Author("dead", "a test"), place=place) as sitting,
    ):
        sitting.keep(sitting.record.with_event("publishing", done=2, state="publishing"))
        for day in DAYS[:3]:
            land(readings, day, day, name="more.jsonl")
        refresh_on_paper(platform, None, Author(sitting.record.run, "the plan"))
    step, message, _ = failure(launch(instance, "plan_apply", plan="discount"))
    assert (step, f"its proof waits for its hours, {later} UTC" in message) == ("prove", True), message
    record = recorded(readings)
    assert (record.state, record.wants_proof, record.place) == ("published", True, str(place))
    step, message, _ = failure(launch(instance, "plan_apply", plan="2017/discount"))
    assert (step, "was applied before: published in release" in message) == ("begin", True), message


def no_spark() -> SparkSession:
    raise AssertionError("there is nothing to compute")


@pytest.mark.proof
def test_a_plan_that_comes_out_differently_the_second_time_is_rolled_back_and_shown_so(
    four_days: World, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance
) -> None:
    """Computed by Spark; what the code looks at changes between publication and proof."""
    after = {"verify": 1, "roll_back_on_failure": True}
    said = plan(tables=["gold.tills"], days={"range": f"{FIRST}..{LAST}"}, afterwards=after)
    new_plan(said, tmp_path / "plans" / "discount.yaml")
    before = four_days.digests()
    change_code(home, *MOOD)
    monkeypatch.setenv("MOOD", "1")
    monkeypatch.setattr(steps, "log_freshness", lambda *_: monkeypatch.setenv("MOOD", "2"))
    step, message, shown = failure(launch(instance, "plan_apply", plan="discount"))
    assert (step, "All of it is rolled back." in message) == ("prove", True), message
    assert f"gold.tills {LAST}" in message
    assert "# Plan discount: rolled back" in shown["record"]
    assert four_days.digests() == before
    days = materialized(instance, instance.get_runs()[0].run_id, TILLS)
    assert len(days) == 8, "published, and put back"
    assert {(event.tags or {})["dagster/data_version"] for event in days[4:]} == set(before["gold.tills"].values())
    assert shown_elsewhere(four_days, instance) == 0, "neither is shown once more by the sensor"


def change_code(home: Path, *gold: tuple[str, str]) -> None:
    """What was imported before is forgotten, as by another process."""
    write_domain(home, contracts=(UNRECONCILED,), gold=gold)
    forget()


def apply_job() -> dg.JobDefinition:
    """For Dagster, which wants to load it anew for another try."""
    return build_definitions(load_settings()).resolve_job_def("plan_apply")


def tried_again(instance: dg.DagsterInstance, options: dg.ReexecutionOptions) -> bool:
    """Whether another try of a run succeeds."""
    # Dagster keeps definitions, of whatever test was before.
    ReconstructableJob.get_repository_definition.cache_clear()
    ReconstructableJob.get_definition.cache_clear()
    with dg.execute_job(dg.reconstructable(apply_job), instance, reexecution_options=options) as done:
        return done.success


def full_disk(*_: object) -> None:
    raise OSError("disk full")


def recorded(world: World) -> BackfillRecord:
    with world.open() as platform:
        return read_record(platform.lake, "discount")


def shown_elsewhere(world: World, instance: dg.DagsterInstance) -> int:
    """Days of the newest release that the sensor would show."""
    with world.open() as platform:
        since = Cursor(platform.current_release().number - 1)
        return sum(bool(part.events) for part in published_elsewhere(instance, platform, since))


def materialized(instance: dg.DagsterInstance, run_id: str, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
    records = instance.fetch_materializations(key, limit=100, ascending=True).records
    return [record.asset_materialization for record in records if record.run_id == run_id]  # type: ignore[misc]
