"""An empty lake."""

from __future__ import annotations

from platform_assets_tests.support.empty_lake import disk_lake, lake

__all__ = ["disk_lake", "lake"]
