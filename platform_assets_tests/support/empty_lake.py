"""An empty lake."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from platform_assets.lakehouse.layout import Lake, located
from platform_assets_tests.support.object_store import ObjectStore


@pytest.fixture
def disk_lake(tmp_path: Path) -> Lake:
    """In a folder whose name is not plain."""
    return Lake.at(tmp_path / "ein Ort für Daten")


@pytest.fixture(params=["disk", pytest.param("store", marks=pytest.mark.proof)])
def lake(request: pytest.FixtureRequest, disk_lake: Lake, tmp_path: Path) -> Lake:
    """On a disk, or in an object store."""
    if request.param == "disk":
        return disk_lake
    store: ObjectStore = request.getfixturevalue("object_store")
    return Lake.at(f"{store.url}/{uuid4().hex}/lake", lock_folder=located(tmp_path / "locks"))


only_on_disk = pytest.mark.parametrize("lake", ["disk"], indirect=True)
"""Of tests that look at what a store does not have, links for example, or read by a Spark that knows none."""
