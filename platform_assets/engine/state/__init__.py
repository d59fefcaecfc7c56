"""Where days stand: what is stale and why, what can be computed now, what tables need to follow their contract.

Here belongs reading the ledger, the logs and reference data for the pure decisions of `planning`. Nothing here computes
a day or writes anything.
"""
