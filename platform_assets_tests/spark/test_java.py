"""Java: found where Spark finds it, and refused in one line where Spark could not use it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from platform_assets.spark.session.java import MORE_OPTIONS, JavaError, find_java
from platform_assets_tests.support.installation import fake_java, says


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
