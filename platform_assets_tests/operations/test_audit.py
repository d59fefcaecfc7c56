"""The audit of an installation with real content, and the whole life of its days."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.late.approvals import approve
from platform_assets.engine.late.queue import refuse
from platform_assets.engine.late.withdrawals import withdraw
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.audit.faults import Scope
from platform_assets.operations.audit.installation import Audit, audit_installation
from platform_assets.operations.lineage.day_history import Event, Published, life_of
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.planning.late_queue import LateSelection
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import ROLL_BACK, Hold
from platform_assets_tests.support.history import History, Version, person
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import two_lines_a_day
from platform_assets_tests.support.shelf import write_as_long

RAW, SILVER = "raw.transactions", "silver.transactions"
DAY = date(2017, 1, 3)


@pytest.fixture
def story(prepared: Prepared) -> History:
    return prepared(two_lines_a_day)


def audited(story: History, *, session: Callable[[], SparkSession] | None = None, **scope: object) -> Audit:
    return audit_installation(story.world.settings, Scope(**scope), lambda *_: None, session)  # type: ignore[arg-type]


def life(story: History, table: str) -> tuple[Event, ...]:
    with story.world.open() as platform:
        return tuple(event for _, event in life_of(platform, table, DAY))


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [
        event.head.kind
        if isinstance(event, Published)
        else event.kind
        if isinstance(event, LateDecision)
        else f"held by {event.gate}"
        if isinstance(event, Hold)
        else f"held no longer by {event.hold.gate}"
        for event in events
    ]


def test_what_was_published_has_the_digests_that_were_published(story: History) -> None:
    """A refresh, and the digest of every day of every release counted again."""
    story.deliver("2017-01-05", "more.jsonl", Version(3, 3, 3, "9.00"))
    story.refresh()
    done = audited(story, session=lambda: story.world.spark, every_release=True)
    assert (done.findings.faults, done.findings.notes) == ([], [])
    assert done.findings.seen["digests"] == done.findings.seen["rows"] == 16
    assert done.findings.seen["ledger"] == done.release + 1


def test_other_rows_in_a_file_as_long_are_told_by_their_digest(story: History) -> None:
    path = Lake.at(story.world.settings.lake).table_path(SILVER)
    [file] = [path / file.path for file in live_files(path)[DAY]]
    rows = pq.ParquetFile(file).read()
    place = rows.schema.get_field_index("basket_id")
    write_as_long(on_disk(file), rows.set_column(place, rows.schema.field(place), pa.array([1, 1], pa.int64())))
    assert audited(story).findings.faults == [], "as many rows, as many bytes"
    [fault] = audited(story, session=lambda: story.world.spark, tables=[SILVER]).findings.faults
    assert (fault.check, fault.table, fault.day) == ("digests", SILVER, DAY)
    assert "refresh silver.transactions --days 2017-01-03 --force" in fault.todo
    assert (
        audited(story, session=lambda: story.world.spark, tables=[SILVER], days={date(2017, 1, 2)}).findings.faults
        == []
    )


def test_a_ledger_that_says_something_else_than_the_manifests_is_named(story: History) -> None:
    with story.world.open() as platform:
        name, release = next(iter(platform.ledger.indexed().items()))
        told = platform.ledger.publication(name)
        assert told is not None
        platform.ledger.reindex([name], [replace(told, who="somebody else")])
    [fault] = audited(story).findings.faults
    assert (fault.check, f"of publication {name} (release {release})" in fault.what) == ("ledger", True)
    assert "ledger rebuild" in fault.todo


def test_the_life_of_a_day_is_told_from_its_first_content_to_its_rollback(story: History) -> None:
    story.deliver("2017-01-05", "more.jsonl", Version(99, 3, 1, "9.00"))
    story.refresh()
    with story.world.open() as platform:
        newest = platform.ledger.current_days(SILVER)[DAY].publication
        rollback(platform, chosen_publications(platform, newest), person("a wrong till"))
    first, corrected, undone, held = life(story, SILVER)
    assert isinstance(first, Published)
    assert isinstance(corrected, Published)
    assert isinstance(undone, Published)
    assert isinstance(held, Hold), "with what it keeps"
    assert (first.before, corrected.before) == (None, first.after)
    assert (corrected.after or first.after, undone.after) != (first.after, corrected.after)
    assert [one.after.rows for one in (first, corrected, undone) if one.after] == [2, 3, 2]
    assert (undone.head.who, undone.head.why, undone.restores) == ("Zoë", "a wrong till", first.head.publication)
    assert corrected.record.reads == {RAW: 1}
    assert held.gate == ROLL_BACK


def test_the_life_of_a_raw_day_names_its_arrivals_and_what_people_decided(story: History) -> None:
    late = story.deliver("2017-04-05", "late.jsonl", Version(3, 3, 3, "7.00"), Version(2, 2, 3, "7.00"))
    story.refresh()
    with story.world.open() as platform:
        rows = LateSelection(table=RAW, days=frozenset({DAY}))
        refuse(platform, rows, person("a test till"))
        approve(platform, lambda: story.world.spark, LateSelection(arrival=late), person("it was real"))
        withdraw(platform, lambda: story.world.spark, [late], person("it was not"))
    events = life(story, RAW)
    assert kinds(events) == ["ingest", "refusal", "approval", "approval", "withdrawal"]
    arrivals = [[(one.kind, one.origin) for one in event.arrivals] for event in events if isinstance(event, Published)]
    assert arrivals[0] == [("delivery", None)]
    assert arrivals[1] == [("approval", late)]
    assert ("withdrawal", late) in arrivals[2]
    decisions = [event for event in events if isinstance(event, LateDecision)]
    assert {(one.table, one.arrival, one.who) for one in decisions} == {(RAW, late, "Zoë")}
    assert [kind for kind in kinds(life(story, SILVER)) if kind in ("refusal", "approval")] == ["refusal", "approval"]
    assert kinds(life(story, "late.transactions"))[:1] == ["ingest"]
