"""The jars that Spark needs: brought once, known by content, never half there."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from platform_assets.cli.commands.doctor import Finding, check_spark
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.jars import ALWAYS, JarsError, archive_path, faults, needed, recording_of, spark_jars
from platform_assets.spark.session.java import Java, find_java
from platform_assets_tests.support.installation import JARS, fake_java

UNREACHABLE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <caches defaultCacheDir="{folder}/cache"/>
  <resolvers><ibiblio name="nowhere" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""


@pytest.fixture(scope="session")
def brought() -> Path:
    """The project's jars, brought first if this is the first run of all."""
    spark_jars(load_settings())
    assert not faults(JARS, ALWAYS)
    return JARS


@pytest.fixture
def registry(brought: Path, tmp_path: Path) -> str:
    """A registry in a folder: the real files, in the layout of Maven, with the real Ivy reading them."""
    root = tmp_path / "registry"
    for jar in ALWAYS:
        folder = root / jar.organisation.replace(".", "/") / jar.module / jar.revision
        folder.mkdir(parents=True)
        shutil.copy(brought / jar.file, folder)
        (folder / jar.file).with_suffix(".pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{jar.organisation}</groupId>"
            f"<artifactId>{jar.module}</artifactId><version>{jar.revision}</version></project>"
        )
    return f"file://{root}/"


def settings_with(registry: str, tmp_path: Path) -> Settings:
    """Settings of an empty installation that knows only this registry."""
    ivy = tmp_path / "ivysettings.xml"
    ivy.write_text(UNREACHABLE.format(root=registry, folder=tmp_path))
    return load_settings(state=tmp_path / "state", spark_conf={"spark.jars.ivySettings": str(ivy)})


def test_jars_are_brought_once_without_a_word_and_then_need_neither_network_nor_java(
    registry: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = settings_with(registry, tmp_path)
    (settings.jars / ".resolving-dead" / "brought").mkdir(parents=True)  # of a process that was killed
    paths = spark_jars(settings)
    assert capfd.readouterr() == ("", "")
    assert ALWAYS[0].module in (settings.state / "logs" / "spark.log").read_text()
    assert [path.name for path in paths] == [jar.file for jar in ALWAYS]
    shutil.rmtree(tmp_path / "registry")
    no_java = Java(tmp_path / "no-java", 17, "")
    assert spark_jars(settings, no_java) == paths
    assert sorted(path.name for path in settings.jars.iterdir()) == sorted([".lock", *(jar.file for jar in ALWAYS)])


def looked(name: str, settings: Settings) -> Finding:
    """What the doctor finds of it."""
    return next(found for found in check_spark(settings) if found.name == name)


@pytest.mark.parametrize("damage", [b"PK\x03\x04 half a jar", pytest.param(b"", marks=pytest.mark.proof)])
def test_a_damaged_jar_is_noticed_and_brought_again(damage: bytes, registry: str, tmp_path: Path) -> None:
    settings = settings_with(registry, tmp_path)
    path = spark_jars(settings)[0]
    path.write_bytes(damage)
    assert not looked("Jars", settings).ok
    spark_jars(settings)
    assert not faults(settings.jars, ALWAYS)
    assert looked("Jars", settings).ok


def test_a_class_archive_that_the_next_start_takes_is_told(tmp_path: Path) -> None:
    settings, java = load_settings(state=tmp_path, jars=tmp_path), find_java()
    assert "No cache of Spark's classes yet" in looked("Class archive", settings).message
    recording_of(archive_path(settings, java)).touch()
    assert "was recorded; the next command" in looked("Class archive", settings).message


def test_jars_that_a_bucket_needs_as_well_are_counted(tmp_path: Path, brought: Path) -> None:
    settings = load_settings(state=tmp_path, jars=tmp_path / "jars", lake="s3://bucket/lake")
    settings.jars.mkdir()
    for jar in ALWAYS:
        shutil.copy(brought / jar.file, settings.jars)
    found, every = looked("Jars", settings), needed(settings)
    assert found.ok
    assert found.message.startswith(f"{len(every) - len(ALWAYS)} of {len(every)} files are not")
    (settings.jars / ALWAYS[0].file).write_bytes(b"damaged")
    damaged = looked("Jars", settings)
    assert (damaged.ok, "missing" in damaged.message, ALWAYS[0].file in damaged.message) == (False, False, True)


def test_a_damaged_jar_without_a_network_is_an_error_that_says_what_to_put_where(tmp_path: Path, brought: Path) -> None:
    settings = settings_with("http://localhost:1/", tmp_path)
    settings.jars.mkdir(parents=True)
    for jar in ALWAYS:
        shutil.copy(brought / jar.file, settings.jars)
    (settings.jars / ALWAYS[0].file).write_bytes(b"damaged")
    with pytest.raises(JarsError, match="cannot be reached") as caught:
        spark_jars(settings)
    assert f"{ALWAYS[0].organisation}:{ALWAYS[0].module}:{ALWAYS[0].revision}" in caught.value.todo
    assert str(settings.jars) in caught.value.todo
    assert not list(settings.jars.glob(".resolving-*"))


def test_a_registry_that_delivers_other_files_is_refused(registry: str, tmp_path: Path) -> None:
    settings = settings_with(registry, tmp_path)
    for path in (tmp_path / "registry").rglob(ALWAYS[1].file):
        path.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(JarsError, match="another content than the release it is named after"):
        spark_jars(settings)
    assert not (settings.jars / ALWAYS[1].file).exists()


def test_many_who_ask_at_once_make_one_request(registry: str, tmp_path: Path) -> None:
    settings = settings_with(registry, tmp_path)
    real = find_java().executable
    calls = tmp_path / "calls"
    counting = Java(fake_java(tmp_path / "bin", f'echo call >> "{calls}"; exec "{real}" "$@"'), 17, "")
    asking = [threading.Thread(target=spark_jars, args=(settings, counting)) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not faults(settings.jars, ALWAYS)
    assert calls.read_text().splitlines() == ["call"]
