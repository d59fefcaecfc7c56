"""`accept`: publish held days whose finding is true."""

from __future__ import annotations

from collections.abc import Iterator

from platform_assets.cli.console import UsageError, opened_platform, parse_days, print_parts
from platform_assets.cli.options import AsJson, Days, DryRun, TableName
from platform_assets.cli.session import computing
from platform_assets.engine.platform import Author
from platform_assets.operations.lineage.plan_report import kept_lines
from platform_assets.operations.quarantine import Acceptance, acceptance
from platform_assets.report import Note, Part, Report, picked
from platform_assets.words import counted


def accept(
    table: TableName, author: Author | None, days: Days = None, dry_run: DryRun = False, as_json: AsJson = False
) -> Report:
    """Publish days that volume, reconciliation, rules or settled hold: you looked, and what these found is true."""
    if days is None:
        raise UsageError("Say which days were looked at.", "Add --days 2017-03-31, or A..B, or several with commas.")
    with opened_platform() as platform:
        accepted = acceptance(platform, table, parse_days(days, platform.settings))
        holds = [(day, hold) for day, standing in accepted.holds.items() for hold in standing]
        data = {
            "table": accepted.table,
            "checks": sorted(accepted.checks),
            "days": [picked(hold, "gate reason", day=day) for day, hold in holds],
        }
        if author is None:
            return Report(_parts(accepted, dry_run=True), data)
        if not as_json:
            print_parts(_parts(accepted, dry_run=False))
        with computing(platform.settings, "accept") as (spark, progress):
            from platform_assets.engine.step.recompute import recompute_step  # while Java starts

            step, accept, made_from = accepted.step, accepted.checks, accepted.made_from
            done = recompute_step(platform, spark, step, author, progress, accept=accept, looked_at=made_from)
    left = sorted(done.not_published.items())
    parts = [
        f"{counted(len(done.published), 'day')} of {accepted.table} published.",
        *(Note("red", "not published", line) for line in kept_lines((accepted.table, *each) for each in left)),
        *(["The next refresh mends what reads them."] if done.published else []),
    ]
    return Report(parts, data | {"published": sorted(done.published), "not_published": dict(left)}, bool(left))


def _parts(accepted: Acceptance, *, dry_run: bool) -> Iterator[Part]:
    head = "would be accepted" if dry_run else "accepted"
    for hold in (hold for standing in accepted.holds.values() for hold in standing):
        reason = hold.reason.removeprefix(f"{hold.table} on {hold.day}: ")
        yield Note("yellow", head, f"{hold.table} {hold.day}, held by {hold.gate}: {reason}")
    if dry_run:
        checks = " and ".join(sorted(accepted.checks))
        yield f"What {checks} finds on these days would be recorded with them, as accepted; nothing was done."
