"""Report what a backfill comes to before it is approved, and where it stands, in a few words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_assets.operations.backfill.files import line_of, written
from platform_assets.operations.lineage.plan_report import plan_json, plan_table
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.key_scope import shown_keys
from platform_assets.planning.windows import which
from platform_assets.report import (
    Calendar,
    Details,
    Heading,
    Listing,
    Note,
    Part,
    Points,
    Quote,
    Report,
    Table,
    picked,
)
from platform_assets.visible import as_code
from platform_assets.words import counted, lasting, size

if TYPE_CHECKING:
    from platform_assets.planning.backfill.pace import Standing


def backfill_report(backfill: Backfill, at: Path | None = None) -> Report:
    """Report all that somebody wants to know who is to approve a plan, and the command that comes next."""
    return Report(_parts(backfill, at), _json(backfill), bool(backfill.blocking))


def _parts(backfill: Backfill, at: Path | None) -> Iterator[Part]:
    file = backfill.file
    yield Heading(f"Backfill {file.name}")
    yield Quote(file.reason)
    yield f"Owner {as_code(file.owner)}."
    if backfill.plan.steps:
        yield plan_table(backfill.plan)
        rollout = [
            (f"{step.share} %", f"{step.count:,}", ", ".join(f"{table} {len(of):,}" for table, of in step.days.items()))
            for step in backfill.steps
        ]
        names = ("named days", "days of tables", "tables")
        yield Table("Rollout", names, rollout, right=names[:2])
    yield Details("", [*_calendars(backfill)])
    yield Points([*facts(backfill)])
    for one in backfill.obstacles:
        place = f"line {line_of(at, one.field)}, " if at and one.field else ""
        what = f"{place}{one.told} {one.todo}"
        yield Note("red", "in the way", what) if one.blocks else Note("yellow", "mind", what)
    yield f"Hash `{backfill.hash}`, over release {backfill.release}."
    yield Details("", [Listing(written(file))])
    if backfill.blocking:
        yield "It can be neither approved nor applied while something is in the way."
    else:
        yield Note("bold", "next", _next(backfill, shlex.quote(str(at)) if at else "FILE"))


def _next(backfill: Backfill, file: str) -> str:
    if not backfill.consent.is_there:
        return f"`platform-assets plan approve {file} --hash {backfill.hash} --reason … --by …`"
    enough = "it is approved" if backfill.consent.needed else "nobody has to approve it"
    return f"{enough}: `platform-assets plan apply {file}`"


def _calendars(backfill: Backfill) -> Iterator[Part]:
    of_table: dict[str, dict[date, tuple[str, int, str]]] = {}
    for at, step in enumerate(backfill.steps):
        shade = 4 - round(3 * at / max(len(backfill.steps) - 1, 1))
        for table, days in step.days.items():
            cells = {day: (str(step.share), shade, f"{day}: staged at {step.share} %") for day in days}
            of_table.setdefault(table, {}).update(cells)
    for table, cells in of_table.items():
        yield Heading(table, 3)
        key = "Each day with the percent of the named days at which it is staged."
        yield Calendar(f"Days of {table} by step of the rollout", key, cells)


def _json(backfill: Backfill) -> dict[str, Any]:
    cost = backfill.price
    known = cost.experience
    return {
        "name": backfill.file.name,
        "hash": backfill.hash,
        "release": backfill.release,
        "file": backfill.file.model_dump(mode="json", exclude_none=True),
        "plan": plan_json(backfill.plan),
        "rollout": backfill.steps,
        "up_to_date": backfill.up_to_date,
        "price": {
            **picked(cost, "rows bytes unknown"),
            "seconds": round(cost.seconds, 1),
            "between": [round(end, 1) for end in cost.between] if cost.between else None,
            **{name: round(getattr(known, name), 1) for name in ("start_s", "step_s", "job_s")},
            "backfills": known.runs,
            "core_hours": round(cost.core_hours, 3),
            "money": cost.money,
        },
        "code": {table: version.code for table, version in backfill.versions.items()},
        "protected": backfill.protected,
        "narrowed": backfill.narrowed,
        "stale_afterwards": backfill.exposed,
        "exposures": backfill.told,
        "obstacles": backfill.obstacles,
        "approval": backfill.consent,
    }


def facts(backfill: Backfill) -> Iterator[str]:
    """Return what somebody wants to know besides the days, in sentences."""
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
    """Return percent of the named days that are staged and have passed their gates."""
    return record.steps[record.done - 1].share if record.done else 0


def record_json(record: BackfillRecord) -> dict[str, Any]:
    """Return the record of a backfill for programs."""
    return record.model_dump(mode="json") | {"days": record.days, "staged_share": staged_share(record)}


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
