"""`doctor` says whether somebody listens where Spark is to be, without starting any and without showing a token."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from platform_assets.cli.commands import doctor
from platform_assets.cli.commands.doctor import check_spark
from platform_assets.settings import load_settings
from platform_assets.spark.session.java import HADOOP_FOLDERS, only_as_settings_say
from platform_assets.spark.session.reasons import places_of, why_nobody_listens
from platform_assets.spark.session.session import not_started
from platform_assets_tests.support.processes import free_port


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({}, ()),
        ({"spark_master": "yarn"}, ()),
        ({"spark_master": "spark://a:7077,b:7078"}, (("a", 7077), ("b", 7078))),
        ({"spark_master": "spark://[::1]:7077"}, (("::1", 7077),)),
        ({"spark_master": "k8s://https://cluster.example.com"}, (("cluster.example.com", 443),)),
        ({"spark_remote": "sc://host"}, (("host", 15002),)),
        ({"spark_remote": "sc://ada:pw@host:15003/;use_ssl=true;token=t0ken"}, (("host", 15003),)),
    ],
)
def test_places_are_read_from_the_settings(given: dict[str, str], places: tuple[tuple[str, int], ...]) -> None:
    assert places_of(load_settings(**given)) == places


def test_of_several_masters_one_that_listens_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        there, nowhere = server.getsockname(), ("127.0.0.1", free_port())
        assert not why_nobody_listens((nowhere, there))
        assert not why_nobody_listens(())
        assert why_nobody_listens((nowhere,)) == f"127.0.0.1:{nowhere[1]}: Connection refused"


def test_nobody_there_is_told_with_the_setting_and_without_the_token(tmp_path: Path) -> None:
    port = free_port()
    [said] = check_spark(load_settings(state=tmp_path, spark_remote=f"sc://127.0.0.1:{port}/;token=t0ken"))
    assert (said.ok, said.name) == (False, "Spark")
    assert f"127.0.0.1:{port}" in said.message
    assert "PLATFORM_SPARK_REMOTE" in said.todo
    assert "t0ken" not in f"{said}"
    said = check_spark(load_settings(state=tmp_path, spark_master=f"spark://127.0.0.1:{port}"))[-1]
    assert (said.ok, "PLATFORM_SPARK_MASTER" in said.todo) == (False, True)


def test_of_yarn_settings_of_hadoop_are_missed_before_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in HADOOP_FOLDERS:
        monkeypatch.delenv(name, raising=False)
    yarn = load_settings(state=tmp_path, spark_master="yarn")
    said = check_spark(yarn)[-1]
    assert (said.ok, "HADOOP_CONF_DIR or YARN_CONF_DIR" in said.message) == (False, True)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    said = check_spark(yarn)[-1]
    assert (said.ok, str(tmp_path) in said.message, "HADOOP_CONF_DIR" in said.todo) == (False, True, True)
    (tmp_path / "yarn-site.xml").touch()
    said = check_spark(yarn)[-1]
    assert (said.ok, said.todo) == (True, ""), "only Hadoop knows whom to ask"
    assert "HADOOP_CONF_DIR" in not_started(yarn, "Can't get Kerberos realm").todo


def test_packages_that_connect_needs_are_missed_before_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_PACKAGES_OF_CONNECT", ("pandas", "no_such_package"))
    said, _ = check_spark(load_settings(state=tmp_path, spark_remote=f"sc://127.0.0.1:{free_port()}"))
    assert (said.ok, said.message) == (False, "Spark Connect needs packages that are not installed: no_such_package.")
    assert said.todo == "Install them: uv sync --inexact --extra connect."


def test_a_cluster_that_gives_no_session_is_told_by_what_is_wrong_there(tmp_path: Path) -> None:
    """Spark says of any of it that it cannot call methods on a stopped SparkContext."""
    said = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."
    nowhere = load_settings(state=tmp_path, spark_master=f"spark://127.0.0.1:{free_port()}")
    assert "does not answer at 127.0.0.1" in not_started(nowhere, said).what
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = load_settings(state=tmp_path, spark_master=f"spark://127.0.0.1:{server.getsockname()[1]}")
        assert "answers, but does not take it" in not_started(there, said).what
        assert "spark.authenticate.secret" in not_started(there, said).todo
    assert said in not_started(load_settings(state=tmp_path), said).what


def test_variables_of_pyspark_keep_nobody_from_a_connect_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses to go to one where MASTER is set, whatever else is, and asks again with every session it looks for."""
    monkeypatch.setenv("MASTER", "spark://elsewhere:7077")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with only_as_settings_say(by_connect=True, is_here=False):
        pass
    assert "MASTER" not in os.environ
    assert os.environ["SPARK_CONNECT_MODE_ENABLED"] == "1"
