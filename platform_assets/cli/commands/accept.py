"""`accept`: publish held days whose finding is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, parse_days, print_json, say
from platform_assets.cli.options import AsJson, By, Days, DryRun, Reason, TableName, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.results import StepResult
    from platform_assets.operations.acceptance import Acceptance


def accept(
    context: typer.Context,
    table: TableName,
    days: Days = None,
    reason: Reason = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Publish days that volume, reconciliation, rules or settled hold: you looked, and what these found is true."""
    if days is None:
        raise UsageError("Say which days were looked at.", "Add --days 2017-03-31, or A..B, or several with commas.")
    author = None if dry_run else decided_by(reason, by)
    from platform_assets.operations.acceptance import acceptance

    with opened_platform() as platform:
        accepted = acceptance(platform, table, parse_days(days, platform.settings))
        if not as_json:
            _print(accepted, dry_run=dry_run)
        if author is None:
            if as_json:
                print_json(_json(accepted))
            return
        with telling(context, "accept") as progress, session_on_demand(platform.settings, progress) as spark:
            from platform_assets.engine.step.recompute import recompute_step  # while Java starts

            done = recompute_step(
                platform,
                spark,
                accepted.step,
                author,
                progress,
                accept=accepted.checks,
                looked_at=accepted.made_from,
            )
    if as_json:
        print_json(_json(accepted) | _outcome(done))
    else:
        console.print(f"{counted(len(done.published), 'day')} of {accepted.table} published.", highlight=False)
        for day, why in sorted(done.not_published.items()):
            say("[red]not published[/]", f"{accepted.table} {day}: {why}")
        console.print("The next refresh mends what reads them.")
    if done.not_published:
        raise typer.Exit(EXIT_LOOK)


def _print(accepted: Acceptance, *, dry_run: bool) -> None:
    head = "[yellow]would be accepted[/]" if dry_run else "[yellow]accepted[/]"
    for hold in (hold for standing in accepted.holds.values() for hold in standing):
        reason = hold.reason.removeprefix(f"{hold.table} on {hold.day}: ")
        say(head, f"{hold.table} {hold.day}, held by {hold.gate}: {reason}")
    if dry_run:
        checks = " and ".join(sorted(accepted.checks))
        console.print(f"What {checks} finds on these days would be recorded with them, as accepted; nothing was done.")


def _json(accepted: Acceptance) -> dict[str, object]:
    return {
        "table": accepted.table,
        "checks": sorted(accepted.checks),
        "days": [
            {"day": day, "gate": hold.gate, "reason": hold.reason}
            for day, standing in accepted.holds.items()
            for hold in standing
        ],
    }


def _outcome(done: StepResult) -> dict[str, object]:
    return {
        "published": sorted(done.published),
        "not_published": {str(day): why for day, why in sorted(done.not_published.items())},
    }
