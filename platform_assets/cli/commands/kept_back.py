"""`accept`, `late …`, `quarantine …` and their sections of `status`: decisions about days and rows kept back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from platform_assets.cli.console import (
    UsageError,
    opened_platform,
    parse_days,
    platform_to_look,
    print_parts,
    selected_tables,
    without_numpy,
)
from platform_assets.cli.options import AsJson, Days, DaysOrDay, DryRun, NeededDays, TableName, only_one
from platform_assets.cli.session import computing
from platform_assets.engine.ingest.aside import aside, chosen
from platform_assets.engine.late.queue import late_queue
from platform_assets.engine.late.queue import refuse as keep_out
from platform_assets.engine.platform import Author
from platform_assets.operations.lineage.plan_report import kept_lines
from platform_assets.operations.quarantine import Acceptance, acceptance, lines, masked_row, replay_quarantined
from platform_assets.operations.quarantine import discard as decide
from platform_assets.planning.rows_aside import AsideSelection, LateRows, LateSelection, counts_of, grouped
from platform_assets.planning.windows import which
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

AsideTable = Annotated[str, typer.Argument(help="A raw table, which refuses rows, or a silver table, whose rules do.")]
Rule = Annotated[str | None, typer.Option("--rule", help="Only this class of error, as `status quarantine` has it.")]
FromArrival = Annotated[str | None, typer.Option("--arrival", help="Only what this file brought.")]


def rows_aside(
    names: Sequence[str] = (),
    days: str | None = None,
    rule: str | None = None,
    arrival: str | None = None,
    limit: int = 20,
    *,
    rows: bool = False,
    everything: bool = False,
) -> Report:
    """Show how many rows are set aside by table, day and class of error, and how many attempts they had.

    Args:
        rows: show the rows of a table, and why they were set aside, instead of counts.
    """
    table = only_one("status quarantine", names) or None
    if rows:
        if table is None:
            raise UsageError("--rows shows rows of one table.", "Name it, as `status quarantine raw.sales --rows`.")
        return _shown_rows(table, days, rule, arrival, limit, everything=everything)
    with platform_to_look() as platform, without_numpy():
        groups = grouped(aside(platform, _selection(table, days, rule, arrival), everything=everything))
    return Report([_table(groups)] if groups else ["Nothing is set aside."], groups)


def _shown_rows(
    table: str, days: str | None, rule: str | None, arrival: str | None, limit: int, *, everything: bool
) -> Report:
    """Show rows with file and line, why they were set aside, and their values, sensitive ones masked."""
    with platform_to_look() as platform, without_numpy():
        rows = chosen(platform, _selection(table, days, rule, arrival), everything=everything, payloads=True)
        at, found = lines(platform, rows[:limit]), [(row, *masked_row(platform, row)) for row in rows[:limit]]
    data, parts = [], list[Part]()
    for row, why, values in found:
        names = "table day error arrival rows number attempts discarded"
        data.append(picked(row, names, line=at.get(row), reason=why, values=values))
        where = f", line {at[row]}" if row in at else f", row {row.number}" if row.number else ""
        parts.append(Note("", f"{row.table} {row.day}", f"{row.arrival}{where}: {why}"))
        tried = counted(row.attempts, "attempt") + (f"; discarded by {row.discarded}" if row.discarded else "")
        fields = "; ".join(f"{name}: {value}" for name, value in values.items())
        parts.append(f"  {tried}" + (f"; {fields}" if fields else ""))
    if more := len(rows) - len(found):
        parts.append(f"and {counted(more, 'more row')}: --limit {len(rows)}")
    return Report(parts, data)


def replay(
    table: AsideTable, author: Author, days: DaysOrDay = None, rule: Rule = None, arrival: FromArrival = None
) -> Report:
    """Try rows again after a fix of code, rule, contract or reference data; exit code 1 if some stay set aside.

    Rows that a raw table refused are read again from their files and enter raw as an arrival of their own. Rows that
    broke a silver table's rule are in raw: their days are computed again.
    """
    from platform_assets.engine.ingest.ingest import replay as read_again
    from platform_assets.engine.step.analysis import analysed

    selection, named = _selection(table, days, rule, arrival), arrival is not None
    why: dict[str, str] = {}
    before: dict[str, int] = {}
    with opened_platform() as platform, computing(platform.settings, "quarantine replay") as (spark, progress):
        tried = sum(row.rows for row in chosen(platform, selection, everything=named))
        if platform.catalogue[table].source:
            done = read_again(platform, analysed(platform, [table], spark), selection, author, progress)
            entered = [each.path for taken in done for each in taken.arrivals if each.taken or each.late]
            why = {each.path: each.reason for taken in done for each in taken.arrivals if each.reason}
            changed, how = {day for taken in done for day in taken.days}, "read once more from their files"
        else:
            steps = replay_quarantined(platform, spark, selection, author, progress).steps
            changed, entered = {day for step in steps if step.table == table for day in step.published}, []
            before = {step.table: len(step.published) for step in steps if step.table != table and step.published}
            how = f"judged once more, with {counted(len(changed), 'day')} computed again"
        left = aside(platform, selection, everything=named)
    stay = sum(row.rows for row in left)
    data = {"table": table, "tried": tried, "stay": stay, "arrivals": entered, "refused": why, "days": sorted(changed)}
    parts = [
        f"{counted(tried, 'row')} of {table} {how}; {stay:,} stay.",
        *(Note("green", "entered", path) for path in entered),
        *(Note("red", "refused", f"{path}: {because}") for path, because in why.items()),
        *(Note("", "computed before", f"{name}: {counted(days, 'day')}") for name, days in before.items()),
        *([_table(grouped(left))] if left else []),
        *(["The next refresh recomputes what reads them."] if changed else []),
    ]
    return Report(parts, data, bool(left))


def discard(
    table: AsideTable, author: Author, days: DaysOrDay = None, rule: Rule = None, arrival: FromArrival = None
) -> Report:
    """Discard rows: they are kept, but no longer listed, replayed or warned of."""
    with opened_platform() as platform:
        groups = grouped(decide(platform, _selection(table, days, rule, arrival), author))
    rows = counted(sum(group["rows"] for group in groups), "row")
    return Report([f"{rows} of {table} discarded: `status quarantine --all` shows them."], groups)


def _selection(table: str | None, days: str | None, error: str | None, arrival: str | None = None) -> AsideSelection:
    return AsideSelection(table, None if days is None else parse_days(days), error, arrival)


def _table(groups: Iterable[Mapping[str, Any]]) -> Table:
    names = ("table", "day", "error", "rows", "attempts", "files", "discarded")
    rows = [[str(group[name] or "") for name in names] for group in groups]
    return Table("Set aside", names, rows, right=names[3:], whole=("table", "day"))


Arrival = Annotated[
    str | None, typer.Argument(metavar="ARRIVAL|TABLE", help="As `status late` shows it; a raw table with --days.")
]


def late_rows(names: Sequence[str] = (), *, everything: bool = False) -> Report:
    """Show waiting rows: per table, day and arrival how many rows, how late or ahead, and their amounts."""
    with platform_to_look() as platform, without_numpy():
        tables = selected_tables(platform, names)
        queue = [rows for rows in late_queue(platform) if not tables or rows.table in tables]
    shown = [rows for rows in queue if everything or rows.state in ("waiting", "ahead")]
    data = [_late_json(rows) for rows in shown]
    return Report(_queue_parts(shown) if shown else ["Nothing waits in the late queue."], data)


def approve(author: Author, arrival: Arrival = None, days: Days = None) -> Report:
    """Approve waiting rows: they enter raw as an arrival of their own; the next refresh recomputes their days."""
    selection = _late_selection(arrival, days)
    from platform_assets.engine.late.approvals import approve as take

    with opened_platform() as platform, computing(platform.settings, "late approve") as (spark, progress):
        done = take(platform, spark, selection, author, progress)
    data, lines = [], []
    for approval in done:
        arrivals = [picked(entered, "path origin", rows=entered.taken) for entered in approval.arrivals]
        data.append({"table": approval.table, "arrivals": arrivals, "days": sorted(approval.published)})
        for entered in approval.arrivals:
            rows = f"{counted(entered.taken, 'row')} of {entered.origin}"
            lines.append(f"{rows} entered {approval.table} as {entered.path}.")
        changed = approval.published
        lines.append(f"{counted(len(changed), 'day')} of {approval.table} changed, {which(changed)}.")
    return Report([*lines, "The next refresh recomputes what reads them."], data)


def refuse(author: Author, arrival: Arrival = None, days: Days = None) -> Report:
    """Refuse waiting rows: they stay out, are kept, and are listed by `status late --all`."""
    selection = _late_selection(arrival, days)
    with opened_platform() as platform:
        done = keep_out(platform, selection, author)
    rows, on = sum(refused.rows for refused in done), len({refused.day for refused in done})
    stay = f"{counted(rows, 'row')} of {counted(on, 'day')} will stay out."
    return Report([stay], [_late_json(refused) for refused in done])


def _late_selection(named: str | None, days: str | None) -> LateSelection:
    if named is not None and ("/" in named) == (days is None):
        return LateSelection(arrival=named) if days is None else LateSelection(table=named, days=parse_days(days))
    raise UsageError(
        "Say which rows: those of one arrival, or those of a table on some days.",
        "Name an arrival as `status late` shows it, or a table with --days: raw.x --days 2017-01-02..2017-01-05.",
    )


def _queue_parts(queue: Sequence[LateRows]) -> Iterator[Part]:
    rows = []
    for late in queue:
        state = f"{late.state} by {late.decided}" if late.decided else late.state
        state += f"; its day is protected: {late.protected}" if late.protected else ""
        amounts = tuple(f"sum of {name} {amount:,}" for name, amount in late.amounts.items() if amount)
        days = abs(late.days_late)
        came = f"{counted(days, 'day')} {'ahead' if late.is_ahead else 'late'}"
        rows.append((late.table, str(late.day), came, late.arrival, f"{late.rows:,}", amounts, state))
    names = ("table", "day", "came", "arrival", "rows", "amounts", "state")
    yield Table("The late queue", names, rows, ("came", "rows"), names[:4])
    counts = counts_of(queue)
    if count := counts.waiting:
        yield f"{counted(count, 'row', 'wait')}: late approve ARRIVAL --reason … --by …, or late refuse."
    if count := counts.ahead:
        yield f"{counted(count, 'row', 'wait')} till the day comes, unless a person decides otherwise."


def _late_json(rows: LateRows) -> dict[str, Any]:
    return {**vars(rows), "days_late": rows.days_late}


def accept(
    table: TableName, author: Author | None, days: NeededDays = None, dry_run: DryRun = False, as_json: AsJson = False
) -> Report:
    """Publish days held by volume, reconciliation, rules or settled: you looked, and the findings are right."""
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
            return Report(_accepted_parts(accepted, dry_run=True), data)
        if not as_json:
            print_parts(_accepted_parts(accepted, dry_run=False))
        with computing(platform.settings, "accept") as (spark, progress):
            from platform_assets.engine.refresh import recompute_step  # while Java starts

            step, accept, made_from = accepted.step, accepted.checks, accepted.made_from
            done = recompute_step(platform, spark, step, author, progress, accept=accept, looked_at=made_from)
    left = sorted(done.not_published.items())
    parts = [
        f"{counted(len(done.published), 'day')} of {accepted.table} published.",
        *(Note("red", "not published", line) for line in kept_lines((accepted.table, *each) for each in left)),
        *(["The next refresh recomputes what reads them."] if done.published else []),
    ]
    return Report(parts, data | {"published": sorted(done.published), "not_published": dict(left)}, bool(left))


def _accepted_parts(accepted: Acceptance, *, dry_run: bool) -> Iterator[Part]:
    head = "would be accepted" if dry_run else "accepted"
    for hold in (hold for standing in accepted.holds.values() for hold in standing):
        reason = hold.reason.removeprefix(f"{hold.table} on {hold.day}: ")
        yield Note("yellow", head, f"{hold.table} {hold.day}, held by {hold.gate}: {reason}")
    if dry_run:
        checks = " and ".join(sorted(accepted.checks))
        yield f"What {checks} finds on these days would be recorded with them, as accepted; nothing was done."
