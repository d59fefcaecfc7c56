"""What the ledger adds up is what its days add up to, at every release and on both databases."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from platform_assets.ledger.ledger import Ledger
from platform_assets.records.history import DayTotals
from platform_assets_tests.support.ledger_records import TABLE, day_record, name_of, nth, publication_record

OTHER, NEVER = "raw.transactions", "gold.never"
FIGURES: tuple[dict[str, int], ...] = (
    {},
    {"quarantined": 2},
    {"tombstones": 1, "withdrawals": 2},
    {"quarantined": 1, "tombstones": 1},
)


def test_totals_are_those_of_all_days_as_each_release_shows_them(ledger: Ledger) -> None:
    chance = Random(7)
    for release in range(6):
        name = name_of(release)
        days = [
            replace(day_record(name, nth(n), table=table, digest=chance.choice(["3-a-b-c-d", ""])), rows=n, figures=of)
            for table in (TABLE, OTHER)
            for n in chance.sample(range(8), 4)
            for of in [dict(chance.choice(FIGURES))]
        ]
        ledger.record(publication_record(release, days))
    for release in range(6):
        by_day = {table: ledger.current_days(table, at=release) for table in (TABLE, OTHER, NEVER)}
        assert ledger.counts.totals([TABLE, OTHER, NEVER], at=release) == {
            table: DayTotals(
                len(days),
                max(days, default=None),
                sum(day.delivered for day in days.values()),
                *(sum(day.figures.get(name, 0) for day in days.values()) for name in ("quarantined", "ahead")),
            )
            for table, days in by_day.items()
        }


def test_what_was_published_between_two_releases_is_told_by_table(ledger: Ledger) -> None:
    for release, numbers in enumerate([(0, 1), (1, 2), (3,)]):
        name = name_of(release)
        days = [day_record(name, nth(n)) for n in numbers] + [day_record(name, nth(release), table=OTHER)]
        ledger.record(publication_record(release, days))
    assert ledger.counts.published_between(0, 2) == {TABLE: {nth(1), nth(2), nth(3)}, OTHER: {nth(1), nth(2)}}
    assert ledger.counts.published_between(2, 2) == {}
