"""A lake of a backup put into an object store, which has no renames: what makes it a lake is written last.

Data files and manifests come first, then commits of the releases, the newest first: until the very first is there,
whoever looks sees no lake, and from then on all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from re import fullmatch

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.releases import newest_release, publication_of
from platform_assets.operations.backup.generations import BackupError
from platform_assets.progress import OnProgress, Progress

_MARK = "_restoring"
"""Says which generation is being put there."""
_LOCKS = "_locks/"
_LOG = "_releases/_delta_log/"


def restore_to_store(source: Lake, lake: Lake, generation: str, progress: OnProgress) -> None:
    """Copy a generation's lake to where nothing is, or to what a restore of it that was cut short left.

    Nobody can publish meanwhile, as far as locks reach; whoever tried would find tables ahead of what is released.

    Args:
        source: of the backup.
        lake: where to.
        generation: name of it.
        progress: told after every file.

    Raises:
        BackupError: something else lies there; nothing was replaced.
    """
    with publish_lock(lake) as still_held:
        mark = lake.root / _MARK
        there = {path: file.size for path, file in lake.root.files().items() if not path.startswith(_LOCKS)}
        if mark.read() != generation.encode():
            if there:
                raise is_there(lake.root)
            mark.replace(generation.encode())
        elif newest_release(lake) >= 0 and _shown(lake) != _shown(source):
            raise is_there(lake.root)  # somebody has worked with it since
        files = source.root.files()
        for number, path in enumerate(in_order(files), start=1):
            if there.get(path) != files[path].size:
                still_held()
                (source.root / path).copy_to(lake.root / path)
            progress(Progress("restoring", "the lake", number, len(files), "file", finished=number == len(files)))
        mark.remove()


def in_order(paths: Iterable[str]) -> list[str]:
    """The files of a lake so that it shows nothing before the last of them that count: its first release."""

    def place(path: str) -> tuple[int, int, str]:
        name = path.removeprefix(_LOG)
        if name == path:
            return path.startswith("_releases/"), 0, path
        commit = fullmatch(r"(\d{20})\.json", name)
        # A hint names a commit that is to be there; without it all commits are found, from the first
        return (3, -int(commit[1]), path) if commit else (4 if name == "_last_checkpoint" else 2, 0, path)

    return sorted(paths, key=place)


def is_there(place: object) -> BackupError:
    """What is said where a restore would replace something."""
    return BackupError(
        f"{place} is there already, and a restore replaces nothing.",
        "Stop the platform and move it aside, or restore elsewhere: set PLATFORM_STATE, or PLATFORM_LAKE, to an empty "
        "folder.",
    )


def _shown(lake: Lake) -> tuple[int, str | None]:
    newest = newest_release(lake)
    return newest, publication_of(lake, newest)
