"""A stage that somebody opened by name, as a value: which days lie over which release."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pydantic import BaseModel, ConfigDict

from platform_assets.planning.reasons import Reasons
from platform_assets.records.history import StagedDays


class OpenStage(BaseModel):
    """One release, and the days that lie over it.

    Args:
        release: number of the release it lies over.
        publication: that made this release; in a lake restored from a backup the number may be another's.
        opened_at: UTC.
        changed_at: when the last batch of days came in, UTC.
        reasons: why each day was computed, by table.
        folders: tables that each publication of a batch staged rows in.
        published_as: the publication that is being made of it; once that is released, the stage is over.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    release: int
    publication: str
    opened_at: datetime
    changed_at: datetime
    who: str
    why: str
    staged: StagedDays = StagedDays()
    reasons: Mapping[str, Mapping[date, Reasons]] = {}
    folders: Mapping[str, tuple[str, ...]] = {}
    published_as: str = ""
