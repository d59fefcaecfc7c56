"""On a machine that has another Spark, and settings of a Hadoop cluster, commands compute what they do elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.cluster import write_settings
from platform_assets_tests.support.own_domain import deliver_sales, write_domain
from platform_assets_tests.support.places import digests_of
from platform_assets_tests.support.processes import free_port

__all__ = ["state"]
pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
TILLS = 40
_DEFAULTS = "spark.master yarn\nspark.sql.session.timeZone Asia/Tokyo\nspark.jars.packages no:such:1\n"


def test_variables_of_another_spark_and_of_a_cluster_change_nothing(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders are those of this machine, though one without a scheme would be of HDFS, with two slashes a host's."""
    monkeypatch.setenv("PYTHONPATH", str(write_domain(tmp_path / "own")))
    for name, value in {"LANDING": f"/{tmp_path}/it's a landing (1)", "SETTLE_S": 0, "DOMAINS": "own_till"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    for day in DAYS:
        deliver_sales(tmp_path / "it's a landing (1)", day, TILLS, "all {sales} ü%20.jsonl")
    (tmp_path / "spark-defaults.conf").write_text(_DEFAULTS)
    write_settings(tmp_path, port=free_port())
    other = {
        "SPARK_HOME": str(tmp_path / "spark-3.5"),
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_DIST_CLASSPATH": str(tmp_path / "jars"),
        "HADOOP_CONF_DIR": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": "--packages no:such:1 pyspark-shell",
        "PYSPARK_PYTHON": "/usr/bin/python2",
        "_JAVA_OPTIONS": "-Duser.timezone=America/New_York -Duser.language=tr",
        "MASTER": "spark://127.0.0.1:9",
        "SPARK_REMOTE": "sc://127.0.0.1:9",
    }
    digests = []
    for name, variables in {"alone": {}, "a lake, {beside} others": other}.items():
        lake = str(tmp_path / name / "lake")
        said = run_apart("refresh", **variables, PLATFORM_STATE=str(tmp_path / name), PLATFORM_LAKE=lake)
        assert said.code == 0, said.err
        digests.append(digests_of(lake))
    assert digests[0] == digests[1]
    assert all(len(days) == len(DAYS) for days in digests[0].values() if days)
