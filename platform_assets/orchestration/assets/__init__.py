"""What Dagster shows about tables: assets, events, checks, charts and freshness.

Put here how a result of the engine looks in Dagster. Which days were computed, and whether they are right, was decided
before.
"""
