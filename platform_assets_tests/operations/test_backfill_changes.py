"""What a day was before a backfill: told by releases, since the clocks of two machines differ."""

from __future__ import annotations

from platform_assets.operations.backfill.report import before_publication
from platform_assets_tests.support.ledger_records import day_record, nth

DAILY, PLAN, LATER = "20170502T122000Z-of-one", "20170502T120500Z-of-the-other", "20170502T120100Z-of-the-other"
HISTORY = tuple(day_record(name, nth(0)) for name in (LATER, PLAN, DAILY))
"""Newest first."""


def test_what_a_backfill_replaced_is_the_release_before_it_whatever_its_clock_said() -> None:
    assert before_publication(HISTORY, PLAN) == HISTORY[2]
    assert before_publication(HISTORY, LATER) == HISTORY[1]
    assert before_publication(HISTORY, DAILY) is None


def test_before_a_backfill_that_is_not_published_is_now() -> None:
    assert before_publication(HISTORY, None) == HISTORY[0]
    assert before_publication((), None) is None
