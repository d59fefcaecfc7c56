"""Whether ledger and lake are of one history; told before anything is written.

A lake is known by its first publication. From there on, each release shows one publication: where ledger and lake
name different ones, they parted.
"""

from __future__ import annotations

from collections.abc import Mapping

from platform_assets.lakehouse.errors import MovedLakeError, OtherHistoryError
from platform_assets.lakehouse.layout import Lake
from platform_assets.words import counted

_FOLLOW = "let the ledger follow the lake with `platform-assets ledger rebuild`"


def is_of_another_lake(indexed: Mapping[str, int], released: Mapping[str, int]) -> bool:
    """Whether a ledger was made from another lake.

    Args:
        indexed: release of every publication that the ledger knows.
        released: release of every publication that the lake shows.
    """
    return bool(indexed and released) and indexed.keys().isdisjoint(released)


def require_one_history(lake: Lake, indexed: Mapping[str, int], released: Mapping[str, int]) -> None:
    """Refuse a ledger that knows what the lake does not have; one that only lacks something catches up.

    Args:
        lake: the lake, for messages.
        indexed: release of every publication that the ledger knows.
        released: release of every publication that the lake shows.

    Raises:
        MovedLakeError: the lake is empty or another one.
        OtherHistoryError: the lake is older than the ledger, or the two have parted.
    """
    gone = {release: name for name, release in indexed.items() if released.get(name) != release}
    if not gone:
        return
    first, last = min(gone), max(gone)
    newest = max(released.values(), default=-1)
    if indexed.keys().isdisjoint(released):
        raise MovedLakeError(str(lake.root), indexed, is_empty=not released)
    if first > newest:
        raise OtherHistoryError(
            f"The lake {lake.root} is older than the ledger: its newest release is {newest}, the ledger knows "
            f"{counted(len(gone), 'publication')} after it, up to release {last} ({gone[last]}); nothing was written.",
            "If the lake was restored from a backup and the newer one is lost, "
            f"{_FOLLOW}; what was delivered since is then taken again. Else put the newer lake back.",
        )
    raise OtherHistoryError(
        f"The lake {lake.root} and the ledger have parted: release {first} shows publication {_at(released, first)}, "
        f"the ledger has {gone[first]} there; nothing was written.",
        "One of them was restored from a backup and worked with since. If the lake is right, "
        f"{_FOLLOW}; else put the other lake back.",
    )


def _at(publications: Mapping[str, int], release: int) -> str:
    return next((name for name, number in publications.items() if number == release), "no publication")
