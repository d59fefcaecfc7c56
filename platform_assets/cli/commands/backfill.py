"""`backfill …`: backfills as reviewed code, and their part of `status`, `diff`, `undo` and `admin verify`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import rollback_parts
from platform_assets.cli.console import (
    UsageError,
    computed_tables,
    opened_platform,
    parse_days,
    platform_to_look,
    print_parts,
    write_page,
)
from platform_assets.cli.options import Days, Only, decided_by, only_one, parse_keys
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing, session_on_demand
from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.layout import GIVEN_NAME
from platform_assets.operations.backfill.explain import approve as approved
from platform_assets.operations.backfill.explain import explain as explained
from platform_assets.operations.backfill.explain import unmatched_keys
from platform_assets.operations.backfill.files import new_plan, parse_plan, plan_at
from platform_assets.operations.backfill.report import record_report
from platform_assets.operations.backfill.sitting import is_at_work, waits_for, waits_to_begin
from platform_assets.operations.backfill.standing import backfill_report, record_json, standing, standing_of
from platform_assets.operations.plan_record import (
    OVER,
    BackfillRecord,
    RecordError,
    all_records,
    backfill_names,
    plan_of,
    read_record,
    unpause,
)
from platform_assets.operations.plan_record import pause as pause_plan
from platform_assets.planning.selection import shown_keys
from platform_assets.progress import meanwhile
from platform_assets.records.history import LASTING
from platform_assets.report import Note, Part, Report, page, picked
from platform_assets.report import markdown as as_markdown
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted, lasting, size

if TYPE_CHECKING:
    from platform_assets.planning.backfill.pace import Standing

_EVERY_S = 1.0
_LINE_EVERY_S = 10.0

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file of the backfill.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a page there that needs nothing else, for a browser.")]
Name = Annotated[str, typer.Argument(help="Of a backfill that was begun, as `status backfills` has it.")]


def new(
    name: Annotated[str, typer.Argument(help="Letters, digits, dots, hyphens and underscores.")],
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="To be computed.")],
    author: Author,
    days: Days = None,
    stale: Annotated[bool, typer.Option("--stale", help="The days that are stale, instead of --days.")] = False,
    only: Only = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to; NAME.yaml in the folder of plans by default.")
    ] = None,
) -> Report:
    """Write a plan file for review: the options you gave, and all other fields as comments."""
    settings = load_settings()
    if (days is None) != stale:
        raise UsageError("A backfill needs --days, or --stale, one of them.", "Add --days 2017-01-01..2017-03-31.")
    named = {"stale": True} if days is None else _days(days, settings)
    said: dict[str, object] = {"name": name, "reason": author.why, "owner": author.who, "days": named}
    if only:
        said |= {"downstream": False, "only": parse_keys(only)}  # a backfill of some keys is about its tables alone
    place = out or settings.plans / f"{name}.yaml"
    with platform_to_look(settings) as platform:
        said["tables"] = computed_tables(platform, tables)
        plan = parse_plan(json.dumps(said), f"backfill new {name}")  # JSON is YAML, too
        obstacles = unmatched_keys(platform, plan)
    new_plan(plan, place)
    data = {"file": place, "obstacles": [{"what": one.what, "do": one.todo} for one in obstacles]}
    looks = [Note("yellow", "look", f"{one.what} {one.todo}") for one in obstacles]
    wrote = Note("", "Wrote", f"{place}. See what it would do: platform-assets backfill explain {place}")
    return Report([*looks, wrote], data)


def explain(
    file: File,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    html: Html = None,
) -> Report:
    """Show what a plan would do, without starting anything: days and reasons, order, price, obstacles, hash."""
    with opened_platform() as platform, plan_at(file) as plan:
        backfill = explained(platform, plan)
    done = backfill_report(backfill, None if html or markdown else file)
    if html is not None:
        return _written(done, f"Plan {backfill.file.name}: {backfill.hash}", html)
    return _in_markdown(done) if markdown else done


def _in_markdown(done: Report) -> Report:
    return replace(done, parts=as_markdown(done.parts))


def _written(done: Report, title: str, html: Path | None, out: Path | None = None) -> Report:
    """Write a report as an HTML page or a Markdown file, and report where."""
    parts = [*done.parts]
    if html is not None:
        write_page(html, page(title, parts))
    if out is not None:
        write_page(out, "\n".join(as_markdown(parts)) + "\n")
    return replace(done, parts=[Note("", "Wrote", ", ".join(str(file) for file in (html, out) if file is not None))])


def approve(
    file: File,
    hash: Annotated[str, typer.Option("--hash", help="That `backfill explain` showed: only this is approved.")],
    author: Author,
) -> Report:
    """Approve a plan as it was explained; another file, other days or other code need a new approval."""
    with opened_platform() as platform, plan_at(file) as plan:
        consent = approved(platform, plan, hash, author).consent
    missing = consent.needed - len(consent.given)
    more = f", so {missing} more by other people" if missing > 0 else ""
    done = Note("", "Approved", f"{hash} by {', '.join(consent.given)}; {consent.needed} needed{more}.")
    return Report([done], picked(consent, "needed given", hash=hash))


def backfill_diff(
    plan: str, days: str | None = None, sample: int = 3, examples: int = 5, *, markdown: bool = False
) -> Report:
    """Show what differs per table, column and key between the release and some days as the present code computes them.

    For a file, a sample is computed in private, compared and deleted. For a name, the staged or published days are
    compared. It needs a look if anything differs.
    """
    from platform_assets.cli.changes_view import comparison_report
    from platform_assets.operations.backfill.afterwards import compare_plan, compare_record

    file = Path(plan)
    is_file = file.is_file() or GIVEN_NAME.fullmatch(plan) is None or file.suffix in (".yaml", ".yml")
    if not is_file and days is not None:
        raise UsageError("--days works only with the file of a backfill.", "Name the file, or leave out --days.")
    with opened_platform() as platform, telling("comparing") as progress:
        if is_file:
            only = None if days is None else parse_days(days, platform.settings)
            author = decided_by("diff", None)
            with plan_at(file) as said, session_on_demand(platform.settings, progress) as spark:
                found = compare_plan(platform, spark, said, author, sample, examples, only, progress)
        else:
            found = compare_record(platform, read_record(platform.lake, plan), examples)
    return _in_markdown(comparison_report(found)) if markdown else comparison_report(found)


def _days(text: str, settings: Settings) -> dict[str, object]:
    days = sorted(parse_days(text, settings))
    if (days[-1] - days[0]).days == len(days) - 1:
        return {"range": f"{days[0]}..{days[-1]}"}
    return {"list": [str(day) for day in days]}


def apply(file: File) -> Report:
    """Stage a plan step by step behind its gates, publish it in one release, and compute a sample again as proof.

    If it ended for any reason, call it again: it continues after the last batch of days.
    """
    from platform_assets.operations.backfill.afterwards import prove_sample
    from platform_assets.operations.backfill.apply import apply as apply_plan

    said: list[str] = []
    with opened_platform() as platform, plan_at(file) as plan:
        author = decided_by(plan.reason, None)
        with computing(platform.settings, f"backfill {plan.name}") as (spark, progress):
            record = apply_plan(platform, spark, plan, author, progress, said.append, file)
            record, proved = prove_sample(platform, spark, record, author, progress)
    differs = any(table.of("different") for table in proved)
    return Report([*said, *_record_parts(record)], record_json(record), differs)


def backfills(names: Sequence[str] = (), *, watch: bool = False, as_json: bool = False) -> Report:
    """Show the state of all backfills, of the named one, or of a plan file that was not applied yet.

    For one backfill: staged days, what it waits for, time taken and left, events.
    """
    name = only_one("status backfills", names)
    if watch and (not name or as_json):
        raise UsageError("--watch follows one backfill, for people.", "Name it, and leave out --json.")
    with opened_platform() as platform:
        if not name:
            records, unread = all_records(platform.lake)
            damaged = [*unread.values()]
            waits = {record.name: waits_for(platform, record) for record in records}
            data: list[dict[str, Any]] = [record_json(record) | {"waits": waits[record.name]} for record in records]
            data += [{"damaged": error.what, "do": error.todo} for error in damaged]
            return Report(_records_parts(records, waits, damaged), data, bool(damaged))
        if name not in backfill_names(platform.lake) and Path(name).is_file():
            with plan_at(Path(name)) as plan:
                unbegun = None if plan.name in backfill_names(platform.lake) else explained(platform, plan)
            if unbegun is not None:
                keeps = waits_to_begin(unbegun)
                unbegun_json = {"name": plan.name, "state": "not begun", "hash": unbegun.hash, "waits": keeps}
                what = f"{counted(unbegun.plan.days, 'day')} of tables, hash {unbegun.hash}"
                keeps = keeps or ("Nothing is in the way: `platform-assets backfill apply FILE`.",)
                parts = (Note("", "  ", sentence) for sentence in keeps)
                return Report([Note("bold", plan.name, f"not begun: {what}"), *parts], [unbegun_json])
            name = plan.name
        if watch:
            _watch(platform, name)
        record = read_record(platform.lake, name)
        waiting = waits_for(platform, record)
        now = standing_of(platform, record)
    return Report(_record_parts(record, waiting, now), [record_json(record) | {"waits": waiting}])


def pause(name: Name, author: Author) -> Report:
    """Pause a plan after its current batch of days."""
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        pause_plan(platform.lake, name, author.why)
    return Report(
        [f"{name} stands still after its batch of days; `backfill resume {name}` lets it go on."], record_json(record)
    )


def resume(name: Name) -> Report:
    """Let a plan that was paused be applied again."""
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        unpause(platform.lake, name)
    return Report([f"{name} can be applied again."], record_json(record))


def cancel(name: str, author: Author) -> Report:
    """Cancel a backfill that was not published, and delete its staged days."""
    from platform_assets.operations.backfill.afterwards import cancel as cancel_plan

    with opened_platform() as platform:
        record = cancel_plan(platform, name, author)
    return Report([f"{name} is cancelled; nothing that was published is touched."], record_json(record))


def take_back(name: str, author: Author, *, cascade: bool = False, until_lifted: bool = False) -> Report:
    """Return exactly the days of a backfill to their content before it, and hold them there."""
    from platform_assets.operations.backfill.afterwards import roll_back
    from platform_assets.operations.rollback import rolled_back_amounts

    author = replace(author, decides=LASTING if until_lifted else "")
    with opened_platform() as platform, telling("undo") as progress:
        record, done = roll_back(platform, name, author, progress, cascade=cascade)
        with meanwhile(progress, "summing what changes"):
            amounts = rolled_back_amounts(platform, done) if done else None
    parts = rollback_parts(done, amounts, lasts=until_lifted) if done and amounts else ()
    return Report([record.events[-1].what.capitalize(), *parts], record_json(record))


def replay(name: str) -> Report:
    """Recompute every published day of a backfill from its original inputs; exit code 1 if one differs."""
    from platform_assets.operations.backfill.afterwards import note_proof, prove

    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        with computing(platform.settings, "verify") as (spark, progress):
            proved = prove(platform, spark, record, None, progress)
        record = note_proof(platform, record, proved)
    differs = any(table.of("different") for table in proved)
    return Report([record.events[-1].what], record_json(record), differs)


def recomputed(limit: int = 50) -> Report:
    """List all recomputations, newest first: by plans, and unplanned ones, as by a refresh or a backfill in Dagster."""
    with opened_platform() as platform:
        heads = sorted(platform.ledger.heads("recompute"), key=lambda head: -head.release)[:limit]
        plans, _ = all_records(platform.lake)  # `status backfills` names those that are damaged
    undone = {record.publication for record in plans if record.state == "rolled back"}
    data = [
        picked(
            head,
            "release publication run who why",
            at=f"{head.created_at:%Y-%m-%d %H:%M:%S}",
            plan=plan_of(head.run),  # None for unplanned work
            rolled_back=head.publication in undone,
        )
        for head in heads
    ]
    lines = []
    for row in data:
        kind = f"plan {row['plan']}" if row["plan"] else "unplanned"
        since = ", rolled back since" if row["rolled_back"] else ""
        lines.append(Note("bold", str(row["release"]), f"{row['at']}  {kind}{since}, by {row['who']}: {row['why']}"))
    return Report(lines or ["Nothing was recomputed yet."], data)


def report(
    name: Name,
    html: Html = None,
    out: Annotated[Path | None, typer.Option("--out", help="A file for the Markdown in place of the terminal.")] = None,
) -> Report:
    """Write the record of a plan, as Markdown or a page: why, who, price, before and after, how to verify it."""
    with opened_platform() as platform:
        record = read_record(platform.lake, name)
        done = record_report(platform, record)
        if html is None and out is None:
            return _in_markdown(done)
        return _written(done, f"Plan {record.name}: {record.state}", html, out)


def _records_parts(
    records: Sequence[BackfillRecord], waits: Mapping[str, Sequence[str]], damaged: Sequence[RecordError]
) -> Iterator[Part]:
    if not (records or damaged):
        yield "No backfill was applied yet. `backfill apply FILE` applies one."
    for record in records:
        yield Note("bold", record.name, standing(record))
        yield from (Note("yellow", "  waits", sentence) for sentence in waits[record.name])
    yield from (Note("yellow", "look", f"{error.what} {error.todo}") for error in damaged)


def _record_parts(record: BackfillRecord, waits: Sequence[str] = (), now: Standing | None = None) -> Iterator[Part]:
    yield Note("bold", record.name, standing(record, now))
    yield Note("", "  why", f"{record.file.reason} ({record.file.owner})")
    if record.file.only is not None:
        yield Note("", "  only", f"rows of {shown_keys(record.file.only)}; the others are carried over")
    if record.runs:
        yield Note("", "  runs", ", ".join(record.runs))
    for sentence in waits:
        yield Note("yellow", "  waits", sentence)
    for event in record.events:
        by = f" ({event.who})" if event.who else ""
        yield Note("", "  ", f"{event.at:%Y-%m-%d %H:%M:%S}  {event.what}{by}")


def _watch(platform: Platform, name: str) -> None:
    """Print the progress of a backfill until it ends, or no process applies it any more."""
    said, at = "", 0.0
    while True:
        record = read_record(platform.lake, name)
        at_work = is_at_work(platform, record)
        figures = _figures(record, standing_of(platform, record))
        line = f"{record.name} {record.state}: {', '.join(' '.join(figure) for figure in figures.items())}"
        if line != said and (time.monotonic() - at >= _LINE_EVERY_S or not at_work):
            said, at = line, time.monotonic()
            print_parts([line])
        if not at_work:
            return
        time.sleep(_EVERY_S)


def _figures(record: BackfillRecord, now: Standing) -> dict[str, str]:
    figures = {
        "staged": f"{now.staged:,} of {now.days:,} days",
        "need nothing": counted(now.left_alone, "day") if now.left_alone else "",
        "rate": f"{now.days_per_minute:,.1f} days a minute",
        "took": lasting(now.seconds),
        "left": "" if record.state in OVER else f"about {lasting(now.seconds_left)}",
        "written": size(now.bytes),
        "cost": "" if now.money is None else f"{now.money:,.2f}",
    }
    return {what: figure for what, figure in figures.items() if figure}
