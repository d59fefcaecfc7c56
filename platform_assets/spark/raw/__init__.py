"""Rows of raw tables: parsing, rules, order of versions, tombstones, withdrawals.

Here belongs what becomes of a delivered row until a transform sees it.
"""
