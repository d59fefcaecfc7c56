"""The engine: ingest arrivals and recompute days: read, transform, stage, gate, publish.

Everything that starts work (a Dagster asset, a job, the command line) calls the functions of this room on a set of
days. Decisions come from `planning` and `quality`; rows are moved by `compute`; what people see changes in `lakehouse`.
"""
