"""A backup put in the place of what was lost, and the rehearsal of it, which leaves no trace."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from re import fullmatch
from tempfile import TemporaryDirectory

from pydantic import SecretStr

from platform_assets.engine.platform import lake_to_write
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.releases import newest_release, publication_of
from platform_assets.lakehouse.storage.location import sync
from platform_assets.ledger.connection import parse_url, sqlite_file
from platform_assets.operations.audit.faults import Check, Fault, Scope
from platform_assets.operations.audit.installation import audit_installation
from platform_assets.operations.backup.generations import NOBODYS, BackupError, BackupFolder, Generation, linked
from platform_assets.operations.opening import open_platform
from platform_assets.places import folder_of
from platform_assets.progress import OnProgress, Progress, meanwhile
from platform_assets.secret import secret_file
from platform_assets.settings import Settings

_MARK = "_restoring"
"""Says which generation is being put there."""
_LOCKS = "_locks/"
_LOG = "_releases/_delta_log/"
_DRAFT = ".restoring"
_LAST = "_releases"
"""What makes a folder a lake that shows something."""


def restore_to_store(source: Lake, lake: Lake, generation: str, progress: OnProgress) -> None:
    """Copy a generation's lake to where nothing is, or to what a restore of it that was cut short left.

    Nobody can publish meanwhile, as far as locks reach; whoever tried would find tables ahead of what is released.

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
    """Return the files of a lake so that it shows nothing before the last of them that count: its first release."""

    def place(path: str) -> tuple[int, int, str]:
        name = path.removeprefix(_LOG)
        if name == path:
            return path.startswith("_releases/"), 0, path
        commit = fullmatch(r"(\d{20})\.json", name)
        # A hint names a commit that is to be there; without it all commits are found, from the first
        return (3, -int(commit[1]), path) if commit else (4 if name == "_last_checkpoint" else 2, 0, path)

    return sorted(paths, key=place)


def is_there(place: object) -> BackupError:
    """Return what is said where a restore would replace something."""
    return BackupError(
        f"{place} is there already, and a restore replaces nothing.",
        "Stop the platform and move it aside, or restore elsewhere: set PLATFORM_STATE, or PLATFORM_LAKE, to an empty "
        "folder.",
    )


def _shown(lake: Lake) -> tuple[int, str | None]:
    newest = newest_release(lake)
    return newest, publication_of(lake, newest)


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal of a restore found.

    Args:
        faults: what is not as it was published; none if it can be relied on.
        said: what the platform said when it was opened, in a sentence each.
    """

    generation: str
    release: int
    faults: tuple[Fault, ...]
    seen: Mapping[Check, int]
    said: tuple[str, ...]


def restore(
    backup: BackupFolder, generation: Generation, settings: Settings, progress: OnProgress
) -> tuple[str, Path | None]:
    """Put lake and ledger of a generation where the settings look for them.

    Ledger and secret first, and of the lake what makes it one last: whoever looks meanwhile finds nothing or is
    refused, and a restore that was cut short goes on when it is called again.

    Returns:
        Where they lie now; no ledger where that is a server's database.

    Raises:
        BackupError: something lies there already, or cannot; nothing was replaced.
    """
    ledger = sqlite_file(parse_url(settings.ledger_url.get_secret_value())) if generation.ledger.exists() else None
    is_writable = os.access(backup.folder, os.W_OK)
    with backup.alone() if is_writable else nullcontext():  # a backup on a disk that nobody can write is left alone
        folder = folder_of(settings.lake)
        lake = _place_of(folder, generation) if folder else None
        if ledger is not None:
            _restore_file(generation.ledger, ledger)
        if settings.secret is None and generation.secret.exists():
            _restore_file(generation.secret, secret_file(settings))
        if lake:
            _restore_lake(generation.lake, lake, progress)
        else:
            restore_to_store(Lake.at(generation.lake), lake_to_write(settings), generation.name, progress)
    return settings.lake, ledger


def _place_of(lake: Path, generation: Generation) -> Path:
    """Return where the lake is to lie: nothing is there, or what a restore that was cut short left.

    One that died with all in its place left the lake as the generation shows it; whatever shows anything else was at
    work since, and is nobody's leftover.
    """
    place = lake.resolve()
    if lake.is_symlink() and not place.exists():
        raise BackupError(f"{lake} leads to {place}, which is not there.", "Mount the disk, or make the folder.")
    if place.exists() and not place.is_dir():
        raise is_there(lake)
    is_left = (place / _DRAFT).exists() and (
        not (place / _LAST).exists() or _shown(Lake.at(place)) == _shown(Lake.at(generation.lake))
    )
    if place.exists() and _in(place) and not is_left:
        raise is_there(lake)
    return place


def _in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name not in NOBODYS]


def _restore_file(source: Path, target: Path) -> None:
    if target.exists() and cmp(source, target, shallow=False):
        return
    for ending in ("", "-wal", "-shm"):
        if (beside := target.with_name(f"{target.name}{ending}")).exists():
            raise is_there(beside)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}{_DRAFT}")
    try:
        shutil.copy2(source, draft)
        sync([located(draft)])
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _restore_lake(source: Path, lake: Path, progress: OnProgress) -> None:
    draft = lake / _DRAFT
    if draft.exists() and (lake / _LAST).exists():  # which is the last: all is in its place
        draft.rmdir()
        return
    for path in _in(lake) if draft.exists() else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    draft.mkdir(parents=True)
    files = [Path(folder, name).relative_to(source) for folder, _, names in os.walk(source) for name in names]
    try:
        for number, file in enumerate(files, start=1):
            (draft / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / file, draft / file)
            progress(Progress("restoring", "the lake", number, len(files), "file", finished=number == len(files)))
    except OSError:
        shutil.rmtree(draft)
        raise
    sync(located(path) for folder, _, names in os.walk(draft) for path in (folder, *(f"{folder}/{n}" for n in names)))
    for path in sorted(draft.iterdir(), key=lambda path: (path.name == _LAST, path.name)):
        path.rename(lake / path.name)
    draft.rmdir()
    sync([located(lake), located(lake.parent)])


def rehearse(backup: BackupFolder, generation: Generation, settings: Settings, progress: OnProgress) -> Rehearsed:
    """Restore a generation beside itself, open the platform on it, read every page of it, and remove it again."""
    with backup.alone(), TemporaryDirectory(prefix=".rehearsal-", dir=generation.folder.parent) as place:
        restored = Path(place)
        with meanwhile(progress, "restoring"):
            linked(generation.lake, restored / "lake")
            if generation.ledger.exists():
                shutil.copy2(generation.ledger, restored / "ledger.db")
        url = SecretStr(f"sqlite:///{restored / 'ledger.db'}")
        there = settings.model_copy(update={"state": restored, "lake": str(restored / "lake"), "ledger_url": url})
        said: list[str] = []
        with open_platform(there, said.append):
            pass
        audit = audit_installation(there, Scope(every_release=True, read_bytes=None), progress)
        return Rehearsed(
            generation.name, audit.release, tuple(audit.findings.faults), dict(audit.findings.seen), tuple(said)
        )
