"""Puts Dagster's definitions together from settings: the one seam between tests, the demo and Dagster itself."""

from __future__ import annotations

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
    return dg.Definitions(
        assets=build_assets(catalogue, settings, code_versions(catalogue)),
        jobs=[refresh_job],
        resources={"platform": PlatformResource(), "spark": SparkResource()},
        executor=dg.in_process_executor,
    )
