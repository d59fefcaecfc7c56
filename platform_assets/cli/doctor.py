"""`doctor`: whether this machine can run the platform, and what to do where it cannot."""

from __future__ import annotations

_ENOUGH_FREE_GB = 5
_PACKAGES = ("dagster", "pyspark", "delta-spark", "deltalake", "sqlalchemy")
