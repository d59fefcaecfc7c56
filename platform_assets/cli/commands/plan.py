"""`plan`: backfills as reviewed code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from platform_assets.cli.commands.backfill_view import (
    print_record,
    print_records,
    print_unbegun,
    recomputed_json,
    record_json,
    watch_plan,
)
from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    opened_platform,
    parse_days,
    platform_to_look,
    print_json,
    say,
)
from platform_assets.cli.options import AsJson, By, Cascade, Days, Only, Reason, UntilLifted, decided_by, parse_keys
from platform_assets.cli.progress import telling
from platform_assets.cli.rollback_view import print_rollback
from platform_assets.cli.session import session_on_demand
from platform_assets.lakehouse.layout import GIVEN_NAME
from platform_assets.operations.backfill.files import plan_at, said_besides
from platform_assets.operations.backfill.pages import record_markdown
from platform_assets.operations.plan_record import (
    BackfillRecord,
    RecordError,
    all_records,
    backfill_names,
    read_record,
    unpause,
)
from platform_assets.operations.plan_record import pause as pause_plan
from platform_assets.progress import meanwhile
from platform_assets.records.history import LASTING
from platform_assets.settings import Settings, load_settings

app = typer.Typer(
    help="Backfills as reviewed code: a plan file is explained, approved and applied.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan file.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a page there that needs nothing else, for a browser.")]
Name = Annotated[str, typer.Argument(help="Of a plan that was begun, as `plan status` has it.")]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Of the plan: letters, digits, dots, hyphens and underscores.")],
    tables: Annotated[list[str], typer.Option("--table", help="To be computed; several times for several.")],
    days: Days = None,
    stale: Annotated[bool, typer.Option("--stale", help="The days that are stale, in place of --days.")] = False,
    only: Only = None,
    reason: Reason = None,
    by: By = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to; NAME.yaml in the folder of plans by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a plan file that is worth a review: what you say, and all that you could say as comments."""
    from platform_assets.operations.backfill.explain import unmatched_keys
    from platform_assets.operations.backfill.files import new_plan, parse_plan

    settings = load_settings()
    if (days is None) != stale:
        raise UsageError("A plan needs --days, or --stale, one of them.", "Add --days 2017-01-01..2017-03-31.")
    author = decided_by(reason, by)
    named = {"stale": True} if days is None else _days(days, settings)
    said: dict[str, object] = {"name": name, "reason": author.why, "owner": author.who, "tables": tables, "days": named}
    if only:
        said |= {"downstream": False, "only": parse_keys(only)}  # a plan of some keys is about its tables alone
    place = out or settings.plans / f"{name}.yaml"
    plan = parse_plan(json.dumps(said), f"plan new {name}")  # JSON is YAML, too
    with platform_to_look(settings) as platform:
        told = unmatched_keys(platform, plan)
    new_plan(plan, place)
    if as_json:
        print_json({"file": str(place), "obstacles": [{"what": one.what, "do": one.todo} for one in told]})
    else:
        for one in told:
            say("[yellow]look[/]", f"{one.what} {one.todo}")
        say("Wrote", f"{place}. Look what it comes to: platform-assets plan explain {place}")


@app.command()
def explain(
    file: File,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show what a plan comes to, and start nothing: days with their reasons, order, price, what is in the way, hash."""
    from platform_assets.cli.commands.backfill_view import backfill_json, print_backfill
    from platform_assets.operations.backfill.explain import explain as explained
    from platform_assets.operations.backfill.files import plan_at, refuse_namesake
    from platform_assets.operations.backfill.pages import backfill_markdown

    with opened_platform() as platform, plan_at(file) as plan:
        refuse_namesake(platform.lake, plan, file)
        backfill = explained(platform, plan)
    if html is not None:
        from platform_assets.operations.backfill.html import backfill_html

        write_page(html, backfill_html(backfill))
    if as_json:
        print_json(backfill_json(backfill))
    elif html is not None:
        say("Wrote", str(html))
    elif markdown:
        for line in backfill_markdown(backfill):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        print_backfill(backfill, file)
    if backfill.blocking:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def approve(
    file: File,
    hash: Annotated[str, typer.Option("--hash", help="That `plan explain` showed: only this is approved.")],
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Write down that you approve a plan as it was explained; another file, other days or other code need it anew."""
    from platform_assets.operations.backfill.explain import approve as approved
    from platform_assets.operations.backfill.files import plan_at, refuse_namesake

    author = decided_by(reason, by)
    with opened_platform() as platform, plan_at(file) as plan:
        refuse_namesake(platform.lake, plan, file)
        consent = approved(platform, plan, hash, author).consent
    if as_json:
        print_json({"hash": hash, "needed": consent.needed, "given": list(consent.given)})
    else:
        missing = consent.needed - len(consent.given)
        more = f", so {missing} more by somebody else" if missing > 0 else ""
        say("Approved", f"{hash} by {', '.join(consent.given)}; {consent.needed} needed{more}.")


def compare(
    context: typer.Context,
    plan: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A plan file, or the name of a plan that was begun.")
    ],
    sample: Annotated[int, typer.Option(min=1, max=1000, help="Named days to compute, of a file.")] = 3,
    days: Days = None,
    examples: Annotated[int, typer.Option(min=0, max=1000, help="Keys to show of each way to differ.")] = 5,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what differs per table, column and key between the release and some days as the code here computes them.

    Of a file, a sample is computed where nobody sees it, and deleted. Of a name, what the plan has staged or published
    is compared. Exit code 1 if anything differs.
    """
    from platform_assets.cli.commands.compare_view import compared_json, compared_markdown, print_compared
    from platform_assets.operations.backfill.compare import compare_plan, compare_record
    from platform_assets.operations.backfill.files import plan_at
    from platform_assets.operations.plan_record import read_record

    file = Path(plan)
    is_file = file.is_file() or GIVEN_NAME.fullmatch(plan) is None or file.suffix in (".yaml", ".yml")
    if not is_file and days is not None:
        raise UsageError("--days chooses what is computed of a plan file.", "Name the file, or leave out --days.")
    with opened_platform() as platform, telling(context, "comparing") as progress:
        if is_file:
            only = None if days is None else parse_days(days, platform.settings)
            author = decided_by("plan compare", None)
            with plan_at(file) as said, session_on_demand(platform.settings, progress) as spark:
                found = compare_plan(platform, spark, said, author, sample, examples, only, progress)
        else:
            found = compare_record(platform, read_record(platform.lake, plan), examples)
    if as_json:
        print_json(compared_json(found))
    elif markdown:
        for line in compared_markdown(found):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        print_compared(found)
    if not found.is_equal:
        raise typer.Exit(EXIT_LOOK)


def _days(text: str, settings: Settings) -> dict[str, object]:
    days = sorted(parse_days(text, settings))
    if (days[-1] - days[0]).days == len(days) - 1:
        return {"range": f"{days[0]}..{days[-1]}"}
    return {"list": [str(day) for day in days]}


def apply(context: typer.Context, file: File, as_json: AsJson = False) -> None:
    """Stage a plan step by step, hold each against its gates, publish it in one release, and compute a sample again.

    Whatever ended it, call it again: it goes on after the last batch of days.
    """
    from platform_assets.operations.backfill.afterwards import prove_sample
    from platform_assets.operations.backfill.apply import apply as apply_plan

    said: list[str] = []
    with opened_platform() as platform, plan_at(file) as plan:
        author = decided_by(plan.reason, None)
        with telling(context, f"plan {plan.name}") as progress, session_on_demand(platform.settings, progress) as spark:
            record = apply_plan(platform, spark, plan, author, progress, said.append, file)
            record, proved = prove_sample(platform, spark, record, author, progress)
    if as_json:
        print_json(record_json(record))
    else:
        for sentence in said:
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        print_record(record)
    if any(table.of("different") for table in proved):
        raise typer.Exit(EXIT_LOOK)


def status(
    name: Annotated[
        str | None, typer.Argument(help="Of a plan, or the file of one that was not begun; all by default.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on telling until it is over or stands still.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show where plans stand: what is staged, what they wait for, how long it took, what is left, what happened."""
    from platform_assets.operations.backfill.staged import standing_of
    from platform_assets.operations.backfill.waiting import waits_for, waits_to_begin

    if watch and (name is None or as_json):
        raise UsageError("--watch follows one plan, for people.", "Name a plan, and leave out --json.")
    with opened_platform() as platform:
        if name is None:
            records, damaged = all_records(platform.lake)
            _tell_all(records, {record.name: waits_for(platform, record) for record in records}, damaged, as_json)
            return
        said = ""
        if name not in backfill_names(platform.lake) and Path(name).is_file():
            from platform_assets.operations.backfill.explain import explain

            with plan_at(Path(name)) as plan:
                unbegun = None if plan.name in backfill_names(platform.lake) else explain(platform, plan)
            if unbegun is not None:
                waits = waits_to_begin(unbegun)
                if as_json:
                    print_json([{"name": plan.name, "state": "not begun", "hash": unbegun.hash, "waits": list(waits)}])
                else:
                    print_unbegun(unbegun, waits)
                return
            said = said_besides(read_record(platform.lake, plan.name), plan, Path(name))
            name = plan.name
        if watch:
            watch_plan(platform, name)
        record = read_record(platform.lake, name)
        waiting = (*([said] if said else ()), *waits_for(platform, record))
        now = standing_of(platform, record)
    if as_json:
        print_json([record_json(record) | {"waits": list(waiting)}])
    else:
        print_record(record, waiting, now)


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


def rollback(
    context: typer.Context,
    name: Name,
    cascade: Cascade = False,
    until_lifted: UntilLifted = False,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Put exactly the days of a plan back as they were before it, and hold them there."""
    from platform_assets.operations.backfill.afterwards import roll_back
    from platform_assets.operations.rollback.rollback import rolled_back_amounts

    author = decided_by(reason, by, LASTING if until_lifted else "")
    with opened_platform() as platform, telling(context, "plan rollback") as progress:
        record, done = roll_back(platform, name, author, progress, cascade=cascade)
        with meanwhile(progress, "summing what changes"):
            amounts = rolled_back_amounts(platform, done) if done else None
    _tell(record, record.events[-1].what.capitalize(), as_json)
    if done and amounts and not as_json:
        print_rollback(done, amounts, lasts=until_lifted)


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
        plans, _ = all_records(platform.lake)  # `plan status` names those that are damaged
    undone = {record.publication for record in plans if record.state == "rolled back"}
    rows: list[dict[str, Any]] = [recomputed_json(head, rolled_back=head.publication in undone) for head in heads]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        kind = f"plan {row['plan']}" if row["plan"] else "unplanned"
        since = ", rolled back since" if row["rolled_back"] else ""
        say(f"[bold]{row['release']}[/]", f"{row['at']}  {kind}{since}, by {row['who']}: {row['why']}")
    if not rows:
        console.print("Nothing was recomputed yet.")


def report(
    name: Name,
    html: Html = None,
    out: Annotated[Path | None, typer.Option("--out", help="A file for the Markdown in place of the terminal.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the record of a plan, as Markdown or a page: why, who, at what price, before and after, how to replay."""
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        lines = record_markdown(platform, record)
        if html is not None:
            from platform_assets.operations.backfill.html import record_html
            from platform_assets.operations.backfill.report import report as gathered

            write_page(html, record_html(gathered(platform, record)))
    if out is not None:
        write_page(out, "\n".join(lines) + "\n")
    if as_json:
        print_json(record_json(record))
    elif html is None and out is None:
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        say("Wrote", ", ".join(str(file) for file in (html, out) if file is not None))


def write_page(file: Path, text: str) -> None:
    """Write a page to where somebody wants it.

    Raises:
        UsageError: that cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}.", "Name a file in a folder that is there."
        ) from error


def _tell_all(
    records: Sequence[BackfillRecord],
    waiting: Mapping[str, Sequence[str]],
    damaged: Sequence[RecordError],
    as_json: bool,
) -> None:
    """All plans, and after them the records that cannot be read, for which somebody has to do something."""
    if as_json:
        told = [record_json(record) | {"waits": list(waiting[record.name])} for record in records]
        print_json([*told, *({"damaged": error.what, "do": error.todo} for error in damaged)])
    else:
        if records or not damaged:
            print_records(records, waiting)
        for error in damaged:
            say("[yellow]look[/]", f"{error.what} {error.todo}")
    if damaged:
        raise typer.Exit(EXIT_LOOK)


def _tell(record: BackfillRecord, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(record_json(record))
    else:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


for carries_out in (compare, apply, status, pause, resume, cancel, rollback, replay, history, report):
    app.command()(carries_out)
