"""The project file: found from below, wins over nothing but defaults, names itself in errors, and says where it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from platform_assets.project import installation_root
from platform_assets.settings import SettingsError, load_settings
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.other_user import NEEDS_ROOT

__all__ = ["run", "state"]

LINES = 'domains = ["shop"]\nstate = "st"\nplans = "pl"\nlanding = "in"\nlake = "la"\nledger_url = "sqlite:///l.db"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, seen from a folder two below."""
    folder = tmp_path / "my project"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "platform.toml").write_text(LINES)
    monkeypatch.chdir(folder / "a" / "b")
    return folder


def test_paths_are_relative_to_the_file_from_every_folder_below_and_variables_win(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings()
    assert (settings.state, settings.plans) == (project / "st", project / "pl")
    assert (settings.lake, settings.landing) == (str(project / "la"), str(project / "in"))
    assert settings.ledger_url.get_secret_value() == f"sqlite:///{str(project).replace(' ', '%20')}/l.db"
    assert settings.domains == ("shop",)
    monkeypatch.setenv("PLATFORM_STATE", "/elsewhere")
    monkeypatch.setenv("PLATFORM_LANDING", "in")
    settings = load_settings()
    assert (str(settings.state), settings.landing) == ("/elsewhere", "/elsewhere/in")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("# x\nbatchdays = 30\n", r"there is no batchdays; did you mean batch_days\? \(in {file}, line 2\)"),
        ("\n\nbatch_days = 'x'\n", r"batch_days: .*integer.*\(in {file}, line 3\)"),
        ("state = 5\n", r"state: .*\(in {file}, line 1\)"),
        ("domains = 5\n", r"domains: .*\(in {file}, line 1\)"),
        ("[platform]\nstate = 'x'\n", r"platform: .*\(in {file}, line 1\)"),
        ("batch_days = \n", r"The settings file {file} cannot be read: Invalid value \(at line 1"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_file_line_and_key(content: str, says: str, project: Path) -> None:
    (project / "platform.toml").write_text(content)
    with pytest.raises(SettingsError, match=says.format(file=project / "platform.toml")):
        load_settings()


def test_a_variable_that_is_wrong_is_named_in_place_of_the_line_that_it_wins_over(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "platform.toml").write_text("batch_days = 3\n")
    monkeypatch.setenv("PLATFORM_BATCH_DAYS", "x")
    with pytest.raises(SettingsError, match=r"batch_days: .*\(in PLATFORM_BATCH_DAYS\)"):
        load_settings()


@pytest.mark.parametrize("kind", ["nested", "folder", "broken link", "of another user", "of anybody"])
def test_files_that_are_ambiguous_unreadable_or_anybodys_are_refused(kind: str, project: Path, tmp_path: Path) -> None:
    file = project / "platform.toml"
    match kind:
        case "nested":
            (project / "a" / "platform.toml").write_text("")
            says = f"two project files, one above the other: {project / 'a' / 'platform.toml'} and {file}"
        case "folder" | "broken link":
            file.unlink()
            file.mkdir() if kind == "folder" else file.symlink_to(tmp_path / "gone")
            says = f"{file} cannot be read"
        case "of another user":
            if os.geteuid():
                pytest.skip(NEEDS_ROOT)
            project.chmod(0o1777)
            os.chown(file, 65534, 65534)
            says = f"{file} is not used: every user of this machine could have written it"
        case _:
            file.chmod(0o666)
            says = f"{file} is not used: every user of this machine could have written it"
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert says in caught.value.what
    assert caught.value.todo


def test_commands_name_their_platform_where_it_could_be_mistaken(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder below the file, with variables that win over it, and where there is no file; not in its own."""
    (project / "platform.toml").write_text('state = "st"\n')
    monkeypatch.setenv("PLATFORM_STATE", "")
    file = project / "platform.toml"
    assert f"platform {project}/st, by {file}\n" in run("status", "stale").err
    assert run("status", "stale", "--json").err == ""
    assert f"{project}/st, by {file}" in run("admin", "doctor").words
    monkeypatch.chdir(project)
    assert run("status", "stale").err == ""
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path / "state"))
    assert (
        f"platform {tmp_path}/state, by {file}, but for PLATFORM_STATE of the environment" in run("status", "stale").err
    )
    file.unlink()
    assert run("status", "stale").err == ""  # nothing but the variable says where it is
    monkeypatch.delenv("PLATFORM_STATE")
    said = run("admin", "doctor")
    assert f"platform {installation_root()}/.platform: no platform.toml in this folder or above it" in said.err


def test_a_domain_of_ones_own_needs_no_variable(tmp_path: Path) -> None:
    """For commands, Dagster's workspace and processes that they start; each takes some seconds to import Dagster."""
    bare = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}

    def said(*command: str, cwd: Path = tmp_path) -> str:
        done = subprocess.run(command, cwd=cwd, env=bare, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout

    said("platform-assets", "init", "shop")
    assert "raw.shop" in said("platform-assets", "status", cwd=tmp_path / "shop" / "shop")
    said("dagster", "definitions", "validate", cwd=tmp_path / "shop")
    own = "import os, platform_assets.definitions, shop; print(shop.__file__, os.environ['PYTHONPATH'])"
    assert said(sys.executable, "-c", own, cwd=tmp_path / "shop").count(str(tmp_path / "shop")) == 2
    assert (tmp_path / "shop" / ".platform").is_dir()
    said("platform-assets", "init", "goods", cwd=tmp_path / "shop" / "shop")
    assert (tmp_path / "shop" / "goods" / "contracts.py").is_file()
