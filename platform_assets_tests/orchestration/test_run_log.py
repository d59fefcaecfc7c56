"""How far a run is, on its page, and the charts that Dagster draws in place."""

import re
import time
from datetime import date, timedelta
from urllib.parse import unquote
from xml.etree import ElementTree

import dagster as dg
import pytest
from dagster import DagsterEventType as Event
from dagster._core.events import EngineEventData

from platform_assets.orchestration import resources
from platform_assets.orchestration.assets.pictures import MOST_CHARACTERS, MOST_DAYS, Chart
from platform_assets.progress import Progress, no_progress


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
        with resources.progress_in_run(context, str, no_progress) as tell:
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


def test_what_goes_on_for_long_says_so_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_SILENCE_S", 0.5)

    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        with resources.progress_in_run(context, lambda: "Spark is at 3 of 8 tasks", no_progress) as tell:
            tell(Progress("computing", "gold.sales", 0, 2))
            time.sleep(2.5)

    with dg.DagsterInstance.ephemeral() as instance:
        lines, _ = logged(instance, work)
    reminders = lines[1:-1]
    assert reminders
    assert reminders[0].startswith("computing gold.sales: 0 of 2 days, ")
    assert reminders[0].endswith(" s; Spark is at 3 of 8 tasks")


FIRST = date(2017, 1, 1)
DAYS = [FIRST + timedelta(days=n) for n in range(60)]


def picture(markdown: str) -> ElementTree.Element:
    [svg] = re.findall(r"<data:image/svg\+xml,(.*)>\)$", markdown)
    return ElementTree.fromstring(unquote(svg))


@pytest.mark.parametrize("most", [1, 650, 12_345, 9_876_543_210])
def test_four_weeks_with_what_is_usual_fit_where_dagster_shows_them(most: int) -> None:
    values = {day: most * (0.5 + 0.5 * (n % 7) / 6) for n, day in enumerate(DAYS)}
    usual = dict.fromkeys(DAYS, (most * 0.4, most * 0.9))
    text = Chart("rows of gold.sales_month_to_date", "rows", values, DAYS[-1], usual).markdown()
    assert len(text) <= MOST_CHARACTERS
    area, line = [path.attrib["d"] for path in picture(text).iter("{http://www.w3.org/2000/svg}path")]
    assert area.count("V") >= MOST_DAYS - 3
    assert "NaN" not in line


def test_a_chart_says_what_it_shows_of_which_days_and_where_its_axes_end() -> None:
    text = Chart("rows of silver.sales", "rows", dict.fromkeys(DAYS, 500.0), DAYS[40]).markdown()
    assert text.startswith("**rows of silver.sales** by day, UTC; ring: 2017-02-10")
    assert "usual" not in text
    written = [part.text for part in picture(text).iter("{http://www.w3.org/2000/svg}text")]
    assert written == ["500 rows", "0; 14 Jan", "10 Feb"]
