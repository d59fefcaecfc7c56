"""A lake in a folder, computed on a cluster of which one machine has not mounted it: nothing is lost in silence."""

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
from platform_assets_tests.support.published import digests_of

__all__ = ["state"]
pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
TILLS = 40
_MAY = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared" / "lake"


@pytest.fixture
def is_mounted() -> bool:
    """Whether both machines have the lake's folder."""
    return False


@pytest.fixture
def cluster(lake: Path, is_mounted: bool) -> Iterator[Cluster]:
    """Two workers, of which one may have an empty folder where the lake lies."""
    if os.geteuid() != 0 or subprocess.run(_MAY, capture_output=True).returncode:
        pytest.skip("only root may mount a folder for one process")
    with running_cluster(("first",), of_this_user=True) as cluster:
        cluster.start_worker("second", over=None if is_mounted else lake.parent)
        yield cluster


@pytest.mark.parametrize("is_mounted", [True, False])
def test_what_a_machine_wrote_into_another_folder_is_missed(
    cluster: Cluster, is_mounted: bool, lake: Path, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a read comes first that fails there, is chance: then Spark tries it elsewhere."""
    monkeypatch.setenv("PYTHONPATH", str(write_domain(tmp_path / "own")))
    for name, value in {"LANDING": tmp_path / "landing", "SETTLE_S": 0, "DOMAINS": "own_till"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    for day in DAYS:
        deliver_sales(tmp_path / "landing", day, TILLS)
    alone = run_apart("refresh", PLATFORM_STATE=str(tmp_path / "alone"), PLATFORM_LAKE=str(tmp_path / "alone/lake"))
    assert alone.code == 0, alone.err
    right = digests_of(str(tmp_path / "alone/lake"))
    conf = cluster.conf() | {"spark.task.maxFailures": "50"}
    settings = {"SPARK_MASTER": cluster.master, "SPARK_CONF": json.dumps(conf), "LAKE": str(lake)}
    there = {f"PLATFORM_{name}": value for name, value in settings.items()} | {"HADOOP_CONF_DIR": str(cluster.hadoop)}
    said = run_apart("refresh", **there)
    if is_mounted:
        assert said.code == 0, said.err
        assert digests_of(str(lake)) == right
        return
    for table, days in digests_of(str(lake)).items():
        assert days.items() <= right[table].items()
    assert said.code != 0
    assert "one of its machines has another folder at that path" in said.err
