"""Which files a lake consists of: data that releases show, what names it, and what shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release, current_release, manifest_file, published, release
from platform_assets.lakehouse.storage.location import Location

Sizes = dict[Location, int]
"""Data files, each with the bytes that it had when it was published."""


def live_files(lake: Lake, versions: Mapping[str, int]) -> Iterator[tuple[Location, int]]:
    """The data files of a release."""
    for table, version in versions.items():
        path = lake.table_path(table)
        yield from ((path / name, file.size) for name, file in table_snapshot(path, version).files.items())


def added_files(lake: Lake, now: Release, had: Release) -> Iterator[tuple[Location, int]]:
    """The data files that entered tables since a release."""
    for table, version in now.versions.items():
        path = lake.table_path(table)
        for number in range(had.versions.get(table, -1) + 1, version + 1):
            adds = (action["add"] for action in commits.actions(path, number) if "add" in action)
            yield from ((path / unquote(add["path"]), add["size"]) for add in adds)


def shown_since(lake: Lake, now: Release, had: Release, cut: int, again: Sizes) -> Sizes:
    """The data files that a copy lacks: what entered tables since its release, and what it could not get before.

    Of an erasure, nothing that only releases before its cut show. The files may still lie there: whoever deletes them
    notes the cut first.
    """
    if had.number >= cut:
        return dict((*again.items(), *added_files(lake, now, had)))
    first = release(lake, cut)
    return dict((*live_files(lake, first.versions), *added_files(lake, now, first)))


def naming_files(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
    """What names the data files: manifests and logs."""
    for number, publication in published(lake, after=had.number):
        if number <= now.number:
            yield manifest_file(lake, publication)
    for table, version in now.versions.items():
        path, after = lake.table_path(table), had.versions.get(table, -1)
        begun = {commits.commit(path, number).publication for number in range(after + 1, version + 1)}
        # Also of those that were undone before a release showed them: the log still names them.
        manifests = (manifest_file(lake, publication) for publication in sorted(filter(None, begun)))
        yield from (file for file in manifests if file.exists())
        yield from _log(path, after, version)


def _log(path: Location, after: int, version: int) -> Iterator[Location]:
    """Commits and checkpoints up to a version; without the hint where it points beyond, since all is found without."""
    names = [name for name in (path / "_delta_log").names() if name[:20].isdigit()]
    new = [name for name in names if after < int(name[:20]) <= version]
    yield from (path / "_delta_log" / name for name in sorted(new, key=lambda name: (not name.endswith(".json"), name)))
    if after < commits.checkpoint_hint(path) <= version:
        yield path / "_delta_log" / "_last_checkpoint"


def release_files(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
    """What makes a reader see the releases after one: to be copied when all else is there."""
    for number in range(had.number + 1, now.number + 1):
        adds = (action["add"] for action in commits.actions(lake.releases_path, number) if "add" in action)
        yield from (lake.releases_path / unquote(add["path"]) for add in adds)
    yield from _log(lake.releases_path, had.number, now.number)


def forget_deleted(copy: Lake) -> int:
    """Remove from a copy the data files that the lake deletes because no release that is kept whole shows them.

    Whether it came to that does not matter: what an erasure took out may still lie there, if that was killed.

    Returns:
        How many.
    """
    before = horizon_of(copy).before
    if before == 0:
        return 0
    now, first = current_release(copy), release(copy, before)
    pinned = (release(copy, number) for number in horizon_of(copy).kept)
    kept = {file for shown in (first, *pinned) for file, _ in live_files(copy, shown.versions)}
    kept |= dict(added_files(copy, now, first)).keys()
    removed = 0
    for table in copy.table_names():
        path = copy.table_path(table)
        for name in path.files():
            if not name.startswith("_delta_log/") and path / name not in kept:
                (path / name).remove(durable=False)
                removed += 1
        path.tidy()
    return removed
