"""What was delivered and not taken yet: listings of landing folders and the ledger, never rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.loaded import empty_days
from platform_assets.quality.set_aside import much_refused
from platform_assets.records.history import ArrivalRecord
from platform_assets.settings import Settings
from platform_assets.sources.landing import Known, Listing, Problem, list_landing
from platform_assets.sources.limits import Limits


def landing_problem(settings: Settings, catalogue: Catalogue) -> Problem | None:
    """What is wrong with the landing root itself, from which then nothing at all is taken.

    Only the default one may be absent: whoever lands first makes it.

    Args:
        settings: that name the root.
        catalogue: where no source lands files, none is needed.
    """
    root = settings.landing
    if _is_folder(root) or not any(contract.source for contract in catalogue):
        return None
    todo = "set PLATFORM_LANDING to the folder that sources deliver to, or make it"
    if not _is_gone(root):
        return Problem(str(root), "is the landing root and no folder", todo)
    if root == settings.state / "landing":
        return None
    return Problem(str(root), "is the landing root and is not there", todo)


def unread_folders(settings: Settings, catalogue: Catalogue) -> dict[str, str]:
    """Folders of the landing area that no table takes files from, each with the folder that was perhaps meant.

    Returns:
        By path below the landing root; hidden ones are nobody's business, and what is meant may be empty.
    """
    sources = [contract.source.folder for contract in catalogue if contract.source]
    above = {parent.as_posix() for source in sources for parent in PurePosixPath(source).parents}
    unread: dict[str, str] = {}
    for folder in sorted(above):
        place = settings.landing / folder
        for entry in _entries(place):
            path = PurePosixPath(folder, entry.name).as_posix()
            if _is_folder(entry) and not entry.name.startswith((".", "_")) and path not in {*sources, *above}:
                unread[path] = next(iter(get_close_matches(path, sources, 1)), "")
    return unread


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder, if this user may know; of one of a source, its listing says that he may not."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    """Whether it is one, as far as this user may know."""
    try:
        return path.is_dir()
    except OSError:
        return False


@dataclass(frozen=True)
class RefusedFiles:
    """Files that stand refused, whole or in large part, by what there is to do about them.

    Args:
        there: that lie in the landing area, or may, where it cannot be looked at: to be repaired, or taken away.
        gone: that somebody took away since. The ledger keeps that they came, and why they were refused.
        in_large_part: that were taken, but for so many rows that the file seems to be broken, and not withdrawn since.
    """

    there: tuple[ArrivalRecord, ...] = ()
    gone: tuple[ArrivalRecord, ...] = ()
    in_large_part: tuple[ArrivalRecord, ...] = ()


def refused_files(platform: Platform) -> RefusedFiles:
    """Files of which no row was taken, or few, and that were not delivered in order since."""
    catalogue, ledger = platform.catalogue, platform.ledger
    standing = [file for file in ledger.arrivals(refused_only=True) if file.table in catalogue.names]
    refused = [file for file in standing if file.reason is not None]
    taken = [file for file in standing if file.reason is None and much_refused(catalogue[file.table], file)]
    withdrawn = {table: ledger.withdrawn(table) for table in {file.table for file in taken}}
    root = platform.settings.landing
    # Of a root that is not there, as one that is not mounted, nothing says that somebody took a file away.
    is_mounted = _is_folder(root)
    gone = {file.path for file in refused if is_mounted and _is_gone(root / file.path)}
    return RefusedFiles(
        there=tuple(file for file in refused if file.path not in gone),
        gone=tuple(file for file in refused if file.path in gone),
        in_large_part=tuple(file for file in taken if file.path not in withdrawn[file.table]),
    )


def _is_gone(file: Path) -> bool:
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems of several tables, of which some may take files from one folder."""
    return tuple({problem.path: problem for problem in problems}.values())


def list_arrivals(platform: Platform, contract: Contract, until: date | None = None) -> Listing:
    """What was delivered for a raw table and not taken yet, up to today or an earlier arrival date."""
    assert contract.source is not None
    known = {
        arrival.path: Known(
            arrival.size,
            arrival.modified_ns,
            arrival.sha256,
            arrival.reason is not None,
        )
        for arrival in platform.ledger.arrivals(contract.name)
    }
    settings = platform.settings
    today = settings.current_day()
    return list_landing(
        settings.landing,
        contract.source,
        known,
        until=today if until is None else min(today, until),
        settle_s=settings.settle_s,
        limits=Limits.of(settings),
    )


def quiet_days(
    snapshot: LakeSnapshot, contract: Contract, delivered: Collection[date], until: date | None = None
) -> tuple[date, ...]:
    """Days to load as empty: nothing was to be expected on them, or an arrival came without rows.

    Args:
        snapshot: what to look at.
        contract: of a raw table.
        delivered: arrival dates whose files were all taken.
        until: newest arrival date to look at; files of later dates may wait.
    """
    return empty_days(contract, snapshot.days(contract.name), delivered, snapshot.delivered(contract.name), until)
