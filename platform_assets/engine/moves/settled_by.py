"""By what it was settled which versions of moving records count: rules, order and key, and a version of raw."""

from __future__ import annotations

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.releases import made_by
from platform_assets.planning.configuration import Parts, settling
from platform_assets.records.history import DayRecord


def has_ties(platform: Platform, contract: Contract) -> bool:
    """Whether records can move between days of a table."""
    return contract.layer == "silver" and moves_within_days(platform, contract) > 0


def moves_within_days(platform: Platform, contract: Contract) -> int:
    """How far records of a table can move."""
    return platform.catalogue[contract.inputs[0].table].moves_within_days


class SettledBy:
    """By which rules, order and key it was settled which version of a record counts, when days were computed."""

    def __init__(self, platform: Platform, contract: Contract) -> None:
        self._lake = platform.lake
        self._now = platform.configurations[contract.name]
        self._known = {self._now.hash: settling(self._now.parts)}

    def same_for(self, record: DayRecord, other: DayRecord | None = None) -> bool:
        """Whether it was for one day as it was for another, or is today; so it is where nobody recorded it."""
        now = self._now.hash if other is None else other.configuration
        if not record.configuration or not now or record.configuration == now:
            return True
        return self._of(record) == (self._known[now] if other is None else self._of(other))

    def _of(self, record: DayRecord) -> Parts:
        if record.configuration not in self._known:
            parts = made_by(self._lake, record.publication, record.table, record.day).configuration
            self._known[record.configuration] = settling(parts)
        return self._known[record.configuration]


def version_read(record: DayRecord, raw: str) -> int | None:
    """Of raw, by what a day was made from; None where it read nothing of it."""
    version = record.reads.get(raw, -1)
    return version if version >= 0 else None
