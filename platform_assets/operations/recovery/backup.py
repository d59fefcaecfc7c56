"""A copy of a lake, taken while others publish: what the newest release refers to first, the release itself last.

Nothing that was published is ever changed, so a release that was resolved once can be copied at leisure. Whoever looks
at the copy at any moment, also after it was cut short, sees a whole release: the one of the copy before, or the new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import DamagedTableError, LakeError
from platform_assets.lakehouse.layout import LAYERS, Lake
from platform_assets.lakehouse.releases import Release, current_release, manifest_file, published
from platform_assets.lakehouse.storage.location import Location, sync
from platform_assets.progress import OnProgress, Progress


@dataclass(frozen=True)
class LakeCopied:
    """What a backup copied.

    Args:
        release: that the copy shows now.
        before: that it showed; -1 where there was none.
        files: copied; those that were there already are not among them.
        bytes: of these.
        gone: files that only older releases refer to and that were deleted before they could be copied.
    """

    release: int
    before: int
    files: int
    bytes: int
    gone: int


def copy_lake(lake: Lake, copy: Lake, progress: OnProgress) -> LakeCopied:
    """Bring a copy up to the newest release; what is begun and not released is left out.

    Args:
        lake: the lake; others may publish meanwhile.
        copy: a folder of its own; empty, or an earlier copy of the same lake.
        progress: told after every file.

    Raises:
        LakeError: nothing was published, or the copy is not one of this lake as it is now; nothing was written.
        DamagedTableError: a file that the newest release needs is missing.
    """
    now = current_release(lake)
    had = _had(lake, copy, now)
    live = set(_live(lake, now))
    older = [file for file in _added(lake, now, had) if file not in live]
    files = list(dict.fromkeys((*older, *sorted(live), *_names(lake, now, had))))
    wanted = [file for file in files if _differs(file, _place(lake, copy, file))]
    done: list[Location] = []
    gone = 0
    of_table = Counter(_table_of(lake, file) for file in wanted)
    copied: Counter[str] = Counter()
    for file in wanted:
        table = _table_of(lake, file)
        progress(Progress("copying", table, copied[table], of_table[table], "file"))
        try:
            file.copy_to(_place(lake, copy, file))
            done.append(_place(lake, copy, file))
        except FileNotFoundError as error:
            if file not in older:
                raise _incomplete(file, now) from error
            gone += 1
        copied[table] += 1
        if copied[table] == of_table[table]:
            progress(Progress("copying", table, copied[table], of_table[table], "file", finished=True))
    sync({*done, *(file.parent for file in done)})
    if (cut := lake.horizon_file.read()) is not None:  # after the files: those that are gone, it knows of
        _place(lake, copy, lake.horizon_file).replace(cut)
    for file in _releases(lake, now, had):
        _place(lake, copy, file).replace(file.read() or b"")
    return LakeCopied(now.number, had.number, len(done), sum(file.size() or 0 for file in done), gone)


def _incomplete(file: Location, now: Release) -> DamagedTableError:
    return DamagedTableError(
        f"The file {file} is missing, which release {now.number} needs; the copy shows what it showed before.",
        "`platform-assets audit verify` names all that is damaged and what repairs it.",
    )


def _had(lake: Lake, copy: Lake, now: Release) -> Release:
    if now.number < 0:
        raise LakeError(f"Nothing was published in {lake.root}, so there is nothing to copy.", "Publish first.")
    if lake.root.holds(copy.root):
        raise LakeError(f"{copy.root} lies in the lake {lake.root} itself.", "Name a folder elsewhere.")
    had = current_release(copy)
    if had.number < 0:
        return had
    theirs, ours = dict(published(copy)), dict(published(lake))
    if theirs[0] != ours[0]:
        raise LakeError(
            f"{copy.root} is a copy of another lake: it begins with publication {theirs[0]}, {lake.root} with "
            f"{ours[0]}.",
            "Name a folder of its own for each lake.",
        )
    if ours.get(had.number) != theirs[had.number]:
        raise LakeError(
            f"{copy.root} shows release {had.number} ({theirs[had.number]}), which {lake.root} does not have: its "
            f"newest is {now.number} ({ours[now.number]}).",
            "If the lake was restored from an older backup, keep this copy and name a new folder.",
        )
    return had


def _live(lake: Lake, now: Release) -> Iterator[Location]:
    """The data files of a release."""
    for table, version in now.versions.items():
        path = lake.table_path(table)
        yield from (path / name for name in table_snapshot(path, version).files)


def _added(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
    """The data files that entered tables since a release."""
    for table, version in now.versions.items():
        path = lake.table_path(table)
        for number in range(had.versions.get(table, -1) + 1, version + 1):
            adds = (action["add"] for action in commits.actions(path, number) if "add" in action)
            yield from (path / unquote(add["path"]) for add in adds)


def _names(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
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


def _releases(lake: Lake, now: Release, had: Release) -> Iterator[Location]:
    for number in range(had.number + 1, now.number + 1):
        adds = (action["add"] for action in commits.actions(lake.releases_path, number) if "add" in action)
        yield from (lake.releases_path / unquote(add["path"]) for add in adds)
    yield from _log(lake.releases_path, had.number, now.number)


def _place(lake: Lake, copy: Lake, file: Location) -> Location:
    return copy.root / (file.below(lake.root) or file.name)


def _table_of(lake: Lake, file: Location) -> str:
    """Whose file it is; manifests are nobody's."""
    layer, name, *_ = (file.below(lake.root) or "").split("/")
    return f"{layer}.{name}" if layer in LAYERS else "manifests"


def _differs(file: Location, there: Location) -> bool:
    """Whether a file is to be copied: what was published never changes, only the hint at a checkpoint does."""
    size = there.size()
    return size is None or size != file.size() or file.name == "_last_checkpoint"
