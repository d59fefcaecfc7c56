"""A command line that says which of the heavy libraries it imported."""

from __future__ import annotations

PROBE = """
import sys
from platform_assets.cli import main
sys.argv = ["platform-assets", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"dagster", "pyspark", "py4j", "pandas", "polars", "duckdb", "numpy"} & set(sys.modules)
    print("imported", *sorted(heavy), file=sys.stderr)
"""
