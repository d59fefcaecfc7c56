"""Compare two engines: tables admitted to Sail, and differences between Sail and Spark."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.admissions import admit, software_compared, take_off, why_no_sail
from platform_assets.engine.day_contents import Files, staged_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discard_stage, new_stage
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import StepInputs
from platform_assets.engine.step.staging import stage_days
from platform_assets.engine.user_code import UserCode
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.stages.compare import TableBeside, table_beside
from platform_assets.operations.verify import TableVerified, verify
from platform_assets.planning.selection import Draw, Selection
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.code_version import Admission, EngineName
from platform_assets.records.differences import Digest
from platform_assets.spark.compare.profiles import Profile, rule_aggregates
from platform_assets.spark.compare.reconciliation import figures_by_key
from platform_assets.spark.sail.session import columns_for, sail_session, session_of
from platform_assets.spark.sail.shown_equal import other_versions, refused_contract, refused_expressions
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.failures import users_code
from platform_assets.spark.windows import History
from platform_assets.words import counted


@dataclass(frozen=True)
class EngineVerified:
    """Result of the comparison.

    Args:
        by_engine: days as each engine computed them, the quarantine's after the table's; none of an engine that was not
            used.
    """

    table: str
    admission: Admission
    by_engine: dict[str, tuple[TableVerified, ...]]


def with_transform(platform: Platform, table: str) -> Contract:
    """Return the contract of a table with a transform."""
    contract = platform.catalogue[table]
    if not contract.inputs:
        raise PlatformError(
            f"{contract.name} has no transform: what is delivered is always read by Spark.",
            "Name a silver or gold table.",
        )
    if why := why_no_sail(platform.settings):
        raise PlatformError(f"Sail cannot compute {contract.name}: {why}.", "Compute with PLATFORM_ENGINE=spark.")
    return contract


def verify_engine(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    days: frozenset[date] | None,
    draw: Draw | None,
    folder: Location,
    author: Author,
    progress: OnProgress = no_progress,
) -> EngineVerified:
    """Compute days of a table on Spark and on Sail, and admit the table to Sail if all equal the published days.

    A table that differs, or uses an unproved expression, stays with Spark until it is verified again.
    """
    contract = with_transform(platform, table)
    platform.sync()
    by_engine: dict[str, tuple[TableVerified, ...]] = {}
    refused = why_refused(platform, spark, contract)
    if not refused:
        only = Selection(frozenset({contract.name}), days if draw is None else _drawn(platform, contract, draw))
        by_engine["spark"] = verify(platform, spark, only, folder, progress)
        session = sail_session(platform.settings)
        with columns_for("sail"):
            by_engine["sail"] = verify(platform, lambda: session, only, folder, progress, engine="sail")
        refused = _difference(by_engine)
    alike = [day for of_table in by_engine.get("sail", ())[:1] for day in of_table.of("equal") if day.expected.rows]
    if not refused and not alike:
        refused = "no published day with rows could be computed again"
    version = platform.version(contract.name)
    found = Admission(
        code_version=version.code,
        configuration=version.configuration,
        software=software_compared(),
        days=tuple(day.day for day in alike),
        rows=sum(day.expected.rows for day in alike),
        refused=refused,
        who=author.who,
        at=datetime.now(UTC),
    )
    admit(platform, contract.name, found)
    return EngineVerified(contract.name, found, by_engine)


def _drawn(platform: Platform, contract: Contract, draw: Draw) -> frozenset[date]:
    """Sample days with rows, since engines can differ only there; any days if none has rows.

    Add the newest day with quarantined rows: both engines must quarantine the same.
    """
    snapshot = LakeSnapshot.now(platform)
    days = snapshot.days(contract.name)
    letters = snapshot.days(quarantine_table(contract.name)) if contract.quarantine_rules else {}
    broken = [day for day, record in letters.items() if record.rows and day in days][-1:]
    return frozenset([*draw.of([day for day, record in days.items() if record.rows] or days), *broken])


def why_refused(platform: Platform, spark: SparkOnDemand, contract: Contract) -> str:
    """Return why Sail may not compute a table, whatever its rows, as the end of a sentence; empty if it may."""
    source = platform.catalogue[contract.inputs[0].table] if contract.layer == "silver" else None
    query = UserCode(platform.catalogue.domain_of(contract.name)).query(contract)
    # Its literals, too: to Sail 'it''s' is "its". What Spark plans does not show that.
    by_query = ("it is computed by a query, which Sail reads by a grammar of its own",) if query else ()
    reasons = [*by_query, *refused_contract(contract, source), *other_versions()]
    if not reasons:
        frames = _planned(platform, spark(), contract)
        reasons = list(dict.fromkeys(reason for frame in frames for reason in refused_expressions(frame)))
    more = f", and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _planned(platform: Platform, session: SparkSession, contract: Contract) -> list[DataFrame]:
    """Describe Sail's plan for the newest day: its rows, and what they are reconciled with."""
    snapshot = LakeSnapshot.now(platform)
    newest = sorted(snapshot.days(contract.name))[-1:] or [platform.calendar.first]
    with users_code(contract.name):
        made = StepInputs(session, contract, snapshot).prepare(newest)
    frames = [made.frame]
    if counts := rule_aggregates(contract.judging_rules):
        frames.append(made.frame.groupBy(DAY).agg(*counts))
    for declared in contract.reconciles:
        theirs = made.inputs[declared.upstream]
        assert not isinstance(theirs, History)  # a contract is refused that is reconciled with one
        frames.append(figures_by_key(made.frame, theirs, declared, newest))
    return frames


def _difference(by_engine: dict[str, tuple[TableVerified, ...]]) -> str:
    """Return the first difference as the end of a sentence; Sail's comes before Spark's."""
    for engine in ("sail", "spark"):
        for table in by_engine[engine]:
            for day in table.of("different"):
                return f"computed by {engine.capitalize()}, {table.table} {day.day} came out otherwise: {day.reason}"
    return ""


ENGINES: tuple[EngineName, EngineName] = ("spark", "sail")
"""Before is the reference, after the other one."""


@dataclass(frozen=True)
class EnginesBeside(TableBeside):
    """Days of a table as Spark and Sail compute them.

    Args:
        differing: days with another digest, of the table or its quarantine.
        quarantines: the differing days of its quarantine.
        was_admitted: whether the table loses its admission.
    """

    differing: tuple[date, ...]
    quarantines: tuple[date, ...] = ()
    was_admitted: bool = False


def compare_engines(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    days: Collection[date],
    most_examples: int,
    progress: OnProgress = no_progress,
) -> EnginesBeside:
    """Compute days of a table on both engines from the current release, and compare them.

    A table that differs is no longer computed by Sail.
    """
    contract = with_transform(platform, table)
    snapshot = LakeSnapshot.now(platform)
    chosen = sorted(set(days) & snapshot.days(contract.name).keys())
    if not chosen:
        raise PlatformError(
            f"None of these days of {contract.name} is published.", "Name days that `platform-assets status` has."
        )
    progress(Progress("comparing", contract.name, 0, len(chosen)))
    sides: list[Files] = []
    contents: list[dict[date, tuple[Digest, Digest]]] = []
    made: list[tuple[str, tuple[str, ...]]] = []
    names = (contract.name, quarantine_table(contract.name))
    try:
        for engine in ENGINES:
            with new_stage(platform, names) as (publication, folders), columns_for(engine):
                made.append((publication, names))
                session = session_of(platform.settings, engine, spark)
                staged = stage_days(session, contract, chosen, snapshot, *(folders[name] for name in names))
                letters = {day: staged.quarantined.get(day, Profile()).digest for day in chosen}
                contents.append({day: (staged.digest(day), letters[day]) for day in chosen})
                files = staged_at(platform.lake, contract.name, publication) if staged.rows is not None else {}
                sides.append({day: files.get(day, ()) for day in chosen})
        beside = table_beside(platform, contract, (sides[0], sides[1]), most_examples)
    finally:
        for publication, of_stage in made:
            discard_stage(platform, publication, of_stage)
    differing = tuple(day for day in chosen if contents[0][day] != contents[1][day])
    quarantines = tuple(day for day in differing if contents[0][day][1] != contents[1][day][1])
    off = bool(differing) and take_off(
        platform, contract.name, f"compared by key, {contract.name} {differing[0]} differs between Spark and Sail"
    )
    progress(Progress("comparing", contract.name, len(chosen), len(chosen), finished=True))
    return EnginesBeside(**vars(beside), differing=differing, quarantines=quarantines, was_admitted=off)
