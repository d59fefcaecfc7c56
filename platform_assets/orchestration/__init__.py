"""Dagster's edge: assets, resources and jobs made from contracts.

A Dagster run calls the same functions of the engine as the command line. Nothing here decides what to compute.
"""
