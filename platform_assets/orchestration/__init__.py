"""Dagster's edge: assets, resources and jobs made from contracts.

A Dagster run calls the same functions of the engine as the command line. Nothing here decides what to compute.
"""

import warnings

import dagster as dg

# Backfill policies are marked beta in Dagster 1.13; the versions are pinned, and the warning comes once per table.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
