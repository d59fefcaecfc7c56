"""`stage`: what was computed to be looked at, and is published at once or dropped."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import typer

from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    errors,
    opened_platform,
    print_json,
    say,
    selected,
)
from platform_assets.cli.options import AsJson, By, Days, OneTable, Reason, TableName, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.rows import AsFormat, GuardFormulas, Limit, OnlyColumns, Rows, named, print_rows
from platform_assets.cli.session import session_on_demand
from platform_assets.errors import did_you_mean

app = typer.Typer(
    help="Days computed over a release with `refresh --stage NAME`, which nobody sees until they are published.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="As `stage list` has it.")]


@app.command(name="list")
def list_stages(as_json: AsJson = False) -> None:
    """List the open stages: over which release each lies, whose it is, and what it holds."""
    from platform_assets.cli.commands.stage_view import print_stages, stage_json
    from platform_assets.operations.plan_record import becomes_of_comparison, is_of_a_comparison
    from platform_assets.operations.stages.store import all_stages

    with opened_platform() as platform:
        stages, damaged = all_stages(platform.lake)
        passing = [stage.name for stage in stages if is_of_a_comparison(stage.name, stage.why)]
        becomes = {name: becomes_of_comparison(platform.lake, name) for name in passing}
    if as_json:
        print_json([stage_json(stage) for stage in stages])
    else:
        print_stages(stages, becomes)
    for damage in damaged.values():
        say("[red]damaged[/]", f"{damage.what} {damage.todo}", to=errors if as_json else console)
    if damaged:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show which days of which tables a stage holds, why they were computed, and which failed a gate."""
    from platform_assets.cli.commands.stage_view import print_stage, stage_json
    from platform_assets.operations.plan_record import filled_by
    from platform_assets.operations.stages.store import of_other_code, opened_stage

    with opened_platform() as platform:
        stage = opened_stage(platform, name)
        other, again = of_other_code(platform, stage), filled_by(platform.lake, name)
    if as_json:
        print_json(stage_json(stage) | {"of_other_code": other})
    else:
        print_stage(stage, other, again)


@app.command()
def read(
    name: Name,
    table: TableName,
    days: Days = None,
    columns: OnlyColumns = None,
    limit: Limit = None,
    format: AsFormat = None,
    guard_formulas: GuardFormulas = False,
    as_json: AsJson = False,
) -> None:
    """Print rows of a table as the stage shows it: its own days, and the release's for all others."""
    from platform_assets.lakehouse.reading import version_in
    from platform_assets.operations.stages.store import opened_stage, stage_basis

    with opened_platform() as platform:
        only = selected(table, days, platform.settings)
        snapshot = stage_basis(platform, opened_stage(platform, name))
        if table not in snapshot.staged.tables:
            version_in(platform.lake, table, snapshot.release, platform.catalogue.names)
        schema = snapshot.schema_string(table)
        files = {day: [file.path for file in day_files] for day, day_files in snapshot.files(table).items()}
        folder = platform.lake.table_path(table)
    chosen = {day: paths for day, paths in files.items() if only.has_day(day)}
    head = {"table": table, "stage": name, "release": snapshot.release.number} if as_json else None
    rows = Rows(folder, schema, chosen, named(columns))
    print_rows(f"{table} in stage {name}", rows, limit, format, head, guard=guard_formulas)


@app.command()
def compare(
    context: typer.Context,
    name: Name,
    table: OneTable = None,
    days: Days = None,
    limit: Annotated[int, typer.Option(min=1, help="Most days to list one by one.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Compare rows, keys and sums of every staged day with the release that the stage lies over."""
    from platform_assets.cli.commands.stage_view import comparison_json, print_comparison
    from platform_assets.operations.stages.compare import compare as compared
    from platform_assets.operations.stages.store import opened_stage

    with opened_platform() as platform:
        stage = opened_stage(platform, name)
        if table is not None and table not in stage.staged.days:
            holds = f"It holds days of {', '.join(stage.staged.days)}." if stage.staged.days else "It holds no day."
            raise UsageError(
                f"The stage {name} holds no day of {table}.", f"{did_you_mean(table, stage.staged.days)}{holds}"
            )
        only = selected(table, days, platform.settings)
        with telling(context, "comparing") as progress:
            comparison = list(compared(platform, stage, only, progress))
    if as_json:
        print_json({"release": stage.release, "days": [comparison_json(day) for day in comparison]})
    else:
        print_comparison(stage, comparison, limit)


@app.command()
def publish(
    context: typer.Context,
    name: Name,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Show all days of a stage at once, in one release, and close it.

    Days that others have published meanwhile, and those that read them, are computed again first.
    """
    from platform_assets.engine.state.planner import plan_steps
    from platform_assets.operations.plan_record import refuse_stage_of_a_plan
    from platform_assets.operations.stages.stages import publish_stage
    from platform_assets.planning.selection import BY_PERSON

    author = replace(decided_by(reason, by), run=f"stage-{name}-{os.getpid()}")
    with opened_platform() as platform:
        refuse_stage_of_a_plan(platform.lake, name)
        with (
            telling(context, "stage publish") as progress,
            session_on_demand(platform.settings, progress, brief=True) as spark,
        ):
            done = publish_stage(platform, spark, author, name, progress)
        platform.sync()
        stale = plan_steps(platform, BY_PERSON).stale
    from platform_assets.cli.commands.stage_view import print_published, published_json

    if as_json:
        print_json(published_json(done, stale))
    else:
        print_published(name, done, stale)
    if done.not_published:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def drop(name: Name, as_json: AsJson = False) -> None:
    """Close a stage and delete what lies in it; nothing that was published is touched."""
    from platform_assets.operations.plan_record import refuse_comparison_at_work
    from platform_assets.operations.stages.stages import drop_stage

    with opened_platform() as platform:
        refuse_comparison_at_work(platform.lake, name)
        gone = drop_stage(platform, name)
    days: dict[str, Any] = {table: len(days) for table, days in gone.staged.days.items()} if gone else {}
    if as_json:
        print_json({"dropped": name, "days": days})
        return
    from platform_assets.cli.commands.stage_view import held_in

    left = "" if gone else " What was staged could not be told; `maintenance run` finds it when it is old enough."
    console.print(f"Dropped {name}{held_in(days)}.{left}", markup=False, highlight=False, soft_wrap=True)
