"""What was tampered with, torn, lost or put in is named with its repair, and what is sound is not; the life of days."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from platform_assets.engine.late.approvals import approve, withdraw
from platform_assets.engine.late.queue import refuse
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import live_files, table_snapshot
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release, in_its_file, manifest_file, published
from platform_assets.lakehouse.revert import revert_foreign
from platform_assets.lakehouse.storage import parquet
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.operations import audit as audit_module
from platform_assets.operations.audit import Audit, audit, audit_installation, read_contents, turns_for
from platform_assets.operations.audit_logs import Fault, Findings, Scope
from platform_assets.operations.backup_copy import copy_lake
from platform_assets.operations.lineage.day_history import Event, Published, life_of
from platform_assets.planning.rows_aside import LateSelection
from platform_assets.progress import no_progress
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import Hold
from platform_assets_tests.support.history import History, Version, person, two_lines_a_day
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.shelf import (
    HALF_WAY,
    SALES,
    STORES,
    change,
    content,
    day,
    live,
    manifest,
    publish_elsewhere,
    rows_of,
    staged_manifest,
    unchain,
    write_as_long,
)

RELEASES = 4


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """Four releases of two tables: a day is corrected, one is put back, one is emptied."""
    publish(
        lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 2)]}, STORES: {day(0): [("s", 1)]}})
    )
    first = live(lake, SALES)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 5), ("c", 6)]}}))
    again = staged_manifest(lake, {SALES: {day(0): [("x", 0)]}})
    back = change(lake, SALES, again.publication).model_copy(
        update={"days": {day(0): content(first[day(0)], live(lake, SALES)[day(0)])}}
    )
    publish(lake, manifest(again.publication, back))
    empty = {day(1): content((), live(lake, SALES)[day(1)])}
    more = staged_manifest(lake, {STORES: {day(1): [("t", 1)]}})
    publish(lake, manifest(more.publication, *more.tables, back.model_copy(update={"days": empty})))
    return lake


def found_in(lake: Lake, **scope: object) -> Findings:
    found = Findings()
    audit(lake, Scope(**scope), found, lambda *_: None)  # type: ignore[arg-type]
    return found


def newest_file(lake: Lake, table: str) -> Path:
    return on_disk(lake.table_path(table) / max(file.path for files in live(lake, table).values() for file in files))


def edited(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def manifest_at(lake: Lake, number: int) -> Path:
    return on_disk(manifest_file(lake, dict(published(lake))[number]))


def swap_rows(lake: Lake) -> None:
    """A file of the same length with a row too many is told by its footer."""
    write_as_long(newest_file(lake, STORES), pa.table({"k": pa.array(["x", "y"])}))


@dataclass(frozen=True)
class Damage:
    """What is done to a lake, and what an audit says of it."""

    do: Callable[[Lake], object]
    check: str
    says: str
    todo: str = "backup"


def log(lake: Lake, table: str, version: int) -> Path:
    return on_disk(commits.commit_file(lake.table_path(table), version))


def shown(lake: Lake, number: int) -> Path:
    return on_disk(commits.commit_file(lake.releases_path, number))


DAMAGES = {
    "a manifest was edited": Damage(
        lambda lake: edited(manifest_at(lake, 1), "a test", "a trap"), "chain", "is not the one that release 1"
    ),
    "a manifest is torn": Damage(
        lambda lake: manifest_at(lake, 1).write_bytes(manifest_at(lake, 1).read_bytes()[:99]), "chain", "cannot be read"
    ),
    "a manifest is gone": Damage(lambda lake: manifest_at(lake, 2).unlink(), "chain", "is missing"),
    "a manifest is another's": Damage(
        lambda lake: manifest_at(lake, 2).write_bytes(manifest_at(lake, 1).read_bytes()), "chain", "another publication"
    ),
    "a release is gone": Damage(lambda lake: shown(lake, 2).unlink(), "chain", "one before it is missing"),
    "a release is torn": Damage(lambda lake: shown(lake, 1).write_bytes(b"{"), "chain", "is torn"),
    "the newest release is torn": Damage(
        lambda lake: shown(lake, 3).write_bytes(b"{"), "chain", "release 3 is torn; readers see release 2"
    ),
    "a release's file is torn": Damage(
        lambda lake: next(on_disk(lake.releases_path).glob("*1-*.parquet")).write_bytes(b"PAR1"),
        "chain",
        "file of release 1",
    ),
    "a release was rewritten": Damage(
        lambda lake: edited(shown(lake, 1), json.dumps(commits.commit(lake.releases_path, 1).chain), '"00"'),
        "chain",
        "The chain breaks at release 1",
    ),
    "a release lost its chain": Damage(lambda lake: unchain(lake, 2), "chain", "Release 2 carries no chain"),
    "a commit is gone": Damage(
        lambda lake: log(lake, SALES, 1).unlink(), "logs", "Commit 1 of silver.sales is missing"
    ),
    "a commit is torn": Damage(lambda lake: log(lake, SALES, 1).write_bytes(b"{"), "logs", "silver.sales is torn"),
    "a commit lost its last line": Damage(
        lambda lake: log(lake, SALES, 1).write_bytes(b"\n".join(log(lake, SALES, 1).read_bytes().splitlines()[:-1])),
        "commits",
        "silver.sales 2017-01-01 became at release 1 what the manifest",
    ),
    "a commit was pointed at another file": Damage(
        lambda lake: edited(log(lake, STORES, 1), "event_date=2017-01-02/part", "event_date=2017-01-02/fart"),
        "commits",
        "gold.stores 2017-01-02",
        "refresh gold.stores --days 2017-01-02 --force",
    ),
    "a file is gone": Damage(
        lambda lake: newest_file(lake, STORES).unlink(), "files", "is missing", "refresh gold.stores --days 2017-01-02"
    ),
    "a file is cut": Damage(
        lambda lake: newest_file(lake, STORES).write_bytes(b"PAR1"), "files", "has 4 bytes", "--force"
    ),
    "a file is other bytes": Damage(
        lambda lake: newest_file(lake, STORES).write_bytes(b"x" * newest_file(lake, STORES).stat().st_size),
        "files",
        "cannot be read",
        "--force",
    ),
    "a file has other rows": Damage(swap_rows, "rows", "hold 2 rows; 1 were published", "--force"),
    "another tool wrote": Damage(
        lambda lake: write_deltalake(str(lake.table_path(SALES)), rows_of({day(0): [("f", 6)]}), mode="append"),
        "logs",
        "was not made by a publication but by WRITE of delta-rs",
        "undo foreign:silver.sales",
    ),
}


@pytest.mark.parametrize("every_release", [False, True])
def test_a_sound_lake_has_no_faults(filled: Lake, every_release: bool) -> None:
    found = found_in(filled, every_release=every_release)
    assert (found.faults, found.notes) == ([], [])
    assert found.seen["chain"] == RELEASES
    assert found.seen["rows"] == 4, "an emptied day is counted too"
    assert found.seen["files"] == (5 if every_release else 3)


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_with_its_repair(filled: Lake, name: str) -> None:
    damage = DAMAGES[name]
    damage.do(filled)
    found = found_in(filled)
    assert [fault for fault in found.faults if damage.says in fault.what and damage.check == fault.check], found.faults
    [fault, *_] = [fault for fault in found.faults if damage.says in fault.what]
    assert damage.todo in fault.todo
    assert len(found.faults) <= 2, "one damage is not told as many"


def test_fast_looks_at_chain_and_logs_only(filled: Lake) -> None:
    for name in ("a file is gone", "another tool wrote"):
        DAMAGES[name].do(filled)
    found = found_in(filled, fast=True)
    assert [fault.check for fault in found.faults] == ["logs"]
    assert set(found.seen) == {"chain", "logs"}


def test_files_of_older_releases_are_looked_at_if_asked(filled: Lake) -> None:
    newest = {file.path for files in live(filled, SALES).values() for file in files}
    for file in on_disk(filled.table_path(SALES)).glob("*/event_date=*/*.parquet"):
        if file.relative_to(on_disk(filled.table_path(SALES))).as_posix() not in newest:
            file.unlink()
    assert found_in(filled).faults == []
    assert {fault.check for fault in found_in(filled, every_release=True).faults} == {"files"}


def test_what_was_put_back_is_a_note_and_no_fault(filled: Lake) -> None:
    DAMAGES["another tool wrote"].do(filled)
    revert_foreign(filled, SALES)
    found = found_in(filled)
    assert found.faults == []
    assert ["put back since" in note for note in found.notes] == [True]


def test_releases_from_before_the_chain_are_a_note(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    unchain(lake, 0)
    assert "No release carries a chain" in found_in(lake).notes[0]
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 2)]}}))
    found = found_in(lake)
    assert found.faults == []
    assert "The chain starts at release 1" in found.notes[0]


@pytest.mark.parametrize("name", HALF_WAY)
def test_a_publication_that_died_is_a_note_until_somebody_finishes_it(filled: Lake, tmp_path: Path, name: str) -> None:
    publish_elsewhere(filled, staged_manifest(filled, {SALES: {day(0): [("a", 9)]}, STORES: {}}), tmp_path, name)
    found = found_in(filled)
    assert found.faults == []
    assert "the next publisher finishes it" in found.notes[0]


def test_a_torn_release_file_hides_nothing_and_is_named(filled: Lake) -> None:
    versions = current_release(filled).versions
    [file] = on_disk(filled.releases_path).glob(f"*{RELEASES - 1}-*.parquet")
    for spoil in (lambda: file.write_bytes(b"PAR1"), file.unlink):
        spoil()
        assert current_release(filled).versions == versions
        with pytest.raises(DamagedTableError, match=r"The file of release 3 is (torn|missing)"):
            in_its_file(filled, RELEASES - 1)


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


def test_other_rows_in_a_file_as_long_are_told_by_their_digest(story: History) -> None:
    sound = audited(story, session=lambda: story.world.spark, every_release=True).findings
    assert (sound.faults, sound.notes) == ([], [])
    assert sound.seen["digests"] == sound.seen["rows"] > 0
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


@pytest.mark.proof
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


TABLE = "silver.transactions"


@pytest.fixture
def sales(prepared: Prepared) -> Lake:
    story: History = prepared(two_lines_a_day)
    return Lake.at(story.world.settings.lake)


def data_files(lake: Lake) -> list[Path]:
    return sorted(on_disk(lake.table_path(TABLE)).glob("*/event_date=*/*.parquet"))


def flip(file: Path) -> None:
    """One bit in the middle of the first page's values."""
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(content)


def faults(lake: Lake, read_bytes: int | None) -> list[Fault]:
    findings = Findings()
    audit(lake, Scope(read_bytes=read_bytes), findings, no_progress)
    return findings.faults


def test_a_flipped_bit_is_found_where_pages_are_read_and_not_copied(sales: Lake, tmp_path: Path) -> None:
    assert faults(sales, None) == []
    file = data_files(sales)[3]
    flip(file)
    assert faults(sales, 0) == [], "its length, its footer and its number of rows are as they were"
    [fault] = faults(sales, None)
    assert (fault.check, fault.table, fault.file) == ("contents", TABLE, str(file))
    assert f"event_date={fault.day}" in str(file)
    assert f"refresh {TABLE} --days {fault.day} --force" in fault.todo
    with pytest.raises(DamagedTableError, match=f"{file.name} of {TABLE} is damaged .*CRC"):
        copy_lake(sales, Lake.at(tmp_path / "copy"), no_progress)


@pytest.mark.parametrize("how", [flip, lambda file: os.truncate(file, 700)], ids=["a bit flipped", "cut short"])
def test_readers_of_a_damaged_file_are_told_which_and_others_read_on(sales: Lake, how: Callable[[Path], None]) -> None:
    file = data_files(sales)[3]
    whole = date.fromisoformat(data_files(sales)[0].parent.name.partition("=")[2])
    how(file)
    with pytest.raises(DamagedTableError, match=f"{file.parent.name}/{file.name}(?s:.*)admin audit"):
        read_arrow(sales, TABLE)
    with pytest.raises(DamagedTableError, match=file.name):
        list(row_batches(located(file), 10))
    assert read_arrow(sales, TABLE, [whole]).num_rows > 0


def test_within_as_many_days_as_it_takes_every_file_is_read_once(sales: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = list(audit(sales, Scope(), Findings(), no_progress)[1].values())
    every = {str(table.lake.table_path(table.table) / path) for table in tables for path in table.live}
    size = sum(file.size for table in tables for file, _ in table.live.values())
    read: Counter[str] = Counter()

    def told(file: Location, size: int) -> str:
        read[file.address] += 1
        return parquet.damage(file, size)

    monkeypatch.setattr(audit_module, "damage", told)
    turns = turns_for(size, size // 5)
    assert turns == 8
    for turn in range(730_000, 730_000 + turns):
        before = read.total()
        said = read_contents(tables, size // 5, turn, no_progress)
        assert read.total() - before < len(every)
        assert "within 8 days" in said
    assert read == Counter(every)


def test_a_lake_that_grows_is_read_within_three_times_the_days_that_were_promised() -> None:
    for growth in (1, 20, 60):  # MB a day, of which 200 are read
        unread, worst = set(range(3000)), 0
        promised = turns_for(6000, 200)
        for today in range(739_000, 739_000 + 3 * promised):
            turns = turns_for(6000 + growth * (today - 739_000), 200)
            unread = {number for number in unread if crc32(str(number).encode()) % turns != today % turns}
            worst = today - 739_000
            if not unread:
                break
        assert not unread, (growth, worst)


@pytest.mark.parametrize("how", ["half", "flipped"])
def test_a_checkpoint_that_says_something_else_than_its_commits_is_a_fault(sales: Lake, how: str) -> None:
    path = sales.table_path(TABLE)
    version = commits.head_version(path)
    DeltaTable(on_disk(path)).create_checkpoint()
    [file] = on_disk(path / "_delta_log").glob(f"{version:020d}.checkpoint.parquet")
    if how == "half":
        whole = pq.read_table(file)
        pq.write_table(whole.slice(0, len(whole) - 1), file)
        assert [fault.check for fault in faults(sales, 0)][:1] == ["logs"]
    else:
        flip(file)
        assert table_snapshot(path).version == version
