"""What a session starts from: a Java that it can use, somebody who listens, settings of a store; no secret shown."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from platform_assets.cli.commands import doctor
from platform_assets.cli.commands.doctor import check_spark
from platform_assets.settings import load_settings, project_root
from platform_assets.spark.session.configuration import of_s3, of_store
from platform_assets.spark.session.java import HADOOP_FOLDERS, MORE_OPTIONS, JavaError, find_java, only_as_settings_say
from platform_assets.spark.session.jvm import SessionError
from platform_assets.spark.session.reasons import places_of, why_unreachable
from platform_assets.spark.session.session import not_started
from platform_assets_tests.support.installation import fake_java, says
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
        assert not why_unreachable((nowhere, there))
        assert not why_unreachable(())
        assert why_unreachable((nowhere,)) == f"127.0.0.1:{nowhere[1]}: Connection refused"


def test_nobody_there_is_told_with_the_setting_and_without_the_token(tmp_path: Path) -> None:
    port = free_port()
    [said] = check_spark(load_settings(state=tmp_path, spark_remote=f"sc://127.0.0.1:{port}/;token=t0ken"))
    assert (said.ok, said.name) == (False, "Spark")
    assert f"127.0.0.1:{port}" in said.message
    assert "PLATFORM_SPARK_REMOTE" in said.todo
    assert "t0ken" not in f"{said}"
    *_, said = check_spark(load_settings(state=tmp_path, spark_master=f"spark://127.0.0.1:{port}"))
    assert (said.ok, "PLATFORM_SPARK_MASTER" in said.todo) == (False, True)


def test_of_yarn_settings_of_hadoop_are_missed_before_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in HADOOP_FOLDERS:
        monkeypatch.delenv(name, raising=False)
    yarn = load_settings(state=tmp_path, spark_master="yarn")
    *_, said = check_spark(yarn)
    assert (said.ok, "HADOOP_CONF_DIR or YARN_CONF_DIR" in said.message) == (False, True)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    *_, said = check_spark(yarn)
    assert (said.ok, str(tmp_path) in said.message, "HADOOP_CONF_DIR" in said.todo) == (False, True, True)
    (tmp_path / "yarn-site.xml").touch()
    *_, said = check_spark(yarn)
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


def test_the_java_of_this_machine_is_found() -> None:
    java = find_java()
    assert os.access(java.executable, os.X_OK)
    assert java.version.startswith(str(java.major))


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    """And a version that is not out yet is taken, too."""
    wanted = fake_java(tmp_path / "home" / "bin", says("21-ea"))
    fake_java(tmp_path / "path", says("17.0.1"))
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")})
    assert (java.executable, java.major, java.version) == (wanted, 21, "21-ea")


@pytest.mark.parametrize("version", ["1.8.0_402", "16.0.2", "26.0.1"])
def test_another_version_is_refused_in_one_line_that_says_how_to_get_the_right_one(
    version: str, tmp_path: Path
) -> None:
    program = fake_java(tmp_path, says(version))
    with pytest.raises(JavaError) as caught:
        find_java({"PATH": f"{tmp_path}:/bin"})
    assert caught.value.what == f"{program} is Java {version}; Spark needs Java 17 to 25."
    assert "openjdk-17" in caught.value.todo


def test_no_java_at_all_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="JAVA_HOME is not set and PATH has no java"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=f"JAVA_HOME is {tmp_path}"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize("script", ["echo 'Error: could not create the VM' >&2; exit 1", "exit 3"])
def test_a_java_that_does_not_run_is_an_error_with_its_own_words(script: str, tmp_path: Path) -> None:
    fake_java(tmp_path, script)
    with pytest.raises(JavaError, match="does not run"):
        find_java({"PATH": f"{tmp_path}:/bin"})


def test_options_of_the_environment_with_which_java_does_not_run_are_named() -> None:
    environ = {name: value for name, value in os.environ.items() if name not in MORE_OPTIONS}
    for name, options, told in (
        ("JDK_JAVA_OPTIONS", "-Xmx99999t", "heap"),
        ("JAVA_TOOL_OPTIONS", "-XX:NoSuchOption", "NoSuchOption"),
    ):
        with pytest.raises(JavaError, match=f"does not run: .*{told}") as caught:
            find_java({**environ, name: options})
        assert caught.value.todo.startswith(f"Correct {name}, which Java starts with")


_IN_AZURE = "abfss://lakes@account.dfs.core.windows.net/lake"


def test_the_page_about_deployment_has_every_setting_of_a_server() -> None:
    page = (project_root() / "docs" / "deployment.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- settings of a server -->\n```properties\n(.*?)```", page, re.DOTALL)
    assert block, "the block is there"
    assert dict(line.split() for line in block[1].splitlines()) == of_s3({})


def test_no_setting_holds_what_is_shown_to_azure() -> None:
    conf = of_store(_IN_AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "planted-s3cr3t"})
    assert "planted-s3cr3t" not in str(conf)
    assert "${env.AZURE_STORAGE_ACCOUNT_KEY}" in conf.values(), "Hadoop looks there"
    assert not [each for each in conf if "endpoint" in each or "https" in each], "Azure is where its name says"


def test_spark_without_a_key_to_show_to_azure_is_refused_before_it_starts() -> None:
    with pytest.raises(SessionError, match="nothing to show to Azure") as caught:
        of_store(_IN_AZURE, {"AZURE_STORAGE_SAS_TOKEN": "planted-s3cr3t"})
    assert "AZURE_STORAGE_ACCOUNT_KEY" in caught.value.todo
    assert "planted" not in str(caught.value)


def test_an_emulator_of_azure_is_found_as_deltalake_finds_it() -> None:
    given = {"AZURE_STORAGE_ACCOUNT_KEY": "a-key", "AZURE_STORAGE_USE_EMULATOR": "true"}
    assert of_store(_IN_AZURE, given)["spark.hadoop.fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    elsewhere = of_store(_IN_AZURE, given | {"AZURITE_BLOB_STORAGE_URL": "https://10.0.0.5:443"})
    assert elsewhere["spark.hadoop.fs.azure.abfs.endpoint"] == "10.0.0.5:443"
    assert elsewhere["spark.hadoop.fs.azure.always.use.https"] == "true"


def test_a_lake_in_a_folder_needs_no_setting_of_a_store() -> None:
    assert of_store("/srv/lake", {}) == {}
