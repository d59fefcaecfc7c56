"""Dagster's entry point: composes definitions, nothing else."""

import os

from platform_assets.orchestration.build import build_definitions
from platform_assets.settings import load_settings

settings = load_settings()
os.umask(settings.access.umask)  # code servers and runs begin here
defs = build_definitions(settings)
