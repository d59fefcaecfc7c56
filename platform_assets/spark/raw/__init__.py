"""Rows of raw tables: parsed, ruled, ordered by version, tombstones and withdrawals among them.

Here belongs what becomes of a delivered row until a transform sees it.
"""
