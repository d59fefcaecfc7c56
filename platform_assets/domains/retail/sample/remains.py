"""What in a landing area a sample wrote, and what somebody else did: only the former may be taken away again.

A file of the sample is known by its path and by when it was last changed: the sample sets that to the morning of the
arrival date, to the nanosecond. So a delivery that somebody put in the place of one of the sample's is theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath

import polars as pl

from platform_assets.domains.retail.contracts import RAW_PRODUCTS, RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.files import delivered_at
from platform_assets.domains.retail.sample.recount import recounts_of
from platform_assets.domains.retail.sample.simulation import SampleError
from platform_assets.domains.retail.sample.truth import TRUTH, is_of_truth, read_deliveries
from platform_assets.domains.retail.sample.writing import STATE

_UNFINISHED = re.compile(r"\.(.+)\.\d+")
"""Left behind by a landing that was killed."""
_SOURCES = {contract.source.folder for contract in (RAW_PRODUCTS, RAW_TRANSACTIONS) if contract.source}


@dataclass(frozen=True)
class Remains:
    """What lies in a landing area.

    Args:
        own: files that a sample wrote, in an order in which they can be taken away: what tells them from others last.
        others: files of somebody else, and links.
    """

    own: tuple[Path, ...]
    others: tuple[Path, ...]

    @property
    def deliveries_of_others(self) -> tuple[Path, ...]:
        """Those of them that are not hidden; what is hidden is nobody's delivery."""
        return tuple(path for path in self.others if not path.name.startswith("."))


def look_over(landing: Path) -> Remains:
    """Tell a sample's files from everything else in a landing area; nothing is a sample's where none was begun.

    Raises:
        SampleError: what the sample wrote down of its files cannot be read.
    """
    if not (landing / STATE).is_file():
        return Remains((), tuple(_files(landing)))
    planned = planned_paths(landing)
    own: list[Path] = []
    others: list[Path] = []
    for path in _files(landing):
        (own if not path.is_symlink() and _is_own(landing, path, planned) else others).append(path)
    return Remains(tuple(sorted(own, key=lambda path: _turn(landing, path))), tuple(others))


def planned_paths(landing: Path) -> frozenset[str] | None:
    """Every path that the sample of a landing area may write; None where it has not written down yet which these are.

    Raises:
        SampleError: what it wrote down cannot be read.
    """
    try:
        planned = read_deliveries(landing) if (landing / STATE).is_file() else None
        recounts = [path.relative_to(landing).as_posix() for path in recounts_of(landing)] if planned else []
    except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise SampleError(
            f"{landing} does not say any more which files of the sample lie there: {error}.",
            "Look through that folder, and remove it yourself if nothing in it is needed.",
        ) from error
    return None if planned is None else frozenset((*(delivery.path for delivery in planned), *recounts))


def is_of_sample(path: str, modified_ns: int, planned: Collection[str] | None) -> bool:
    """Whether a delivery is one of a sample.

    Args:
        path: below the landing root.
        modified_ns: when it was last changed, nanoseconds since 1970.
        planned: the paths of that sample; None where they are not known, and the time alone has to tell.
    """
    arrival = _arrival_date(path)
    if arrival is None or (planned is not None and path not in planned):
        return False
    return modified_ns == int(delivered_at(arrival)) * 1_000_000_000


def _arrival_date(path: str) -> date | None:
    match PurePosixPath(path).parts:
        case (folder, arrival, _) if folder in _SOURCES:
            try:
                return date.fromisoformat(arrival)
            except ValueError:
                return None
    return None


def _is_own(landing: Path, path: Path, planned: Collection[str] | None) -> bool:
    below = path.relative_to(landing)
    if below == Path(STATE) or (below.parts[0] == TRUTH and len(below.parts) == 2 and is_of_truth(path.name)):
        return True
    if unfinished := _UNFINISHED.fullmatch(path.name):
        whole = below.with_name(unfinished[1]).as_posix()
        return whole == STATE or (_arrival_date(whole) is not None and (planned is None or whole in planned))
    return is_of_sample(below.as_posix(), path.stat().st_mtime_ns, planned)


def _turn(landing: Path, path: Path) -> tuple[int, Path]:
    below = path.relative_to(landing)
    return (2 if below == Path(STATE) else int(below.parts[0] == TRUTH)), path


def _files(folder: Path) -> list[Path]:
    """All that is no folder, and links to folders, which are not followed."""
    found: list[Path] = []
    for at, folders, files in os.walk(folder):
        found += (Path(at, name) for name in files)
        found += (path for name in folders if (path := Path(at, name)).is_symlink())
    return sorted(found)
