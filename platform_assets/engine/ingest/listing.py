"""What was delivered and not taken yet: listings of landing folders and the ledger, never rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.planning.loaded import empty_days
from platform_assets.sources.landing import Known, LandedFile, Listing, Problem
from platform_assets.sources.limits import Limits
from platform_assets.sources.listing import Hashes, landing_area, list_landing

if TYPE_CHECKING:
    from platform_assets.settings import Settings


def landing_problem(settings: Settings, catalogue: Catalogue) -> Problem | None:
    """Return what is wrong with the landing root itself, from which then nothing at all is taken.

    Only the default one may be absent: whoever lands first makes it.

    Args:
        catalogue: where no source lands files, none is needed.
    """
    return landing_area(settings).problem() if any(contract.source for contract in catalogue) else None


def unread_folders(settings: Settings, catalogue: Catalogue) -> dict[str, str]:
    """Folders of the landing area that no table takes files from, each with the folder that was perhaps meant.

    Returns:
        By path below the landing root; hidden ones are nobody's business, and what is meant may be empty.
    """
    sources = [contract.source.folder for contract in catalogue if contract.source]
    above = {parent.as_posix() for source in sources for parent in PurePosixPath(source).parents}
    area = landing_area(settings)
    unread: dict[str, str] = {}
    for folder in sorted(above):
        for name in area.folders(folder):
            path = PurePosixPath(folder, name).as_posix()
            if path not in {*sources, *above}:
                unread[path] = next(iter(get_close_matches(path, sources, 1)), "")
    return unread


def each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems of several tables, of which some may take files from one folder."""
    return tuple({problem.path: problem for problem in problems}.values())


def list_arrivals(
    platform: Platform, contract: Contract, until: date | None = None, *, among: Collection[str] | None = None
) -> Listing:
    """Return what was delivered for a raw table and not taken yet, up to today or an earlier arrival date.

    Args:
        among: paths of the only files to look at, where somebody asks about these.
    """
    assert contract.source is not None
    known = {
        path: Known(size, modified_ns, sha256, is_refused)
        for path, size, modified_ns, sha256, is_refused in platform.ledger.known_files(contract.name)
    }
    settings = platform.settings
    today = settings.current_day()
    listing = list_landing(
        landing_area(settings),
        contract.source,
        known,
        until=today if until is None else min(today, until),
        settle_s=settings.settle_s,
        limits=Limits.of(settings),
        hashes=Hashes.in_state(settings.state),
        among=among,
    )
    return replace(listing, problems=tuple(_with_what_counts(problem, contract) for problem in listing.problems))


def landed_files(
    platform: Platform, contract: Contract, paths: Collection[str], *, with_others: bool = False
) -> tuple[dict[str, LandedFile], dict[str, str]]:
    """Return files as they lie in the landing area, also those taken before, and what is wrong with the rest, by path.

    Args:
        with_others: whether all other files of the table that can be taken are returned too.
    """
    assert contract.source is not None
    settings = platform.settings
    listing = list_landing(
        landing_area(settings),
        contract.source,
        {},
        until=settings.current_day(),
        settle_s=settings.settle_s,
        limits=Limits.of(settings),
        among=None if with_others else paths,
    )
    there = {file.path: file for file in listing.pending}
    wrong = {problem.path: problem.message for problem in (*listing.problems, *listing.growing)}
    gone = f"is not among the files of {contract.source.folder} any more"
    return there, {path: wrong.get(path, gone) for path in paths if path not in there}


def _with_what_counts(problem: Problem, contract: Contract) -> Problem:
    """Add to a replaced file what makes its correction count; else it is taken and changes nothing."""
    if not problem.is_replaced:
        return problem
    todo = "deliver a correction with a later arrival date, since of each key the newest arrival counts"
    if contract.versioned_by:
        todo = f"{problem.todo}; of each key the row with the newest `{', '.join(contract.versioned_by)}` counts"
    return replace(problem, todo=todo)


def quiet_days(
    snapshot: LakeSnapshot, contract: Contract, delivered: Collection[date], until: date | None = None
) -> tuple[date, ...]:
    """Days to load as empty: nothing was to be expected on them, or an arrival came without rows.

    Args:
        until: newest arrival date to look at; files of later dates may wait.
    """
    have = snapshot.delivered_days(contract.name)
    return empty_days(contract, have, delivered, snapshot.delivered(contract.name), until)
