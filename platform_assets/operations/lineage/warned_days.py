"""A day that was published with warnings, as people are told of it: since when it is so, and what came with that."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from platform_assets.engine.platform import Platform
from platform_assets.operations.lineage.new_since import NewSince
from platform_assets.records.history import ArrivalRecord, DayRecord, PublicationRecord


@dataclass(frozen=True)
class WarnedDay:
    """A day that readers see though gates found something.

    Args:
        record: of the day as it is.
        since: the publication from which on the same gates warn of it.
        arrivals: that were new then, in whatever the day is made from, and count still; newest first.
    """

    record: DayRecord
    since: PublicationRecord | None
    arrivals: tuple[ArrivalRecord, ...]

    @property
    def complaint(self) -> str:
        """What is to be said of an arrival that is taken out because of it."""
        gates = dict.fromkeys(warned.gate for warned in self.record.warnings)
        return f"{' and '.join(gates)} warned of {self.record.table} {self.record.day}"


def warned_day(platform: Platform, record: DayRecord) -> WarnedDay | None:
    """What is to be said of a day as it was published last; None where no gate warned of it."""
    gates = {warned.gate for warned in record.warnings}
    if not gates:
        return None
    history = platform.ledger.history(record.table, record.day)
    alike = list(takewhile(lambda each: gates & {warned.gate for warned in each.warnings}, history))
    before = history[len(alike)] if len(alike) < len(history) else None
    new = NewSince(platform)
    at = new.released(record.publication)
    arrivals = new.arrivals(record.table, record.day, before)
    came_with_it = tuple(arrival for arrival in arrivals if new.released(arrival.publication) <= at)
    return WarnedDay(record, platform.ledger.head(alike[-1].publication), came_with_it)
