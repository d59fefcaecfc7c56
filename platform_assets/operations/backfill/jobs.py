"""The jobs of a rollout step: so many days at once as the file allows and the machine takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.engine.results import StepResult
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.explain import cores_of
from platform_assets.operations.backfill.narrowing import scope_in
from platform_assets.operations.backfill.sitting import Sitting, accepted_by_plan, keys_stay_apart, may_go_on, why_of
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import STAGE
from platform_assets.operations.stages.stages import refresh_stage
from platform_assets.planning.backfill.pace import Pace, Seen, nearly_spent
from platform_assets.planning.backfill.request import request_for
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import which
from platform_assets.progress import Progress
from platform_assets.spark.tables.failures import DiskFullError
from platform_assets.spark.tables.strain import WatchedSpark
from platform_assets.words import counted

Days = Mapping[str, tuple[date, ...]]
_KEPT_EVERY_S = 1.0
"""So that whoever watches sees it go on, and not every batch waits for the disk."""


class Jobs:
    """The jobs of one sitting.

    Args:
        sitting: works on the backfill.
        report: told where a job was too much at once, and where a budget comes to its end.
    """

    def __init__(self, sitting: Sitting, report: Callable[[str], None]) -> None:
        self._sitting, self._report = sitting, report
        self._spark = WatchedSpark(sitting.spark)
        self._starts_before = sitting.record.starts
        self._pace = Pace.of(sitting.record.file.batch_days, sitting.record.pace)
        self._kept = time.monotonic()

    def compute(self, days: Days) -> tuple[StepResult, ...]:
        """Compute days into the stage, job by job; what is known of each is written down after it.

        Args:
            days: that are not staged yet, by table, each table after those it reads.

        Raises:
            StoppedError: it may compute no further now.
        """
        left = {table: tuple(sorted(of_table)) for table, of_table in days.items() if of_table}
        done: list[StepResult] = []
        may_go_on(self._sitting)
        while left:
            job = _next(left, self._pace.days)
            done += self._compute(job)
            rest = {table: of_table[len(job.get(table, ())) :] for table, of_table in left.items()}
            left = {table: of_table for table, of_table in rest.items() if of_table}
        return tuple(done)

    def _compute(self, job: Days) -> tuple[StepResult, ...]:
        sitting, file = self._sitting, self._sitting.record.file
        began, seconds = time.monotonic(), sitting.record.seconds
        by_table = {table: frozenset(days) for table, days in job.items()}
        request = request_for(file, by_table, scope_in(sitting.platform, file))
        settings = sitting.platform.settings
        most = min(self._pace.days, file.batch_days or settings.batch_days)
        platform = replace(sitting.platform, settings=settings.model_copy(update={"batch_days": most}))
        author = replace(sitting.author, run=sitting.record.run, why=why_of(file))

        def told(now: Progress) -> None:
            self._note(seconds + time.monotonic() - began)
            sitting.progress(now)
            if wants_more(now):
                may_go_on(sitting)

        try:
            with keys_stay_apart(sitting):
                result = refresh_stage(
                    platform, self._spark, author, STAGE + file.name, told, request, accept=accepted_by_plan(sitting)
                )
        except Exception as error:
            if isinstance(error, DiskFullError) or not isinstance(error, PlatformError):
                self._judge(job, seconds, time.monotonic() - began, failed=True)
            else:  # a pause, hours that are over: what is staged of the job stays, and counts
                self._note(seconds + time.monotonic() - began, bytes=_staged_bytes(sitting))
            raise
        except BaseException:  # a person's Ctrl-C, or a run that was terminated: it took its time all the same
            self._note(seconds + time.monotonic() - began, bytes=_staged_bytes(sitting))
            sitting.keep(sitting.record.told("interrupted while it computed"))
            raise
        self._judge(job, seconds, time.monotonic() - began)
        self._refuse_blocked(result.plan, job)
        return result.steps

    def _refuse_blocked(self, plan: Plan, job: Days) -> None:
        """Stand still where a day reads what is not there any more: the engine leaves such days as they are.

        Raises:
            StoppedError: there is one; nobody would learn of it, as the rest would be published without it.
        """
        for table, of_table in plan.blocked.items():
            blocked = {day: state for day, (state, _) in of_table.items() if not state.is_there}
            if days := sorted(blocked.keys() & set(job.get(table, ()))):
                reads = blocked[days[0]]
                raise self._sitting.stop(
                    f"{counted(len(days), 'day')} of {table} cannot be computed any more ({which(days)}): "
                    f"{reads.table} on {reads.day} is not there",
                    f"Deliver or compute that, `platform-assets plan cancel {self._sitting.record.name}`, and apply it "
                    "again; or leave these days out with `days.without`.",
                )

    def _note(self, seconds: float, **changes: object) -> None:
        """How far it is; told once where a budget comes to its end, written down every second."""
        sitting, platform = self._sitting, self._sitting.platform
        starts = self._starts_before + self._spark.was_needed
        record = sitting.record.model_copy(update={"seconds": seconds, "starts": starts, **changes})
        known = {event.what for event in record.events}
        for words in nearly_spent(record.file.budget, seconds, record.bytes, cores_of(platform)):
            if words not in known:
                self._report(f"{words[0].upper()}{words[1:]}.")
                record = record.told(words, kind="nearly spent")
        if changes or record.events != sitting.record.events or time.monotonic() - self._kept > _KEPT_EVERY_S:
            self._kept = time.monotonic()
            sitting.keep(record)
        else:
            sitting.record = record

    def _judge(self, job: Days, before_s: float, took_s: float, *, failed: bool = False) -> None:
        """How many days the next job may have, by what this one cost the machine."""
        strain = self._spark.strain() if not failed else None
        table = next(iter(job)) if len(job) == 1 else ""
        seen = Seen(
            table,
            max(map(len, job.values())),
            took_s,
            failed=failed,
            spilled_bytes=strain.spilled_bytes if strain else 0,
            full_share=strain.full_share if strain else 0.0,
        )
        why, self._pace = self._pace.strain(seen), self._pace.after(seen)
        pace = self._pace.days if self._pace.days < self._pace.most else 0
        self._note(before_s + took_s, pace=pace, bytes=_staged_bytes(self._sitting))
        if why:
            now = counted(self._pace.days, "day")
            what = f"a job of {counted(seen.days, 'day')} was too much at once, since {why}: {now} at most from now on"
            self._report(f"{what[0].upper()}{what[1:]}.")
            self._sitting.keep(self._sitting.record.told(what))


def wants_more(now: Progress) -> bool:
    """Whether work goes on computing: what is done already costs nothing more, whatever its budget and its hours."""
    return not now.finished and not (now.total and now.done >= now.total)


def _next(left: Days, most: int) -> Days:
    """All that is left, if no table has more days than a job may have; else as many of the first table."""
    if all(len(days) <= most for days in left.values()):
        return left
    table = next(iter(left))
    return {table: left[table][:most]}


def _staged_bytes(sitting: Sitting) -> int:
    stage = stage_of(sitting.platform, sitting.record.name)
    changes = stage.staged.tables.values() if stage else ()
    return sum(content.bytes for change in changes for content in change.days.values())
