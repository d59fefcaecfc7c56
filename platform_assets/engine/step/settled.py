"""Settled figures of staged days, beside what readers have of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal

from platform_assets.contracts import Contract, Settled
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.readiness import Readiness
from platform_assets.engine.step.inputs import published_rows
from platform_assets.engine.step.staging import Staged
from platform_assets.planning.windows import ranges
from platform_assets.quality.findings import Check, Checked, Finding, checked
from platform_assets.quality.settled import MOST, as_figures, drift_of, is_settled, settled_finding
from platform_assets.records.differences import Moves, Sum
from platform_assets.spark.compare.row_diff import moved_sums
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.reading import in_ranges, no_rows
from platform_assets.spark.tables.schemas import spark_schema


def settled_checks(
    snapshot: LakeSnapshot,
    contract: Contract,
    state: Readiness,
    staged: Staged,
    spark: SparkOnDemand,
    accept: Mapping[date, Collection[Check]],
) -> dict[date, Checked]:
    """Return what the check of settled figures says of each staged day, with its drift.

    When a day is settled follows from what was delivered, not from the clock: from the newest arrival date of all that
    the table is made from. Days that readers have with the same content, or not at all, are not read.

    Args:
        snapshot: that the days were computed over.
        contract: of the table.
        state: of the staged days, and what readers have of them.
        staged: as they lie in the stage.
        spark: gives the session; not called where nothing is to be compared.
        accept: checks of which a person accepts what would block, by day: what is accepted has not drifted.
    """
    newest = _newest_arrival(snapshot, contract)
    settled = {
        declared: [day for day in state.ready if day in state.before and is_settled(declared, day, newest)]
        for declared in contract.settled
    }
    findings: defaultdict[date, list[Finding]] = defaultdict(list)
    drift: defaultdict[date, dict[Sum, Decimal]] = defaultdict(dict)
    for declared, days in settled.items():
        other = [day for day in days if state.before[day].digest != str(staged.digest(day))]
        moves = _moves(snapshot, contract, declared, staged, other, spark)
        for day in days:
            before = drift_of(state.before[day].figures)
            finding, moved = settled_finding(
                contract, declared, day, moves.get(day, Moves()), before, snapshot.platform.masking
            )
            findings[day] += [finding] if finding else []
            drift[day] |= moved
    result: dict[date, Checked] = {}
    for day in state.ready:
        judged = "; ".join(str(declared) for declared, days in settled.items() if day in days)
        passed = f"{judged}: moved no further than allowed since the day settled"
        said = passed if judged else "not judged: the day is not settled yet, or was never published"
        of_day = checked("settled", findings[day], said, {}, judged=bool(judged))
        is_accepted = of_day.findings and "settled" in accept.get(day, ())
        result[day] = of_day if is_accepted else replace(of_day, figures=as_figures(drift[day]))
    return result


def _newest_arrival(snapshot: LakeSnapshot, contract: Contract) -> date | None:
    """Return the newest arrival date of the raw tables that a table is made from."""
    catalogue = snapshot.platform.catalogue
    raw = [name for name in catalogue.with_inputs([contract.name]) if catalogue[name].source]
    return max((newest for name in raw if (newest := snapshot.delivered(name).newest)), default=None)


def _moves(
    snapshot: LakeSnapshot,
    contract: Contract,
    declared: Settled,
    staged: Staged,
    days: Collection[date],
    spark: SparkOnDemand,
) -> dict[date, Moves]:
    """Return the declared sums that differ from those of the published days, as far as these have the columns."""
    if not days:
        return {}
    session, schema, spans = spark(), spark_schema(contract), ranges(days)
    before = published_rows(session, contract, snapshot, spans)
    if not set(declared.by) <= set(before.columns):
        return {}  # there was no such figure that could have settled
    after = no_rows(session, schema) if staged.rows is None else staged.rows.where(in_ranges(spans))
    return moved_sums(before, after, declared.sums, declared.by, MOST)
