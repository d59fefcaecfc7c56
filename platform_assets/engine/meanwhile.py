"""What others published while a run was at work on the same days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache

from platform_assets.engine.platform import Platform
from platform_assets.records.history import PublicationRecord


@dataclass(frozen=True)
class PublishedMeanwhile:
    """Days of a table that readers now see as somebody else published them.

    Args:
        by: the publication, without its days and arrivals.
    """

    table: str
    days: int
    by: PublicationRecord


def published_meanwhile(
    platform: Platform, since: int, run: str, days: Mapping[str, Collection[date] | None]
) -> tuple[PublishedMeanwhile, ...]:
    """Return who else published days that a run had planned.

    Args:
        platform: with a ledger that is not behind the lake.
        run: that planned them; what it published itself is not meant.
        days: that were planned, by table; None for all.
    """
    head_of = cache(platform.ledger.head)
    others: list[PublishedMeanwhile] = []
    for table, among in days.items():
        records = platform.ledger.current_days(table, among=among).values()
        counts = Counter(record.publication for record in records)
        for publication, count in counts.items():
            head = head_of(publication)
            if head is not None and head.release > since and head.run != run:
                others.append(PublishedMeanwhile(table, count, head))
    return tuple(others)
