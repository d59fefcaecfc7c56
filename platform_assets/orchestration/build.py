"""Build Dagster's definitions from settings: the one seam between tests, the demo and Dagster itself.

The demo runs them in its own process.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date

import dagster as dg

from platform_assets.contracts import Exposure
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import code_versions
from platform_assets.engine.user_code import refuse_wrong_functions
from platform_assets.orchestration.assets.events import asset_key, plain, shown_owners
from platform_assets.orchestration.assets.factory import build_assets
from platform_assets.orchestration.assets.table_checks import build_comparisons, build_freshness
from platform_assets.orchestration.automation.incidents import announce
from platform_assets.orchestration.automation.refresh_requests import late_data
from platform_assets.orchestration.automation.schedules import (
    build_schedules,
    deliver_messages,
    held_days_job,
    keys_job,
    maintenance_job,
    show_published_elsewhere,
)
from platform_assets.orchestration.jobs import refresh_job, tables_job
from platform_assets.orchestration.plans import plan_apply_job, plan_explain_job
from platform_assets.orchestration.resources import PlatformResource, SparkResource
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
        comparisons = build_comparisons(catalogue)
        definitions = dg.Definitions(
            assets=[
                *assets,
                *(_exposure(domain.name, one) for domain in catalogue.domains for one in domain.exposures),
            ],
            asset_checks=[freshness, *comparisons],
            jobs=[refresh_job, tables_job, maintenance_job, keys_job, held_days_job, plan_explain_job, plan_apply_job],
            schedules=build_schedules(settings, freshness, comparisons),
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


def _exposure(domain: str, exposure: Exposure) -> dg.AssetSpec:
    """Build an external asset, in the group of the domain that declares the exposure."""
    metadata = {"notified at": plain(f"the address in {exposure.url_env}")}
    if exposure.page:
        metadata["page"] = dg.MetadataValue.url(exposure.page)
    return dg.AssetSpec(
        key=dg.AssetKey([_LAYER, exposure.name]),
        description="Outside of the platform. It gets a message for every publication that changes what it reads: "
        "`platform-assets status messages` shows the messages.",
        deps=[asset_key(table) for table in exposure.reads],
        group_name=domain,
        owners=shown_owners(exposure.owner),
        kinds={_LAYER},
        tags={"domain": domain},
        metadata=metadata,
    )


_NO_RETRY = {"dagster/max_retries": "0"}
"""The daemon cannot retry a run that a command executed, so no retry must be announced."""

_AROUND = dg.DagsterExecutionStepExecutionError.__name__
"""Dagster's error around what a step met, which only names the step."""

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class RunOutcome:
    """End of a run: Dagster's id, and messages of failed steps; none if the run succeeded."""

    run_id: str
    failures: tuple[str, ...]


def materialize_range(defs: dg.Definitions, instance: dg.DagsterInstance, first: date, last: date) -> RunOutcome:
    """Materialize every table for a range of days, in one run and one Spark session.

    Raises:
        KeyboardInterrupt: a step was interrupted.
    """
    tags = {
        "dagster/asset_partition_range_start": first.isoformat(),
        "dagster/asset_partition_range_end": last.isoformat(),
        **_NO_RETRY,
    }
    job = defs.resolve_implicit_global_asset_job_def()
    tables = list(job.asset_layer.executable_asset_keys)  # named, or the page of runs shows no target
    result = job.execute_in_process(
        instance=instance, tags=tags, run_config=_QUIET, raise_on_error=False, asset_selection=tables
    )
    return _outcome(result)


def run_job(defs: dg.Definitions, instance: dg.DagsterInstance, name: str, tags: dict[str, str]) -> RunOutcome:
    """Run a job by name.

    Raises:
        KeyboardInterrupt: a step was interrupted.
    """
    job = defs.resolve_job_def(name)
    result = job.execute_in_process(instance=instance, tags=tags | _NO_RETRY, run_config=_QUIET, raise_on_error=False)
    return _outcome(result)


def _outcome(result: dg.ExecuteInProcessResult) -> RunOutcome:
    failures: list[str] = []
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.error_source.name == "INTERRUPT":
                # Dagster records it as a failure like any other, and goes on.
                raise KeyboardInterrupt
            error = data.error
            if error and error.cause and error.cls_name == _AROUND:
                error = error.cause
            described = data.user_failure_data.description if data.user_failure_data else None
            failures.append(described or (error.message.strip() if error else "failed"))
    if not result.success and not failures:
        failures.append("The run failed before its first step.")
    return RunOutcome(result.run_id, tuple(failures))
