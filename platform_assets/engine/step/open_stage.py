"""A stage that somebody opened by name, as a value: which days lie over which release."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pydantic import BaseModel, ConfigDict

from platform_assets.planning.reasons import Reasons
from platform_assets.records.history import Hold
from platform_assets.records.manifest import TableChange


class OpenStage(BaseModel):
    """One release, and the days that lie over it.

    Args:
        name: that somebody gave it.
        release: number of the release it lies over.
        publication: that made this release; in a lake restored from a backup the number may be another's.
        opened_at: UTC.
        changed_at: when the last batch of days came in, UTC.
        who: user who opened it.
        why: for a person.
        tables: the days, by table.
        holds: staged days that failed a gate: they are not in `tables`.
        over: holds in the ledger that end with the publication, since every gate let the staged days through.
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
    tables: tuple[TableChange, ...] = ()
    holds: tuple[Hold, ...] = ()
    over: tuple[Hold, ...] = ()
    reasons: Mapping[str, Mapping[date, Reasons]] = {}
    folders: Mapping[str, tuple[str, ...]] = {}
    published_as: str = ""

    @property
    def days(self) -> dict[str, tuple[date, ...]]:
        """The staged days, by table."""
        return {change.table: tuple(sorted(change.days)) for change in self.tables if change.days}
