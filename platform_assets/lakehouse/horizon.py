"""The horizon: up to which release history was deleted, so that nobody takes a missing file for damage.

Written before the first file is deleted, and only ever moved forward: a longer window later brings nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, ValidationError

from platform_assets.lakehouse.drafts import put
from platform_assets.lakehouse.errors import BeyondWindowError, ErasedError, LakeError
from platform_assets.lakehouse.layout import Lake


class Cut(BaseModel):
    """Where an erasure cut the history: what showed the erased rows is shown no more, whoever pinned it.

    Args:
        before: releases before this one; 0 without any erasure.
        publication: that erased them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: int = 0
    publication: str = ""


NO_CUT = Cut()
"""Without any erasure."""


class Horizon(BaseModel):
    """Which releases are whole.

    Args:
        before: releases from this one on are.
        kept: older ones that are too, because they were pinned.
        at: when it was last moved, UTC.
        cut: by the newest erasure.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: int = 0
    kept: tuple[int, ...] = ()
    at: datetime = datetime.min.replace(tzinfo=UTC)
    cut: Cut = NO_CUT

    def has(self, number: int) -> bool:
        """Whether all files of a release are there."""
        return number >= self.before or number in self.kept

    def moved(self, first: int, pinned: Iterable[int], now: datetime, cut: Cut) -> Horizon:
        """The horizon after everything was deleted that neither releases from a first one on need, nor pinned ones."""
        before = max(self.before, first)
        kept = tuple(pin for pin in pinned if self.has(pin) and pin < before)
        return Horizon(before=before, kept=kept, at=now, cut=max(self.cut, cut, key=lambda cut: cut.before))


def horizon_of(lake: Lake) -> Horizon:
    """Where the history of a lake was cut; before release 0 if nothing was ever deleted.

    Raises:
        LakeError: the file that says so cannot be read.
    """
    content = lake.horizon_file.read()
    if content is None:
        return Horizon()
    try:
        return Horizon.model_validate_json(content)
    except ValidationError as error:
        raise LakeError(
            f"{lake.horizon_file} cannot be read: {error.errors()[0]['msg']}.",
            "Restore it from a backup: it says which releases still have their files.",
        ) from error


def write_horizon(lake: Lake, horizon: Horizon, still_held: Callable[[], None]) -> None:
    """Move the horizon; to be called under the publish lock.

    Raises:
        LockLostError: the lock was lost; the horizon is where it was.
    """
    put(lake, lake.horizon_file, horizon.model_dump_json().encode(), still_held)


def require_whole(lake: Lake, number: int) -> None:
    """Refuse a release whose files may have been deleted.

    What is to keep a release, a pin for example, has to ask under the publish lock.

    Raises:
        ErasedError: an erasure took the files of its time.
        BeyondWindowError: it is older than the rollback window was when history was last deleted.
    """
    horizon = horizon_of(lake)
    if 0 <= number < horizon.cut.before:
        raise ErasedError(
            f"Release {number} cannot be read any more: rows that it may show were erased for good by publication "
            f"{horizon.cut.publication}, and all that only releases before {horizon.cut.before} needed went with them.",
            f"Name release {max(horizon.before, horizon.cut.before)} or a later one. `platform-assets releases` "
            "says who erased, and why.",
        )
    if number >= 0 and not horizon.has(number):
        pinned = f", or a pinned one ({', '.join(map(str, horizon.kept))})" if horizon.kept else ""
        raise BeyondWindowError(
            f"Release {number} is beyond the rollback window: what only releases before {horizon.before} needed was "
            f"deleted on {horizon.at:%Y-%m-%d}.",
            f"Name release {horizon.before} or a later one{pinned}. The setting `rollback_window_days` says how long "
            "releases are kept, and a pin keeps one for longer.",
        )
