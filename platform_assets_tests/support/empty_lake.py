"""An empty lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.lakehouse.layout import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """In a folder whose name is not plain."""
    return Lake.at(tmp_path / "ein Ort für Daten")
