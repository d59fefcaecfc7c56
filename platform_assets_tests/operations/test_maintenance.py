"""Compaction changes files and nothing else; history goes with the window, and whoever asks for it is told so."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_rest
from platform_assets.engine.state.planner import plan_steps
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.errors import BeyondWindowError, StillNeededError
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.ledger.sync import rebuild
from platform_assets.operations import deletion, maintenance
from platform_assets.operations.deletion import delete_publication
from platform_assets.operations.lineage.provenance import explain
from platform_assets.operations.maintenance import Maintenance, maintain, plan_maintenance
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.verify import verify
from platform_assets.planning.retention import TASKS, Task
from platform_assets.planning.selection import BY_PERSON, Selection
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.spark.tables.reading import read_files
from platform_assets_tests.support.history import DAILY, four_days
from platform_assets_tests.support.meanwhile import usage_later
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World, product, sale

DAYS = [f"2017-01-{day:02}" for day in range(1, 4)]
DAY = date(2017, 1, 1)
RAW, SILVER = "raw.transactions", "silver.transactions"


def three_days(lakes: Lakes) -> World:
    """Three days of sales; the first came in two files, and one of its sales moved to the second day."""
    world = lakes.new(days=len(DAYS), domains=DAILY, compaction_files=1)
    world.deliver_rows("products", DAYS[0], "p.jsonl", [product(1, DAYS[0], "MEAT")])
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, "t.jsonl", [sale(10 * number, 1, day)])
    world.refresh()
    late = [sale(n, 1, DAYS[0], updated_at=f"{DAYS[0]}T12:00:00Z") for n in (1, 2)]
    world.deliver_rows("transactions", DAYS[0], "late.jsonl", late)
    world.refresh()
    world.deliver_rows("transactions", DAYS[1], "moved.jsonl", [sale(2, 1, DAYS[1], updated_at=f"{DAYS[1]}T20:00:00Z")])
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(three_days)


def maintenance_of(world: World, *tasks: Task) -> Maintenance:
    with world.open() as platform:
        found = Maintenance()
        for task in tasks:
            found += maintain(platform, lambda: world.spark, task, Author("maintenance run", "a test"))
        return found


def files(world: World, table: str) -> int:
    """Live files of the first day."""
    with world.open() as platform:
        return len(live_files(platform.lake.table_path(table)).get(DAY, ()))


def everything(world: World) -> tuple[Any, ...]:
    with world.open() as platform:
        now = current_release(platform.lake)
        tables = {table: read_arrow(platform.lake, table).sort_by("event_date").num_rows for table in now.versions}
        made = {
            table: {day: (r.digest, r.fingerprint, r.rows, r.figures, r.reads, r.code_version, r.configuration)
                    for day, r in platform.ledger.current_days(table).items()}
            for table in now.versions
        }  # fmt: skip
    return tables, made, {table: world.rows(table) for table in tables}


def stale(world: World) -> bool:
    with world.open() as platform:
        return bool(plan_steps(platform, BY_PERSON).steps)


def arrivals_read(world: World) -> list[str]:
    """The files that the first day of silver was made from, as they were when it was."""
    with world.open() as platform:
        origin = explain(platform, platform.catalogue[SILVER], DAY).origin
        assert origin is not None
        return [arrival.path for read in origin.inputs for arrival in read.arrivals or ()]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintenance finds that everything was replaced a window ago."""
    monkeypatch.setattr(deletion, "usage", usage_later)


@pytest.mark.proof
def test_a_compacted_day_has_fewer_files_equal_content_and_makes_nothing_stale(world: World) -> None:
    before, had = everything(world), files(world, RAW)
    with world.open() as platform:
        due = plan_maintenance(platform, ["compaction"]).compaction
    assert [(one.table, str(one.day), len(one.small)) for one in due] == [(RAW, DAYS[0], 2), (RAW, DAYS[1], 2)]
    assert had == 3, "the tombstone's file stays as it is"
    done = maintenance_of(world, "compaction")
    assert done.compaction == due
    assert files(world, RAW) == 2
    assert everything(world) == before
    assert not stale(world)
    assert not maintenance_of(world, "compaction").compaction, "done"
    with world.open() as platform:
        rebuild(platform.lake, platform.ledger)
        told = explain(platform, platform.catalogue[RAW], DAY)
    assert everything(world) == before
    assert told.origin is not None
    assert [head.kind for head in told.origin.publications] == ["compact", "ingest"]
    # What comes after it is taken as ever, and what had moved before ties no days together.
    world.deliver_rows("transactions", DAYS[2], "new.jsonl", [sale(7, 1, DAYS[0], updated_at=f"{DAYS[2]}T20:00:00Z")])
    result = world.refresh()
    assert {str(day) for step in result.steps if step.table == SILVER for day in step.published} == {DAYS[0]}


@pytest.mark.proof
def test_content_that_is_not_what_was_published_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_row_less(spark: Any, path: Any, paths: Any, schema: Any) -> Any:
        return read_files(spark, path, paths, schema).where("basket_id <> 1")

    monkeypatch.setattr("platform_assets.spark.tables.reading.read_files", one_row_less)
    before, had = everything(world), files(world, RAW)
    done = maintenance_of(world, "compaction")
    assert ([str(one.day) for one in done.compaction], done.differing) == ([DAYS[1]], {RAW: (DAY,)})
    assert (everything(world), files(world, RAW)) == (before, had)


@pytest.mark.proof
def test_held_days_and_tables_at_work_are_left_for_the_next_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the module waits for days of four arrivals each; then it compacts twice."""
    with world.open() as platform:
        platform.ledger.hold([Hold(RAW, DAY, Attempt("f"), "volume", "a test", "r", datetime.now(UTC))])
        assert [str(one.day) for one in plan_maintenance(platform, ["compaction"]).compaction] == [DAYS[1]]
        platform.ledger.drop(platform.ledger.holds(RAW))
        monkeypatch.setattr(maintenance, "_INGEST_WAIT_S", 0.1)
        with ingest_lock(platform.lake, RAW):
            busy = maintenance_of(world, "compaction").busy
        assert {str(day): why for day, why in busy[RAW].items()} == dict.fromkeys(
            DAYS[:2], "its raw table is being ingested into"
        )

    def after_somebody_else(*args: Any) -> Any:
        monkeypatch.setattr(maintenance, "publish_rest", publish_rest)
        world.deliver_rows("transactions", DAYS[2], "new.jsonl", [sale(8, 1, DAYS[0])])
        monkeypatch.setattr(maintenance, "_ingested_with", lambda *_: [])
        world.refresh()
        return publish_rest(*args)

    monkeypatch.setattr(maintenance, "_ingested_with", lambda *_: [])
    monkeypatch.setattr(maintenance, "publish_rest", after_somebody_else)
    done = maintenance_of(world, "compaction")
    assert done.busy == {RAW: {DAY: "it was published again in between"}}
    assert not stale(world)
    assert 8 in {row["basket_id"] for row in world.rows(SILVER, DAYS[0])}


@pytest.mark.proof
@pytest.mark.usefixtures("later")
def test_beyond_the_window_files_go_and_everybody_who_asks_is_told(world: World) -> None:
    """Compacts and deletes, and reads all that is visible before and after."""
    before, came_from = everything(world), arrivals_read(world)
    assert came_from
    with world.open() as platform:
        newest, *_, first = (record.publication for record in platform.ledger.history(SILVER, DAY))
    done = maintenance_of(world, *TASKS)
    assert done.compaction
    assert done.deletions
    assert everything(world) == before
    assert not stale(world)
    assert maintenance_of(world, *TASKS) == Maintenance()

    with world.open() as platform:
        cut = current_release(platform.lake).number
        with pytest.raises(BeyondWindowError, match="Release 1 is beyond the rollback window"):
            read_arrow(platform.lake, SILVER, release=1)
        with pytest.raises(BeyondWindowError, match="Release 1 is beyond the rollback window"):
            chosen_publications(platform, to=1)
        publications = chosen_publications(platform, publication=newest)
        for dry_run in (True, False):
            with pytest.raises(
                BeyondWindowError, match=rf"What gold.daily_sales was on {DAY} before is beyond.*\n.*--force"
            ):
                rollback(platform, publications, Author("undo", "wrong"), dry_run=dry_run)
        assert current_release(platform.lake).number == cut
        assert not platform.ledger.holds()
        with pytest.raises(StillNeededError, match="the current one, needs"):
            delete_publication(platform, first)
        with private_folder(platform.lake) as folder:
            only = Selection(frozenset({SILVER}), frozenset({DAY}))
            [verified, *_] = verify(platform, lambda: world.spark, only, folder)
        assert "of raw.transactions is beyond the rollback window" in verified.days[0].reason
    assert arrivals_read(world) == came_from

    world.deliver_rows("transactions", DAYS[2], "new.jsonl", [sale(0, 1, DAYS[2], updated_at=f"{DAYS[2]}T20:00:00Z")])
    result = world.refresh()
    assert {str(day) for step in result.steps if step.table == SILVER for day in step.published} == {DAYS[0], DAYS[2]}


@pytest.mark.proof
def test_a_compaction_is_no_work_that_stands_in_the_way(world: World) -> None:
    """Waits for the lake: three refreshes, and a compaction of one day by Spark."""
    with world.open() as platform:
        wrong = platform.ledger.history(SILVER, DAY)[0].publication
        was = platform.ledger.history(SILVER, DAY)[1].digest
        records = platform.ledger.current_days(SILVER)
        one = maintenance.ToCompact(
            SILVER,
            DAY,
            tuple(file.path for file in live_files(platform.lake.table_path(SILVER))[DAY]),
            live_files(platform.lake.table_path(SILVER))[DAY],
            current_release(platform.lake).number,
        )
        differing, busy = maintenance._compact(
            platform, world.spark, SILVER, [one], Author("maintenance run", "a test")
        )
        assert (differing, busy) == ([], ())
        compacted = platform.ledger.history(SILVER, DAY)[0]
        assert (compacted.digest, compacted.publication == wrong) == (records[DAY].digest, False)
        with pytest.raises(PlatformError, match="only compacted files"):
            rollback(platform, chosen_publications(platform, run="maintenance run"), Author("undo", "wrong"))
        rollback(platform, chosen_publications(platform, publication=wrong), Author("undo", "wrong"))
        assert platform.ledger.current_days(SILVER)[DAY].digest == was


@pytest.mark.proof
def test_checkpoints_are_written_when_due_and_keep_every_commit(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = prepared(four_days)
    monkeypatch.setattr("platform_assets.planning.retention.CHECKPOINT_COMMITS", 1)
    before = everything(world)
    with world.open() as platform:
        due = plan_maintenance(platform, ["checkpoints"]).checkpoints
        assert {RAW, SILVER, "_releases"} <= due.keys()
        assert maintenance_of(world, "checkpoints").checkpoints == due
        assert not plan_maintenance(platform, ["checkpoints"]).checkpoints
        for table, version in due.items():
            path = platform.lake.releases_path if table == "_releases" else platform.lake.table_path(table)
            assert commits.checkpoint_hint(path) == version
            assert all(commits.commit_file(path, number).exists() for number in range(version + 1))
    assert everything(world) == before
