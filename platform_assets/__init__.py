"""A Dagster platform that corrects the past of daily-partitioned Delta tables safely.

`read` gives any released table, at one release across tables.
"""

from platform_assets.lakehouse.read import read

__all__ = ["read"]
