"""What Dagster shows of tables: assets, events, checks, charts and freshness.

Here belongs how a result of the engine looks in Dagster. Which days were computed, and whether they are right, was
decided before.
"""
