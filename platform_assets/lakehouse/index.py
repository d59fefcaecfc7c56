"""The ledger's index kept in line with the lake: manifests flattened into records."""

from __future__ import annotations

from dataclasses import dataclass

from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.manifest import Arrival, Manifest, TableChange
from platform_assets.lakehouse.releases import manifest_of, published
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


def record(ledger: Ledger, manifest: Manifest, release: int) -> None:
    """Index a publication that a release now shows; again is harmless.

    Raises:
        LedgerError: the ledger cannot be written, or is of another lake. The publication stands all the same, and the
            next start indexes it.
    """
    ledger.record(flattened(manifest, release))


def sync(lake: Lake, ledger: Ledger) -> SyncResult:
    """Compare the ledger with the lake and index anew what differs. Every command that writes does so first.

    Raises:
        LedgerError: the ledger cannot be written.
        PlatformError: a manifest cannot be read.
    """
    # The ledger first: what is indexed was released before, so a publication made by another process meanwhile can
    # look new here (and is then recorded once), but never look gone.
    indexed = ledger.indexed()
    released = {publication: release for release, publication in published(lake)}
    removed = tuple(name for name, release in indexed.items() if released.get(name) != release)
    added = tuple(name for name, release in released.items() if indexed.get(name) != release)
    if removed or added:
        # All manifests are read before the ledger is locked for writing.
        ledger.reindex(removed, [flattened(manifest_of(lake, name), released[name]) for name in added])
    return SyncResult(added, removed)


def rebuild(lake: Lake, ledger: Ledger) -> SyncResult:
    """Index the whole lake from nothing, in one transaction; holds and decisions stay.

    Raises:
        LedgerError: the ledger cannot be written.
        PlatformError: a manifest cannot be read; the ledger is left as it was.
    """
    removed = tuple(ledger.indexed())  # before the lake, as in sync
    released = {publication: release for release, publication in published(lake)}
    records = [flattened(manifest_of(lake, name), release) for name, release in released.items()]
    ledger.reindex(removed, records)
    return SyncResult(tuple(released), removed)


def flattened(manifest: Manifest, release: int) -> PublicationRecord:
    """What the ledger keeps of a manifest: everything but the files and their statistics."""
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
            for day in _days(change, manifest.publication)
        ),
        arrivals=tuple(
            _arrival(arrival, manifest.publication)
            for arrival in sorted(manifest.arrivals, key=lambda arrival: (arrival.table, arrival.path))
        ),
    )


def _days(change: TableChange, publication: str) -> list[DayRecord]:
    configuration = Configuration(change.configuration).hash if change.configuration else ""
    return [
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
            reads=change.reads,
            code_version=change.code_version,
            seconds=change.seconds / len(change.days),
            configuration=configuration,
        )
        for day, content in sorted(change.days.items())
    ]


def _arrival(arrival: Arrival, publication: str) -> ArrivalRecord:
    return ArrivalRecord(**dict(arrival), publication=publication)
