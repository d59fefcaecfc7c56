"""Ingest: delivered files enter raw, whole and exactly once.

Put here listing waiting files, taking them in batches, and files that cannot be taken. Which files there are and how
they look is in `sources`; rows that wait for a person are in `late`.
"""
