"""Bring every table up to date: take what was delivered, then recompute the days it reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import SparkSession

from platform_assets.engine.ingest import ingest
from platform_assets.engine.pending import steps_to_refresh, still_out_of_date
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.recompute import recompute_step
from platform_assets.engine.results import (
    IngestResult,
    Progress,
    StepResult,
    no_progress,
)
from platform_assets.planning.steps import Step


@dataclass(frozen=True)
class RefreshResult:
    """What a refresh did.

    Args:
        ingests: one per raw table.
        steps: one per table with days to recompute.
    """

    ingests: tuple[IngestResult, ...] = ()
    steps: tuple[StepResult, ...] = ()


def refresh(
    platform: Platform,
    spark: Callable[[], SparkSession],
    author: Author,
    progress: Progress = no_progress,
    until: date | None = None,
    report: Callable[[IngestResult | StepResult], None] = lambda done: None,
) -> RefreshResult:
    """Ingest everything pending and recompute exactly the days that are out of date, in dependency order.

    A day that turns out unchanged by the time its table is reached, because its inputs came out with the digests they
    had, is struck.

    Args:
        platform: what to work with.
        spark: gives the session; not called where there is nothing to do.
        author: on whose behalf.
        progress: told after every batch.
        until: newest arrival date to take, which bounds the run; what arrived on later dates is left for another.
        report: told what became of each table, as soon as it is done.
    """
    platform.sync()
    ingests: list[IngestResult] = []
    for contract in platform.catalogue:
        if contract.source is not None:
            ingests.append(ingest(platform, spark, contract, author, progress=progress, until=until))
            report(ingests[-1])
    steps: list[StepResult] = []
    for step in steps_to_refresh(platform):
        if days := still_out_of_date(platform, step):
            steps.append(recompute_step(platform, spark, Step(step.table, days), author, progress))
            report(steps[-1])
    return RefreshResult(tuple(ingests), tuple(steps))


def recompute(
    platform: Platform,
    spark: Callable[[], SparkSession],
    tables: tuple[str, ...],
    days: tuple[date, ...],
    author: Author,
    progress: Progress = no_progress,
) -> RefreshResult:
    """Compute some days of some tables, whatever their state: raw tables ingest, the others are recomputed.

    Args:
        platform: what to work with.
        spark: gives the session.
        tables: names, in any order.
        days: days of the calendar.
        author: on whose behalf.
        progress: told after every batch.
    """
    platform.sync()
    ingests: list[IngestResult] = []
    steps: list[StepResult] = []
    for contract in platform.catalogue:
        if contract.name not in tables:
            continue
        if contract.source is not None:
            ingests.append(ingest(platform, spark, contract, author, days, progress))
        else:
            steps.append(recompute_step(platform, spark, Step(contract.name, days), author, progress, force=True))
    return RefreshResult(tuple(ingests), tuple(steps))
