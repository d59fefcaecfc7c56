"""`rollback`: put days back as they were before a publication, a run or a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.amounts_view import sums_json
from platform_assets.cli.console import UsageError, opened_platform, parse_days, print_json
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.options import AsJson, By, Cascade, Days, DryRun, Reason
from platform_assets.cli.progress import telling
from platform_assets.cli.rollback_view import print_rollback
from platform_assets.cli.without_numpy import without_numpy
from platform_assets.planning.windows import day_range
from platform_assets.progress import meanwhile

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import AmountChanges
    from platform_assets.operations.rollback.rollback import Rollback


def rollback(
    context: typer.Context,
    publication: Annotated[str | None, typer.Argument(help="As `releases` or `why` name it.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Everything that this run published.")] = None,
    to: Annotated[int | None, typer.Option("--to", help="Everything published after this release.")] = None,
    days: Days = None,
    cascade: Cascade = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Put exactly the days of a publication, a run or since a release back as they were, and hold them there."""
    if sum(given is not None for given in (publication, run, to)) != 1:
        raise UsageError(
            "Name what to roll back: a publication, --run RUN or --to RELEASE, one of them.",
            "`platform-assets releases` lists all three.",
        )
    if dry_run and reason is None:
        reason = "a dry run"
    author = decided_by(reason, by)
    from platform_assets.operations.rollback.amounts import rolled_back_amounts
    from platform_assets.operations.rollback.rollback import rollback as roll_back
    from platform_assets.operations.rollback.selection import chosen_publications

    with opened_platform() as platform, without_numpy():
        chosen = chosen_publications(platform, publication, run, to)
        only = None if days is None else parse_days(days, platform.settings)
        with telling(context, "rollback") as progress:
            done = roll_back(platform, chosen, author, days=only, cascade=cascade, dry_run=dry_run, progress=progress)
            with meanwhile(progress, "summing what changes"):
                amounts = rolled_back_amounts(platform, done)
    if as_json:
        print_json(_json(done, amounts))
    else:
        print_rollback(done, amounts)


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
