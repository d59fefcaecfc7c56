"""The jars that Spark needs: brought once, known by content, never half there."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from platform_assets.cli.commands.doctor import check_class_archive, check_jars
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.class_archive import archive_path, recording_of
from platform_assets.spark.session.jars import ALWAYS, JarsError, bring, faults, needed
from platform_assets.spark.session.java import find_java
from platform_assets_tests.support.installation import JARS


@pytest.fixture(scope="session")
def brought() -> Path:
    """The project's jars, brought first if this is the first run of all."""
    bring(load_settings())
    assert not faults(JARS, ALWAYS)
    return JARS


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        asked.append(self.path)


asked: list[str] = []
"""What registries were asked for."""


@pytest.fixture
def registry(brought: Path, tmp_path: Path) -> Iterator[str]:
    """A registry with the real files, in the layout of Maven."""
    root = tmp_path / "registry"
    for jar in ALWAYS:
        (root / jar.path).parent.mkdir(parents=True)
        shutil.copy(brought / jar.file, root / jar.path)
    asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://name:key@127.0.0.1:{server.server_port}/"
        server.shutdown()


def settings_with(registry: str, tmp_path: Path) -> Settings:
    """Settings of an empty installation that knows only this registry."""
    return load_settings(state=tmp_path / "state", spark_conf={"spark.jars.repositories": registry})


def test_jars_are_brought_once_without_a_word_and_then_need_no_network(
    registry: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = settings_with(registry, tmp_path)
    settings.jars.mkdir(parents=True)
    (settings.jars / ".downloading").write_bytes(b"of a process that was killed")
    paths = bring(settings)
    assert capfd.readouterr() == ("", "")
    assert [path.name for path in paths] == [jar.file for jar in ALWAYS]
    shutil.rmtree(tmp_path / "registry")
    assert bring(settings) == paths
    assert sorted(path.name for path in settings.jars.iterdir()) == sorted([".lock", *(jar.file for jar in ALWAYS)])


@pytest.mark.parametrize("damage", [b"PK\x03\x04 half a jar", pytest.param(b"", marks=pytest.mark.proof)])
def test_a_damaged_jar_is_noticed_and_brought_again(damage: bytes, registry: str, tmp_path: Path) -> None:
    settings = settings_with(registry, tmp_path)
    path = bring(settings)[0]
    path.write_bytes(damage)
    assert not check_jars(settings).ok
    bring(settings)
    assert not faults(settings.jars, ALWAYS)
    assert check_jars(settings).ok


def test_a_class_archive_that_the_next_start_takes_is_told(tmp_path: Path) -> None:
    settings, java = load_settings(state=tmp_path, jars=tmp_path), find_java()
    assert "No cache of Spark's classes yet" in check_class_archive(settings, java).message
    recording_of(archive_path(settings, java)).touch()
    assert "was recorded; the next command" in check_class_archive(settings, java).message


def test_jars_that_a_bucket_needs_as_well_are_counted(tmp_path: Path, brought: Path) -> None:
    settings = load_settings(state=tmp_path, jars=tmp_path / "jars", lake="s3://bucket/lake")
    settings.jars.mkdir()
    for jar in ALWAYS:
        shutil.copy(brought / jar.file, settings.jars)
    found, every = check_jars(settings), needed(settings)
    assert found.ok
    assert found.message.startswith(f"{len(every) - len(ALWAYS)} of {len(every)} files are not")
    (settings.jars / ALWAYS[0].file).write_bytes(b"damaged")
    damaged = check_jars(settings)
    assert (damaged.ok, "missing" in damaged.message, ALWAYS[0].file in damaged.message) == (False, False, True)


def test_a_damaged_jar_without_a_network_is_an_error_that_says_what_to_put_where(tmp_path: Path, brought: Path) -> None:
    settings = settings_with("http://localhost:1/", tmp_path)
    settings.jars.mkdir(parents=True)
    for jar in ALWAYS:
        shutil.copy(brought / jar.file, settings.jars)
    (settings.jars / ALWAYS[0].file).write_bytes(b"damaged")
    with pytest.raises(JarsError, match="cannot be reached") as caught:
        bring(settings)
    assert f"{ALWAYS[0].organisation}:{ALWAYS[0].module}:{ALWAYS[0].revision}" in caught.value.todo
    assert str(settings.jars) in caught.value.todo
    assert not (settings.jars / ".downloading").exists()


def test_a_registry_that_delivers_other_files_is_refused(registry: str, tmp_path: Path) -> None:
    settings = settings_with(registry, tmp_path)
    for path in (tmp_path / "registry").rglob(ALWAYS[1].file):
        path.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(JarsError, match="another content than that release has") as caught:
        bring(settings)
    assert "key" not in str(caught.value)
    assert not (settings.jars / ALWAYS[1].file).exists()


def test_many_who_ask_at_once_make_one_request(registry: str, tmp_path: Path) -> None:
    settings = settings_with(registry, tmp_path)
    asking = [threading.Thread(target=bring, args=(settings,)) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not faults(settings.jars, ALWAYS)
    assert sorted(asked) == sorted(f"/{jar.path}" for jar in ALWAYS)
