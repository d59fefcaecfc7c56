"""Releases: the version of every table that readers see, and the origin of each.

Every release commit has the hash of the one before, which is certain only under the publish lock. A process that
finishes a dead publication writes the same values, because all of them come from its manifest.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from typing import TypeVar
from urllib.parse import unquote

from pydantic import ValidationError

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.new_commit import commit_difference, commit_metadata
from platform_assets.lakehouse.errors import DamagedTableError, ManifestError, UnknownReleaseError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.chain import hash_of, linked
from platform_assets.records.manifest import DataFile, ErasedBy, Erasure, Manifest, TableChange, change_of

_SCHEMA_JSON = (
    '{"type":"struct","fields":['
    '{"name":"table","type":"string","nullable":true,"metadata":{}},'
    '{"name":"version","type":"long","nullable":true,"metadata":{}}]}'
)
_Said = TypeVar("_Said", Manifest, ErasedBy)
_VERSIONS = "platform.versions"
"""The key of a release's metadata that holds its versions: to read them there takes no library."""


@dataclass(frozen=True)
class Release:
    """A release: what readers see.

    Args:
        number: counts from 0; -1 if nothing was ever published.
        versions: the Delta version of every table.
    """

    number: int = -1
    versions: dict[str, int] = field(default_factory=dict)


def current_release(lake: Lake) -> Release:
    """Return the newest release; number -1 without tables if nothing was ever published."""
    number = newest_release(lake)
    return Release() if number < 0 else release(lake, number)


def release(lake: Lake, number: int) -> Release:
    """Return one release.

    Raises:
        UnknownReleaseError: no release has this number.
        DamagedTableError: its commit is torn.
    """
    if number < 0 or not commits.has_commit(lake.releases_path, number):
        raise UnknownReleaseError(
            f"There is no release {number}.",
            f"Name one from 0 to {newest_release(lake)}." if newest_release(lake) >= 0 else "Publish something first.",
        )
    said = commits.actions(lake.releases_path, number)
    if commits.made_by(number, said).publication is None:
        raise UnknownReleaseError(
            f"There is no release {number}: what has its place in `_releases` was written by another tool.",
            f"Name one from 0 to {newest_release(lake)}; "
            "`platform-assets undo foreign:_releases --reason …` clears the place.",
        )
    versions = next((action["commitInfo"].get(_VERSIONS) for action in said if "commitInfo" in action), None)
    # Only releases of older versions of the platform have their versions in the file alone.
    return Release(number, in_its_file(lake, number) if versions is None else json.loads(versions))


def in_its_file(lake: Lake, number: int) -> dict[str, int]:
    """Return the versions of all tables as a reader of the Delta table `_releases` finds them."""
    versions: dict[str, int] = {}
    for file in _files(lake, number):
        versions |= _vector_in(lake.releases_path / file.path, number)
    return versions


def _vector_in(file: Location, number: int) -> dict[str, int]:
    import pyarrow as pa  # which takes longer to import than most commands need in all
    import pyarrow.parquet as pq

    content = file.read()
    try:
        rows = pq.ParquetFile(io.BytesIO(content or b"")).read()
        return dict(zip(rows["table"].to_pylist(), rows["version"].to_pylist(), strict=True))
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise DamagedTableError(
            f"The file of release {number} is {'missing' if content is None else 'torn'}: {file}.",
            "Restore the file from a backup.",
        ) from error


def published(lake: Lake, after: int = -1) -> Iterator[tuple[int, str]]:
    """Yield number and publication of every release, oldest first."""
    for number in range(after + 1, newest_release(lake) + 1):
        yield number, commits.require_ours("_releases", commits.commit(lake.releases_path, number))


def publication_of(lake: Lake, number: int) -> str | None:
    """Return the publication of a release; None if no release has this number."""
    if not 0 <= number <= newest_release(lake):
        return None
    return commits.require_ours("_releases", commits.commit(lake.releases_path, number))


def manifest_of(lake: Lake, publication: str) -> Manifest:
    """Return the manifest of a publication."""
    return parsed(lake, publication, manifest_bytes(lake, publication))


def manifest_bytes(lake: Lake, publication: str) -> bytes:
    """Return the stored bytes of a publication's manifest."""
    file = manifest_file(lake, publication)
    content = file.read()
    if content is None:
        raise ManifestError(
            f"The manifest of publication {publication} is missing: {file}.",
            "Restore the file from a backup: it says which files belong to the publication.",
        )
    return content


@cache
def erasures_by(lake: Lake, publication: str) -> tuple[Erasure, ...]:
    """Return what a publication erased; cached, since a manifest never changes."""
    return _parsed(lake, publication, manifest_bytes(lake, publication), ErasedBy).erasures


@lru_cache(maxsize=8)
def parsed(lake: Lake, publication: str, content: bytes) -> Manifest:
    """Return the parsed manifest of a publication. The last few are cached: one run asks often."""
    return _parsed(lake, publication, content, Manifest)


def _parsed(lake: Lake, publication: str, content: bytes, what: type[_Said]) -> _Said:
    try:
        manifest = what.model_validate_json(content)
    except ValidationError as error:
        raise ManifestError(
            f"The manifest of publication {publication} cannot be read: {manifest_file(lake, publication)}: "
            f"{error.errors()[0]['msg']}.",
            "Use the version of the platform that wrote it, or restore the file from a backup.",
        ) from error
    if manifest.publication != publication:
        raise ManifestError(
            f"{manifest_file(lake, publication)} is the manifest of another publication, {manifest.publication}.",
            "Restore the file from a backup.",
        )
    return manifest


def computed_by(lake: Lake, table: str, published_by: Mapping[date, str]) -> dict[date, str]:
    """Return the publications that computed days of a table: those that published them, or that they restore."""
    changes = {name: change_of(manifest_of(lake, name), table) for name in set(published_by.values())}
    return {day: changes[name].days[day].restores or name for day, name in published_by.items()}


def made_by(lake: Lake, publication: str, table: str, day: date) -> TableChange:
    """Return the publication that computed one day of a table."""
    return change_of(manifest_of(lake, computed_by(lake, table, {day: publication})[day]), table)


def manifest_file(lake: Lake, publication: str) -> Location:
    """Return the path of a publication's manifest."""
    return lake.publication_path(publication) / "manifest.json"


def released_as(lake: Lake, manifest: Manifest, after: int = -1) -> int | None:
    """Return the release that already shows a publication, without a clock: another machine may have made it."""
    newest_first = range(newest_release(lake), after, -1)
    shows = (n for n in newest_first if commits.commit(lake.releases_path, n).publication == manifest.publication)
    return next(shows, None)


def write_release(lake: Lake, before: Release, versions: Mapping[str, int], manifest: Manifest) -> Release:
    """Show readers these versions from now on; call it under the publish lock.

    A compare-and-swap: if anything was released since the base of these versions, the commit fails, so a lost lock can
    never undo a release.
    """
    number = before.number
    last = commits.commit(lake.releases_path, number) if number >= 0 else None
    ordered = dict(sorted(versions.items()))
    said = commit_metadata(manifest) | link(last, manifest_bytes(lake, manifest.publication))
    said |= {_VERSIONS: json.dumps(ordered)}
    content = _vector(ordered)
    # The number in the name keeps a vector that readers may be reading from ever being written again.
    path = f"{number + 1:020d}-{manifest.publication}.parquet"
    (lake.releases_path / path).replace(content)
    failpoint("release.after_file")
    entering = DataFile(
        path=path,
        size=len(content),
        modified_ms=time.time_ns() // 1_000_000,
        stats=f'{{"numRecords":{len(ordered)}}}',
    )
    leaving = _files(lake, number) if number >= 0 else []
    new = commit_difference(
        lake.releases_path,
        number,
        [(file, {}) for file in leaving],
        [(entering, {})],
        _SCHEMA_JSON,
        said,
        [],
    )
    failpoint("release.after_commit")
    return Release(new, ordered)


def _vector(versions: dict[str, int]) -> bytes:
    """Return the rows of a release as Parquet, through JSON: `pa.array` of Python values imports pandas, 0.5 s."""
    import pyarrow as pa
    import pyarrow.json as pa_json
    import pyarrow.parquet as pq

    schema = pa.schema([("table", pa.string()), ("version", pa.int64())])
    if versions:
        lines = "\n".join(json.dumps({"table": table, "version": version}) for table, version in versions.items())
        options = pa_json.ParseOptions(explicit_schema=schema)
        rows = pa_json.read_json(io.BytesIO(lines.encode()), parse_options=options)
    else:
        rows = schema.empty_table()  # which imports pandas, too
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


def newest_release(lake: Lake) -> int:
    """Return the newest release. Ignores a last commit torn by a power cut, and commits of other tools."""
    head = commits.head_version(lake.releases_path)
    while head >= 0 and not commits.is_of_a_publication(lake.releases_path, head):
        head -= 1
    return head


def foreign_commits(lake: Lake) -> list[commits.Commit]:
    """Return other tools' commits to `_releases` after the newest release, which readers do not see."""
    beyond = range(newest_release(lake) + 1, commits.head_version(lake.releases_path) + 1)
    whole = (number for number in beyond if not commits.is_torn(lake.releases_path, number))
    return [commits.commit(lake.releases_path, number) for number in whole]


def _files(lake: Lake, number: int) -> list[DataFile]:
    """Return the files of a release: every release replaces all of the one before, so its own commit is enough."""
    return [
        DataFile(
            path=unquote(add["path"]),
            size=add["size"],
            modified_ms=add["modificationTime"],
            stats=add.get("stats") or "{}",
        )
        for add in (action["add"] for action in commits.actions(lake.releases_path, number) if "add" in action)
    ]


def link(before: commits.Commit | None, content: bytes) -> dict[str, str]:
    """Return the metadata that the commit of a release adds."""
    manifest_hash = hash_of(content)
    return {commits.MANIFEST_HASH: manifest_hash, commits.CHAIN: linked(before.chain if before else "", manifest_hash)}
