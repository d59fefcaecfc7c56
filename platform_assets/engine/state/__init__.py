"""The state of days: what is stale and why, and what can be computed now.

Put here reading the ledger, the logs and reference data for the pure decisions of `planning`. Nothing here computes a
day or writes anything.
"""
