"""A hold that does not stand any more, as it is kept for the life of its day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from platform_assets.records.history import Hold


@dataclass(frozen=True)
class EndedHold:
    """A hold that does not stand any more.

    Args:
        hold: as it was.
        ended_at: UTC.
    """

    hold: Hold
    ended_at: datetime
