"""What a refresh is about to do, and what it leaves alone: looked up once, for people and for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from platform_assets.cli.changes_view import ended_json, ended_note, may_end_lines
from platform_assets.cli.files_view import by_spark_parts, growing_lines, left_anew_parts, refused_json
from platform_assets.cli.held_view import held_json, held_parts
from platform_assets.engine.admissions import not_by_sail
from platform_assets.engine.ingest.aside import refused_files
from platform_assets.engine.pending import Delivered, delivered, due_tries
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, scoped_plan
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.ended_rollbacks import (
    EndedRollback,
    ending_rollbacks,
    standing_rollbacks,
)
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.lineage.plan_report import (
    bereft_lines,
    blocked_lines,
    estimate_line,
    intake_lines,
    plan_json,
    plan_table,
    protected_lines,
)
from platform_assets.operations.stages.store import (
    checked_stage,
    opened_stage,
    stage_basis,
    stage_names,
    without_other_code,
)
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request, wanted_days
from platform_assets.planning.windows import which
from platform_assets.records.history import ArrivalRecord, Hold
from platform_assets.report import Note, Part, Report
from platform_assets.sources.landing import Problem
from platform_assets.words import counted


@dataclass(frozen=True)
class Ahead:
    """What lies ahead of a refresh.

    Args:
        request: what is asked for.
        stage: that is computed into; None to publish.
        plan: that is shown, and executed.
        release: over which it was made.
        raw: tables that it takes deliveries for.
        stood: holds of before.
        held: days of the request that the plan does not try again.
        ending: rollbacks that the plan ends.
        landed: what lies in the landing area.
        left: files that wait there and that a stage does not take.
        refused: files that lie there refused.
        stopped: of each open circuit that stops something of the request, why.
    """

    request: Request
    stage: str | None
    plan: Plan
    release: int
    raw: frozenset[str]
    stood: tuple[Hold, ...]
    held: tuple[HeldDay, ...]
    ending: tuple[EndedRollback, ...]
    landed: Delivered
    left: int
    refused: tuple[ArrivalRecord, ...]
    stopped: tuple[str, ...] = ()

    @property
    def scope_json(self) -> dict[str, Any]:
        """Keys of which alone rows are computed, if so."""
        return {"only": self.request.keys.texts} if self.request.keys else {}

    def parts(self, platform: Platform, *, explain: bool) -> Iterator[Part]:
        """Say what it is going to do; of days that it publishes, what is held is told once it is done."""
        plan = self.plan
        yield from (Note("red", "stopped", sentence) for sentence in self.stopped)
        for table, tried in plan.tries.items():
            what = f"{table} {tried.day}, computed and judged without publishing it: its circuit is open"
            yield Note("bold", "try", what)
        if self.request.keys:
            alone = f"rows of {self.request.keys}; the others are carried over, and estimates are of whole days"
            yield Note("bold", "only", alone)
        held = self.held if explain or plan.is_empty or self.stage else ()
        yield from held_parts(held, in_short=True)
        yield from (Note("yellow", "not taken yet", line) for line in growing_lines(self.landed.growing))
        for table, days in self.landed.missing.items():
            yield Note("yellow", "not delivered yet", f"{table}: {which(days)}; days that read these wait")
        yield from (Note("yellow", "cannot be computed", line) for line in blocked_lines(plan))
        yield from (Note("yellow", "out of date", line) for line in bereft_lines(plan))
        yield from (Note("bold", "take", line) for line in intake_lines(plan.intakes))
        yield from (Note("yellow", "protected", line) for line in protected_lines(plan.waiting))
        if self.left:
            todo = "and a stage takes none: `platform-assets refresh` does, without --stage"
            yield Note("yellow", "not taken", f"{counted(self.left, 'file', 'wait')}, {todo}")
        if plan.steps:
            yield plan_table(plan)
            yield f"{counted(plan.days, 'day')} in all: {estimate_line(plan)}"
        elif not (held or plan.intakes or plan.blocked or plan.bereft):
            yield self._nothing()
        yield from by_spark_parts(not_by_sail(platform, [step.table for step in plan.steps]))
        if explain and not self.stage:
            yield from _rollbacks_parts(platform, plan, self.ending)

    def _nothing(self) -> Part:
        """Say that no day is stale, and what waits all the same."""
        if self.left:
            return "No day is stale."
        if self.landed.problems or self.refused:
            return "No day is stale, and no file waits that can be taken."
        if self.landed.growing:
            return Note("green", "Nothing to do yet:", "no day is stale and no other file waits.")
        return Note("green", "Nothing to do:", "no day is stale and no file waits.")

    def report(self, state: Path, *, explain: bool) -> Report:
        """Say what there is to tell besides where nothing is computed.

        Args:
            explain: whether nothing was to be started.
        """
        data = {
            "plan": plan_json(self.plan),
            "held": [held_json(day) for day in self.held],
            "rollbacks_ending": [ended_json(rollback) for rollback in self.ending],
            **self.scope_json,
            **left_json(self.landed, self.landed.problems, self.refused),
            **({"stopped": self.stopped} if self.stopped else {}),
        }
        left_out = self.refused or self.plan.blocked or self.held or self.stopped
        needs = self.landed.problems or (left_out and not explain)
        return Report(left_anew_parts(state, self.landed.problems, self.refused), data, bool(needs))


def look_ahead(platform: Platform, request: Request, stage: str | None) -> Ahead:
    """Plan what is asked for.

    Raises:
        NotReadyError: days are named that read a day never loaded.
        PlatformError: a table cannot take what is computed for it, or there is no such stage to go on with.
    """
    now = LakeSnapshot.now(platform)
    refuse_what_tables_cannot_take(now, request)
    snapshot = _basis(now, stage)
    raw, holds = _raw_tables(platform, request), snapshot.holds
    there = delivered(platform, raw)
    landed = Delivered() if stage else there
    refused = () if stage else refused_of(platform, raw)
    wanted = [name for name, days in wanted_days(platform.catalogue, request, now.calendar).items() if days]
    stops = {table: hold for table, hold in now.stopped.items() if table in wanted}
    if request.keys is None:
        intakes = [intake for intake in landed.intakes if intake.table not in stops]
        plan = plan_steps(platform, request, intakes, snapshot)
        plan = plan if stage else replace(plan, tries=due_tries(platform, wanted))
    else:
        plan = scoped_plan(snapshot, request, request.keys)
    if request.tables and request.days is not None and not plan.intakes:
        _refuse_blocked(plan)
    steps = {step.table: step.days for step in plan.steps}
    return Ahead(
        request=request,
        stage=stage,
        plan=plan,
        release=snapshot.number,
        raw=raw,
        stood=() if stage else holds,
        held=_left_alone(platform, holds, request, plan),
        ending=() if stage else ending_rollbacks(platform, steps),
        landed=landed,
        left=sum(intake.files for intake in there.intakes) if stage else 0,
        refused=refused,
        stopped=tuple(dict.fromkeys(hold.reason for hold in stops.values())),
    )


class NotReadyError(PlatformError):
    """Days were asked for that read a day never loaded."""


def refused_of(platform: Platform, raw: Collection[str]) -> tuple[ArrivalRecord, ...]:
    """Files of some tables that lie there refused, and wait to be repaired or taken away."""
    return tuple(file for file in refused_files(platform).there if file.table in raw)


def left_json(landed: Delivered, problems: Sequence[Problem], refused: Sequence[ArrivalRecord]) -> dict[str, Any]:
    """What lies in the landing area and is in no table, and what is not there yet; nothing of what there is none of."""
    there = {
        "landing": [*problems, *landed.growing],
        "refused_files": refused_json(refused),
        "not_delivered": landed.missing,
    }
    return {name: files for name, files in there.items() if files}


def _basis(now: LakeSnapshot, stage: str | None) -> LakeSnapshot:
    """Return what the plan looks at: the release, or the stage as it can be gone on with."""
    platform = now.platform
    if stage is None or checked_stage(stage) not in stage_names(platform.lake):
        return now
    return stage_basis(platform, without_other_code(platform, opened_stage(platform, stage)))


def _raw_tables(platform: Platform, request: Request) -> frozenset[str]:
    """Those that a refresh of what is asked for takes deliveries for."""
    wanted = wanted_days(platform.catalogue, request, platform.calendar)
    return frozenset(contract.name for contract in platform.catalogue if contract.source and wanted.get(contract.name))


def _refuse_blocked(plan: Plan) -> None:
    """Days named one by one are wanted: that they read what was never loaded is no plan."""
    if line := next(blocked_lines(plan, are_there=False), None):
        raise NotReadyError(
            f"Cannot be computed: {line}.", "Deliver its rows, or declare the day closed, or leave it out of --days."
        )


def _left_alone(platform: Platform, holds: Collection[Hold], request: Request, plan: Plan) -> tuple[HeldDay, ...]:
    """Held days of the request that the plan does not try again."""
    planned = {(step.table, day) for step in plan.steps for day in step.days}
    asked = [hold for hold in holds if request.has_table(hold.table) and request.has_day(hold.day)]
    return held_days(platform, [hold for hold in asked if (hold.table, hold.day) not in planned])


def _rollbacks_parts(platform: Platform, plan: Plan, ending: Collection[EndedRollback]) -> Iterator[Part]:
    """Say which rollbacks the plan ends, or may."""
    yield from map(ended_note, ending)
    if plan.intakes:
        known = {(rollback.table, rollback.rollback.publication) for rollback in ending}
        made = platform.catalogue.with_dependants([intake.table for intake in plan.intakes])
        standing = [
            rollback
            for rollback in standing_rollbacks(platform, made)
            if (rollback.table, rollback.rollback.publication) not in known
        ]
        lines = may_end_lines(platform.catalogue, plan.intakes, standing)
        yield from (Note("yellow", "look", line) for line in lines)
