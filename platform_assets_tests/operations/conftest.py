"""An empty lake."""

from __future__ import annotations

from platform_assets_tests.support.empty_lake import disk_lake, lake_in_files

__all__ = ["disk_lake", "lake_in_files"]
