"""An empty lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets_tests.support.postgres import postgres_server

__all__ = ["postgres_server"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "ein Ort für Daten")
