"""The record of a backfill: its own, and what of it is still to be done."""

from __future__ import annotations

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.backfill.report import before_publication
from platform_assets.operations.plan_record import (
    BackfillRecord,
    RecordError,
    all_records,
    read_record,
    refuse_stage_of_a_plan,
    write_record,
)
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.ledger_records import day_record, nth


def record(verify: int = 3) -> BackfillRecord:
    said = {"name": "q1", "reason": "a", "owner": "ada", "tables": ["gold.a"], "days": {"stale": True}}
    file = PlanFile.model_validate(said | {"afterwards": {"verify": verify}})
    return BackfillRecord(name="q1", hash="25ae4916c48caffb", file=file, steps=())


def test_the_record_of_another_plan_is_none_of_this_one(lake: Lake) -> None:
    write_record(lake, record())
    (lake.plans_path / "q2.json").replace((lake.plans_path / "q1.json").read() or b"")
    assert read_record(lake, "q1") == record()
    with pytest.raises(RecordError, match="The record of the plan q2 is that of q1"):
        read_record(lake, "q2")


@only_on_disk
def test_a_record_that_is_no_readable_file_is_named_and_hides_no_other(lake: Lake) -> None:
    write_record(lake, record())
    (lake.plans_path / "q2.json").make()
    records, [error] = all_records(lake)
    assert records == (record(),)
    assert error.what == f"The record of the plan q2 cannot be read: {lake.plans_path / 'q2.json'}: Is a directory."
    assert error.todo


def test_a_stage_is_refused_where_a_plan_fills_it_and_nowhere_else(lake: Lake) -> None:
    write_record(lake, record())
    with pytest.raises(RecordError, match="is filled by the plan q1"):
        refuse_stage_of_a_plan(lake, "plan-q1")
    for name in ("q1", "plan-q2", "plan-2024", "plan-"):
        refuse_stage_of_a_plan(lake, name)
    write_record(lake, record().told("no need", state="cancelled"))
    refuse_stage_of_a_plan(lake, "plan-q1")


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
    assert record(verify).told("so far", state=state, proved=proved).wants_proof == wanted


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
