"""The generations of a backup: each a whole lake with its ledger; files that they share are on disk once.

A generation is begun under a name that nobody looks for, is named when it is whole, and is shown by moving one link.
`lake` and `ledger.db` of the folder lead through that link, so both change at the same moment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path

from filelock import FileLock, Timeout

from platform_assets.access import make_folder
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import ErasedError
from platform_assets.lakehouse.layout import LAYERS, Lake, located
from platform_assets.lakehouse.releases import Release, current_release, manifest_of, newest_release
from platform_assets.lakehouse.storage.location import sync
from platform_assets.records.history import ERASURE
from platform_assets.records.manifest import Manifest

_COPIED = (*LAYERS, "_releases", "_publications", "_horizon.json")
"""What a backup has of a lake; locks and stages of those who worked in the backup itself are not passed on."""
_MODE = 0o700
"""It has what the state folder has, whoever may read the disk that it lies on."""
_SHOWN = ("lake", "ledger.db")
_NAME = re.compile(r"(\d{5,})-\d{8}T\d{6}Z-release-\d+")
_LEFT = re.compile(rf"\.(begun|rehearsal-\w+|{_NAME.pattern})")
"""What a killed backup or rehearsal leaves."""
NOBODYS = ("lost+found",)
"""What lies in the topmost folder of a disk without anybody's doing."""


class BackupError(PlatformError):
    """A folder is no backup, or cannot be one."""


@dataclass(frozen=True)
class Generation:
    """A backup as it was taken at one moment.

    Args:
        folder: its own, named after how many there were before, the moment (UTC) and the release that it shows.
    """

    folder: Path

    @property
    def name(self) -> str:
        """Sortable by age."""
        return self.folder.name

    @property
    def lake(self) -> Path:
        """Its lake."""
        return self.folder / "lake"

    @property
    def ledger(self) -> Path:
        """Its ledger; not there where that is a server's database."""
        return self.folder / "ledger.db"

    @property
    def secret(self) -> Path:
        """The secret that the installation made; not there where it is a variable's."""
        return self.folder / "secret"

    @property
    def lacking(self) -> dict[str, int]:
        """Data files of older releases that were damaged when it was taken, each with its bytes."""
        content = self._lacking.read_text(encoding="utf-8") if self._lacking.exists() else "{}"
        return {str(path): int(size) for path, size in json.loads(content).items()}

    def note_lacking(self, lacking: Mapping[str, int]) -> None:
        """Have the next backup look for them again."""
        if lacking:
            self._lacking.write_text(json.dumps(dict(lacking)), encoding="utf-8")

    @property
    def _lacking(self) -> Path:
        return self.folder / "lacking.json"

    @property
    def release(self) -> int:
        """The release that it shows."""
        return newest_release(Lake.at(self.lake))


@dataclass(frozen=True)
class BackupFolder:
    """Where the generations of one installation's backups are."""

    folder: Path

    def generations(self) -> list[Generation]:
        """Return all that are whole, oldest first."""
        named = {path: match for path in self._every.glob("*") if (match := _NAME.fullmatch(path.name))}
        return [Generation(path) for path in sorted(named, key=lambda path: int(named[path][1]))]

    def generation(self, name: str | None = None) -> Generation:
        """Return one of them; the newest without a name."""
        every = self.generations()
        if not every:
            raise BackupError(f"There is no backup in {self.folder}.", "Name the folder that `backup` was given.")
        if name is None:
            return every[-1]
        for generation in every:
            if generation.name == name:
                return generation
        raise BackupError(
            f"The backup {self.folder} has no generation {name}.", f"It has {', '.join(each.name for each in every)}."
        )

    @contextmanager
    def begun(self, lake: Lake) -> Iterator[Generation]:
        """Be the only one who works on the backup, with a generation that nobody sees and that begins as the newest.

        It is gone afterwards, unless it was shown. What a killed process began is removed.

        Raises:
            BackupError: another backup into the folder is under way, or the folder holds something else.
        """
        if lake.root.holds(located(self.folder)):
            raise BackupError(f"{self.folder} lies in the lake {lake.root} itself.", "Name a folder elsewhere.")
        if not self._every.exists() and (others := self._others()):
            raise BackupError(
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
        """Be the only one who works on the backup; what a killed process left is removed."""
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            make_folder(self.folder, _MODE)
            self._every.mkdir(exist_ok=True)
            lock.acquire()
        except Timeout as error:
            raise BackupError(
                f"Another backup, restore or rehearsal is at work on {self.folder}.", "Wait until it has ended."
            ) from error
        except OSError as error:
            raise BackupError(
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
        """Make what was begun the newest generation, and remove the oldest ones.

        Args:
            kept: how many generations stay, this one included.
        """
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
        """Have the folder's own names lead to the newest generation, wherever a killed process left them."""
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
            raise BackupError(
                f"{self.folder} cannot hold a backup: {error.strerror}, a symbolic link.",
                "Name a folder on a file system with symbolic links.",
            ) from error
        link.replace(self.folder / name)


def same(one: Generation, other: Generation) -> bool:
    """Return whether two generations of the same release differ in nothing: ledger, secret, horizon, what they lack."""
    pairs = [(each.ledger, each.secret, each.lake / "_horizon.json") for each in (one, other)]
    return one.lacking == other.lacking and all(_same(first, second) for first, second in zip(*pairs, strict=True))


def _same(one: Path, other: Path) -> bool:
    if not (one.exists() and other.exists()):
        return one.exists() == other.exists()
    return cmp(one, other, shallow=False)


def linked(lake: Path, target: Path) -> None:
    """Make a second lake of the same files, which are never changed; copied where there are no hard links."""
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
    """Yield what releases after one, up to another, erased, oldest first; without what was only lifted."""
    for after in range(number + 1, until + 1):
        made = commits.commit(lake.releases_path, after)
        if made.kind == ERASURE and made.publication:
            manifest = manifest_of(lake, made.publication)
            if not all(erasure.lifts for erasure in manifest.erasures):
                yield manifest


def erased_since(backup: BackupFolder, generation: Generation) -> tuple[Manifest, ...]:
    """Return what was erased after a generation was taken, as far as newer ones know; its rows are in it."""
    newest = backup.generations()[-1]
    return tuple(erasures_after(Lake.at(newest.lake), generation.release, newest.release))


def refuse_half_an_erasure(lake: Lake, now: Release, cut: int) -> None:
    """Keep no copy of rows that nobody is shown any more, and whose files are still to be deleted.

    Args:
        cut: before which release the newest erasure that came so far cut history.
    """
    for manifest in erasures_after(lake, cut, now.number):
        raise ErasedError(
            f"Rows were erased from {lake.root} by publication {manifest.publication}, and the files that hold them "
            "are not deleted yet; the backup shows what it showed before.",
            "Wait until `platform-assets erase` is done. If it was ended, call it again, or let `platform-assets "
            "maintenance run` delete them; then run `platform-assets backup` again.",
        )


def refuse_what_is_erased(lake: Lake, copied: Release) -> None:
    """Keep no copy of rows that were erased since it was begun: it would look like one from after that."""
    since = range(copied.number + 1, current_release(lake).number + 1)
    if any(commits.commit(lake.releases_path, number).kind == ERASURE for number in since):
        raise ErasedError(
            f"Rows were erased from {lake.root} while it was copied; the backup shows what it showed before.",
            "Run `platform-assets backup` again: the next generation has none of them.",
        )
