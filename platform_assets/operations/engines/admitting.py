"""Whether Sail may compute a table: published days computed again on both engines, and compared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.engine.admissions import admit, software_compared, why_no_sail
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import prepare
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.verify.verify import TableVerified, verify
from platform_assets.planning.sampling import Draw
from platform_assets.planning.selection import Selection
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.admission import Admission
from platform_assets.spark.compare.reconciliation import compared
from platform_assets.spark.compare.rules import rule_aggregates
from platform_assets.spark.sail.equal_list import other_versions
from platform_assets.spark.sail.server import ended_at_standstill
from platform_assets.spark.sail.session import columns_for, sail_session, server_of
from platform_assets.spark.sail.shown_equal import refused_contract, refused_expressions
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.users_code import users_code
from platform_assets.spark.windows import History
from platform_assets.words import counted


class EngineError(PlatformError):
    """A table, or an installation, for which there is no choice of engines."""


@dataclass(frozen=True)
class EngineVerified:
    """What came out.

    Args:
        by_engine: the days as each engine made them, the quarantine's after the table's; none of an engine that was
            not asked.
    """

    table: str
    admission: Admission
    by_engine: dict[str, tuple[TableVerified, ...]]


def with_transform(platform: Platform, table: str) -> Contract:
    """The contract of a table that an engine computes.

    Raises:
        EngineError: it is a raw table, or the installation cannot use Sail.
    """
    contract = platform.catalogue[table]
    if not contract.inputs:
        raise EngineError(
            f"{contract.name} has no transform: what is delivered is always read by Spark.",
            "Name a silver or gold table.",
        )
    if why := why_no_sail(platform.settings):
        raise EngineError(f"Sail cannot compute {contract.name}: {why}.", "Compute with PLATFORM_ENGINE=spark.")
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
    """Compute days of a table on Spark and on Sail, and admit the table to Sail if all of them are as published.

    What differs, or has something that was not shown to come out alike, stays with Spark until it is verified anew.

    Args:
        days: to compute; those that were drawn by default.
        draw: of the published days, where none are named.
        folder: a private one.

    Raises:
        EngineError: the table has no transform, or the installation cannot use Sail.
    """
    contract = with_transform(platform, table)
    platform.sync()
    by_engine: dict[str, tuple[TableVerified, ...]] = {}
    refused = why_refused(platform, spark, contract)
    if not refused:
        only = Selection(frozenset({contract.name}), days if draw is None else _drawn(platform, contract, draw))
        by_engine["spark"] = verify(platform, spark, only, folder, progress)
        session = sail_session(platform.settings)
        with columns_for("sail"), ended_at_standstill(server_of(session)):
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
    """Of the days with rows, of which alone two engines can make different things; of all where none has any.

    Besides, the newest day of which rows broke a rule: the two have to keep them alike.
    """
    snapshot = LakeSnapshot.now(platform)
    days = snapshot.days(contract.name)
    letters = snapshot.days(quarantine_table(contract.name)) if contract.quarantine_rules else {}
    broken = [day for day, record in letters.items() if record.rows and day in days][-1:]
    return frozenset([*draw.of([day for day, record in days.items() if record.rows] or days), *broken])


def why_refused(platform: Platform, spark: SparkOnDemand, contract: Contract) -> str:
    """Return why Sail may not compute a table whatever its days have, as the end of a sentence; empty if it may."""
    source = platform.catalogue[contract.inputs[0].table] if contract.layer == "silver" else None
    reasons = [*refused_contract(contract, source), *other_versions()]
    if not reasons:
        frames = _planned(platform, spark(), contract)
        reasons = list(dict.fromkeys(reason for frame in frames for reason in refused_expressions(frame)))
    more = f", and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _planned(platform: Platform, session: SparkSession, contract: Contract) -> list[DataFrame]:
    """Describe what Sail would compute of the newest day: its rows, and what they are reconciled with."""
    snapshot = LakeSnapshot.now(platform)
    newest = sorted(snapshot.days(contract.name))[-1:] or [platform.calendar.first]
    with users_code(contract.name):
        made = prepare(platform, session, contract, newest, snapshot)
    frames = [made.frame]
    if counts := rule_aggregates(contract.judging_rules):
        frames.append(made.frame.groupBy(DAY).agg(*counts))
    for declared in contract.reconciles:
        theirs = made.inputs[declared.upstream]
        assert not isinstance(theirs, History)  # a contract is refused that is reconciled with one
        frames.append(compared(made.frame, theirs, declared, newest))
    return frames


def _difference(by_engine: dict[str, tuple[TableVerified, ...]]) -> str:
    """The first, as the end of a sentence; Sail's before Spark's, which would be another matter."""
    for engine in ("sail", "spark"):
        for table in by_engine[engine]:
            for day in table.of("different"):
                return f"computed by {engine.capitalize()}, {table.table} {day.day} came out otherwise: {day.reason}"
    return ""
