"""Puts Dagster's definitions together from settings: the one seam between tests, the demo and Dagster itself."""

from __future__ import annotations

import warnings

import dagster as dg

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.platform import code_versions
from platform_assets.orchestration.assets import build_assets
from platform_assets.orchestration.jobs import refresh_job
from platform_assets.orchestration.resources import PlatformResource, SparkResource
from platform_assets.settings import Settings


def build_definitions(settings: Settings) -> dg.Definitions:
    """All assets, jobs and resources of the platform that the settings describe."""
    catalogue = load_catalogue(settings)
    with warnings.catch_warnings():
        # Backfill policies are marked beta in Dagster 1.13; its version is pinned, and this would be said once a table.
        warnings.simplefilter("ignore", dg.BetaWarning)
        assets = build_assets(catalogue, settings, code_versions(catalogue))
    return dg.Definitions(
        assets=assets,
        jobs=[refresh_job],
        resources={"platform": PlatformResource(), "spark": SparkResource()},
        executor=dg.in_process_executor,
    )
