"""A lake in a folder, computed on a cluster whose machine has not mounted all of it: nothing is lost in silence."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.cluster import Cluster, running_cluster
from platform_assets_tests.support.own_domain import deliver_sales, write_domain
from platform_assets_tests.support.places import digests_of

__all__ = ["state"]
pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
TILLS = 40
_MAY = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def is_mounted() -> bool:
    """Whether the cluster's machine has all of the lake's folder."""
    return False


@pytest.fixture
def cluster(lake: Path, is_mounted: bool) -> Iterator[Cluster]:
    """A worker that may have an empty folder where raw tables lie: what it reads is all there, and its files are not.

    Of two, the other would take what this one fails at, and whether this one then writes anything is chance.
    """
    if os.geteuid() != 0 or subprocess.run(_MAY, capture_output=True).returncode:
        pytest.skip("only root may mount a folder for one process")
    (lake / "raw").mkdir()
    with running_cluster((), of_this_user=True) as cluster:
        cluster.start_worker("only", over=None if is_mounted else lake / "raw")
        yield cluster


@pytest.mark.parametrize("is_mounted", [True, False])
def test_what_a_machine_wrote_into_another_folder_is_missed(
    cluster: Cluster, is_mounted: bool, lake: Path, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(write_domain(tmp_path / "own")))
    for name, value in {"LANDING": tmp_path / "landing", "SETTLE_S": 0, "DOMAINS": "own_till"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    for day in DAYS:
        deliver_sales(tmp_path / "landing", day, TILLS)
    alone = run_apart("refresh", PLATFORM_STATE=str(tmp_path / "alone"), PLATFORM_LAKE=str(tmp_path / "alone/lake"))
    assert alone.code == 0, alone.err
    right = digests_of(str(tmp_path / "alone/lake"))
    settings = {"SPARK_MASTER": cluster.master, "SPARK_CONF": json.dumps(cluster.conf()), "LAKE": str(lake)}
    there = {f"PLATFORM_{name}": value for name, value in settings.items()} | {"HADOOP_CONF_DIR": str(cluster.hadoop)}
    said = run_apart("refresh", **there)
    if is_mounted:
        assert said.code == 0, said.err
        assert digests_of(str(lake)) == right
        return
    assert not any(digests_of(str(lake)).values())
    assert said.code != 0
    assert "one of its machines has another folder at that path" in said.err
