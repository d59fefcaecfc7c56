"""An empty lake."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from platform_assets.lakehouse.layout import Lake, located
from platform_assets_tests.support.object_store import Azurite, ObjectStore


@pytest.fixture
def disk_lake(tmp_path: Path) -> Lake:
    """In a folder whose name is not plain."""
    return Lake.at(tmp_path / "ein Ort für Daten")


_STORES = {"store": "object_store", "azure": "azurite"}
_IN_FILES = ("disk", pytest.param("store", marks=pytest.mark.proof))


def _empty(request: pytest.FixtureRequest, disk_lake: Lake, tmp_path: Path) -> Lake:
    if request.param == "disk":
        return disk_lake
    store: ObjectStore | Azurite = request.getfixturevalue(_STORES[request.param])
    return Lake.at(f"{store.url}/{uuid4().hex}/lake", lock_folder=located(tmp_path / "locks"))


@pytest.fixture(params=[*_IN_FILES, pytest.param("azure", marks=pytest.mark.proof)])
def lake(request: pytest.FixtureRequest, disk_lake: Lake, tmp_path: Path) -> Lake:
    """On a disk, in a bucket, or in a container of Azure's."""
    return _empty(request, disk_lake, tmp_path)


@pytest.fixture(name="lake", params=_IN_FILES)
def lake_in_files(request: pytest.FixtureRequest, disk_lake: Lake, tmp_path: Path) -> Lake:
    """On a disk, or in a bucket that lies there: for tests that copy what lies in it, or make it old."""
    return _empty(request, disk_lake, tmp_path)


where_folders_are = pytest.mark.parametrize("lake", _IN_FILES, indirect=True)
"""Of tests in which a folder is in the way of a file: s3proxy keeps its objects on a disk, Azurite does not."""

only_on_disk = pytest.mark.parametrize("lake", ["disk"], indirect=True)
"""Of tests that look at what a store does not have, links for example, or read by a Spark that knows none."""
