"""What a plan cannot do is told before any work, by line and field; one that was applied says so. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from platform_assets.contracts import Catalogue, Exposure
from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.afterwards import prove_sample, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import ApprovalError, approve, explain
from platform_assets.operations.backfill.files import PlanFileError, plan_at, written
from platform_assets.operations.backfill.obstacles import beyond_limits
from platform_assets.operations.backfill.pages import backfill_report, facts
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError
from platform_assets.operations.backfill.waiting import waits_for
from platform_assets.operations.plan_record import BackfillRecord, read_record, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.report_pages import page as page_of
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.readings import (
    DAY,
    DAYS,
    GOLD,
    SILVER,
    correct,
    opened,
    plan,
    publish_all,
    stage,
)

AUTHOR, BOB = Author("apply", "a plan", "ada"), Author("", "looked at it", "bob")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        yield platform


def begun(platform: Platform, file: PlanFile) -> None:
    """A plan that has staged all of its days, and was interrupted then."""
    backfill = explain(platform, file)
    write_record(platform.lake, BackfillRecord.new(backfill))
    stage(platform, f"plan-{file.name}", {one.table: dict.fromkeys(one.days, ()) for one in backfill.plan.steps})


@pytest.mark.parametrize(
    ("fields", "said", "field", "says"),
    [
        ({"tables": [SILVER, "gold.sensor_weak"]}, "- gold.sensor_weak", "tables.1", "sensor_week"),
        (
            {"gates": [{"table": "gold.no", "metric": "rows", "tolerance_percent": 1}], "downstream": True},
            "- table: gold.no",
            "gates.0.table",
            "gold.no",
        ),
        ({"days": {"list": [str(DAYS[0]), "2016-12-31"]}}, '- "2016-12-31"', "days.list.1", "outside the calendar"),
        ({"days": {"range": "2016-12-31..2017-01-02"}}, "range:", "days.range", "2016-12-31 is outside the calendar"),
        ({"days": {"list": [str(DAY)], "without": [str(DAY)]}}, "days:", "days", "names no day"),
        ({"days": {"list": [str(day) for day in DAYS]}, "cap_days": 3}, "cap_days: 3", "cap_days", "9 days of tables"),
        ({"days": {"touched_by": {"publication": "no"}}}, "publication:", "days.touched_by.publication", "no release"),
        ({"days": {"touched_by": {"arrival": "no"}}}, "arrival:", "days.touched_by.arrival", "no"),
        ({"code": {SILVER: "0123456789abcdef"}}, f"{SILVER}: ", f"code.{SILVER}", "and not by 0123456789abcdef"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_platform_does_not_have_is_told_by_line_and_field(
    platform: Platform, tmp_path: Path, fields: dict[str, Any], said: str, field: str, says: str
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(written(plan(**fields)), encoding="utf-8")
    [line] = [at for at, text in enumerate(file.read_text().splitlines(), 1) if text.strip().startswith(said)]
    with pytest.raises(PlanFileError) as refused, plan_at(file) as read:
        explain(platform, read)
    assert refused.value.what.startswith(f"{file}, line {line}, {field}: "), refused.value.what
    assert says in f"{refused.value}"


def test_a_plan_of_the_code_that_is_here_is_explained_and_of_other_code_not_gone_on_with(platform: Platform) -> None:
    correct(platform)
    said = {SILVER: platform.version(SILVER).code}
    assert not explain(platform, plan(code=said)).blocking
    begun(platform, plan(code=said))
    with pytest.raises(PlanFileError, match="and not by other"):
        apply(platform, no_session, plan(code={SILVER: "other"}), AUTHOR)
    assert apply(platform, no_session, plan(code=said), AUTHOR).state == "published"


def test_code_of_a_table_that_the_plan_is_not_about_is_refused_and_a_blank_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is not among the tables"):
        plan(code={GOLD: "a"})
    assert plan(code={GOLD: "a"}, downstream=True).code == {GOLD: "a"}
    file = tmp_path / "plan.yaml"
    file.write_text(f"{written(plan())}\ncode:\n", encoding="utf-8")
    with (
        pytest.raises(PlanFileError, match="code: it is left blank, which would compute by whatever code is here"),
        plan_at(file),
    ):
        pass


def test_a_plan_that_was_applied_says_so_when_it_is_explained_and_is_not_approved_again(platform: Platform) -> None:
    file = plan(approvals={"above_days": 0})
    correct(platform)
    approve(platform, file, explain(platform, file).hash, BOB)
    begun(platform, file)
    record = apply(platform, no_session, file, AUTHOR)
    [over] = explain(platform, file).blocking
    assert over.what == f"The plan mend was applied before: published in release {record.release}."
    assert "another name" in over.todo
    page = page_of("mend", backfill_report(explain(platform, file)).parts)
    assert "neither approved nor applied" in page
    assert "plan apply FILE</code>" not in page
    with pytest.raises(ApprovalError, match="cannot begin: name: The plan mend was applied before"):
        approve(platform, file, explain(platform, file).hash, BOB)
    roll_back(platform, "mend", BOB)
    assert "rolled back" in explain(platform, file).blocking[0].what
    assert not explain(platform, plan(name="again")).blocking


def test_a_plan_that_is_published_and_not_proved_says_that_this_is_what_is_to_come(platform: Platform) -> None:
    file = plan(afterwards={"verify": 1})
    correct(platform)
    begun(platform, file)
    assert apply(platform, no_session, file, AUTHOR).wants_proof
    found = explain(platform, file)
    assert not found.blocking
    [told] = [one for one in found.obstacles if "was applied before" in one.what]
    assert "computes its proof, which is still to come, and nothing else" in told.todo
    assert explain(platform, plan(afterwards={"verify": 2})).blocking, "that is another plan of its name"


def test_a_plan_that_was_proved_is_not_proved_once_more_unless_it_came_out_differently(platform: Platform) -> None:
    file = plan(afterwards={"verify": 1})
    correct(platform)
    begun(platform, file)
    record = apply(platform, no_session, file, AUTHOR).model_copy(update={"proved": True})
    assert prove_sample(platform, no_session, record, AUTHOR) == (record, ())
    different = record.model_copy(update={"different_days": 1})
    with pytest.raises(AssertionError, match="a session was asked for"):
        prove_sample(platform, no_session, different, AUTHOR)


def test_a_plan_that_cannot_be_staged_in_time_is_refused_and_stops_when_its_time_is_over(platform: Platform) -> None:
    now = datetime.now(UTC)
    correct(platform)
    soon, far, over = (
        f"{now + after:%Y-%m-%d %H:%M}" for after in (timedelta(minutes=3), timedelta(30), -timedelta(1))
    )
    file = plan(service={"until": far})
    found = explain(platform, file)
    assert not found.blocking
    for until in (over, f"{now:%Y-%m-%d %H:%M}"):
        [late] = explain(platform, plan(service={"until": until})).blocking
        assert late.what.startswith(f"It cannot be staged until {until} UTC: 0.0 s are left.")
    hours = f"{now - timedelta(hours=2):%H:%M}-{now - timedelta(hours=1):%H:%M}"
    [late] = explain(platform, plan(service={"until": soon, "hours": hours})).blocking
    assert late.what.endswith(f"0.0 s are left within {hours}.")
    takes = replace(found.price, seconds=900.0, between=(600.0, 900.0))
    [late] = beyond_limits(platform, plan(service={"until": soon}), replace(takes, unknown=()), 2)
    assert late.what.endswith(", and at least 10 min are to be expected.")
    assert not [*beyond_limits(platform, file, replace(takes, unknown=()), 2)]
    with pytest.raises(BackfillError, match=r"cannot begin: service\.until: It cannot be staged until"):
        apply(platform, no_session, plan(service={"until": over}), AUTHOR)
    passed = plan(service={"until": over})
    write_record(platform.lake, BackfillRecord.new(found).model_copy(update={"file": passed}))
    with pytest.raises(StoppedError, match=f"it had to be staged until {over} UTC") as stopped:
        apply(platform, no_session, passed, AUTHOR)
    assert "service.until" in stopped.value.todo
    assert any("It had to be staged until" in one for one in waits_for(platform, read_record(platform.lake, "mend")))


def test_who_is_told_of_what_a_plan_publishes_is_explained(platform: Platform) -> None:
    assert not explain(platform, plan()).told
    [domain] = platform.catalogue.domains
    exposures = (Exposure("week", "WEEK_URL", (GOLD,)), Exposure("cache", "CACHE_URL", (SILVER, GOLD)))
    told = replace(platform, catalogue=Catalogue.of([replace(domain, exposures=exposures)]))
    assert explain(told, plan()).told == {"cache": (SILVER,)}
    wide = explain(told, plan(downstream=True))
    assert wide.told == {"week": (GOLD,), "cache": (GOLD, SILVER)}
    assert f"Told once it is published, if their days change: week ({GOLD}), cache ({GOLD}, {SILVER})." in [
        *facts(wide)
    ]


def test_a_gate_that_is_of_each_day_is_explained_as_such(platform: Platform) -> None:
    gates = [{"table": SILVER, "metric": "rows", "tolerance_percent": 1, "each_day": each} for each in (True, False)]
    [said] = [one for one in facts(explain(platform, plan(gates=gates))) if one.startswith("Gates")]
    assert said.endswith(f": {SILVER} rows within 1 % on each day, too; {SILVER} rows within 1 %.")
