"""Dagster's storage on a server that cannot be used: `up` says so in a line, with what to do, without a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.cli.dagster_storage import URL, DagsterStorageError, dagster_instance, storage_error
from platform_assets_tests.support.cluster import free_port

SERVER = "storage:\n  postgres:\n    postgres_url:\n      env: DAGSTER_POSTGRES_URL\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dagster.yaml").write_text(SERVER)
    return tmp_path


def test_a_server_that_does_not_answer_is_told_without_its_password(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(URL, f"postgresql://ada:s3cr%2Ft@127.0.0.1:{free_port()}/x")
    with pytest.raises(DagsterStorageError, match="Connection refused") as caught, dagster_instance(home):
        pass
    assert URL in caught.value.todo
    assert "s3cr" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert not caplog.messages


def test_the_variable_that_dagster_yaml_asks_for_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(DagsterStorageError, match=rf"{URL} says, which is not set"), dagster_instance(home):
        pass


def test_what_is_no_matter_of_a_server_is_raised_as_it_comes(tmp_path: Path) -> None:
    assert storage_error(OSError(28, "No space left on device"), {}) is None
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with dagster_instance(tmp_path) as instance:
        assert instance.get_runs_count() == 0


def test_packages_that_are_not_installed_are_named() -> None:
    told = storage_error(ModuleNotFoundError("No module named 'dagster_postgres'"), {})
    assert told is not None
    assert "--extra postgres" in told.todo
