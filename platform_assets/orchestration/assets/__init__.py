"""What Dagster shows of tables: one asset for each, its events, checks, pictures and freshness.

Here belongs how a result of the engine looks in Dagster. Which days were computed, and whether they are right, was
decided before.
"""
