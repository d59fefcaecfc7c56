"""Plan a step before anything of it is computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import Contract
from platform_assets.engine.admissions import engine_of
from platform_assets.engine.day_contents import schema_to_replace
from platform_assets.engine.moves import ties_among
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import readiness, reasons_now
from platform_assets.engine.state.schema_changes import needs_all_days
from platform_assets.errors import PlatformError
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.selection import KeyScope
from platform_assets.planning.steps import Step, batches
from platform_assets.quality.findings import ACCEPTABLE, Check
from platform_assets.records.code_version import EngineName
from platform_assets.spark.sail.server import most_bytes_at_once
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.schemas import spark_schema


class AcceptError(PlatformError):
    """A person wanted to accept a finding that cannot be accepted."""


Adopted = Callable[[SparkSession, Collection[date]], DataFrame]
"""Gives the rows of some days of another tool's table, which a transform does not make."""

LookedAt = Mapping[str, Mapping[date, str]]
"""Days of tables, each with what it was made from, by fingerprint, when a person looked at it."""


@dataclass(frozen=True)
class Work:
    """Common data of all batches of a step.

    Args:
        forced: days that are computed whatever their state.
        looked_at: fingerprint at which the person looked at each day; the acceptance holds for that fingerprint only.
        replaces_schema: the table's schema if the contract has other columns; else empty.
        all_days: whether the table can follow its contract only with all its days in one publication.
        adopted: gives rows in place of the transform.
    """

    platform: Platform
    spark: SparkOnDemand
    contract: Contract
    author: Author
    days: frozenset[date]
    batches: Sequence[tuple[date, ...]]
    reasons: Mapping[date, Reasons]
    forced: frozenset[date]
    accept: frozenset[Check]
    looked_at: Mapping[date, str]
    replaces_schema: str
    all_days: bool
    scope: KeyScope | None = None
    engine: EngineName = "spark"
    adopted: Adopted | None = None


def begin(
    snapshot: LakeSnapshot,
    spark: SparkOnDemand,
    step: Step,
    author: Author,
    *,
    forced: Collection[date],
    accept: Collection[Check],
    looked_at: Mapping[date, str] | None,
    at_once: bool,
    scope: KeyScope | None = None,
) -> Work:
    """Plan a step before anything is computed; `at_once` if it publishes all days together."""
    if refused := set(accept) - ACCEPTABLE:
        raise AcceptError(
            f"Findings of the check {min(refused)!r} cannot be accepted.", f"Name {' or '.join(sorted(ACCEPTABLE))}."
        )
    platform, contract = snapshot.platform, snapshot.platform.catalogue[step.table]
    all_days = needs_all_days(snapshot, contract, step.days, at_once=at_once)
    state = readiness(contract, step.days, snapshot, forced=forced, accept=accept)
    engine = "spark" if scope is not None or all_days else engine_of(platform, contract)
    return Work(
        platform,
        spark,
        contract,
        author,
        frozenset(state.ready),
        batches(
            step.days,
            platform.settings.batch_days,
            ties_among(contract, state, snapshot),
            _sizes(snapshot, contract),
            platform.settings.batch_bytes,
            most_bytes_at_once(platform.settings) if engine == "sail" else math.inf,
        ),
        reasons_now(snapshot, contract, state.ready, asked=forced),
        frozenset(forced),
        frozenset(accept),
        state.made_from if looked_at is None else looked_at,
        schema_to_replace(platform.lake, snapshot.release, step.table, spark_schema(contract).json()),
        all_days,
        scope,
        engine,
    )


def _sizes(snapshot: LakeSnapshot, contract: Contract) -> Mapping[date, int]:
    """Return the bytes of a table's inputs for every day; further days in windows are shared by all batches."""
    sizes: Counter[date] = Counter()
    for read in contract.inputs:
        for day, files in snapshot.files(read.table).items():
            sizes[day] += sum(file.size for file in files)
    return sizes
