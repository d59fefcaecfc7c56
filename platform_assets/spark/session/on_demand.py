"""A session that is started only where one is needed, so that work without anything to compute starts none."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

SparkOnDemand = Callable[[], SparkSession]
"""Gives the session, and starts it when it is first asked for."""
