"""The ledger's index kept in line with the lake: manifests flattened into records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from platform_assets.lakehouse.errors import MovedLakeError
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.manifest import STAGED, Arrival, Manifest, TableChange, change_of
from platform_assets.lakehouse.releases import manifest_of, published
from platform_assets.lakehouse.releases import release as release_at
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.records import ArrivalRecord, DayRecord, PublicationRecord
from platform_assets.planning.configuration import Configuration


@dataclass(frozen=True)
class SyncResult:
    """How the ledger differed from the lake.

    Args:
        added: publications that were released but not indexed.
        removed: publications that were indexed but are not what their release shows.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


Find = Callable[[str], Manifest]
"""The manifest of a publication; with `STAGED` replaced by what the publication left."""


def record(lake: Lake, ledger: Ledger, manifest: Manifest, release: int) -> None:
    """Index a publication that a release now shows; again is harmless.

    Raises:
        LedgerError: the ledger cannot be written, or is of another lake. The publication stands all the same, and the
            next start indexes it.
    """
    find = _find(lake, lambda publication: ledger.indexed()[publication])
    ledger.record(flattened(_settled(lake, manifest, release), release, find))


def sync(lake: Lake, ledger: Ledger) -> SyncResult:
    """Compare the ledger with the lake and index anew what differs. Every command that writes does so first.

    Raises:
        MovedLakeError: the lake has nothing of what the ledger knows; nothing was changed.
        LedgerError: the ledger cannot be written.
        PlatformError: a manifest cannot be read.
    """
    # The ledger first: what is indexed was released before, so a publication made by another process meanwhile can
    # look new here (and is then recorded once), but never look gone.
    indexed = ledger.indexed()
    released = {publication: release for release, publication in published(lake)}
    if indexed and indexed.keys().isdisjoint(released):
        raise MovedLakeError(lake.root, indexed, is_empty=not released)
    removed = tuple(name for name, release in indexed.items() if released.get(name) != release)
    added = tuple(name for name, release in released.items() if indexed.get(name) != release)
    if removed or added:
        # All manifests are read before the ledger is locked for writing.
        find = _find(lake, released.__getitem__)
        ledger.reindex(removed, [flattened(find(name), released[name], find) for name in added])
    return SyncResult(added, removed)


def rebuild(lake: Lake, ledger: Ledger) -> SyncResult:
    """Index the whole lake from nothing, in one transaction; holds and decisions stay.

    Raises:
        LedgerError: the ledger cannot be written.
        PlatformError: a manifest cannot be read; the ledger is left as it was.
    """
    removed = tuple(ledger.indexed())  # before the lake, as in sync
    released = {publication: release for release, publication in published(lake)}
    find = _find(lake, released.__getitem__)
    records = [flattened(find(name), release, find) for name, release in released.items()]
    ledger.reindex(removed, records)
    return SyncResult(tuple(released), removed)


def _find(lake: Lake, release_of: Callable[[str], int]) -> Find:
    return cache(lambda publication: _settled(lake, manifest_of(lake, publication), release_of(publication)))


def _settled(lake: Lake, manifest: Manifest, number: int) -> Manifest:
    """With the versions that the publication's own release gave to tables read as they were staged."""
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


def flattened(manifest: Manifest, release: int, find: Find) -> PublicationRecord:
    """What the ledger keeps of a manifest: everything but the files and their statistics.

    Args:
        manifest: of the publication, with every version that was read.
        release: that shows it.
        find: other manifests; a day rolled back is on record as made by what had computed its content.
    """
    return PublicationRecord(
        publication=manifest.publication,
        release=release,
        created_at=manifest.created_at,
        kind=manifest.kind,
        run=manifest.run,
        who=manifest.who,
        why=manifest.why,
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
    )


def day_records(change: TableChange, publication: str, find: Find | None = None) -> list[DayRecord]:
    """What is kept of the days of one table; of a stage, where nothing is put back, no other manifest is needed."""
    found: list[DayRecord] = []
    for day, content in sorted(change.days.items()):
        made = change_of(find(content.restores), change.table) if find and content.restores else change
        found.append(
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
                reads=made.reads,
                code_version=made.code_version,
                seconds=change.seconds / len(change.days),
                configuration=Configuration(made.configuration).hash if made.configuration else "",
            )
        )
    return found


def _arrival(arrival: Arrival, publication: str) -> ArrivalRecord:
    return ArrivalRecord(**dict(arrival), publication=publication)
