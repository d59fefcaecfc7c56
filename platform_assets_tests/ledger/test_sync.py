"""The ledger follows the lake: what is indexed is what the releases show, however it got there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from platform_assets.lakehouse import index
from platform_assets.lakehouse.index import SyncResult, flattened, rebuild, sync
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.manifest import Arrival, DataFile, DayContent, Manifest, TableChange
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.records import PublicationRecord
from platform_assets_tests.ledger.samples import FIRST, NOON, RAW, TABLE, hold, name_of, nth


def _content(release: int, n: int) -> DayContent:
    path = f"{name_of(release)}/event_date={nth(n)}/part-0.parquet"
    file = DataFile(path=path, size=10, modified_ms=1, stats='{"numRecords":3}')
    return DayContent(files=(file,), base=(), digest=f"3-{release:x}-0-0-0", rows=3, bytes=10, figures={"voided": 1})


def _manifest(release: int) -> Manifest:
    days = {nth(n): _content(release, n) for n in range(release, release + 4)}
    change = TableChange(
        table=TABLE, schema_string="{}", days=days, reads={RAW: release}, code_version="c", seconds=8.0
    )
    raw = TableChange(table=RAW, schema_string="{}", days={nth(0): _content(release, 0)})
    arrival = Arrival(
        table=RAW, path=f"{release}.csv", arrival_date=FIRST, size=1, sha256="a" * 64, modified_ns=1, notes=("x",)
    )
    return Manifest(
        publication=name_of(release),
        created_at=NOON + timedelta(hours=release),
        kind="recompute",
        run="run",
        who="ada",
        why="daily",
        git_commit="abc",
        tables=(change, raw),
        arrivals=(arrival,),
    )


class Releases:
    """What `lakehouse.releases` would read from a lake's folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.lake = Lake(root)
        self.shown: dict[int, str] = {}
        self.read: list[str] = []
        monkeypatch.setattr(index, "published", lambda _: iter(sorted(self.shown.items())))
        monkeypatch.setattr(index, "manifest_of", self._manifest_of)

    def _manifest_of(self, _: Lake, publication: str) -> Manifest:
        self.read.append(publication)
        return Manifest.model_validate_json(_manifest(int(publication[-4:])).model_dump_json())

    def publish(self, *releases: int) -> None:
        self.shown |= {release: name_of(release) for release in releases}


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Releases:
    return Releases(monkeypatch, tmp_path)


def _everything(ledger: Ledger) -> dict[str, PublicationRecord | None]:
    return {name: ledger.publication(name) for name in ledger.indexed()}


def test_a_manifest_is_flattened_without_its_files() -> None:
    record = flattened(_manifest(2), 7, lambda name: pytest.fail(name))
    assert (record.release, record.kind, record.created_at) == (7, "recompute", NOON + timedelta(hours=2))
    assert [(day.table, day.day) for day in record.days] == [(RAW, nth(0)), *((TABLE, nth(n)) for n in range(2, 6))]
    first = record.days[1]
    assert (first.digest, first.rows, first.bytes, first.files) == ("3-2-0-0-0", 3, 10, 1)
    assert (first.figures, first.reads, first.code_version) == ({"voided": 1}, {RAW: 2}, "c")
    assert sum(day.seconds for day in record.days if day.table == TABLE) == 8.0
    assert [arrival.notes for arrival in record.arrivals] == [("x",)]


def test_a_lake_without_releases_gives_an_empty_ledger(ledger: Ledger, releases: Releases) -> None:
    assert sync(releases.lake, ledger) == SyncResult()
    assert rebuild(releases.lake, ledger) == SyncResult()


def test_sync_indexes_what_is_missing_and_reads_nothing_else(ledger: Ledger, releases: Releases) -> None:
    releases.publish(1, 2)
    assert sync(releases.lake, ledger).added == (name_of(1), name_of(2))
    releases.publish(3)
    releases.read.clear()
    assert sync(releases.lake, ledger) == SyncResult(added=(name_of(3),))
    assert sync(releases.lake, ledger) == SyncResult()
    assert releases.read == [name_of(3)]


def test_sync_drops_what_no_release_shows(ledger: Ledger, releases: Releases) -> None:
    releases.publish(1, 2, 3)
    sync(releases.lake, ledger)
    releases.shown = {1: name_of(1), 2: name_of(3)}
    assert sync(releases.lake, ledger) == SyncResult(added=(name_of(3),), removed=(name_of(2), name_of(3)))
    assert ledger.indexed() == {name_of(1): 1, name_of(3): 2}


def test_rebuilding_from_nothing_equals_indexing_as_it_happened(
    ledger: Ledger, releases: Releases, tmp_path: Path
) -> None:
    for release in (1, 2, 4, 3):
        releases.publish(release)
        index.record(releases.lake, ledger, _manifest(release), release)
        index.record(releases.lake, ledger, _manifest(release), release)
    with Ledger.open(f"sqlite:///{tmp_path}/other.db") as other:
        rebuild(releases.lake, other)
        assert _everything(other) == _everything(ledger)
        assert other.current_days(TABLE) == ledger.current_days(TABLE)
        assert other.arrivals() == ledger.arrivals()
    before = _everything(ledger)
    assert rebuild(releases.lake, ledger) == SyncResult(tuple(before), tuple(before))
    assert _everything(ledger) == before


def test_holds_and_decisions_survive_a_rebuild(ledger: Ledger, releases: Releases) -> None:
    releases.publish(1)
    sync(releases.lake, ledger)
    ledger.hold([hold(nth(1))])
    decision = ledger.decide("approval", "late rows", reason="checked", who="ada", created_at=NOON)
    releases.shown = {1: name_of(2)}
    rebuild(releases.lake, ledger)
    assert ledger.indexed() == {name_of(2): 1}
    assert (ledger.holds(), ledger.decisions()) == ((hold(nth(1)),), (decision,))


def test_a_publication_made_during_the_comparison_is_not_taken_for_gone(
    ledger: Ledger, releases: Releases, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases.publish(1)
    sync(releases.lake, ledger)
    indexed = ledger.indexed

    def with_another_publisher() -> dict[str, int]:
        seen = indexed()
        releases.publish(2)
        index.record(releases.lake, ledger, _manifest(2), 2)
        return seen

    monkeypatch.setattr(ledger, "indexed", with_another_publisher)
    assert sync(releases.lake, ledger).removed == ()
    assert rebuild(releases.lake, ledger).added == (name_of(1), name_of(2))
    assert indexed() == {name_of(1): 1, name_of(2): 2}


def test_an_unreadable_manifest_leaves_the_ledger_as_it_was(
    ledger: Ledger, releases: Releases, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases.publish(1)
    sync(releases.lake, ledger)
    before = _everything(ledger)
    releases.publish(2)
    monkeypatch.setattr(index, "manifest_of", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sync(releases.lake, ledger)
    with pytest.raises(ZeroDivisionError):
        rebuild(releases.lake, ledger)
    assert _everything(ledger) == before
