"""Locked changes of a raw table, and its tombstones.

Here belongs what ingest, approvals and withdrawals share; they themselves are in `ingest` and `late`.
"""
