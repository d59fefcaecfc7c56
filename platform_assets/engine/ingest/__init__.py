"""Ingest: delivered files enter raw, whole and exactly once.

Put here listing waiting files, ingesting them in batches, and files that cannot be ingested. Listing and inspecting
files is in `sources`; rows that wait for a person are in `late`.
"""
