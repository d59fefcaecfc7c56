"""Put Dagster's definitions together from settings: the one seam between tests, the demo and Dagster itself."""

from __future__ import annotations

import warnings

import dagster as dg

from platform_assets.contracts import Catalogue, Exposure
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import code_versions
from platform_assets.engine.user_code import refuse_wrong_functions
from platform_assets.orchestration.assets.events import asset_key, shown_owners
from platform_assets.orchestration.assets.factory import build_assets
from platform_assets.orchestration.assets.freshness import build_freshness, build_freshness_schedule
from platform_assets.orchestration.automation.comparisons import build_comparisons
from platform_assets.orchestration.automation.schedules import (
    build_schedules,
    deliver_messages,
    keys_job,
    maintenance_job,
)
from platform_assets.orchestration.automation.sensors import (
    announce,
    held_days_job,
    late_data,
    show_published_elsewhere,
)
from platform_assets.orchestration.jobs import refresh_job, tables_job
from platform_assets.orchestration.plans import plan_apply_job, plan_explain_job
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.orchestration.shown_text import plain
from platform_assets.progress import OnProgress, no_progress
from platform_assets.settings import Settings

_LAYER = "exposure"


def build_definitions(settings: Settings, progress: OnProgress = no_progress) -> dg.Definitions:
    """Build all assets, jobs, schedules, sensors and resources of the platform that the settings describe."""
    catalogue = load_catalogue(settings)
    refuse_wrong_functions(catalogue)
    with warnings.catch_warnings():
        # In Dagster 1.13, backfill policies are beta and checks of partitions preview; its version is pinned, and this
        # would be said once a table.
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        assets = build_assets(catalogue, settings, code_versions(catalogue))
        freshness = build_freshness(catalogue)
        comparisons, comparing = build_comparisons(catalogue, settings.reconcile_cron)
        definitions = dg.Definitions(
            assets=[*assets, *build_exposures(catalogue)],
            asset_checks=[freshness, *comparisons],
            jobs=[refresh_job, tables_job, maintenance_job, keys_job, held_days_job, plan_explain_job, plan_apply_job],
            schedules=[
                *build_schedules(settings),
                build_freshness_schedule(freshness),
                *comparing,
            ],
            sensors=[late_data, announce, deliver_messages, show_published_elsewhere],
            resources={
                "platform": PlatformResource(settings=settings),
                "spark": SparkResource(settings=settings),
                "progress": progress,
            },
            executor=dg.in_process_executor,
        )
        # Put together here, and kept: Dagster copies sensors for it, and warns of its own `owners` of them.
        definitions.get_repository_def()
    return definitions


def build_exposures(catalogue: Catalogue) -> list[dg.AssetSpec]:
    """Build an external asset for each exposure, beside the tables of the domain that declares it."""
    return [_spec(domain.name, exposure) for domain in catalogue.domains for exposure in domain.exposures]


def _spec(domain: str, exposure: Exposure) -> dg.AssetSpec:
    metadata = {"told at": plain(f"the address in {exposure.url_env}")}
    if exposure.page:
        metadata["page"] = dg.MetadataValue.url(exposure.page)
    return dg.AssetSpec(
        key=dg.AssetKey([_LAYER, exposure.name]),
        description="Lies outside of the platform, and is told of every publication that changed what it reads: "
        "`platform-assets outbox list` has what it was told.",
        deps=[asset_key(table) for table in exposure.reads],
        group_name=domain,
        owners=shown_owners(exposure.owner),
        kinds={_LAYER},
        tags={"domain": domain},
        metadata=metadata,
    )
