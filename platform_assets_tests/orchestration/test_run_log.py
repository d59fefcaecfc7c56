"""How far a run is, on its page: a mark on the bar for each table, and lines that come while it works."""

import time
from datetime import date

import dagster as dg
import pytest
from dagster import DagsterEventType as Event
from dagster._core.events import EngineEventData

from platform_assets.engine.results import IngestResult
from platform_assets.orchestration import run_log
from platform_assets.progress import Progress, no_progress
from platform_assets.records.manifest import Arrival
from platform_assets.sources.landing import Problem


def logged(instance: dg.DagsterInstance, op: dg.OpDefinition) -> tuple[list[str], list[EngineEventData]]:
    """Lines of the run's log that are about the work, and the marks on its bar."""

    @dg.job
    def job() -> None:
        op()

    run = job.execute_in_process(instance=instance)
    lines, marks = [], []
    for entry in instance.all_logs(run.run_id):
        event = entry.dagster_event
        data = event.event_specific_data if event and event.event_type is Event.ENGINE_EVENT else None
        if isinstance(data, EngineEventData) and (data.marker_start or data.marker_end):
            assert event is not None
            assert event.step_key == op.name
            marks.append(data)
            lines.append(str(event.message))
        elif event is None:
            lines.append(entry.user_message)
    return lines, marks


def test_every_table_is_a_mark_from_its_begin_to_its_end() -> None:
    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        with run_log.progress_in_run(context, str, no_progress) as tell:
            tell(Progress("taking", "raw.sales", 0, 3, "file"))
            tell(Progress("starting Spark"))
            tell(Progress("starting Spark", finished=True))
            tell(Progress("taking", "raw.sales", 2, 3, "file"))
            tell(Progress("taking", "raw.sales", 1, 1, rows=1_200, finished=True))
            tell(Progress("recording", "raw.sales in Dagster"))
            tell(Progress("computing", "gold.sales", 0, 2))

    with dg.DagsterInstance.ephemeral() as instance:
        lines, marks = logged(instance, work)
    assert [(mark.marker_start, mark.marker_end) for mark in marks] == [
        ("taking raw.sales", None),
        ("starting Spark", None),
        (None, "starting Spark"),
        (None, "taking raw.sales"),
        ("recording raw.sales in Dagster", None),
        (None, "recording raw.sales in Dagster"),
        ("computing gold.sales", None),
        (None, "computing gold.sales"),  # left by an error, say
    ]
    assert lines[0] == "taking raw.sales: 3 files"
    assert lines[3] == "raw.sales: 2 of 3 files"
    assert lines[4].startswith("taking raw.sales: 1 day, 1,200 rows, ")


def test_files_that_were_not_taken_have_the_words_of_the_command_line() -> None:
    def arrival(name: str, reason: str | None) -> Arrival:
        when = date(2017, 1, 1)
        return Arrival(
            table="raw.sales", path=name, arrival_date=when, size=1, sha256="0" * 64, modified_ns=1, reason=reason
        )

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        taken = IngestResult(
            "raw.sales",
            arrivals=(arrival("s/2017-01-01/a.csv", None), arrival("s/2017-01-01/b.csv", "is empty")),
            problems=(Problem("s/2017-01-01/c.txt", "has the unknown ending '.txt'"),),
            growing=(Problem("s/2017-01-01/d.csv", "is still growing", is_growing=True),),
        )
        run_log.warn_of_files(context.log, taken)

    with dg.DagsterInstance.ephemeral() as instance:
        lines, _ = logged(instance, work)
    assert lines == [
        "refused s/2017-01-01/b.csv is empty",
        "not taken s/2017-01-01/c.txt has the unknown ending '.txt'",
        "not taken yet s/2017-01-01/d.csv is still growing",
    ]


def test_what_goes_on_for_long_says_so_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "_SILENCE_S", 0.5)

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        with run_log.progress_in_run(context, lambda: "Spark is at 3 of 8 tasks", no_progress) as tell:
            tell(Progress("computing", "gold.sales", 0, 2))
            time.sleep(2.5)

    with dg.DagsterInstance.ephemeral() as instance:
        lines, _ = logged(instance, work)
    reminders = lines[1:-1]
    assert reminders
    assert reminders[0].startswith("computing gold.sales: 0 of 2 days, ")
    assert reminders[0].endswith(" s; Spark is at 3 of 8 tasks")
