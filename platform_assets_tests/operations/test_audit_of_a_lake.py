"""What was tampered with, torn, lost or put in is named with its repair, and what is sound is not."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import DamagedTableError, LakeError, ManifestError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.recovery import recover
from platform_assets.lakehouse.releases import current_release, in_its_file, manifest_file, published
from platform_assets.lakehouse.revert import revert_foreign
from platform_assets.operations.audit.faults import Findings, Scope
from platform_assets.operations.audit.lake import audit
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    HALF_WAY,
    SALES,
    STORES,
    change,
    content,
    contents,
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
        "audit put-back silver.sales",
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


def test_only_some_tables_and_days_can_be_looked_at(filled: Lake) -> None:
    DAMAGES["a file is gone"].do(filled)
    assert found_in(filled, tables=[SALES]).faults == []
    assert found_in(filled, tables=[STORES], days={day(0)}).faults == []
    assert len(found_in(filled, tables=[STORES], days={day(1)}).faults) == 1


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
    assert "whoever publishes next finishes it" in found.notes[0]


def test_a_torn_release_file_hides_nothing_and_is_named(filled: Lake) -> None:
    versions = current_release(filled).versions
    [file] = on_disk(filled.releases_path).glob(f"*{RELEASES - 1}-*.parquet")
    for spoil in (lambda: file.write_bytes(b"PAR1"), file.unlink):
        spoil()
        assert current_release(filled).versions == versions
        with pytest.raises(DamagedTableError, match=r"The file of release 3 is (torn|missing)"):
            in_its_file(filled, RELEASES - 1)


def test_a_lake_that_cannot_be_written_is_named_and_can_be_read() -> None:
    root = Path(tempfile.mkdtemp(prefix="lake-"))
    root.chmod(0o755)
    lake = Lake.at(root / "lake")
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    somebody = os.geteuid() or 65534
    os.seteuid(somebody)
    try:
        if somebody != 65534:
            on_disk(lake.locks_path).chmod(0o500)
        with pytest.raises(LakeError, match=r"cannot be written: Permission denied(?s:.*)PLATFORM_LAKE"):
            recover(lake)
        assert contents(lake, SALES) == {day(0): [("a", 1)]}
        assert found_in(lake).faults == []
    finally:
        os.seteuid(os.getuid())
        shutil.rmtree(root)


def test_a_torn_manifest_is_named_when_its_publication_is_tried_again(filled: Lake) -> None:
    what = staged_manifest(filled, {SALES: {day(2): [("a", 9)]}})
    file = manifest_file(filled, what.publication)
    on_disk(file.parent).mkdir()
    on_disk(file).write_text("{")
    with pytest.raises(ManifestError, match="cannot be read"):
        publish(filled, what)
