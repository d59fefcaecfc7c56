"""Benchmarks: whole processes, sides alternated, every goal printed whether it is held or missed.

Each takes `--quick` (at most 15 minutes) and `--json PATH`. Here belongs what measures the platform and what it is
measured against; nothing that the platform itself needs.
"""
