"""Copy a lake while others publish: first what the newest release needs, the release itself last.

Published files never change, so a release can be copied slowly, and a good copy is never made again: if a file is
damaged in the lake later, the copy keeps the good one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import DamagedTableError, LakeError
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.lakehouse.layout import LAYERS, Lake, located
from platform_assets.lakehouse.releases import Release, current_release, manifest_file, published, release
from platform_assets.lakehouse.storage.location import Location, sync
from platform_assets.lakehouse.storage.parquet import damage, other_length
from platform_assets.operations.audit import audit
from platform_assets.operations.audit_logs import Fault, Findings, Scope
from platform_assets.operations.backup import refuse_half_an_erasure, refuse_what_is_erased
from platform_assets.progress import OnProgress, Progress, no_progress

Sizes = dict[Location, int]
"""Data files, each with the bytes that it had when it was published."""


def live_files(lake: Lake, versions: Mapping[str, int]) -> Iterator[tuple[Location, int]]:
    """Yield the data files of a release."""
    for table, version in versions.items():
        path = lake.table_path(table)
        yield from ((path / name, file.size) for name, file in table_snapshot(path, version).files.items())


def added_files(lake: Lake, now: Release, had: Release) -> Iterator[tuple[Location, int]]:
    """Yield the data files that entered tables since a release."""
    for table, version in now.versions.items():
        path = lake.table_path(table)
        for number in range(had.versions.get(table, -1) + 1, version + 1):
            adds = (action["add"] for action in commits.actions(path, number) if "add" in action)
            yield from ((path / unquote(add["path"]), add["size"]) for add in adds)


def kept_files(lake: Lake, now: Release) -> Sizes:
    """Return the data files of a release, and of older releases that are kept whole.

    Files cut off by an erasure are not included. They may still exist: the horizon moves before they are deleted.
    """
    horizon = horizon_of(lake)
    first = release(lake, horizon.before)
    pinned = (file for number in horizon.kept for file in live_files(lake, release(lake, number).versions))
    return dict((*pinned, *live_files(lake, first.versions), *added_files(lake, now, first)))


def naming_files(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
    """Yield the files that name data files: manifests and logs."""
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
    """Yield commits and checkpoints up to a version; the checkpoint hint only if it does not point beyond."""
    names = [name for name in (path / "_delta_log").names() if name[:20].isdigit()]
    new = [name for name in names if after < int(name[:20]) <= version]
    yield from (path / "_delta_log" / name for name in sorted(new, key=lambda name: (not name.endswith(".json"), name)))
    if after < commits.checkpoint_hint(path) <= version:
        yield path / "_delta_log" / "_last_checkpoint"


def release_files(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
    """Yield the files that show releases after one to readers; copy them last."""
    for number in range(had.number + 1, now.number + 1):
        adds = (action["add"] for action in commits.actions(lake.releases_path, number) if "add" in action)
        yield from (lake.releases_path / unquote(add["path"]) for add in adds)
    yield from _log(lake.releases_path, had.number, now.number)


def forget_deleted(copy: Lake) -> int:
    """Remove from a copy the data files that the lake deletes because no whole release shows them.

    The lake may still have them, if an erasure was killed before deleting them.
    """
    if horizon_of(copy).before == 0:
        return 0
    kept, removed = kept_files(copy, current_release(copy)), 0
    for table in copy.table_names():
        path = copy.table_path(table)
        for name in path.files():
            if not name.startswith("_delta_log/") and path / name not in kept:
                (path / name).remove(durable=False)
                removed += 1
        path.tidy()
    return removed


@dataclass(frozen=True)
class LakeCopied:
    """Result of a backup.

    Args:
        before: release of the copy before; -1 without one.
        files: copied files, without those that existed.
        gone: files that only older releases need and that were deleted before they could be copied.
        damaged: files that differ from what was published, in a sentence each: in the lake, while the copy keeps the
            good file; or only in older releases, which were not copied.
    """

    release: int
    before: int
    files: int
    bytes: int
    gone: int
    damaged: tuple[str, ...] = ()


def copy_lake(lake: Lake, copy: Lake, progress: OnProgress) -> LakeCopied:
    """Bring a copy up to the newest release, without unreleased work.

    Every copied file is read again from the copy. Changes made in the copy itself are undone, and its damaged logs and
    manifests are copied again.

    Args:
        copy: a folder of its own; empty, or an earlier copy of the same lake.

    Raises:
        LakeError: nothing was published, or the copy belongs to another lake; nothing was written.
        ErasedError: rows were erased during the copy, or their files still exist.
        DamagedTableError: a file that the newest release needs, or what names it, is missing or damaged, and the copy
            has no good one.
    """
    horizon = horizon_of(lake)  # damage is reported before anything is copied
    now = current_release(lake)
    had = _had(lake, copy, now)
    refuse_half_an_erasure(lake, now, horizon.cut.before)
    _drop_beyond(copy, had)
    before = _faults(copy) if had.number >= 0 else []
    live = dict(live_files(lake, now.versions))
    older = {file: size for file, size in kept_files(lake, now).items() if file not in live}
    broken = filter(None, (located(fault.file).below(copy.root) for fault in before if fault.file))
    mended = (lake.root / path for path in broken if (lake.root / path).size() is not None)
    names = dict.fromkeys((*mended, *naming_files(lake, now, had)))
    work = _Copying(lake, copy, now, live, older, frozenset(names))
    try:
        work.copy(list(dict.fromkeys((*older, *sorted(live), *names))), progress)
    finally:
        refuse_what_is_erased(lake, now)
    if (cut := lake.horizon_file.read()) is not None:  # after the files: those that are gone, it knows of
        _place(lake, copy, lake.horizon_file).replace(cut)
    for file in release_files(lake, now, had):
        if (content := file.read()) is not None:
            _place(lake, copy, file).replace(content)
    after = _faults(copy)
    if had.number >= 0 and (new := [fault for fault in after if fault.what not in {other.what for other in before}]):
        raise DamagedTableError(
            f"{new[0].what} The backup shows what it showed before.",
            "`platform-assets admin audit` names all that is damaged and what repairs it.",
        )
    damaged = (*work.damaged, *(f"In the copy: {fault.what}" for fault in after))
    size = sum(file.size() or 0 for file in work.done)
    return LakeCopied(now.number, had.number, len(work.done), size, work.gone, damaged)


def _drop_beyond(copy: Lake, had: Release) -> None:
    """Remove commits beyond the copy's release, left by work in the copy or by a crash."""
    logs = {copy.table_path(table): had.versions.get(table, -1) for table in copy.table_names()}
    for path, version in {**logs, copy.releases_path: had.number}.items():
        for name in (path / "_delta_log").names():
            if name[:20].isdigit() and int(name[:20]) > version:
                (path / "_delta_log" / name).remove(durable=False)
        if commits.checkpoint_hint(path) > version:
            (path / "_delta_log" / "_last_checkpoint").remove(durable=False)


def _faults(copy: Lake) -> list[Fault]:
    """Return the faults of a copy's chain, logs and manifests."""
    findings = Findings()
    audit(copy, Scope(fast=True), findings, no_progress)
    return findings.faults


@dataclass
class _Copying:
    """Copies the files of a backup, one after the other."""

    lake: Lake
    target: Lake
    now: Release
    live: Sizes
    older: Sizes
    names: frozenset[Location]
    done: list[Location] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    gone: int = 0

    def copy(self, files: list[Location], progress: OnProgress) -> None:
        """Copy what the copy lacks, and force it to disk."""
        wanted = [file for file in files if not self._is_there(file)]
        of_table = Counter(_table_of(self.lake, file) for file in wanted)
        copied: Counter[str] = Counter()
        for file in wanted:
            table = _table_of(self.lake, file)
            progress(Progress("copying", table, copied[table], of_table[table], "file"))
            self._copy(file)
            copied[table] += 1
            if copied[table] == of_table[table]:
                progress(Progress("copying", table, copied[table], of_table[table], "file", finished=True))
        sync({*self.done, *(file.parent for file in self.done)})

    def _is_there(self, file: Location) -> bool:
        """Return whether the copy has a data file, which never changes; logs and manifests are always copied."""
        there = _place(self.lake, self.target, file).size()
        published = self.live.get(file, self.older.get(file))
        if file in self.names or there is None or there != published:
            return False
        if file in self.live and (problem := other_length(file, self.live[file])):
            self.damaged.append(f"{self._named(file)} {problem}. The backup keeps the good one.")
        return True

    def _copy(self, file: Location) -> None:
        place = _place(self.lake, self.target, file)
        published = self.live.get(file, self.older.get(file, file.size()))
        try:
            file.copy_to(place)
            problem = damage(place, published or 0) if file.name.endswith(".parquet") else ""
        except FileNotFoundError:
            problem = "is missing"
        if not problem:
            self.done.append(place)
            return
        place.remove(durable=False)
        if file not in self.older:
            raise DamagedTableError(
                f"{self._named(file)} {problem}, and release {self.now.number} needs it; "
                "the backup shows what it showed before.",
                "`platform-assets admin audit` names all that is damaged and what repairs it.",
            )
        if problem == "is missing":
            self.gone += 1
        else:
            self.damaged.append(f"{self._named(file)} {problem}. Only older releases show it; it was not copied.")

    def _named(self, file: Location) -> str:
        table, path = _table_of(self.lake, file), file.below(self.lake.root) or file.name
        return f"The file {path} of {table}" if file in self.live or file in self.older else f"The file {path}"


def _had(lake: Lake, copy: Lake, now: Release) -> Release:
    if now.number < 0:
        raise LakeError(f"Nothing was published in {lake.root}, so there is nothing to copy.", "Publish first.")
    if lake.root.holds(copy.root):
        raise LakeError(f"{copy.root} is inside the lake {lake.root} itself.", "Name a folder elsewhere.")
    had = current_release(copy)
    if had.number < 0:
        return had
    try:
        theirs = dict(published(copy))
    except LakeError as error:
        raise LakeError(
            f"The backup itself is damaged: {error.what}",
            "Remove that file of the backup and run `admin backup` again, which copies it anew; or name another "
            "folder.",
        ) from error
    ours = dict(published(lake))
    if ours.get(had.number) != theirs[had.number]:
        raise LakeError(
            f"{copy.root} is a copy of another lake, or of what it was before an older backup was restored: it shows "
            f"release {had.number} ({theirs[had.number]}), which {lake.root} does not have.",
            "Keep this copy, and name a new folder.",
        )
    return had


def _place(lake: Lake, copy: Lake, file: Location) -> Location:
    return copy.root / (file.below(lake.root) or file.name)


def _table_of(lake: Lake, file: Location) -> str:
    """Return the table of a file; empty for manifests."""
    layer, name, *_ = (file.below(lake.root) or "").split("/")
    return f"{layer}.{name}" if layer in LAYERS else "manifests"
