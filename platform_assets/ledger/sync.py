"""Keep the ledger's index equal to the lake: manifests flattened into records.

A ledger that is behind the lake catches up. One with publications that the lake lacks is refused, because only a person
knows which of the two is right. A lake is identified by its first publication; each later release shows one
publication. If ledger and lake name different ones, they parted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import MovedLakeError, OtherHistoryError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of, publication_of, published
from platform_assets.lakehouse.releases import release as release_at
from platform_assets.planning.configuration import Configuration
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.history import ArrivalRecord, DayRecord, Hold, PublicationRecord, kept_text
from platform_assets.records.manifest import STAGED, Arrival, Manifest, TableChange, change_of
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.ledger.ledger import Ledger


@dataclass(frozen=True)
class SyncResult:
    """Difference between ledger and lake."""

    added: tuple[str, ...] = ()
    known: int = 0


@dataclass(frozen=True)
class RebuildResult:
    """Result of a rebuild.

    Args:
        publications: indexed publications, oldest first.
        added: newly indexed ones among them.
        forgotten: publications that were indexed and are not in the lake.
        lifted: holds of a rollback that the lake does not have, or of another lake.
    """

    publications: tuple[str, ...]
    added: tuple[str, ...]
    forgotten: tuple[str, ...]
    lifted: tuple[Hold, ...]


Find = Callable[[str], Manifest]
"""The manifest of a publication; with `STAGED` replaced by what the publication left."""


def record(lake: Lake, ledger: Ledger, manifest: Manifest, release: int) -> None:
    """Index a newly released publication; idempotent.

    Raises:
        LedgerError: the ledger cannot be written, or belongs to another lake. The publication stays valid, and the next
            start indexes it.
    """
    find = _find(lake, ledger.release_of)
    failpoint("ledger.before_record")
    ledger.record(index_record(_settled(lake, manifest, release), release, find))
    failpoint("ledger.recorded")


def sync(lake: Lake, ledger: Ledger) -> SyncResult:
    """Compare the ledger with the lake and index new publications. Every command that writes does so first.

    If the ledger's newest release is the same in the lake, so are all before it, and only later ones are read: a
    release never changes, and its publication has a unique name.

    Raises:
        MovedLakeError: the lake is empty or another one; nothing was written.
        OtherHistoryError: the ledger has publications that the lake lacks; nothing was written.
        LedgerError: the ledger cannot be written.
        PlatformError: a manifest cannot be read.
    """
    # The ledger first: an indexed publication was released before. So a publication made by another process in between
    # can look new here (and is then recorded once), but never look gone.
    newest = ledger.newest()
    if newest is not None and publication_of(lake, newest.release) == newest.publication:
        known = newest.release + 1
        added = {publication: release for release, publication in published(lake, newest.release)}
    else:
        indexed = ledger.indexed()
        released = {publication: release for release, publication in published(lake)}
        require_one_history(lake, indexed, released)
        known = len(indexed)
        added = {name: release for name, release in released.items() if name not in indexed}
    if added:
        failpoint("ledger.behind")
        record_of = recorder(lake, lambda name: added[name] if name in added else ledger.release_of(name))
        # All manifests are read before the ledger is locked for writing.
        ledger.record(*map(record_of, added))
    return SyncResult(tuple(added), known)


def rebuild(lake: Lake, ledger: Ledger, progress: OnProgress = no_progress) -> RebuildResult:
    """Index the whole lake from nothing, in one transaction.

    All decisions and notes stay. Holds stay unless their subject is gone: a rollback that the lake does not have and
    whose day is again what was rolled back, or anything of another lake. Rollbacks that were not indexed before hold
    their days.

    Raises:
        LedgerError: the ledger cannot be written.
        PlatformError: a manifest cannot be read; the ledger is unchanged.
    """
    indexed = ledger.indexed()  # before the lake, as in sync
    released = {publication: release for release, publication in published(lake)}
    record_of = recorder(lake, released.__getitem__)
    records: list[PublicationRecord] = []
    for name in released:
        progress(Progress("reading", "manifests", len(records), len(released), "publication"))
        records.append(record_of(name))
    is_another_lake = bool(indexed and released) and indexed.keys().isdisjoint(released)
    with meanwhile(progress, "writing the ledger"):
        lifted = ledger.reindex(tuple(indexed), records, lift=is_another_lake)
    for table, rows in _rows_by_table(records).items():
        progress(Progress("indexing", table, len(rows), len(rows), rows=sum(rows.values()), finished=True))
    return RebuildResult(
        publications=tuple(released),
        added=tuple(name for name in released if name not in indexed),
        forgotten=tuple(name for name in indexed if name not in released),
        lifted=lifted,
    )


def _rows_by_table(records: Iterable[PublicationRecord]) -> dict[str, dict[date, int]]:
    """Return the rows of every day in its last publication, by table."""
    by_table: dict[str, dict[date, int]] = {}
    for day in (day for publication in records for day in publication.days):
        by_table.setdefault(day.table, {})[day.day] = day.rows
    return by_table


def recorder(lake: Lake, release_of: Callable[[str], int]) -> Callable[[str], PublicationRecord]:
    """Return a function that makes the ledger's record of a publication."""
    find = _find(lake, release_of)
    return lambda name: index_record(find(name), release_of(name), find)


def _find(lake: Lake, release_of: Callable[[str], int]) -> Find:
    return cache(lambda publication: _settled(lake, manifest_of(lake, publication), release_of(publication)))


def _settled(lake: Lake, manifest: Manifest, number: int) -> Manifest:
    """Insert the versions that the publication's own release gave to tables that were read staged."""
    if not any(STAGED in change.reads.values() for change in manifest.tables):
        return manifest
    versions = release_at(lake, number).versions
    settled = [
        change.model_copy(
            update={"reads": {name: versions[name] if at == STAGED else at for name, at in change.reads.items()}}
        )
        for change in manifest.tables
    ]
    return manifest.model_copy(update={"tables": tuple(settled)})


def index_record(manifest: Manifest, release: int, find: Find) -> PublicationRecord:
    """Return the ledger's record of a manifest: everything but the files and their statistics."""
    return PublicationRecord(
        publication=manifest.publication,
        release=release,
        created_at=manifest.created_at,
        kind=manifest.kind,
        run=manifest.run,
        who=kept_text(manifest.who),
        why=kept_text(manifest.why),
        git_commit=manifest.git_commit,
        days=tuple(
            day
            for change in sorted(manifest.tables, key=lambda change: change.table)
            for day in day_records(change, manifest.publication, find)
        ),
        arrivals=tuple(
            _arrival(arrival, manifest.publication)
            for arrival in sorted(manifest.arrivals, key=lambda arrival: (arrival.table, arrival.path))
        ),
        refuses={(change.table, day): refused for change in manifest.tables for day, refused in change.refuses.items()}
        | {(table, day): () for table, days in manifest.lifts.items() for day in days},
        as_user=kept_text(manifest.as_user),
        on_host=kept_text(manifest.on_host),
        decides=manifest.decides,
        exposures=manifest.exposures,
    )


def day_records(change: TableChange, publication: str, find: Find | None = None) -> list[DayRecord]:
    """Return the records of one table's days; a stage restores nothing, so it needs no other manifest."""
    records: list[DayRecord] = []
    configurations: dict[str, str] = {}  # worked out once for all days that came of the same publication
    for day, content in sorted(change.days.items()):
        made = change_of(find(content.restores), change.table) if find and content.restores else change
        if content.restores not in configurations:
            of_it = Configuration(made.configuration).hash if made.configuration else ""
            configurations[content.restores] = of_it
        scope = made.days[day].scope
        records.append(
            DayRecord(
                table=change.table,
                day=day,
                publication=publication,
                digest=content.digest,
                fingerprint=content.fingerprint,
                rows=content.rows,
                bytes=content.bytes,
                files=len(content.files),
                figures=content.figures,
                warnings=content.warnings,
                reads=scope.reads if scope else made.reads,
                code_version=scope.code_version if scope else made.code_version,
                seconds=change.seconds / len(change.days),
                configuration=configurations[content.restores],
                git_commit=made.git_commit,
            )
        )
    return records


def _arrival(arrival: Arrival, publication: str) -> ArrivalRecord:
    reason = None if arrival.reason is None else kept_text(arrival.reason)
    return ArrivalRecord(**dict(arrival) | {"reason": reason}, publication=publication)


_FOLLOW = "let the ledger follow the lake with `platform-assets admin ledger --rebuild`"


def require_one_history(lake: Lake, indexed: Mapping[str, int], released: Mapping[str, int]) -> None:
    """Refuse a ledger with publications that the lake lacks; one that only lacks some catches up.

    Raises:
        MovedLakeError: the lake is empty or another one.
        OtherHistoryError: the lake is older than the ledger, or the two have parted.
    """
    gone = {release: name for name, release in indexed.items() if released.get(name) != release}
    if not gone:
        return
    first, last = min(gone), max(gone)
    newest = max(released.values(), default=-1)
    if indexed.keys().isdisjoint(released):
        raise MovedLakeError(str(lake.root), indexed, is_empty=not released)
    if first > newest:
        raise OtherHistoryError(
            f"The lake {lake.root} is older than the ledger: its newest release is {newest}, the ledger knows "
            f"{counted(len(gone), 'publication')} after it, up to release {last} ({gone[last]}); nothing was written.",
            "If the lake was restored from a backup and the newer one is lost, "
            f"{_FOLLOW}; what was delivered since is then taken again. Else put the newer lake back.",
        )
    shown = next((name for name, number in released.items() if number == first), "no publication")
    raise OtherHistoryError(
        f"The lake {lake.root} and the ledger have parted: release {first} shows publication {shown}, the "
        f"ledger has {gone[first]} there; nothing was written.",
        "One of them was restored from a backup and worked with since. If the lake is right, "
        f"{_FOLLOW}; else put the other lake back.",
    )
