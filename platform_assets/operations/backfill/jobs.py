"""The jobs of a rollout step: as many days at once as the file allows, and half of them after one that failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.engine.results import StepResult
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.explain import cores_of
from platform_assets.operations.backfill.narrowing import scope_in
from platform_assets.operations.backfill.sitting import Sitting, keys_stay_apart, may_go_on, why_of
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import STAGE
from platform_assets.operations.stages.stages import refresh_stage
from platform_assets.planning.backfill.pace import nearly_spent
from platform_assets.planning.backfill.request import request_for
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import which
from platform_assets.progress import Progress
from platform_assets.spark.session.on_demand import TimedSpark
from platform_assets.spark.tables.failures import DiskFullError
from platform_assets.words import counted

Days = Mapping[str, tuple[date, ...]]
_KEPT_EVERY_S = 1.0
"""So that whoever watches sees it go on, and not every batch waits for the disk."""


class Jobs:
    """The jobs of one sitting.

    Args:
        sitting: works on the backfill.
        report: told where a job failed, and where a budget comes to its end.
    """

    def __init__(self, sitting: Sitting, report: Callable[[str], None]) -> None:
        self._sitting, self._report = sitting, report
        self._spark = TimedSpark(sitting.spark)
        self._starts_before = sitting.record.starts
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
            job = _next(left, self._sitting.record.pace or self._sitting.record.file.batch_days)
            done += self._compute(job)
            rest = {table: of_table[len(job.get(table, ())) :] for table, of_table in left.items()}
            left = {table: of_table for table, of_table in rest.items() if of_table}
        return tuple(done)

    @property
    def _bound(self) -> int:
        """Days of one job of Spark's, where none has failed."""
        return self._sitting.record.file.batch_days or self._sitting.platform.settings.batch_days

    def _compute(self, job: Days) -> tuple[StepResult, ...]:
        sitting, file = self._sitting, self._sitting.record.file
        began, seconds = time.monotonic(), sitting.record.seconds
        by_table = {table: frozenset(days) for table, days in job.items()}
        request = request_for(file, by_table, scope_in(sitting.platform, file))
        settings, bound = sitting.platform.settings, self._bound
        most = min(sitting.record.pace or bound, bound)
        platform = replace(sitting.platform, settings=settings.model_copy(update={"batch_days": most}))
        author = replace(sitting.author, run=sitting.record.run, why=why_of(file))

        def told(now: Progress) -> None:
            self._note(seconds + time.monotonic() - began)
            sitting.progress(now)
            if wants_more(now):
                may_go_on(sitting)

        try:
            with keys_stay_apart(sitting):
                result = refresh_stage(platform, self._spark, author, STAGE + file.name, told, request)
        except Exception as error:
            self._note(seconds + time.monotonic() - began, bytes=_staged_bytes(sitting))
            if isinstance(error, DiskFullError) or not isinstance(error, PlatformError):
                self._halve(job)  # and else, as after a pause or hours that are over, what is staged of the job stays
            raise
        except BaseException:  # a person's Ctrl-C, or a run that was terminated: it took its time all the same
            self._note(seconds + time.monotonic() - began, bytes=_staged_bytes(sitting))
            sitting.keep(sitting.record.told("interrupted while it computed"))
            raise
        self._note(seconds + time.monotonic() - began, bytes=_staged_bytes(sitting))
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
        starts = self._starts_before + (self._spark.waited > 0)
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

    def _halve(self, job: Days) -> None:
        """Have the next jobs, of later sittings too, half as many days as one that the machine failed."""
        days = min(max(map(len, job.values())), self._bound)
        pace = max(days // 2, 1)
        now = counted(pace, "day")
        what = f"a job of {counted(days, 'day')} was too much at once, since it failed: {now} at most from now on"
        self._report(f"{what[0].upper()}{what[1:]}.")
        self._sitting.keep(self._sitting.record.told(what, pace=pace))


def wants_more(now: Progress) -> bool:
    """Whether work goes on computing: what is done already costs nothing more, whatever its budget and its hours."""
    return not now.finished and not (now.total and now.done >= now.total)


def _next(left: Days, most: int | None) -> Days:
    """All that is left, if no table has more days than a job may have; else as many of the first table.

    Without a bound, the engine cuts them.
    """
    if most is None or all(len(days) <= most for days in left.values()):
        return left
    table = next(iter(left))
    return {table: left[table][:most]}


def _staged_bytes(sitting: Sitting) -> int:
    stage = stage_of(sitting.platform, sitting.record.name)
    changes = stage.staged.tables.values() if stage else ()
    return sum(content.bytes for change in changes for content in change.days.values())
