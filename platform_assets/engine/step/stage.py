"""A stage being filled: one release, and days computed over it, which no reader sees until it is published.

Every step of a stage reads the staged days of the steps before it. Publishing shows all of it at once. A stage ends
with its process, unless it is named (`operations.stages.stages`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from types import MappingProxyType

from platform_assets.contracts import Contract, ContractError
from platform_assets.contracts.rules import with_quarantine
from platform_assets.engine.circuits import record_verdict
from platform_assets.engine.moves import moved_meanwhile, partners, published_together
from platform_assets.engine.pending import due_tries
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discard_stage, in_turns, publish_changes
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot, OpenStage
from platform_assets.engine.state.planner import readiness, refuse_unsound
from platform_assets.engine.state.schema_changes import refuse_days_left
from platform_assets.engine.step.compute import Computed, compute
from platform_assets.engine.step.holds import deletion_explained, failed_by, write_holds
from platform_assets.engine.step.scoped import as_published, refuse_scoped
from platform_assets.engine.step.work import Adopted, begin
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.releases import release
from platform_assets.lakehouse.staging_folders import staging
from platform_assets.planning.circuit import TableVerdict, Try
from platform_assets.planning.selection import KeyScope
from platform_assets.planning.steps import Step, days_of, put_off
from platform_assets.planning.windows import Calendar, union_reached
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.quality.findings import Check, DayChecks
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import StagedDays
from platform_assets.records.manifest import DayContent, TableChange, new_publication
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import full_disk_explained

Keep = Callable[["Stage", str], None]
"""Announced when days came in, and before anything is published the publication's name."""


class Stage:
    """Days of several tables computed over one release.

    Args:
        before: its earlier content; by default nothing, over the current release.
        keep: called whenever the content changed.
        adopted: returns rows of tables in place of their transforms.
    """

    def __init__(
        self,
        platform: Platform,
        author: Author,
        before: OpenStage | None = None,
        keep: Keep = lambda stage, publishing: None,
        *,
        is_private: bool = False,
        adopted: Mapping[str, Adopted] = MappingProxyType({}),
    ) -> None:
        self.platform = platform
        self.author = author
        self.release = release(platform.lake, before.release) if before else platform.current_release()
        self.staged = before.staged if before else StagedDays()
        self.results: dict[str, StepResult] = {}
        self.folders: dict[str, tuple[str, ...]] = {}
        self.again: dict[str, set[date]] = {}
        self._keep, self._is_private, self._adopted = keep, is_private, adopted
        if before:
            self.folders = dict(before.folders)
            self.results = {
                table: StepResult(table, dict(self.staged.of(table)), reasons=dict(before.reasons.get(table, {})))
                for table in self.staged.tables.keys() & platform.catalogue.names
            }

    @property
    def snapshot(self) -> LakeSnapshot:
        """Return the snapshot that the next step reads."""
        return LakeSnapshot(self.platform, self.release, self.staged, self._is_private)

    def step(
        self,
        spark: SparkOnDemand,
        step: Step,
        progress: OnProgress = no_progress,
        *,
        forced: Collection[date] = (),
        looked_at: Mapping[date, str] | None = MappingProxyType({}),
        scope: KeyScope | None = None,
    ) -> StepResult:
        """Compute days of one silver or gold table into the stage, like `refresh.recompute_step` without publishing.

        The `forced` days are computed whatever their state; with a `scope`, only rows of its keys. Staged days that
        exchanged records with days of the step are computed again with them. `published` of the result are the days
        that the stage will publish.

        Args:
            looked_at: days whose settled figures a person has accepted, each with its fingerprint then.

        Raises:
            ContractError: the table follows its contract only with all its days, and not all of them came out good.
            DeletedMeanwhileError: the stage's base was deleted.
            ScopeError: the other rows of a day cannot be copied.
        """
        if scope is not None:
            refuse_unsound(self.snapshot, step.table, step.days, scope)
        step = self._with_partners(step)
        now = Progress("computing", step.table, 0, len(step.days))
        progress(now)
        self._forget(step.table, step.days)
        snapshot = self.snapshot
        accept: tuple[Check, ...] = ("settled",) if looked_at else ()
        adopted = self._adopted.get(step.table)
        if adopted is not None:  # its author has seen how many rows there are
            accept, looked_at, forced = ("settled", "volume"), None, step.days
        work = begin(
            snapshot,
            spark,
            step,
            self.author,
            forced=forced,
            accept=accept,
            looked_at=looked_at,
            at_once=True,
            scope=scope,
        )
        work = work if adopted is None else replace(work, adopted=adopted, engine="spark")
        before, result = self.results.get(step.table), StepResult(step.table)
        left = list(work.batches)
        while left:
            started, batch = time.monotonic(), left.pop(0)
            now = replace(now, batch=len(batch))
            progress(now)
            with full_disk_explained(step.table), deletion_explained(snapshot, step.table):
                computed = compute(work, snapshot, batch, days_of(left), result)
            left, work = put_off(left, computed.put_off), replace(work, engine=computed.engine)
            self._add(computed)
            snapshot = self.snapshot
            result += computed.result + StepResult(step.table, seconds=time.monotonic() - started)
            why = {day: work.reasons[day] for day in result.published if day in work.reasons}
            result = replace(result, reasons=why)
            self.results[step.table] = before.without(step.days) + result if before else result
            self._keep(self, "")
            now = replace(now, done=result.days, rows=result.rows)
            progress(now)
        if work.all_days:
            refuse_days_left(snapshot, step.table, self.results[step.table].not_published)
        progress(replace(now, rows=now.rows if result.published else None, finished=True))
        failpoint("stage.step_done")
        return result

    def publish(self, spark: SparkOnDemand, progress: OnProgress = no_progress) -> int | None:
        """Publish everything at once, and write the holds.

        Days that others published meanwhile, and days whose inputs changed, are computed again first.

        Returns:
            The number of the new release; None where no day came out good.

        Raises:
            ScopeError: others did so for days whose other rows were copied.
        """
        failpoint("stage.before_publish")
        number = in_turns(lambda: self._publish(spark, progress))
        staged = self.staged
        write_holds(LakeSnapshot(self.platform, self.release), staged.holds, staged.days, staged.over)
        return number

    def discard(self) -> None:
        """Remove everything that was staged and not published."""
        for publication, tables in self.folders.items():
            discard_stage(self.platform, publication, tables)

    def _publish(self, spark: SparkOnDemand, progress: OnProgress) -> int | None:
        now = LakeSnapshot.now(self.platform)
        if now.number != self.release.number:
            refused = {table: self._refused_since(table, now) for table in self.staged.tables}
            for table, days in self._rebase(now).items():
                self.again.setdefault(table, set()).update(days)
                why = self.results[table].reasons if table in self.results else {}
                # Without days rolled back since the request.
                wanted = set(days).difference(refused.get(table, ()))
                asked = [day for day in wanted if "asked for" in why.get(day, ())]
                self.step(spark, Step(table, days), progress, forced=asked)
        if not self.staged.days:  # or others published just what was staged
            return None
        publication = new_publication()
        self._keep(self, publication)
        with meanwhile(progress, "publishing"):
            return publish_changes(
                self.platform,
                publication,
                "recompute",
                tuple(map(as_published, self.staged.tables.values())),
                self.author,
                on_release=self.release.number,
            )

    def _rebase(self, after: LakeSnapshot) -> dict[str, tuple[date, ...]]:
        """Move the stage to another release; return the days that have to be computed again, inputs first."""
        before, self.release = LakeSnapshot(self.platform, self.release), after.release
        names = self.platform.catalogue.names
        changed = {
            table: {*_differing(before.digests(table), after.digests(table)), *self._refused_since(table, after)}
            for table in names
        }
        for table in self.staged.tables.keys() & names:
            staged = self.staged.of(table)
            for tie in moved_meanwhile(self.platform.catalogue[table], staged, before, after):
                changed[table].update(staged.keys() & set(tie))
        mine = self._days_and_held()
        again = overtaken(self.platform.catalogue, mine, changed, self.platform.calendar)
        for table, days in again.items():
            changed[table] |= partners(self.platform.catalogue[table], days, self.staged.of(table), before)
        again = overtaken(self.platform.catalogue, mine, changed, self.platform.calendar)
        refuse_scoped(self.staged, again)
        for table, days in again.items():
            self._forget(table, days)
        snapshot = self.snapshot
        tables = {
            table: change.model_copy(update={"days": self._over(after, change), "reads": snapshot.reads(change.reads)})
            for table, change in self.staged.tables.items()
        }
        self.staged = self.staged.model_copy(update={"tables": tables})
        return again

    def _with_partners(self, step: Step) -> Step:
        staged = self.staged.of(step.table)
        lies_over = LakeSnapshot(self.platform, self.release)
        contract = self.platform.catalogue[step.table]
        tied = partners(contract, step.days, staged, lies_over) if staged else set()
        return replace(step, days=tuple(sorted({*step.days, *tied})))

    def _refused_since(self, table: str, now: LakeSnapshot) -> tuple[date, ...]:
        """Return staged days whose very content was rolled back, or refused by a gate, since.

        Holds that were known when they were computed, and overruled then, do not count.
        """
        staged = self.staged.of(table)
        return tuple(
            hold.day
            for hold in now.holds_of(table)
            if hold not in self.staged.over and hold.day in staged and hold.refuses(staged[hold.day].fingerprint)
        )

    def _over(self, now: LakeSnapshot, change: TableChange) -> dict[date, DayContent]:
        live, records = now.files(change.table), now.days(change.table, change.days)

        def over(day: date, content: DayContent) -> DayContent:
            there = live.get(day, ())
            base = {"base": tuple(file.path for file in there)}
            # Compaction may have replaced files of the remaining rows.
            is_equal = content.keeps_files and day in records and records[day].digest == content.digest
            return content.model_copy(update=base | ({"files": there} if is_equal else {}))

        return {day: over(day, content) for day, content in change.days.items()}

    def _days_and_held(self) -> dict[str, set[date]]:
        """Return days on which this stage has an outcome; others may have changed them."""
        mine = {table: set(days) for table, days in self.staged.days.items()}
        for hold in self.staged.holds:
            mine.setdefault(hold.table, set()).add(hold.day)
        return mine

    def _add(self, computed: Computed) -> None:
        if computed.publication:
            self.folders[computed.publication] = tuple(change.table for change in computed.changes)
        self.staged = self.staged.with_days(computed.changes, computed.holds, computed.over)

    def _forget(self, table: str, days: Collection[date]) -> None:
        """Remove days with their gate results and quarantined rows."""
        self.staged = self.staged.without(with_quarantine(table), days)


def _differing(before: Mapping[date, str], after: Mapping[date, str]) -> tuple[date, ...]:
    return tuple(sorted(day for day in before.keys() | after.keys() if before.get(day) != after.get(day)))


def overtaken(
    contracts: Iterable[Contract],
    staged: Mapping[str, Collection[date]],
    changed: Mapping[str, Collection[date]],
    calendar: Calendar,
) -> dict[str, tuple[date, ...]]:
    """Return the staged days that others published since, and those that read a changed day, directly or not.

    Args:
        contracts: contracts of all tables, inputs first.
        changed: days that others published since the stage's release, by table.

    Returns:
        The days to compute again, oldest first, by table in the order of the contracts.
    """
    by_table: dict[str, tuple[date, ...]] = {}
    for contract in contracts:
        mine = set(staged.get(contract.name, ()))
        again = mine.intersection(changed.get(contract.name, ()))
        for read in contract.inputs:
            other = {*changed.get(read.table, ()), *by_table.get(read.table, ())}
            spans = union_reached(read.window, other, calendar) if other else ()
            again |= {day for day in mine if any(start <= day <= end for start, end in spans)}
        if again:
            by_table[contract.name] = tuple(sorted(again))
    return by_table


def try_circuits(
    platform: Platform, spark: SparkOnDemand, tables: list[str], author: Author, progress: OnProgress
) -> None:
    """Try every open circuit of some tables that is due: success may close it, failure makes it wait longer."""
    for table, due in due_tries(platform, tables).items():
        _try(platform, spark, table, due, author, progress)


def _try(platform: Platform, spark: SparkOnDemand, table: str, due: Try, author: Author, progress: OnProgress) -> None:
    day, contract = due.day, platform.catalogue[table]
    verdict = TableVerdict(table=table, at=datetime.now(UTC), run=author.run, day=day, is_try=True, tries=due.follows)
    with staging(platform.lake) as keep:
        stage = Stage(platform, author, keep=lambda stage, publishing: keep(stage.folders), is_private=True)
        state = readiness(contract, [day], stage.snapshot, forced=[day])
        days = published_together(contract, day, stage.snapshot)
        verdict = replace(verdict, attempt=Attempt(state.made_from.get(day, ""), platform.version(table)))
        is_announced = contract.circuit.verdict_within_minutes is not None
        its = [platform.ledger.verdicts.add(replace(verdict, is_pending=True))] if is_announced else []
        try:
            checks = stage.step(spark, Step(table, days), progress, forced=days).checks
            judged = [checks[each] for each in (day, *days) if each in checks] if day in checks else []
            reasons = _reasons(judged, warnings=contract.circuit.warnings)
            if not judged:  # it waits for another day: the next try waits longer
                reasons = {"missing": f"{table} of {day} could not be computed alone, so nothing judged it"}
        except Exception as error:
            reasons = failed_by(error)
            if isinstance(error, ContractError):  # it needs all days at once: a person closes it
                reasons = {"missing": str(error)}
            elif "code" not in reasons:  # which says nothing of the table
                raise
        finally:
            stage.discard()
        record_verdict(platform, replace(verdict, failed=reasons), its)


def _reasons(judged: Collection[DayChecks], *, warnings: bool) -> dict[str, str]:
    """Return why a try failed, by check."""
    return {each.check: each.message for day in judged for each in (day.findings if warnings else day.blocking)}
