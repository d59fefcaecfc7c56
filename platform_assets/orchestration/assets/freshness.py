"""Freshness: whether every day that should be there is there and none is held, looked at after runs and every hour."""

from collections.abc import Collection, Iterator

import dagster as dg

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.orchestration.assets.checks import CHECKS
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.instance.runless import target_of
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.orchestration.shown import listed, markdown
from platform_assets.planning.loaded import delays
from platform_assets.planning.windows import as_named
from platform_assets.quality.freshness import freshness_finding, overdue_days
from platform_assets.visible import visible

_SHOWN = 10


def build_freshness(catalogue: Catalogue) -> dg.AssetChecksDefinition:
    """One check per table, unlike the others about the whole calendar instead of a day."""
    specs = [
        dg.AssetCheckSpec("freshness", asset=asset_key(contract.name), description=CHECKS["freshness"])
        for contract in catalogue
    ]

    @dg.multi_asset_check(
        name="freshness",
        specs=specs,
        can_subset=True,
        description="Reads the ledger only: it starts no Spark session.",
    )
    def freshness(context: dg.AssetCheckExecutionContext, platform: PlatformResource) -> Iterator[dg.AssetCheckResult]:
        wanted = {key.asset_key for key in context.selected_asset_check_keys}
        with platform.open() as opened:
            held = held_days(opened, opened.ledger.holds(), with_arrivals=False)
            for contract in opened.catalogue:
                if asset_key(contract.name) in wanted:
                    yield _result(opened, contract, held)

    return freshness


def build_freshness_schedule(checks: dg.AssetChecksDefinition) -> dg.ScheduleDefinition:
    """The hourly look, also at tables that no run touches."""
    job = dg.define_asset_job(
        "check_freshness",
        selection=dg.AssetSelection.checks(*checks.check_keys),
        description="Look which days are overdue.",
    )
    return dg.ScheduleDefinition(
        name="hourly_freshness",
        job=job,
        cron_schedule="45 * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def freshness_events(instance: dg.DagsterInstance, platform: Platform) -> Iterator[dg.AssetCheckEvaluation]:
    """The result for every table as events, for jobs that know no assets."""
    held = held_days(platform, platform.ledger.holds(), with_arrivals=False)
    for contract in platform.catalogue:
        check = _result(platform, contract, held)
        for record in instance.fetch_materializations(asset_key(contract.name), limit=1).records:
            yield dg.AssetCheckEvaluation(
                asset_key=asset_key(contract.name),
                check_name="freshness",
                passed=check.passed,
                severity=check.severity,
                description=check.description,
                metadata=check.metadata,
                target_materialization_data=target_of(record),
            )


def _result(platform: Platform, contract: Contract, held: Collection[HeldDay]) -> dg.AssetCheckResult:
    """What is overdue and what is held of a table: what its page says first must not be that all is well."""
    published = LakeSnapshot.now(platform).digests(contract.name)
    days = platform.calendar.days()
    delay = delays(platform.catalogue)[contract.name]
    overdue = overdue_days(contract, published, platform.calendar, platform.settings.current_day(), delay)
    finding = freshness_finding(contract, overdue, delay)
    metadata: dict[str, dg.MetadataValue] = {
        "days published": dg.MetadataValue.int(len(published)),
        "days in the calendar": dg.MetadataValue.int(len(days)),
        "days overdue": dg.MetadataValue.int(len(overdue)),
        "closed days": dg.MetadataValue.int(sum(not contract.expects(day) for day in days)),
    }
    if overdue:
        spans = [f"- {span}" for span in as_named(overdue)]
        more = [f"- and {len(spans) - _SHOWN:,} more"] if len(spans) > _SHOWN else []
        metadata["overdue"] = markdown("\n".join(spans[:_SHOWN] + more))
    mine = [f"{day.hold.day} {day.sentence}" for day in held if day.hold.table == contract.name]
    sentences = [finding.message] if finding else []
    if mine:
        metadata["days held"] = dg.MetadataValue.int(len(mine))
        metadata["held"] = listed(mine[:_SHOWN], [f"and {len(mine) - _SHOWN:,} more"] if len(mine) > _SHOWN else [])
        sentences.append(f"{contract.name}: {len(mine):,} held, {mine[0]}")
    blocks = bool(mine) or (finding is not None and finding.blocks)
    newest = max(published, default=None)
    return dg.AssetCheckResult(
        check_name="freshness",
        asset_key=asset_key(contract.name),
        passed=not sentences,
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        description="\n".join(map(visible, sentences))
        or f"Every expected day is there, none is held; the newest is {newest}.",
        metadata=metadata,
    )
