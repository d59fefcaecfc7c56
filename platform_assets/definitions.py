"""Dagster's entry point: composes definitions, nothing else."""

import os

from platform_assets.orchestration.build import build_definitions
from platform_assets.orchestration.instance.events import errors_without_trace
from platform_assets.settings import load_settings

with errors_without_trace(of_own_code=True):
    settings = load_settings()
    os.umask(settings.access.umask)  # code servers and runs begin here
    defs = build_definitions(settings)
