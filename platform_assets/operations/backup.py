"""Generations of a backup: each a whole lake with its ledger; shared files are on disk once.

A generation is written under a temporary name, renamed when it is whole, and shown by moving one link. `lake` and
`ledger.db` of the folder lead through that link, so both change at the same moment.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout
from pydantic import SecretStr

from platform_assets.engine.platform import lake_to_write
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import ErasedError
from platform_assets.lakehouse.layout import LAYERS, Lake, located
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.releases import Release, current_release, manifest_of, newest_release, publication_of
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.lakehouse.storage.location import Entry, Location, sync
from platform_assets.operations.audit_logs import Check, Fault, Scope
from platform_assets.places import folder_of, make_folder
from platform_assets.progress import OnProgress, Progress, meanwhile
from platform_assets.records.history import ERASURE
from platform_assets.records.manifest import Manifest
from platform_assets.secret import secret_file
from platform_assets.settings import Settings

_COPIED = (*LAYERS, "_releases", "_publications", "_horizon.json")
"""What a backup has of a lake; locks and stages of those who worked in the backup itself are not passed on."""
_MODE = 0o700
"""A backup is as private as the state folder, even on a disk that others can read."""
_SHOWN = ("lake", "ledger.db")
_NAME = re.compile(r"(\d{5,})-\d{8}T\d{6}Z-release-\d+")
_LEFT = re.compile(rf"\.(begun|rehearsal-\w+|{_NAME.pattern})")
"""What a killed backup or rehearsal leaves."""
NOBODYS = ("lost+found",)
"""Entries that the system creates in the topmost folder of a disk."""


@dataclass(frozen=True)
class Generation:
    """A backup of one moment.

    Args:
        folder: its folder, named after its number, the moment (UTC) and the release.
    """

    folder: Path

    @property
    def name(self) -> str:
        """Return its name; generations sort by name from oldest to newest."""
        return self.folder.name

    @property
    def lake(self) -> Path:
        """Return the folder of its lake."""
        return self.folder / "lake"

    @property
    def ledger(self) -> Path:
        """Return its ledger file, which does not exist if the ledger is in a server's database."""
        return self.folder / "ledger.db"

    @property
    def secret(self) -> Path:
        """Return the file with the installation's own secret, which does not exist if the secret is in a variable."""
        return self.folder / "secret"

    @property
    def release(self) -> int:
        """Return the release that it shows."""
        return newest_release(Lake.at(self.lake))


@dataclass(frozen=True)
class BackupFolder:
    """The folder with the generations of one installation's backups."""

    folder: Path

    def generations(self) -> list[Generation]:
        """Return all whole generations, oldest first."""
        named = {path: match for path in self._every.glob("*") if (match := _NAME.fullmatch(path.name))}
        return [Generation(path) for path in sorted(named, key=lambda path: int(named[path][1]))]

    def generation(self, name: str | None = None) -> Generation:
        """Return a generation by name; the newest by default."""
        every = self.generations()
        if not every:
            raise PlatformError(f"There is no backup in {self.folder}.", "Name the folder that `backup` was given.")
        if name is None:
            return every[-1]
        for generation in every:
            if generation.name == name:
                return generation
        raise PlatformError(
            f"The backup {self.folder} has no generation {name}.", f"It has {', '.join(each.name for each in every)}."
        )

    @contextmanager
    def begun(self, lake: Lake) -> Iterator[Generation]:
        """Lock the backup and yield a hidden new generation that starts as a copy of the newest.

        It is removed afterwards unless it was shown, like the leftovers of killed processes.
        """
        if lake.root.holds(located(self.folder)):
            raise PlatformError(f"{self.folder} is inside the lake {lake.root} itself.", "Name a folder elsewhere.")
        if not self._every.exists() and (others := self._others()):
            raise PlatformError(
                f"{self.folder} holds something else than a backup, for example {others[0]}.",
                "Name an empty folder, or one of a backup.",
            )
        with self.alone():
            draft = Generation(self._every / ".begun")
            try:
                draft.folder.mkdir()
                if before := self.generations():
                    linked(before[-1].lake, draft.lake)
                yield draft
            finally:
                shutil.rmtree(draft.folder, ignore_errors=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the backup for this process and remove what a killed one left."""
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            make_folder(self.folder, _MODE)
            self._every.mkdir(exist_ok=True)
            lock.acquire()
        except Timeout as error:
            raise PlatformError(
                f"Another backup, restore or rehearsal is at work on {self.folder}.", "Wait until it has ended."
            ) from error
        except OSError as error:
            raise PlatformError(
                f"{self.folder} cannot be written: {error.strerror}.",
                "Give this user the right to write there: a restore and a rehearsal need it too.",
            ) from error
        try:
            for left in self._every.iterdir():
                if _LEFT.fullmatch(left.name):
                    shutil.rmtree(left)
            yield
        finally:
            lock.release()

    def show(self, draft: Generation, kept: int) -> Generation:
        """Make the hidden generation the newest, and remove the oldest ones."""
        before = self.generations()
        number = int(before[-1].name.partition("-")[0]) + 1 if before else 1
        moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        whole = Generation(self._every / f"{number:05}-{moment}-release-{draft.release}")
        own = [path for path in draft.folder.iterdir() if path.is_file()]
        sync(located(path) for path in (*own, *(Path(folder) for folder, _, _ in os.walk(draft.folder))))
        draft.folder.rename(whole.folder)
        self.lead_to_newest()
        for old in self.generations()[:-kept]:
            shutil.rmtree(old.folder.rename(self._every / f".{old.name}"))
        return whole

    def lead_to_newest(self) -> Generation:
        """Point the folder's links to the newest generation, wherever a killed process left them."""
        newest = self.generations()[-1]
        for name in _SHOWN:
            if not (self.folder / name).is_symlink() and (newest.folder / name).exists():
                self._lead(name, Path("current", name))
        to = Path(self._every.name, newest.name)
        if not (self.folder / "current").is_symlink() or (self.folder / "current").readlink() != to:
            self._lead("current", to)
        sync([located(self._every), located(self.folder)])
        return newest

    def _others(self) -> list[str]:
        if not self.folder.exists():
            return []
        names = sorted(path.name for path in self.folder.iterdir())
        return [name for name in names if not name.startswith(".") and name not in NOBODYS]

    @property
    def _every(self) -> Path:
        return self.folder / "generations"

    def _lead(self, name: str, to: Path) -> None:
        link = self.folder / f".{name}.new"
        link.unlink(missing_ok=True)
        try:
            link.symlink_to(to)
        except OSError as error:
            raise PlatformError(
                f"{self.folder} cannot hold a backup: {error.strerror}, a symbolic link.",
                "Name a folder on a file system with symbolic links.",
            ) from error
        link.replace(self.folder / name)


def same(one: Generation, other: Generation) -> bool:
    """Return whether two generations of the same release are equal in ledger, secret and horizon."""
    pairs = [(each.ledger, each.secret, each.lake / "_horizon.json") for each in (one, other)]
    return all(_same(first, second) for first, second in zip(*pairs, strict=True))


def _same(one: Path, other: Path) -> bool:
    if not (one.exists() and other.exists()):
        return one.exists() == other.exists()
    return cmp(one, other, shallow=False)


def linked(lake: Path, target: Path) -> None:
    """Make a second lake of hard links to the same files, which never change; copy them without hard links."""
    for name in _COPIED:
        if (lake / name).is_dir():
            shutil.copytree(lake / name, target / name, copy_function=_link)
        elif (lake / name).exists():
            target.mkdir(parents=True, exist_ok=True)
            _link(str(lake / name), str(target / name))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
        sync([located(target)])


def erasures_after(lake: Lake, number: int, until: int) -> Iterator[Manifest]:
    """Yield erasures between two releases, oldest first; without lifts."""
    for after in range(number + 1, until + 1):
        made = commits.commit(lake.releases_path, after)
        if made.kind == ERASURE and made.publication:
            manifest = manifest_of(lake, made.publication)
            if not all(erasure.lifts for erasure in manifest.erasures):
                yield manifest


def erased_since(backup: BackupFolder, generation: Generation) -> tuple[Manifest, ...]:
    """Return what was erased after a generation was taken, as far as newer ones know; it still has these rows."""
    newest = backup.generations()[-1]
    return tuple(erasures_after(Lake.at(newest.lake), generation.release, newest.release))


def refuse_half_an_erasure(lake: Lake, now: Release, cut: int) -> None:
    """Refuse to copy during an erasure: files with erased rows are still to be deleted.

    Args:
        cut: release before which the newest erasure so far cut history.
    """
    for manifest in erasures_after(lake, cut, now.number):
        raise ErasedError(
            f"Rows were erased from {lake.root} by publication {manifest.publication}, and the files that hold them "
            "are not deleted yet; the backup shows what it showed before.",
            "Wait until `platform-assets admin erase` is done. If it was ended, call it again, or let "
            "`platform-assets admin maintenance` delete them; then run `platform-assets admin backup` again.",
        )


def refuse_what_is_erased(lake: Lake, copied: Release) -> None:
    """Keep no copy of rows that were erased since the copy began: it would seem to be later than the erasure."""
    since = range(copied.number + 1, current_release(lake).number + 1)
    if any(commits.commit(lake.releases_path, number).kind == ERASURE for number in since):
        raise ErasedError(
            f"Rows were erased from {lake.root} while it was copied; the backup shows what it showed before.",
            "Run `platform-assets admin backup` again: the next generation has none of them.",
        )


_MARK = "_restoring"
"""Says which generation is being put there."""
_NOT_OURS = ("_locks/", *(f"{name}/" for name in NOBODYS))
_FIRST = "_releases/_delta_log/00000000000000000000.json"


def restore_lake(source: Lake, lake: Lake, generation: str, progress: OnProgress) -> None:
    """Copy a generation's lake to an empty place, or continue an interrupted restore.

    The lake shows nothing before its first commit, which comes last. Locks keep others from publishing meanwhile. A
    publisher out of their reach would find tables ahead of the release.
    """
    with publish_lock(lake) as still_held:
        there, files = _left_there(source, lake, generation), _to_copy(source)
        mark = lake.root / _MARK
        mark.replace(generation.encode())
        for path in there.keys() - files.keys():
            (lake.root / path).remove(durable=False)
        for number, path in enumerate(paths := in_order(files), start=1):
            if there.get(path) != files[path].size or not _is_whole(source.root / path, lake.root / path):
                if path == _FIRST:
                    _sync(lake, paths[: number - 1])
                still_held()
                (source.root / path).copy_to(lake.root / path)
            progress(Progress("restoring", "the lake", number, len(files), "file", finished=number == len(files)))
        _sync(lake, paths[-2:])
        mark.remove()


def _to_copy(source: Lake) -> dict[str, Entry]:
    """Return the files of a generation, without lock files of commands that opened it."""
    return {path: file for path, file in source.root.files().items() if not path.startswith(_NOT_OURS)}


def _is_whole(source: Location, copied: Location) -> bool:
    """Return whether an existing file has its full content: after a power cut it may only have its length."""
    return not (isinstance(source, Disk) and isinstance(copied, Disk)) or cmp(source, copied, shallow=False)


def _left_there(source: Lake, lake: Lake, generation: str) -> dict[str, int]:
    """Return the files, with bytes, of an interrupted restore of a generation; refuse other files."""
    there = {path: file.size for path, file in lake.root.files().items() if not path.startswith(_NOT_OURS)}
    is_its_own = there.pop(_MARK, None) is not None and (lake.root / _MARK).read() == generation.encode()
    is_as_restored = newest_release(lake) < 0 or _shown(lake) == _shown(source)  # else it was used since
    if there and not (is_its_own and is_as_restored):
        raise is_there(lake.root)
    return there


def _sync(lake: Lake, paths: Sequence[str]) -> None:
    """Force files and their folders to disk; an object store does so itself."""
    if not isinstance(lake.root, Disk):
        return
    folders = {lake.root / str(folder) for path in paths for folder in PurePosixPath(path).parents[:-1]}
    sync([*(lake.root / path for path in paths), *folders, lake.root])


def in_order(paths: Iterable[str]) -> list[str]:
    """Return the files of a lake in an order that shows nothing before the last important one: its first release."""

    def place(path: str) -> tuple[int, int, str]:
        name = path.removeprefix("_releases/_delta_log/")
        if name == path:
            return path.startswith("_releases/"), 0, path
        commit = re.fullmatch(r"(\d{20})\.json", name)
        # A hint names a commit that is to be there; without it all commits are found, from the first
        return (3, -int(commit[1]), path) if commit else (4 if name == "_last_checkpoint" else 2, 0, path)

    return sorted(paths, key=place)


def is_there(place: object) -> PlatformError:
    """Return the error for a restore that would replace a file."""
    return PlatformError(
        f"{place} is there already, and a restore replaces nothing.",
        "Stop the platform and move it aside, or restore elsewhere: set PLATFORM_STATE, or PLATFORM_LAKE, to an empty "
        "folder.",
    )


def _shown(lake: Lake) -> tuple[int, str | None]:
    newest = newest_release(lake)
    return newest, publication_of(lake, newest)


@dataclass(frozen=True)
class Rehearsed:
    """Result of a rehearsed restore.

    Args:
        faults: differences from what was published; empty for a reliable backup.
        said: messages of the opened platform, a sentence each.
    """

    generation: str
    release: int
    faults: tuple[Fault, ...]
    seen: Mapping[Check, int]
    said: tuple[str, ...]


def restore(
    backup: BackupFolder, generation: Generation, settings: Settings, progress: OnProgress
) -> tuple[str, Path | None]:
    """Restore lake and ledger of a generation to their places in the settings.

    Ledger and secret come first: a command that opens the platform before the end finds nothing or is refused. An
    interrupted restore continues when it is called again.

    Returns:
        Where they lie now; no ledger where that is a server's database.

    Raises:
        PlatformError: something is there already, or cannot be there; nothing was replaced.
    """
    from platform_assets.ledger.connection import parse_url, sqlite_file  # SQLAlchemy, which listing does not need

    ledger = sqlite_file(parse_url(settings.ledger_url.get_secret_value())) if generation.ledger.exists() else None
    is_writable = os.access(backup.folder, os.W_OK)
    with backup.alone() if is_writable else nullcontext():  # no lock on a read-only disk
        folder = folder_of(settings.lake)
        if folder and not folder.is_dir() and (folder.exists() or folder.is_symlink()):
            raise PlatformError(f"{folder} leads to no folder.", "Mount the disk that it leads to, or move it aside.")
        lake = Lake.at(folder) if folder else lake_to_write(settings)
        _left_there(Lake.at(generation.lake), lake, generation.name)
        if ledger is not None:
            _restore_file(generation.ledger, ledger)
        if settings.secret is None and generation.secret.exists():
            _restore_file(generation.secret, secret_file(settings))
        restore_lake(Lake.at(generation.lake), lake, generation.name, progress)
    return settings.lake, ledger


def _restore_file(source: Path, target: Path) -> None:
    if target.exists() and cmp(source, target, shallow=False):
        return
    for ending in ("", "-wal", "-shm"):
        if (beside := target.with_name(f"{target.name}{ending}")).exists():
            raise is_there(beside)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.restoring")
    try:
        shutil.copy2(source, draft)
        sync([located(draft)])
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def rehearse(backup: BackupFolder, generation: Generation, settings: Settings, progress: OnProgress) -> Rehearsed:
    """Restore a generation to a temporary place, open the platform on it, read every page, and remove it."""
    from platform_assets.operations.audit import audit_installation  # which listing does not need
    from platform_assets.operations.opening import open_platform

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
