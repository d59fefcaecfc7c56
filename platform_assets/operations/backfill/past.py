"""What backfills of before took, as their records and the ledger have it."""

from __future__ import annotations

from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.record import BackfillRecord, all_records
from platform_assets.planning.backfill.experience import PastRun

_MOST = 20
"""Of the newest: machines and code of long ago tell little."""


def past_runs(platform: Platform) -> tuple[PastRun, ...]:
    """The newest backfills that were published, each with the days that it computed."""
    records, _ = all_records(platform.lake)  # `plan status` names one that is damaged; another plan can do without it
    newest = sorted(
        (record for record in records if record.publication and record.starts),
        key=lambda record: record.publication,
        reverse=True,
    )[:_MOST]
    return tuple(run for record in newest if (run := _run(platform, record)))


def _run(platform: Platform, record: BackfillRecord) -> PastRun | None:
    made = platform.ledger.timings.days(record.publication)
    days = {table: count for table, count in made.items() if table in platform.catalogue.names}
    jobs = sum(table in days for step in record.steps for table in step.days)
    return PastRun(record.seconds, record.starts, jobs, days) if jobs else None
