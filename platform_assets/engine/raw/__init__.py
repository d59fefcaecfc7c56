"""A turn at a raw table, and the tombstones in it: what all that changes raw has in common.

Here belongs what ingest, approvals and withdrawals share; they themselves are in `ingest` and `late`.
"""
