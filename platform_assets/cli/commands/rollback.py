"""`rollback`: put days back as they were before a publication, a run or a release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import rollback_parts, sums_json
from platform_assets.cli.console import UsageError, opened_platform, parse_days, without_numpy
from platform_assets.cli.options import By, Cascade, Days, DryRun, Reason, UntilLifted, decided_by
from platform_assets.cli.progress import telling
from platform_assets.operations.lineage.amount_changes import AmountChanges
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.windows import day_range
from platform_assets.progress import meanwhile
from platform_assets.records.history import LASTING
from platform_assets.records.manifest import Decides
from platform_assets.report import Note, Report, picked

if TYPE_CHECKING:
    from platform_assets.operations.rollback import Rollback


def rollback(
    publication: Annotated[str | None, typer.Argument(help="As `releases` or `why` name it.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Everything that this run published.")] = None,
    to: Annotated[int | None, typer.Option("--to", help="Everything published after this release.")] = None,
    lift: Annotated[
        str | None, typer.Option("--lift", metavar="TABLE", help="End what keeps days of this table until lifted.")
    ] = None,
    days: Days = None,
    cascade: Cascade = False,
    until_lifted: UntilLifted = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    by: By = None,
) -> Report:
    """Put exactly the days of a publication, a run or since a release back as they were, and hold them there."""
    if sum(given is not None for given in (publication, run, to, lift)) != 1 or (lift and (cascade or until_lifted)):
        raise UsageError(
            "Name what to roll back: a publication, --run RUN or --to RELEASE, one of them; or only a table to --lift.",
            "`platform-assets releases` lists all three.",
        )
    decides: Decides = "rollback lifted" if lift else LASTING if until_lifted else ""
    author = replace(decided_by(reason or ("a dry run" if dry_run else None), by), decides=decides)
    from platform_assets.operations.rollback import lift_rollbacks, rolled_back_amounts
    from platform_assets.operations.rollback import rollback as roll_back

    with opened_platform() as platform, without_numpy():
        only = None if days is None else parse_days(days, platform.settings)
        if lift is not None:
            lifted = lift_rollbacks(platform, lift, only, author, dry_run=dry_run)
            mark = "would be lifted" if dry_run else "lifted"
            lines = [Note("", mark, f"{hold.table} {hold.day}, {hold.reason}") for hold in lifted]
            then = "Nothing was changed." if dry_run else "The next refresh computes what came meanwhile."
            return Report([*lines, then], [picked(hold, "table day reason") for hold in lifted])
        chosen = chosen_publications(platform, publication, run, to)
        lasting = [hold for hold in platform.ledger.holds() if hold.lasts]
        with telling("rollback") as progress:
            done = roll_back(platform, chosen, author, days=only, cascade=cascade, dry_run=dry_run, progress=progress)
            with meanwhile(progress, "summing what changes"):
                amounts = rolled_back_amounts(platform, done)
    return Report(rollback_parts(done, amounts, lasts=until_lifted, ends=lasting), _json(done, amounts))


def _json(done: Rollback, amounts: AmountChanges) -> dict[str, Any]:
    return {
        "publications": [record.publication for record in done.publications],
        "release": done.release,
        "days": [
            {
                "table": table,
                "day": day,
                "digest": {"before": undone.digest, "after": back.digest if back else None},
                "rows": {"before": undone.rows, "after": back.rows if back else None},
                "sums": sums_json(amounts.of(table, [day])),
            }
            for (table, day), (undone, back) in sorted(done.records.items())
        ],
        "amounts_not_told": dict(amounts.unread),
        "raw": list(done.raw),
        "stale": {
            table: [day for start, end in spans for day in day_range(start, end)] for table, spans in done.stale.items()
        },
    }
