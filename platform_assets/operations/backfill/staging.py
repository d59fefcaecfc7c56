"""The rollout: what of a step is not staged yet is computed, and all that is staged held against the gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from platform_assets.engine.results import StepResult
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.failpoints import failpoint
from platform_assets.operations.backfill.figures import staged_figures
from platform_assets.operations.backfill.jobs import Jobs
from platform_assets.operations.backfill.overruled import refuse_overruled
from platform_assets.operations.backfill.sitting import Sitting, publication_by, stop_if_paused
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import STAGE, RecordedStep
from platform_assets.operations.stages.inspect import without_other_code
from platform_assets.planning.backfill.verdicts import judged
from platform_assets.words import counted

_SHOWN = 10
"""Days that failed and are named."""


def stage_rollout(sitting: Sitting, report: Callable[[str], None]) -> None:
    """Stage a backfill step by step, each held against its gates before the next begins.

    Args:
        sitting: works on it; begins after the last step that passed.
        report: told what happened, in sentences.

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
    """The days that are staged and stay so, by table."""
    staged = stage_of(sitting.platform, sitting.record.name)
    return without_other_code(sitting.platform, staged).staged.days if staged else {}


def _still_there(sitting: Sitting, known: set[tuple[str, date]]) -> set[tuple[str, date]]:
    """All that is staged; days of steps that are behind are not come by again in this sitting, and would be left out.

    Raises:
        StoppedError: days that were known to be staged are gone.
    """
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
    """Stand still where days did not pass the gates of their contract: a plan is published whole.

    Raises:
        StoppedError: there are any.
    """
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
        sitting: works on it.
        share: percent of the named days that are staged.
        report: told what each gate says.
        stage: with what is staged; as it is kept by default.

    Raises:
        StoppedError: a gate failed.
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
