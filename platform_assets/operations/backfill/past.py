"""What backfills of before took, as their records and the ledger have it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from platform_assets.engine.platform import Platform
from platform_assets.operations.plan_record import BackfillRecord, all_records, plan_of
from platform_assets.planning.backfill.price import Experience, PastRun, experience
from platform_assets.records.history import Timing

_MOST = 20
"""Of the newest: machines and code of long ago tell little."""


def experience_of(platform: Platform, tables: Collection[str]) -> Experience:
    """What the parts of a backfill of some tables take here, by all that was taken before.

    What backfills of before the newest took is left out, unless nothing else is known of a table: in how many jobs they
    computed its days is not looked up.
    """
    timings = platform.ledger.timings.of(platform.catalogue.names)
    by_publication: defaultdict[str, dict[str, Timing]] = defaultdict(dict)
    for timing in timings:
        by_publication[timing.publication][timing.table] = timing
    others = [timing for timing in timings if plan_of(timing.run) is None]
    known = {timing.table for timing in others}
    by_plans_alone = [timing for timing in timings if timing.table not in known]
    return experience(_past_runs(platform, by_publication), [*others, *by_plans_alone], tables)


def _past_runs(platform: Platform, timings: Mapping[str, Mapping[str, Timing]]) -> tuple[PastRun, ...]:
    """The newest backfills that were published, each with the days that it computed."""
    records, _ = all_records(platform.lake)  # `plan status` names one that is damaged; another plan can do without it
    published = [record for record in records if record.publication in timings and record.starts]
    newest = sorted(published, key=lambda record: record.publication, reverse=True)[:_MOST]
    return tuple(_run(record, timings[record.publication]) for record in newest)


def _run(record: BackfillRecord, made: Mapping[str, Timing]) -> PastRun:
    steps = [made.keys() & step.days.keys() for step in record.steps]
    days = {table: made[table].days for table in set().union(*steps)}
    return PastRun(record.seconds, record.starts, sum(map(bool, steps)), sum(map(len, steps)), days)
