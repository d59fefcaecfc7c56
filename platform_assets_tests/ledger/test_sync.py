"""The ledger follows the lake: what is indexed is what the releases show, however it got there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from platform_assets.lakehouse.errors import MovedLakeError, OtherHistoryError
from platform_assets.lakehouse.layout import Lake
from platform_assets.ledger import sync as index
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import RebuildResult, SyncResult, index_record, rebuild, sync
from platform_assets.records.code_version import Attempt, Version
from platform_assets.records.decisions import LateDecision, PinDecision
from platform_assets.records.history import ROLL_BACK, PublicationRecord
from platform_assets.records.manifest import Arrival, DataFile, DayContent, Manifest, TableChange
from platform_assets.records.outbox import Announced
from platform_assets_tests.support.ledger_records import FIRST, NOON, RAW, TABLE, approval, hold, name_of, nth, pinned


def _content(release: int, n: int, fingerprint: str = "") -> DayContent:
    path = f"{name_of(release)}/event_date={nth(n)}/part-0.parquet"
    file = DataFile(path=path, size=10, modified_ms=1, stats='{"numRecords":3}')
    return DayContent(
        files=(file,),
        base=(),
        digest=f"3-{release:x}-0-0-0",
        rows=3,
        bytes=10,
        figures={"voided": 1},
        fingerprint=fingerprint,
    )


def _manifest(release: int, fingerprint: str = "") -> Manifest:
    days = {nth(n): _content(release, n, fingerprint) for n in range(release, release + 4)}
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
        self.lake = Lake.at(root)
        self.shown: dict[int, str] = {}
        self.read: list[str] = []
        self.fingerprint = ""
        monkeypatch.setattr(index, "published", lambda _: iter(sorted(self.shown.items())))
        monkeypatch.setattr(index, "manifest_of", self._manifest_of)

    def _manifest_of(self, _: Lake, publication: str) -> Manifest:
        self.read.append(publication)
        return Manifest.model_validate_json(_manifest(int(publication[-4:]), self.fingerprint).model_dump_json())

    def publish(self, *releases: int) -> None:
        self.shown |= {release: name_of(release) for release in releases}


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Releases:
    return Releases(monkeypatch, tmp_path)


def _everything(ledger: Ledger) -> dict[str, PublicationRecord | None]:
    return {name: ledger.publication(name) for name in ledger.indexed()}


def test_a_manifest_is_flattened_without_its_files() -> None:
    record = index_record(_manifest(2), 7, lambda name: pytest.fail(name))
    assert (record.release, record.kind, record.created_at) == (7, "recompute", NOON + timedelta(hours=2))
    assert [(day.table, day.day) for day in record.days] == [(RAW, nth(0)), *((TABLE, nth(n)) for n in range(2, 6))]
    first = record.days[1]
    assert (first.digest, first.rows, first.bytes, first.files) == ("3-2-0-0-0", 3, 10, 1)
    assert (first.figures, first.reads, first.code_version) == ({"voided": 1}, {RAW: 2}, "c")
    assert sum(day.seconds for day in record.days if day.table == TABLE) == 8.0
    assert [arrival.notes for arrival in record.arrivals] == [("x",)]


def test_a_reason_with_a_nul_is_indexed_as_the_manifest_is_flattened(ledger: Ledger) -> None:
    """The audit compares the two: what the ledger cannot keep is no fault that no rebuild mends."""
    manifest = _manifest(1)
    refused = manifest.arrivals[0].model_copy(update={"reason": "the columns are 'id, a\0b'"})
    texts = {"arrivals": (refused,), "who": "a\0da", "why": "file 'a\0b'"}
    record = index_record(manifest.model_copy(update=texts), 0, lambda name: pytest.fail(name))
    assert record.arrivals[0].reason == "the columns are 'id, a\N{REPLACEMENT CHARACTER}b'"
    ledger.record(record)
    assert ledger.publication(record.publication) == record


def test_a_lake_without_releases_gives_an_empty_ledger(ledger: Ledger, releases: Releases) -> None:
    assert sync(releases.lake, ledger) == SyncResult()
    assert rebuild(releases.lake, ledger) == RebuildResult((), (), (), ())


def test_sync_indexes_what_is_missing_and_reads_nothing_else(ledger: Ledger, releases: Releases) -> None:
    releases.publish(1, 2)
    assert sync(releases.lake, ledger).added == (name_of(1), name_of(2))
    releases.publish(3)
    releases.read.clear()
    assert sync(releases.lake, ledger) == SyncResult(added=(name_of(3),), known=2)
    assert sync(releases.lake, ledger).added == ()
    assert releases.read == [name_of(3)]


@pytest.mark.parametrize(
    ("shown", "says", "todo"),
    [
        ({1: 1, 2: 2}, "is older than the ledger: its newest release is 2, the ledger knows 1 publication", "put the"),
        ({1: 1, 2: 2, 3: 4}, "have parted: release 3 shows publication", "One of them was restored"),
        ({1: 5, 2: 6}, "has none of these releases but others", "name its folder in PLATFORM_LAKE"),
        ({}, "has no release", "name its folder in PLATFORM_LAKE"),
    ],
)
def test_a_ledger_that_knows_what_the_lake_has_not_is_refused_and_follows_only_if_told(
    ledger: Ledger, releases: Releases, shown: dict[int, int], says: str, todo: str
) -> None:
    releases.publish(1, 2, 3)
    sync(releases.lake, ledger)
    ledger.hold([hold(nth(1))])
    before = _everything(ledger)
    releases.shown = {release: name_of(publication) for release, publication in shown.items()}
    with pytest.raises((MovedLakeError, OtherHistoryError)) as caught:
        sync(releases.lake, ledger)
    assert says in caught.value.what
    assert todo in caught.value.todo
    assert "ledger --rebuild" in caught.value.todo
    assert _everything(ledger) == before

    done = rebuild(releases.lake, ledger)
    assert ledger.indexed() == {name: release for release, name in releases.shown.items()}
    assert done.forgotten == tuple(name for name in before if name not in releases.shown.values())
    assert sync(releases.lake, ledger).added == ()
    other = "but others" in says
    assert ledger.holds() == (() if other else (hold(nth(1)),)), "holds of another lake are about nothing here"


def test_a_rollback_the_lake_has_not_holds_nothing_any_more(ledger: Ledger, releases: Releases) -> None:
    releases.publish(1)
    index.record(releases.lake, ledger, _manifest(1, fingerprint="bad"), 1)
    undone = replace(hold(nth(1)), gate=ROLL_BACK, refused=Attempt("bad", Version("c")))
    kept = replace(hold(nth(2)), gate=ROLL_BACK, refused=Attempt("worse", Version("c")))
    ledger.hold([undone, kept, hold(nth(1))])
    releases.fingerprint = "bad"
    assert rebuild(releases.lake, ledger).lifted == (undone,)
    assert ledger.holds() == (hold(nth(1)), kept)


def test_a_ledger_made_anew_holds_what_rollbacks_refused_as_the_one_that_indexed_them(
    ledger: Ledger, releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = {nth(2): (Attempt("bad", Version("c", "d")), Attempt("bad", Version("e"))), nth(3): ()}
    plain = _manifest(2)
    change = plain.tables[0].model_copy(update={"refuses": refuses})
    rollback = plain.model_copy(update={"kind": "roll back", "tables": (change,)})
    releases.publish(1, 2)
    index.record(releases.lake, ledger, _manifest(1), 1)
    index.record(releases.lake, ledger, rollback, 2)
    written = {name_of(1): _manifest(1).model_dump_json(), name_of(2): rollback.model_dump_json()}
    monkeypatch.setattr(index, "manifest_of", lambda _, name: Manifest.model_validate_json(written[name]))
    with Ledger.open(f"sqlite:///{tmp_path}/other.db") as other:
        rebuild(releases.lake, other)
        assert other.holds() == ledger.holds()
        assert [hold.refused for hold in other.holds()] == sorted(refuses[nth(2)])


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
    assert rebuild(releases.lake, ledger) == RebuildResult(tuple(before), (), (), ())
    assert _everything(ledger) == before


def test_holds_decisions_and_notes_survive_a_rebuild(ledger: Ledger, releases: Releases) -> None:
    releases.publish(1)
    sync(releases.lake, ledger)
    ledger.hold([hold(nth(1))])
    ledger.decide(approval())
    ledger.decide(pinned(name_of(1)))
    ledger.notes.mark_announced("log", Announced(runs=frozenset({"r"})))
    releases.publish(2)
    rebuild(releases.lake, ledger)
    assert ledger.indexed() == {name_of(1): 1, name_of(2): 2}
    assert ledger.holds() == (hold(nth(1)),)
    assert (ledger.decisions(LateDecision), ledger.decisions(PinDecision)) == ((approval(),), (pinned(name_of(1)),))
    assert ledger.notes.announced("log").runs == {"r"}


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
    assert sync(releases.lake, ledger).known == 1
    assert rebuild(releases.lake, ledger).publications == (name_of(1), name_of(2))
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
