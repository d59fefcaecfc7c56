"""Dagster's entry point: composes definitions, nothing else."""

import os

from platform_assets.orchestration.build import build_definitions
from platform_assets.orchestration.told_errors import mistakes_told
from platform_assets.settings import load_settings

with mistakes_told():
    settings = load_settings()
    os.umask(settings.access.umask)  # code servers and runs begin here
    defs = build_definitions(settings)
