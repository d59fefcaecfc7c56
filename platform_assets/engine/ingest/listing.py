"""What was delivered and not taken yet: listings of landing folders and the ledger, never rows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from difflib import get_close_matches
from pathlib import PurePosixPath

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.loaded import empty_days
from platform_assets.settings import Settings
from platform_assets.sources.landing import Known, Listing, Problem, list_landing


def landing_problem(settings: Settings, catalogue: Catalogue) -> Problem | None:
    """What is wrong with the landing root itself, from which then nothing at all is taken.

    Only the default one may be absent: whoever lands first makes it.

    Args:
        settings: that name the root.
        catalogue: where no source lands files, none is needed.
    """
    root = settings.landing
    if root.is_dir() or not any(contract.source for contract in catalogue):
        return None
    todo = "set PLATFORM_LANDING to the folder that sources deliver to, or make it"
    if root.exists():
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
        for entry in sorted(place.iterdir()) if place.is_dir() else ():
            path = PurePosixPath(folder, entry.name).as_posix()
            if entry.is_dir() and not entry.name.startswith((".", "_")) and path not in {*sources, *above}:
                unread[path] = next(iter(get_close_matches(path, sources, 1)), "")
    return unread


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
