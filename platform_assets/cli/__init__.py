"""The command line: thin commands over the functions that Dagster calls too.

Commands that only read import neither Dagster nor PySpark, so that they answer at once; those that compute import them
when they run. One module per command, put together in `app`.
"""

from platform_assets.cli.app import main

__all__ = ["main"]
