"""Which tables Spark computes though Sail was asked for, as commands tell it."""

from __future__ import annotations

from collections.abc import Mapping

from platform_assets.cli.console import say


def print_by_spark(tables: Mapping[str, str]) -> None:
    """A line for each, with the reason and what to do."""
    for table, why in tables.items():
        say("Spark computes", f"{table}: {why}; `platform-assets engine verify {table}`")
