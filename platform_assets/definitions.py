"""Dagster's entry point: composes definitions, nothing else."""

from platform_assets.orchestration.build import build_definitions
from platform_assets.settings import load_settings

defs = build_definitions(load_settings())
