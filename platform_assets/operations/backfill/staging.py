"""The rollout: what of a step is not staged yet is computed, and all that is staged held against the gates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.engine.results import StepResult
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.operations.backfill.explain import scope_in
from platform_assets.operations.backfill.sitting import (
    Sitting,
    accepted_by_plan,
    keys_stay_apart,
    may_go_on,
    publication_by,
    refuse_overruled,
    stop_if_paused,
    why_of,
)
from platform_assets.operations.backfill.staged import cores_of, stage_of, staged_figures
from platform_assets.operations.plan_record import STAGE, RecordedStep
from platform_assets.operations.stages.stages import refresh_stage
from platform_assets.operations.stages.store import without_other_code
from platform_assets.planning.backfill.days import request_for
from platform_assets.planning.backfill.pace import nearly_spent
from platform_assets.planning.backfill.verdicts import judged
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import which
from platform_assets.progress import Progress
from platform_assets.spark.session.on_demand import TimedSpark
from platform_assets.spark.tables.failures import DiskFullError
from platform_assets.words import counted

Days = Mapping[str, tuple[date, ...]]
_KEPT_EVERY_S = 1.0
"""So that whoever watches sees it go on, and not every batch waits for the disk."""

_SHOWN = 10
"""Days that failed and are named."""


class Jobs:
    """The jobs of one sitting.

    Args:
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
                result = refresh_stage(
                    platform, self._spark, author, STAGE + file.name, told, request, accept=accepted_by_plan(sitting)
                )
        except BaseException as error:
            self._note(seconds + time.monotonic() - began, bytes=_staged_bytes(sitting))  # what is staged of it stays
            if not isinstance(error, Exception):  # a person's Ctrl-C, or a run that was terminated
                sitting.keep(sitting.record.told("interrupted while it computed"))
            elif isinstance(error, DiskFullError) or not isinstance(error, PlatformError):
                self._halve(job)
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
        """Note how far it is, every second; say once that a budget comes to its end."""
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
    """Return whether work goes on computing: what is done costs nothing more, whatever its budget and its hours."""
    return not now.finished and not (now.total and now.done >= now.total)


def _next(left: Days, most: int | None) -> Days:
    """Return all that is left, if no table has more days than a job may have; else as many of the first table.

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


def stage_rollout(sitting: Sitting, report: Callable[[str], None]) -> None:
    """Stage a backfill step by step, each held against its gates before the next begins.

    Args:
        sitting: works on it; begins after the last step that passed.

    Raises:
        StoppedError: a gate failed, it may compute no further now, it would overrule what was decided since it began,
            or somebody paused it; the next sitting goes on.
    """
    record = sitting.record
    if record.state == "published" or (record.state == "publishing" and publication_by(sitting.platform, record)):
        return
    refuse_overruled(sitting)
    if record.done:
        report(f"Goes on after {record.steps[record.done - 1].share} %.")
    jobs, known = Jobs(sitting, report), set[tuple[str, date]]()
    for number, step in enumerate(record.steps, 1):
        # What passed may be gone: a stage is dropped by people, erasures and whoever restores a backup.
        computed = _stage(sitting, step, jobs)
        known.update((one.table, day) for one in computed for day in one.published)
        known = _still_there(sitting, known)
        if computed or number > record.done:
            judge(sitting, step.share, report)
        if number > record.done:
            sitting.keep(sitting.record.told(f"{step.share} % staged, gates passed", done=number, state="staging"))
            failpoint("plan.step_done")
    stop_if_paused(sitting)


def _there(sitting: Sitting) -> dict[str, tuple[date, ...]]:
    """Return the days that are staged and stay so, by table."""
    staged = stage_of(sitting.platform, sitting.record.name)
    return without_other_code(sitting.platform, staged).staged.days if staged else {}


def _still_there(sitting: Sitting, known: set[tuple[str, date]]) -> set[tuple[str, date]]:
    """Return all that is staged; days of earlier steps that are gone would be left out of this sitting."""
    there = {(table, day) for table, days in _there(sitting).items() for day in days}
    if gone := sorted(known - there):
        table, day = gone[0]
        raise sitting.stop(
            f"{counted(len(gone), 'day')} that it had staged are gone, first {table} {day}: somebody dropped its stage "
            "while it was applied",
            f"Apply it again to compute them anew; to give it up, `platform-assets plan cancel {sitting.record.name}`.",
        )
    return there


def _stage(sitting: Sitting, step: RecordedStep, jobs: Jobs) -> tuple[StepResult, ...]:
    """Compute what of a step is not staged yet; returns what became of it."""
    there = _there(sitting)
    left = {table: tuple(frozenset(days).difference(there.get(table, ()))) for table, days in step.days.items()}
    if not any(left.values()):
        return ()
    done = jobs.compute(left)
    failpoint("plan.staged")
    failed: dict[str, dict[date, str]] = {}
    for one in done:
        failed.setdefault(one.table, {}).update(one.not_published)
    if any(finding.check == "settled" for one in done for findings in one.held.values() for finding in findings):
        looked_at = sitting.record.hash
        raise sitting.stop(
            f"settled figures move at {step.share} %, and nobody approved it as {looked_at}",
            f"Ask somebody to run `platform-assets plan approve FILE --hash {looked_at} --reason … --by …`; then apply "
            "it again.",
            _lines(failed),
        )
    refuse_failed(sitting, failed, step.share)
    return done


def refuse_failed(sitting: Sitting, failed: Mapping[str, Mapping[date, str]], share: int) -> None:
    """Stand still where days did not pass the gates of their contract: a plan is published whole."""
    if lines := _lines(failed):
        raise sitting.stop(
            f"{counted(sum(map(len, failed.values())), 'day')} did not pass the gates of their contract at {share} %",
            "Mend the code and apply the plan again. What it reads is as it was when it began: after other data, "
            f"`platform-assets plan cancel {sitting.record.name}` first.",
            lines,
        )


def _lines(failed: Mapping[str, Mapping[date, str]]) -> list[str]:
    """Return the first days that failed, each with the reason."""
    return [f"{table} {day}: {why}" for table, days in failed.items() for day, why in sorted(days.items())][:_SHOWN]


def judge(sitting: Sitting, share: int, report: Callable[[str], None], stage: OpenStage | None = None) -> None:
    """Hold all that is staged so far against the gates of the file.

    Args:
        share: percent of the named days that are staged.
        stage: with what is staged; as it is kept by default.
    """
    file = sitting.record.file
    stage = stage or stage_of(sitting.platform, file.name)
    if stage is None or not file.gates:
        return
    figures = staged_figures(sitting.platform, stage, file.name, file.gates, sitting.progress)
    verdicts = judged(file.gates, figures)
    for verdict in verdicts:
        report(f"{share} %: {verdict.sentence}: {'passed' if verdict.passed else 'failed'}.")
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:  # the first of them begins the message
        raise sitting.stop(
            f"at {share} % {counted(len(failed), 'gate')} of the plan failed: {failed[0].sentence}",
            f"Look with `platform-assets stage compare {STAGE}{file.name}`. Mend the code or the tolerance and apply "
            "the plan again; what it reads is as it was when it began, so after other data, or to give it up, "
            f"`platform-assets plan cancel {file.name}`. Readers see nothing of it.",
            [line for verdict in failed for line in (verdict.sentence, *verdict.worst)][1:],
        )
