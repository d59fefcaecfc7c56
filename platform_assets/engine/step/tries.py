"""Tries of open circuits: one day computed in a stage of its own and judged, and never published.

With it go the days that only pass together with it, because records moved between them.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.contracts import ContractError
from platform_assets.engine.circuits import Failure, record_failure
from platform_assets.engine.moves.ties import published_together
from platform_assets.engine.pending import due_tries
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.state.readiness import readiness
from platform_assets.engine.step.holds import failed_by
from platform_assets.engine.step.stage import Stage
from platform_assets.lakehouse.staging_folders import staging
from platform_assets.planning.steps import Step
from platform_assets.progress import OnProgress
from platform_assets.quality.findings import DayChecks
from platform_assets.records.refused import Attempt
from platform_assets.spark.session.on_demand import SparkOnDemand


def try_circuits(
    platform: Platform, spark: SparkOnDemand, tables: list[str], author: Author, progress: OnProgress
) -> None:
    """Try every open circuit of some tables that is due: a try that succeeds may close it, one that fails waits longer.

    Args:
        spark: gives the session; not called where no try is due.
    """
    for table, due in due_tries(platform, tables).items():
        _try(platform, spark, table, due.day, author, progress)


def _try(platform: Platform, spark: SparkOnDemand, table: str, day: date, author: Author, progress: OnProgress) -> None:
    with staging(platform.lake) as keep:
        stage = Stage(platform, author, keep=lambda stage, publishing: keep(stage.folders), is_try=True)
        contract = platform.catalogue[table]
        state = readiness(contract, [day], stage.snapshot, forced=[day])
        days = published_together(contract, day, stage.snapshot)
        attempt = Attempt(state.made_from.get(day, ""), platform.version(table))
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
    record_failure(platform, table, author.run, Failure(reasons, day, attempt), is_try=True)


def _reasons(judged: Collection[DayChecks], *, warnings: bool) -> dict[str, str]:
    """Return what fails a try, by check."""
    return {each.check: each.message for day in judged for each in (day.findings if warnings else day.blocking)}
