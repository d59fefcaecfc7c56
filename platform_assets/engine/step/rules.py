"""Rules about rows to be published: what they look at beside the staged rows, and examples of those that break them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract, Rule
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import InputRows, published_rows
from platform_assets.lakehouse.delta.statistics import days_of_unique_keys
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.windows import ranges
from platform_assets.spark.compare.profiles import Beside, Neighbours, Profile, breaking_beside_others, keys_breaking
from platform_assets.spark.session.on_demand import is_one_process
from platform_assets.spark.tables.schemas import spark_schema
from platform_assets.spark.windows import History


def judge_beside_others(
    snapshot: LakeSnapshot,
    contract: Contract,
    days: Collection[date],
    profiles: Mapping[date, Profile],
    rows: DataFrame,
    folder: Location,
    inputs: Mapping[str, InputRows],
    to_come: Collection[date],
) -> None:
    """Add to the profiles of staged days the rows that break rules only beside others.

    Args:
        profiles: with the counts of all rules, as far as single rows say so.
    """
    for rule in contract.judging_rules if profiles else ():
        if rule.kind.is_condition:
            continue
        left = set(profiles)
        beside = _beside(snapshot, contract, rule, rows, days, inputs, to_come)
        if beside is None and is_one_process(rows.sparkSession):
            left -= days_of_unique_keys(folder, rule.kind.columns)
        some = rows.where(F.col(DAY).isin(sorted(left)))
        for day, more in (breaking_beside_others(rule, some, beside) if left else {}).items():
            counts = profiles[day].rules
            counts[rule.name] = counts[rule.name]._replace(broken=counts[rule.name].broken + more)


def examples_of(
    snapshot: LakeSnapshot,
    contract: Contract,
    rule: Rule,
    staged: Collection[date],
    rows: DataFrame,
    days: Collection[date],
    inputs: Mapping[str, InputRows],
    to_come: Collection[date],
) -> dict[date, tuple[str, ...]]:
    """Return the first keys, or values, of rows that break a rule on some of the staged days, sensitive ones masked."""
    beside = _beside(snapshot, contract, rule, rows, staged, inputs, to_come)
    names, found = keys_breaking(rule, rows, days, contract.row_key, beside)
    shown = snapshot.platform.masking.shown_key
    return {day: tuple(shown(contract, names, key) for key in keys) for day, keys in found.items()}


def _beside(
    snapshot: LakeSnapshot,
    contract: Contract,
    rule: Rule,
    rows: DataFrame,
    days: Collection[date],
    inputs: Mapping[str, InputRows],
    to_come: Collection[date],
) -> Beside:
    if rule.kind.table:
        reference = inputs[rule.kind.table]
        assert isinstance(reference, History)  # a contract is refused that reads it otherwise
        return reference
    if rule.kind.within != "window":
        return None
    platform = snapshot.platform
    within = platform.catalogue[contract.inputs[0].table].moves_within_days
    near = {day + timedelta(n) for day in days for n in range(-within, within + 1)}
    near &= snapshot.files(contract.name).keys() - {*days, *to_come}
    there = published_rows(rows.sparkSession, contract, snapshot, ranges(near)) if near else None
    if there is None or not set(rule.kind.columns) <= set(there.columns):
        return Neighbours(rows.where(F.lit(False)), within)  # staged days may still be too near to each other
    columns = [
        F.col(field.name).try_cast(field.dataType) if field.name in there.columns else F.lit(None).cast(field.dataType)
        for field in spark_schema(contract)
    ]
    return Neighbours(
        there.select(*(c.alias(f.name) for c, f in zip(columns, spark_schema(contract), strict=True))), within
    )
