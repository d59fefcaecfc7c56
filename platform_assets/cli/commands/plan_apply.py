"""The commands of `plan` that carry one out: apply, follow, pause, give up, put back, prove, tell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from platform_assets.cli.commands.record_view import (
    print_record,
    print_records,
    recomputed_json,
    record_json,
    record_markdown,
)
from platform_assets.cli.console import EXIT_LOOK, console, opened_platform, print_json, say
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.options import AsJson, By, Reason
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.operations.backfill.files import read_plan
from platform_assets.operations.backfill.record import (
    BackfillRecord,
    backfill_names,
    read_record,
    unpause,
)
from platform_assets.operations.backfill.record import (
    pause as pause_plan,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan file.")]
Name = Annotated[str, typer.Argument(help="Of a plan that was begun, as `plan status` has it.")]


def apply(context: typer.Context, file: File, as_json: AsJson = False) -> None:
    """Stage a plan step by step, hold each against its gates, publish it in one release, and compute a sample again.

    Whatever ended it, call it again: it goes on after the last batch of days.
    """
    from platform_assets.operations.backfill.afterwards import note_proof, prove, roll_back
    from platform_assets.operations.backfill.apply import apply as apply_plan

    said: list[str] = []
    with opened_platform() as platform:
        plan = read_plan(file)
        author = decided_by(plan.reason, None)
        with telling(context, f"plan {plan.name}") as progress, session_on_demand(platform.settings, progress) as spark:
            record = apply_plan(platform, spark, plan, author, progress, said.append)
            proved = prove(platform, spark, record, plan.afterwards.verify, progress) if plan.afterwards.verify else ()
        if proved:
            record = note_proof(platform, record, proved)
        different = [day for table in proved for day in table.of("different")]
        if different and plan.afterwards.roll_back_on_failure:
            record = roll_back(platform, plan.name, author)
    if as_json:
        print_json(record_json(record))
    else:
        for sentence in said:
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        print_record(record)
    if different:
        raise typer.Exit(EXIT_LOOK)


def status(name: Annotated[str | None, typer.Argument(help="All by default.")] = None, as_json: AsJson = False) -> None:
    """Show where plans stand: what is staged, how long it took, what is left, and what happened."""
    with opened_platform() as platform:
        names = backfill_names(platform.lake) if name is None else (name,)
        records = [read_record(platform.lake, one) for one in names]
    if as_json:
        print_json([record_json(record) for record in records])
    elif name is None:
        print_records(records)
    else:
        print_record(records[0])


def pause(name: Name, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Have a plan stand still after the batch of days at which it works."""
    author = decided_by(reason, by)
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        pause_plan(platform.lake, name, author.why)
    _tell(record, f"{name} stands still after its batch of days; `plan resume {name}` lets it go on.", as_json)


def resume(name: Name, as_json: AsJson = False) -> None:
    """Let a plan that was paused be applied again."""
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        unpause(platform.lake, name)
    _tell(record, f"{name} can be applied again.", as_json)


def cancel(name: Name, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Give a plan up that was not published, and delete what it staged."""
    from platform_assets.operations.backfill.afterwards import cancel as cancel_plan

    author = decided_by(reason, by)
    with opened_platform() as platform:
        record = cancel_plan(platform, name, author)
    _tell(record, f"{name} is cancelled; nothing that was published is touched.", as_json)


def rollback(context: typer.Context, name: Name, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Put exactly the days of a plan back as they were before it, and hold them there."""
    from platform_assets.operations.backfill.afterwards import roll_back

    author = decided_by(reason, by)
    with opened_platform() as platform, telling(context, "plan rollback") as progress:
        record = roll_back(platform, name, author, progress)
    _tell(record, record.events[-1].what.capitalize(), as_json)


def replay(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Compute every published day of a plan once more from what it was made from; exit code 1 if one differs."""
    from platform_assets.operations.backfill.afterwards import note_proof, prove

    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        with telling(context, "plan replay") as progress, session_on_demand(platform.settings, progress) as spark:
            proved = prove(platform, spark, record, None, progress)
        record = note_proof(platform, record, proved)
    _tell(record, record.events[-1].what, as_json)
    if any(table.of("different") for table in proved):
        raise typer.Exit(EXIT_LOOK)


def history(
    limit: Annotated[int, typer.Option(min=1, help="How many publications.")] = 50, as_json: AsJson = False
) -> None:
    """List what was recomputed, newest first: by plans, and unplanned, as by a refresh or a backfill in Dagster."""
    with opened_platform() as platform:
        heads = sorted(platform.ledger.heads("recompute"), key=lambda head: -head.release)[:limit]
    rows: list[dict[str, Any]] = [recomputed_json(head) for head in heads]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        kind = f"plan {row['plan']}" if row["plan"] else "unplanned"
        say(f"[bold]{row['release']}[/]", f"{row['at']}  {kind} by {row['who']}: {row['why']}")
    if not rows:
        console.print("Nothing was recomputed yet.")


def report(
    name: Name,
    out: Annotated[Path | None, typer.Option("--out", help="A file in place of the terminal.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the record of a plan as Markdown: why, who, what was explained, what happened, before and after."""
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        lines = record_markdown(platform, record)
    if as_json:
        print_json(record_json(record))
    elif out is None:
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
        say("Wrote", str(out))


def _tell(record: BackfillRecord, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(record_json(record))
    else:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


COMMANDS = (apply, status, pause, resume, cancel, rollback, replay, history, report)
