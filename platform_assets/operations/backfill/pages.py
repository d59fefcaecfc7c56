"""Backfills as pages of Markdown: one to be looked at before it is approved, one to be kept of what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from platform_assets.operations.backfill.report import table_reports
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.key_scope import shown_keys
from platform_assets.planning.windows import which
from platform_assets.visible import as_code
from platform_assets.words import counted, lasting, size

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.planning.backfill.pace import Standing


def backfill_markdown(backfill: Backfill) -> list[str]:
    """Return what a plan comes to, as the lines of a comment of a pull request."""
    file = backfill.file
    lines = [f"## Backfill {file.name}", "", as_code(file.reason), ""]
    lines += ["| table | days | why | which |", "| --- | ---: | --- | --- |"]
    for step in backfill.plan.steps:
        for reasons, days in step.by_reasons.items():
            lines.append(f"| {step.table} | {len(days):,} | {', '.join(reasons)} | {which(days)} |")
    lines += ["", "| rollout | days of tables |", "| ---: | --- |"]
    for rolled in backfill.steps:
        of = ", ".join(f"{table} {len(days):,}" for table, days in rolled.days.items())
        lines.append(f"| {rolled.share} % | {of} |")
    lines += ["", *(f"- {line}" for line in facts(backfill))]
    for obstacle in backfill.obstacles:
        lines.append(f"- **{'in the way' if obstacle.blocks else 'mind'}**: {obstacle.told} {obstacle.todo}")
    return [*lines, "", f"Hash `{backfill.hash}`, over release {backfill.release}."]


def record_markdown(platform: Platform, record: BackfillRecord, most_days: int | None = None) -> list[str]:
    """Return a page to keep: why, who, what, before and after per table, what happened, and how to do it again.

    Args:
        most_days: that are named one by one; all by default.
    """
    file = record.file
    lines = [f"# Plan {record.name}: {record.state}", "", as_code(file.reason), "", f"Owner {as_code(file.owner)}."]
    if record.release is not None:
        lines.append(f"Release {record.release}, publication `{record.publication}`: {days_told(record)}.")
    if file.only is not None:
        lines.append(f"Only rows of {as_code(shown_keys(file.only))}; the others were carried over.")
    if file.override_protected is not None:
        override = file.override_protected
        lines.append(f"Protected days of {override.days} were computed all the same: {as_code(override.reason)}.")
    lines += ["", "| rollout | table | days |", "| ---: | --- | --- |"]
    for step in record.steps:
        for table, days in step.days.items():
            lines.append(f"| {step.share} % | {table} | {len(days):,}: {which(days)} |")
    lines += _before_and_after(platform, record, most_days)
    lines += [
        "",
        f"Explained {record.explained_seconds:,.1f} s, took {record.seconds:,.1f} s; {size(record.bytes)} staged.",
    ]
    lines += ["", f"Runs: {', '.join(map(as_code, record.runs))}."] if record.runs else []
    lines += ["", "| when | what | who |", "| --- | --- | --- |"]
    for event in record.events:
        lines.append(
            f"| {event.at:%Y-%m-%d %H:%M:%S} | {as_code(event.what)} | {as_code(event.who) if event.who else ''} |"
        )
    return [*lines, "", f"Hash `{record.hash}`. `platform-assets plan replay {record.name}` computes all of it again."]


def _before_and_after(platform: Platform, record: BackfillRecord, most_days: int | None) -> Iterator[str]:
    """Per table rows and amounts, then day by day; while it is not published, as it is staged."""
    tables, unread = table_reports(platform, record)
    tables = tuple(sorted(tables, key=lambda one: one.table))
    changes = [day for table in tables for day in table.days]
    if not changes:
        return
    yield ""
    if all(change.is_equal for change in changes):
        yield f"Nothing changed: {counted(len(changes), 'day')} of tables came out as they were."
        yield ""
    yield "| table | days | of these changed | rows before | rows after |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for table in tables:
        before, after = table.rows
        changed = table.changed or "nothing changed"
        yield f"| {table.table} | {len(table.days):,} | {changed} | {before:,} | {after:,} |"
    if any(table.amounts for table in tables):
        yield from ("", "| table | sum of | before | after | difference |", "| --- | --- | ---: | ---: | ---: |")
    for table in tables:
        for name, (was, now) in table.amounts.items():
            sides = ("not there" if one is None else f"{one:,}" for one in (was, now))
            difference = "" if was is None or now is None else f"{now - was:+,}"
            yield f"| {table.table} | {name} | {' | '.join(sides)} | {difference} |"
    for name, why in unread.items():
        yield from ("", f"Amounts of {name} are not told: {why}.")
    yield ""
    yield "| table | day | rows before | rows | digest before | digest |"
    yield "| --- | --- | ---: | ---: | --- | --- |"
    for change in changes[:most_days]:
        then = ("", "") if change.is_new else (f"{change.rows[0]:,}", f"`{change.digests[0]}`")
        digest = "the same" if change.is_equal else f"`{change.digests[1]}`"
        yield f"| {change.table} | {change.day} | {then[0]} | {change.rows[1]:,} | {then[1]} | {digest} |"
    if more := len(changes) - len(changes[:most_days]):
        yield ""
        yield f"And {counted(more, 'more day')}: `platform-assets plan report {record.name}`."


def facts(backfill: Backfill) -> Iterator[str]:
    """Yield what somebody wants to know besides the days, in sentences."""
    yield f"About {_cost(backfill.price)}."
    yield from _only(backfill)
    for table, days in backfill.up_to_date.items():
        yield f"Not computed: {counted(len(days), 'day')} of {table} ({which(days)}), up to date."
    for step in backfill.plan.waiting:
        left = f"{counted(len(step.days), 'day')} of {step.table} ({which(step.days)})"
        yield f"Left as they are: {left}, computed by other code or another contract, and not named by the plan."
    if backfill.exposed:
        yield f"Stale afterwards, because they read it: {', '.join(backfill.exposed)}."
    if backfill.told:
        told = ", ".join(f"{name} ({', '.join(tables)})" for name, tables in backfill.told.items())
        yield f"Told once it is published, if their days change: {told}."
    if backfill.file.notify:
        yield f"The webhook is told of: {', '.join(backfill.file.notify)}."
    gates = [
        f"{gate.table} {gate.metric}{f' of {gate.column}' if gate.column else ''} within {gate.tolerance_percent} %"
        f"{' on each day, too' if gate.each_day else ''}"
        for gate in backfill.file.gates
    ]
    yield f"Gates besides those of the contracts: {'; '.join(gates) or 'none'}."
    consent = backfill.consent
    if consent.needed:
        given = f"{len(consent.given)} given ({', '.join(consent.given)})" if consent.given else "none given"
        yield f"Needs {counted(consent.needed, 'approval')}, because {' and '.join(consent.because)}; {given}."


def standing(record: BackfillRecord, now: Standing | None = None) -> str:
    """Return where a backfill stands, in a line.

    Args:
        now: how far it is by what lies in its stage, and how long the rest takes; by default as it was explained.
    """
    shown = record.came_to if record.release is not None else f"{record.state} at {staged_share(record)} %"
    left = max(record.explained_seconds - record.seconds, 0) if now is None else now.seconds_left
    time = f"{record.seconds:,.0f} s computed" + ("" if record.release is not None else f", about {left:,.0f} s left")
    staged = f", {now.staged:,} of them staged" if now and now.staged and record.release is None else ""
    return f"{shown}: {days_told(record)}{staged}, {size(record.bytes)}, {time}"


def days_told(record: BackfillRecord) -> str:
    """Return how many days it is about; once it is published, those that it left alone apart."""
    if not record.left_alone:
        return f"{counted(record.days, 'day')} of tables"
    return f"{counted(record.days - record.left_alone, 'day')} of tables, {record.left_alone:,} more left as they were"


def staged_share(record: BackfillRecord) -> int:
    """Percent of the named days that are staged and have passed their gates."""
    return record.steps[record.done - 1].share if record.done else 0


def _only(backfill: Backfill) -> Iterator[str]:
    if backfill.file.only is None:
        return
    yield (
        f"Only rows of {shown_keys(backfill.file.only)}; the others are carried over. Time and size are those of whole "
        "days, the most that it can take: files are written whole, and gates read all of a day."
    )
    for found in backfill.narrowed:
        yield (
            f"Of {found.table} that is {found.rows:,} of {counted(found.of, 'row')} ({found.percent:.1f} %) of "
            f"{counted(found.days, 'day')} that were looked at; {found.of - found.rows:,} are not computed."
        )
    yield "Where the others may be made of other data or code by now, a day stays stale until it is computed whole."


def _cost(cost: Price) -> str:
    parts = [f"{counted(cost.rows, 'row')}, {size(cost.bytes)}, {lasting(cost.seconds)}"]
    if cost.between:
        parts.append(f"between {lasting(cost.between[0])} and {lasting(cost.between[1])} in four of five cases")
    if cost.core_hours:
        parts.append(f"{cost.core_hours:,.2f} core-hours")
    if cost.money is not None:
        parts.append(f"{cost.money:,} in money")
    if not cost.seconds:
        return "; ".join(parts)
    known = cost.experience
    start = (
        f"{lasting(known.start_s)} to start, {lasting(known.step_s)} a step and {lasting(known.job_s)} a table in it"
    )
    runs = known.runs
    by = f"by {counted(runs, 'backfill')} of before" if runs else "assumed, until there are some of before"
    return f"{'; '.join(parts)} ({start}, {by})"
