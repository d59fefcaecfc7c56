"""Ingest: delivered files enter raw, whole and exactly once.

Here belong listing what waits, taking it in batches, and files that cannot be taken. Which files there are and how they
look is told by `sources`; rows that wait for a person are in `late`.
"""
