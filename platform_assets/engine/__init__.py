"""The engine: ingest arrivals and recompute days: read, transform, stage, gate, publish.

Put here the one way to do work, which assets, jobs and commands call on a set of days: `refresh` for all tables,
`ingest` and `step` for one. Decisions come from `planning` and `quality`, rows are moved by `spark`, what people see
changes in `lakehouse`. What else people do (roll back, verify, clean up, ask) is in `operations`.
"""
