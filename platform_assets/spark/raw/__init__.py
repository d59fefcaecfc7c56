"""Rows of raw tables: parsing, rules, order of versions, tombstones, withdrawals.

Put here everything between a delivered row and the transform.
"""
