"""An empty lake, and a database."""

from __future__ import annotations

from platform_assets_tests.support.empty_lake import lake
from platform_assets_tests.support.postgres import postgres_server

__all__ = ["lake", "postgres_server"]
