"""Which files of every table the releases that stay need, from the logs; and what lies on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.lakehouse.at_work import kept_by_processes
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.horizon import NO_CUT, Cut
from platform_assets.lakehouse.layout import LAYERS, Lake
from platform_assets.lakehouse.locks import is_staging
from platform_assets.lakehouse.releases import Release, current_release, published, release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.stages.store import staged_publications
from platform_assets.planning.retention import FileUsage, RetainedReleases, StagingFolder, kept_releases
from platform_assets.records.manifest import is_publication

Pins = Callable[[], Collection[int]]
"""Says which releases are pinned at the moment it is asked."""


@dataclass(frozen=True)
class Usage:
    """What of a lake is needed, at one moment.

    Args:
        now: that moment, UTC.
        kept: the releases that stay.
        heads: newest version of every table, up to which its log was read.
        uses: of every table's files, by table.
        folders: of every table, as they lie on disk.
        cut: by an erasure, before which nothing stays.
    """

    now: datetime
    kept: RetainedReleases
    heads: Mapping[str, int]
    uses: Mapping[str, FileUsage]
    folders: tuple[StagingFolder, ...]
    cut: Cut = NO_CUT

    def use(self, table: str) -> FileUsage:
        """Of the files of a table; none of one without a log."""
        return self.uses.get(table, FileUsage())


def usage(lake: Lake, window: timedelta, pins: Pins, now: datetime | None = None, cut: Cut = NO_CUT) -> Usage:
    """Look at a whole lake.

    Args:
        window: how long a release stays after it was replaced.
        pins: releases that stay for longer.
        cut: by an erasure, before which nothing stays.
        now: the time, UTC; by default the earlier of what the clock says and what the file system does.

    Raises:
        DamagedTableError: a commit is missing or torn.
        ForeignCommitError: a release was written by something else than a publication.
    """
    # The folders first: what is staged after they were listed is in none of them.
    now = now or _now(lake)
    listed = tuple(_folders(lake))
    current = current_release(lake).number
    kept, first = RetainedReleases(-1, -1), Release()
    if current >= 0:
        kept = kept_releases(released_at(lake, current), pins(), now, window, cut.before)
        first = release(lake, kept.first)
    pinned = {number: release(lake, number).versions for number in kept.pinned}
    shown_by = {publication: number for number, publication in published(lake)}
    heads: dict[str, int] = {}
    uses: dict[str, FileUsage] = {}
    for table in lake.table_names():
        path = lake.table_path(table)
        heads[table] = commits.head_version(path)
        at = {number: versions[table] for number, versions in pinned.items() if table in versions}
        uses[table] = _use(path, heads[table], first.versions.get(table, -1), kept, at, shown_by)
    published_in = {table: use.publications() for table, use in uses.items()}
    open_ones = staged_publications(lake) | kept_by_processes(lake)
    folders = (
        replace(
            folder,
            published=(there := folder.publication in published_in.get(folder.table, ())),
            in_use=folder.publication in open_ones or (not there and is_staging(lake, folder.publication)),
        )
        for folder in listed
    )
    return Usage(now, kept, heads, uses, tuple(folders), cut)


def _now(lake: Lake) -> datetime:
    """Files are dated by the file system, which may be on another machine; whichever clock is behind keeps more."""
    now = datetime.now(UTC)
    try:
        return min(now, lake.root.now())
    except OSError:
        return now  # nothing is deleted from a lake that cannot be written, or is not there


def released_at(lake: Lake, current: int) -> list[tuple[int, datetime]]:
    """Number and time of every release up to the current one, oldest first."""
    times = (commits.commit(lake.releases_path, number).timestamp_ms for number in range(current + 1))
    return [(number, datetime.fromtimestamp(time / 1000, UTC)) for number, time in enumerate(times)]


def _use(
    path: Location,
    head: int,
    first: int,
    kept: RetainedReleases,
    pinned: Mapping[int, int],
    shown_by: Mapping[str, int],
) -> FileUsage:
    """Fold a log once: a file is needed that was live at the first release that stays, or was added since."""
    added: set[str] = set()
    live: set[str] = set()
    needed: dict[str, int] = {}
    shown = kept.first
    for version in range(head + 1):
        leaving, entering = commits.files_changed(path, version)
        if version > first:
            shown = max(shown, shown_by.get(commits.commit(path, version).publication or "", 0) - 1)
        for file in leaving:
            live.discard(file)
            if version > first:
                needed[file] = shown
        new = set(entering)
        added |= new
        live |= new
    for number, at in pinned.items():
        for file in table_snapshot(path, at).files:
            needed[file] = max(number, needed.get(file, number))
    return FileUsage(frozenset(added), needed | dict.fromkeys(live, kept.current))


def _folders(lake: Lake) -> Iterator[StagingFolder]:
    for layer in sorted(LAYERS):
        for table in (lake.root / layer).folders():
            for folder in table.folders():
                if IDENTIFIER.fullmatch(table.name) and is_publication(folder.name):
                    written = folder.written()
                    files = folder.files()
                    yield StagingFolder(
                        table=f"{layer}.{table.name}",
                        publication=folder.name,
                        files={f"{folder.name}/{file}": seen.size for file, seen in files.items()},
                        written=max((seen.written for seen in files.values()), default=written),
                    )
