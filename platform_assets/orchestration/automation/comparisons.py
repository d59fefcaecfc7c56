"""Run declared comparisons as asset checks: on a schedule, each with its own severity and charted over time."""

from collections.abc import Iterator

import dagster as dg

from platform_assets.contracts import Catalogue, Comparison, Contract
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.reconcile import reconcile
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.automation.schedules import run_at
from platform_assets.orchestration.instance.launcher import TABLES_POOL
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.orchestration.shown_text import listed, plain
from platform_assets.planning.windows import which
from platform_assets.quality.sides import SidesBeside, facts, key_sentence
from platform_assets.visible import visible

_SHOWN = 10
"""Keys of each kind that a result names."""


def build_comparisons(
    catalogue: Catalogue, cron: str
) -> tuple[list[dg.AssetChecksDefinition], list[dg.ScheduleDefinition]]:
    """Return a check for each comparison that a contract declares, and their schedule; nothing where none does."""
    declared = {_key(contract, one): (contract, one) for contract in catalogue for one in contract.comparisons}
    if not declared:
        return [], []
    specs = [
        dg.AssetCheckSpec(
            key.name,
            asset=key.asset_key,
            description=visible(
                f"The same as {one.other}, by {', '.join(one.by or contract.row_key)}; tolerance: {one.allowed}."
            ),
        )
        for key, (contract, one) in declared.items()
    ]

    @dg.multi_asset_check(
        name="comparisons",
        specs=specs,
        can_subset=True,
        description="Compares tables with the sides that their contracts name, by day, and by key where they differ.",
        pool=TABLES_POOL,
    )
    def comparisons(
        context: dg.AssetCheckExecutionContext, platform: PlatformResource, spark: SparkResource
    ) -> Iterator[dg.AssetCheckResult]:
        with platform.open() as opened:
            for key, asked in declared.items():
                if key in context.selected_asset_check_keys:
                    yield _result(opened, spark, *asked)

    job = dg.define_asset_job(
        "compare",
        selection=dg.AssetSelection.checks(comparisons),
        description="Compare tables with the sides that their contracts name.",
    )
    return [comparisons], [run_at("comparisons", job, "reconcile_cron", cron)]


def _key(contract: Contract, declared: Comparison) -> dg.AssetCheckKey:
    return dg.AssetCheckKey(asset_key(contract.name), f"comparison_{declared.name}")


def _result(platform: Platform, spark: SparkResource, contract: Contract, declared: Comparison) -> dg.AssetCheckResult:
    """Compare; a comparison that cannot be made has failed, and keeps no other from being made."""
    is_error = declared.severity == "block"
    metadata: dict[str, dg.MetadataValue]
    try:
        found = reconcile(
            platform,
            lambda: spark.spark_session,
            (contract.name, declared.other),
            by=declared.by or None,
            tolerance=declared.allowed,
            drill=True,
            most=_SHOWN,
        )
    except PlatformError as error:
        passed, description, metadata = False, str(error), {}
    else:
        passed, description, metadata = found.agree, "\n".join(map(visible, facts(found))), _metadata(found)
    return dg.AssetCheckResult(
        check_name=_key(contract, declared).name,
        asset_key=asset_key(contract.name),
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=metadata,
    )


def _metadata(found: SidesBeside) -> dict[str, dg.MetadataValue]:
    """Return the figures of one moment as numbers: Dagster charts them over the times of the check."""
    counts = found.counts
    metadata: dict[str, dg.MetadataValue] = {
        "days compared": dg.MetadataValue.int(found.days),
        "days different": dg.MetadataValue.int(len(found.different)),
        "rows left": dg.MetadataValue.int(found.rows[0]),
        "rows right": dg.MetadataValue.int(found.rows[1]),
        "keys missing left": dg.MetadataValue.int(counts.missing_left if counts else 0),
        "keys missing right": dg.MetadataValue.int(counts.missing_right if counts else 0),
        "keys different": dg.MetadataValue.int(counts.different if counts else 0),
    }
    for name, (left, right) in found.sums.items():
        if left is not None and right is not None:
            metadata[f"{name}, left less right"] = dg.MetadataValue.float(float(left - right))
    if found.different:
        metadata["which days"] = plain(which([day.day for day in found.different]))
    if found.keys:
        metadata["keys"] = listed(map(key_sentence, found.keys))
    return metadata
