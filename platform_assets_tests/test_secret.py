"""The secret of an installation: one for all its processes, nobody else's to read, in no message."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from platform_assets.secret import SecretError, installation_secret, name_of, secret_file
from platform_assets.settings import SettingsError, load_settings

GIVEN = "a secret that is long enough: 0123456789"
_ASK = (
    "from platform_assets.secret import installation_secret; from platform_assets.settings import load_settings; "
    "print(installation_secret(load_settings()).decode())"
)


def test_several_processes_that_ask_at_once_get_the_same_one(tmp_path: Path) -> None:
    """Three interpreters start: a second or two."""
    environment = os.environ | {"PLATFORM_STATE": str(tmp_path / "state")}
    asking = [subprocess.Popen([sys.executable, "-c", _ASK], env=environment, stdout=subprocess.PIPE) for _ in range(3)]
    answers = {process.communicate(timeout=60)[0] for process in asking}
    file = tmp_path / "state/secret"
    assert answers == {file.read_bytes() + b"\n"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_bytes()) == 64
    assert installation_secret(load_settings(state=tmp_path / "other")) != file.read_bytes()


def test_a_variable_wins_and_is_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_SECRET", GIVEN)
    settings = load_settings(state=tmp_path)
    assert installation_secret(settings) == GIVEN.encode()
    assert not secret_file(settings).exists()
    assert GIVEN not in repr(settings)
    assert name_of(GIVEN.encode()) != name_of(GIVEN.encode() + b"1")


def test_a_secret_that_could_be_found_by_trying_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_SECRET", "tooshort")
    with pytest.raises(SettingsError, match="secret") as caught:
        load_settings()
    assert "tooshort" not in "".join(traceback.format_exception(caught.value))


def test_a_file_that_was_cut_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123")
    with pytest.raises(SecretError, match="secret is cut short: it has 4 characters"):
        installation_secret(load_settings(state=tmp_path))
