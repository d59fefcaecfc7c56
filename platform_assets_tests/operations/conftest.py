"""An empty lake; and a platform whose days were computed on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.platform import Platform
from platform_assets_tests.support.days_on_paper import opened, publish_all
from platform_assets_tests.support.empty_lake import disk_lake, lake_in_files

__all__ = ["disk_lake", "lake_in_files"]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        yield platform
