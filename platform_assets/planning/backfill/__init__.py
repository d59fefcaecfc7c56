"""Decisions about a backfill: its plan file, days, rollout, price and approvals.

Pure, as all planning: files are read, computed and published by `operations.backfill`.
"""
