"""State of a backfill: its explanation, staged days and progress, as figures and in a few words."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import OpenStage
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.backfill.files import line_of, written
from platform_assets.operations.lineage.plan_report import plan_json, plan_table
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.compare import StagedDay, compare
from platform_assets.operations.stages.store import read_stage, stage_names
from platform_assets.planning.backfill.backfill import Backfill, Price
from platform_assets.planning.backfill.pace import Figures, Standing
from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.planning.selection import Selection, shown_keys
from platform_assets.planning.windows import which
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.manifest import DayContent
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
from platform_assets.words import as_code, counted, lasting, size


def backfill_report(backfill: Backfill, at: Path | None = None) -> Report:
    """Report what an approver of a plan needs to know, and the next command."""
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
        what = f"{place}{one.sentence} {one.todo}"
        yield Note("red", "in the way", what) if one.blocks else Note("yellow", "mind", what)
    yield f"Hash `{backfill.hash}`, over release {backfill.release}."
    yield Details("", [Listing(written(file))])
    if backfill.blocking:
        yield "It can be neither approved nor applied while something is in the way."
    else:
        yield Note("bold", "next", _next(backfill, shlex.quote(str(at)) if at else "FILE"))


def _next(backfill: Backfill, file: str) -> str:
    if not backfill.consent.is_there:
        return f"`platform-assets backfill approve {file} --hash {backfill.hash} --reason … --by …`"
    enough = "it is approved" if backfill.consent.needed else "it needs no approval"
    return f"{enough}: `platform-assets backfill apply {file}`"


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
        "exposures": backfill.notifies,
        "obstacles": backfill.obstacles,
        "approval": backfill.consent,
    }


def facts(backfill: Backfill) -> Iterator[str]:
    """Return facts about a plan besides its days, in sentences."""
    yield f"About {_cost(backfill.price)}."
    yield from _only(backfill)
    for table, days in backfill.up_to_date.items():
        yield f"Not computed: {counted(len(days), 'day')} of {table} ({which(days)}), up to date."
    for step in backfill.plan.waiting:
        left = f"{counted(len(step.days), 'day')} of {step.table} ({which(step.days)})"
        yield f"Left as they are: {left}, computed by other code or another contract, and not named by the plan."
    if backfill.exposed:
        yield f"Stale afterwards, because they read it: {', '.join(backfill.exposed)}."
    if backfill.notifies:
        notified = ", ".join(f"{name} ({', '.join(tables)})" for name, tables in backfill.notifies.items())
        yield f"Notified once it is published, if their days change: {notified}."
    if backfill.file.notify:
        yield f"Sent to the webhook: {', '.join(backfill.file.notify)}."
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
    """Return the state of a backfill in a line.

    Args:
        now: progress from its stage, and the remaining time; by default as explained.
    """
    shown = record.came_to if record.release is not None else f"{record.state} at {staged_share(record)} %"
    left = max(record.explained_seconds - record.seconds, 0) if now is None else now.seconds_left
    time = f"{record.seconds:,.0f} s computed" + ("" if record.release is not None else f", about {left:,.0f} s left")
    staged = f", {now.staged:,} of them staged" if now and now.staged and record.release is None else ""
    return f"{shown}: {days_told(record)}{staged}, {size(record.bytes)}, {time}"


def days_told(record: BackfillRecord) -> str:
    """Return how many days it covers; after publication, those it left alone separately."""
    if not record.left_alone:
        return f"{counted(record.days, 'day')} of tables"
    return f"{counted(record.days - record.left_alone, 'day')} of tables, {record.left_alone:,} more left as they were"


def staged_share(record: BackfillRecord) -> int:
    """Return the percentage of named days that are staged and have passed their gates."""
    return record.steps[record.done - 1].share if record.done else 0


def record_json(record: BackfillRecord) -> dict[str, Any]:
    """Return the record of a backfill as JSON."""
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
    yield "If the other rows may come from other data or code, the day stays stale until it is computed whole."


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
    by = f"by {counted(runs, 'backfill')} of before" if runs else "assumed, until there are earlier plans"
    return f"{'; '.join(parts)} ({start}, {by})"


_Number = Annotated[Decimal, Field(allow_inf_nan=True)]
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,.*)?\])?")


def stage_of(platform: Platform, name: str) -> OpenStage | None:
    """Return the stage of a backfill; None if there is none yet."""
    stage = STAGE + name
    return read_stage(platform.lake, stage) if stage in stage_names(platform.lake) else None


def cores_of(platform: Platform) -> int | None:
    """Return how many cores Spark uses, as far as the settings say."""
    if platform.settings.spark_remote is None and (local := _LOCAL.fullmatch(platform.settings.spark_master)):
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    return None


def standing_of(platform: Platform, record: BackfillRecord) -> Standing:
    """Return the progress of a backfill, from its record and its stage."""
    stage = stage_of(platform, record.name)
    staged = stage.staged.days if stage else {}
    current = record.steps[record.done].days if record.done < len(record.steps) else {}
    of_steps = {
        (table, day) for step in record.steps[: record.done] for table, days in step.days.items() for day in days
    }
    lying = {(table, day) for table, days in staged.items() for day in days}
    done = of_steps | (lying & {(table, day) for table, days in current.items() for day in days})
    # Once it is published its stage is gone, and its record says how many it left as they were.
    left_alone = len(done - lying) if stage else record.left_alone
    hourly, cores = record.file.budget.price_per_core_hour, cores_of(platform)
    money = None if hourly is None or cores is None else Decimal(record.seconds) * cores * hourly / 3600
    return Standing(len(done), record.days, record.seconds, record.explained_seconds, record.bytes, left_alone, money)


@dataclass(frozen=True, kw_only=True)
class _Kept(Figures):
    """Figures of a staged day, valid while the files of both sides stay the same."""

    sums: Mapping[str, tuple[_Number, _Number]]
    files: tuple[str, ...]
    base: tuple[str, ...]

    def is_of(self, content: DayContent, sums: Collection[str], columns: Collection[str]) -> bool:
        """Return whether figures belong to a staged day and have all columns of the gates."""
        is_same = (self.files, self.base) == (_paths(content), content.base)
        return is_same and self.sums.keys() >= set(sums) and self.nulls.keys() >= set(columns)


_DAYS = TypeAdapter(dict[str, tuple[_Kept, ...]])
"""Type of `days` in a stored backfill."""


def staged_figures(
    platform: Platform,
    stage: OpenStage,
    name: str,
    gates: Collection[Gate],
    progress: OnProgress = no_progress,
) -> tuple[Figures, ...]:
    """Return the figures of staged days of the tables with gates; only newly staged days are read."""
    sums: dict[str, set[str]] = {gate.table: set() for gate in gates}
    columns: dict[str, set[str]] = {gate.table: set() for gate in gates}
    for gate in gates:
        if gate.column is not None:
            (sums if gate.metric == "sum" else columns)[gate.table].add(gate.column)
    known = kept_figures(platform.lake, name)
    found: list[_Kept] = []
    for table in sorted(sums):
        contents = stage.staged.of(table)
        there = [
            one
            for one in known
            if one.table == table and one.day in contents and one.is_of(contents[one.day], sums[table], columns[table])
        ]
        found += there
        if new := frozenset(contents).difference(one.day for one in there):
            only = Selection(frozenset({table}), new)
            found += [_kept(day, contents) for day in compare(platform, stage, only, progress, sums, columns)]
    if found != list(known):
        found.sort(key=lambda one: (one.table, one.day))
        _file(platform.lake, name).replace(_DAYS.dump_json({"days": tuple(found)}))
    return tuple(found)


def kept_figures(lake: Lake, name: str) -> tuple[_Kept, ...]:
    """Return the last figures that the gates of a backfill looked at, also after its stage is gone.

    Return nothing if they cannot be read: then the days are read again.
    """
    content = _file(lake, name).read()
    try:
        return _DAYS.validate_json(content)["days"] if content is not None else ()
    except (ValidationError, KeyError):
        return ()


def _paths(content: DayContent) -> tuple[str, ...]:
    return tuple(file.path for file in content.files)


def _kept(day: StagedDay, contents: Mapping[date, DayContent]) -> _Kept:
    return _Kept(
        table=day.table,
        day=day.day,
        files=_paths(contents[day.day]),
        base=contents[day.day].base,
        rows=day.rows,
        keys=day.keys or day.rows,
        changed=day.added + day.removed + day.changed,
        sums={name: (Decimal(str(before)), Decimal(str(after))) for name, (before, after) in day.sums.items()},
        nulls=dict(day.nulls),
        shifts=dict(day.shifts),
    )


def _file(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{name}.figures"
