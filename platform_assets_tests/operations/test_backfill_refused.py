"""What a plan cannot do is told before any work, by line and field; its record and file are its own. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from platform_assets.contracts import Catalogue, Exposure
from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.backfill.afterwards import prove_sample, roll_back
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import approve, explain
from platform_assets.operations.backfill.files import PlanFileError, new_plan, plan_at, plan_in, written
from platform_assets.operations.backfill.obstacles import beyond_limits
from platform_assets.operations.backfill.report import before_publication
from platform_assets.operations.backfill.sitting import BackfillError, Sitting, StoppedError, sitting_over, waits_for
from platform_assets.operations.backfill.standing import backfill_report, facts
from platform_assets.operations.plan_record import BackfillRecord, RecordError, all_records, read_record, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.report import page as page_of
from platform_assets_tests.support.days_on_paper import (
    DAY,
    DAYS,
    GOLD,
    SILVER,
    begun,
    correct,
    plan,
)
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.ledger_records import day_record, nth

AUTHOR, BOB = Author("apply", "a plan", "ada"), Author("", "looked at it", "bob")


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
        (
            {"gates": [{"table": SILVER, "metric": "sum", "column": "celsus", "tolerance_percent": 1}]},
            "column: celsus",
            "gates.0.column",
            "has no column 'celsus'",
        ),
        (
            {"gates": [{"table": SILVER, "metric": "sum", "column": "measured_at", "tolerance_percent": 1}]},
            "column: measured_at",
            "gates.0.column",
            "cannot be summed",
        ),
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
    assert "backfill apply FILE</code>" not in page
    with pytest.raises(PlatformError, match="cannot begin: name: The plan mend was applied before"):
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
    assert not explain(platform, plan()).notifies
    [domain] = platform.catalogue.domains
    exposures = (Exposure("week", "WEEK_URL", (GOLD,)), Exposure("cache", "CACHE_URL", (SILVER, GOLD)))
    told = replace(platform, catalogue=Catalogue.of([replace(domain, exposures=exposures)]))
    assert explain(told, plan()).notifies == {"cache": (SILVER,)}
    wide = explain(told, plan(downstream=True))
    assert wide.notifies == {"week": (GOLD,), "cache": (GOLD, SILVER)}
    assert f"Notified once it is published, if their days change: week ({GOLD}), cache ({GOLD}, {SILVER})." in [
        *facts(wide)
    ]


RUNNER = Author("run", "a plan", "bob")


def sit(platform: Platform, file: PlanFile, place: Path) -> Sitting:
    with sitting_over(platform, no_session, file, RUNNER, place=place) as sitting:
        return sitting


def test_a_namesake_of_a_plan_that_waits_for_its_proof_is_not_taken_for_it(platform: Platform, tmp_path: Path) -> None:
    first = tmp_path / "mend.yaml"
    file = plan(afterwards={"verify": 1})
    record = sit(platform, file, first).record
    write_record(platform.lake, record.with_event("published", state="published", release=7))
    assert sit(platform, file, first).record.wants_proof
    with pytest.raises(BackfillError, match="was applied before: published in release 7"):
        sit(platform, plan(reason="another", afterwards={"verify": 1}), first)


def test_a_name_that_two_endings_share_is_not_guessed_at(tmp_path: Path) -> None:
    for ending in ("yaml", "yml"):
        new_plan(plan(), tmp_path / f"mend.{ending}")
    with pytest.raises(PlanFileError, match=r"two plans 'mend' in .*: mend\.yaml and mend\.yml"):
        plan_in(tmp_path, "mend")
    assert plan_in(tmp_path, "mend.yml").name == "mend.yml"


def record(verify: int = 3) -> BackfillRecord:
    said = {"name": "q1", "reason": "a", "owner": "ada", "tables": ["gold.a"], "days": {"stale": True}}
    file = PlanFile.model_validate(said | {"afterwards": {"verify": verify}})
    return BackfillRecord(name="q1", hash="25ae4916c48caffb", file=file, steps=())


def test_the_record_of_another_plan_is_none_of_this_one(lake: Lake) -> None:
    write_record(lake, record())
    (lake.plans_path / "q2.json").replace((lake.plans_path / "q1.json").read() or b"")
    assert read_record(lake, "q1") == record()
    with pytest.raises(RecordError, match=r"The record of the plan q2 cannot be read: .*: it belongs to q1"):
        read_record(lake, "q2")


@only_on_disk
def test_a_record_that_is_no_readable_file_is_named_and_hides_no_other(lake: Lake) -> None:
    write_record(lake, record())
    (lake.plans_path / "q2.json").make()
    records, damaged = all_records(lake)
    [error] = damaged.values()
    assert records == (record(),)
    assert error.what == f"The record of the plan q2 cannot be read: {lake.plans_path / 'q2.json'}: Is a directory."
    assert error.todo


@pytest.mark.parametrize(
    ("verify", "state", "proved", "wanted"),
    [
        (3, "published", False, True),
        (3, "published", True, False),
        (0, "published", False, False),
        (3, "publishing", False, False),
        (3, "rolled back", False, False),
    ],
)
def test_who_died_after_publishing_leaves_the_proof(verify: int, state: str, proved: bool, wanted: bool) -> None:
    assert record(verify).with_event("so far", state=state, proved=proved).wants_proof == wanted


DAILY, PLAN, LATER = "20170502T122000Z-of-one", "20170502T120500Z-of-the-other", "20170502T120100Z-of-the-other"
HISTORY = tuple(day_record(name, nth(0)) for name in (LATER, PLAN, DAILY))
"""Newest first."""


def test_what_a_backfill_replaced_is_the_release_before_it_whatever_its_clock_said() -> None:
    assert before_publication(HISTORY, PLAN) == HISTORY[2]
    assert before_publication(HISTORY, LATER) == HISTORY[1]
    assert before_publication(HISTORY, DAILY) is None


def test_before_a_backfill_that_is_not_published_is_now() -> None:
    assert before_publication(HISTORY, None) == HISTORY[0]
    assert before_publication((), None) is None
