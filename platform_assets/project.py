"""Find the project file, read it, and say which platform a process works with.

A project is a folder with a `platform.toml`: settings of one platform, for every process that starts in the folder or
below it. Without one the platform of the installation is used, or what `PLATFORM_…` variables name.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from platform_assets.errors import PlatformError
from platform_assets.places import folder_of

PROJECT_FILE = "platform.toml"
_IN_STATE = ("lake", "landing", "jars")
"""Folders that a variable names relative to the state folder, and a project file relative to itself."""
_RELATIVE_SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)(?!/|:memory:|$)")


class SettingsError(PlatformError):
    """A setting has a value the platform cannot work with."""


def installation_root() -> Path:
    """Return the folder of the installation's `workspace.yaml`: an editable install's, else the working directory."""
    beside_package = Path(__file__).resolve().parent.parent
    return beside_package if (beside_package / "workspace.yaml").is_file() else Path.cwd()


def project_folder(start: Path | None = None) -> Path | None:
    """Return the folder of the project file, which is in a folder or in one above it; None without one.

    Args:
        start: where to look first; the working directory by default.

    Raises:
        SettingsError: there are two, or any user of the machine could have written it.
    """
    with suppress(FileNotFoundError):  # a working directory that was deleted is below no project
        start = start or Path.cwd()
        found = [folder for folder in (start, *start.parents) if os.path.lexists(folder / PROJECT_FILE)]
        if len(found) > 1:
            raise SettingsError(
                f"There are two project files, one above the other: {found[0] / PROJECT_FILE} and "
                f"{found[1] / PROJECT_FILE}.",
                "Remove the one that is not meant, or move its project out of the other's folder.",
            )
        for folder in found:
            _refuse_foreign(folder / PROJECT_FILE)
            return folder
    return None


def _refuse_foreign(file: Path) -> None:
    """Refuse a file that names the code to run, if any user of the machine could have put it there, as into /tmp."""
    own, above = file.lstat(), file.parent.stat()
    is_mine = own.st_uid in (0, os.geteuid())
    if (not is_mine and above.st_mode & stat.S_IWOTH) or (own.st_mode & stat.S_IWOTH and not file.is_symlink()):
        raise SettingsError(
            f"{file} is not used: every user of this machine could have written it, and it names code to run.",
            f"If it is yours: chmod o-w '{file}', or move the project to a folder that only you can write. "
            "Otherwise work in another folder.",
        )


def project_or_installed(name: str, root: Path) -> Path:
    """Return the project's own file of this name, else the installation's; wheels have it in the package."""
    package = Path(__file__).resolve().parent
    return next((file for file in (root / name, package.parent / name) if file.is_file()), package / name)


def read_settings_file(file: Path) -> dict[str, Any]:
    """Read a file of settings; nothing where there is none.

    Raises:
        SettingsError: it cannot be read.
    """
    if not os.path.lexists(file):
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(
            f"The settings file {file} cannot be read: {why}.",
            f"Correct {file}: a setting is a line such as batch_days = 30. Check that this user may read it.",
        ) from error


def with_own_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the settings of a project file with paths relative to its folder."""
    found = dict(values)
    for name in _IN_STATE:
        given = found.get(name)
        if not isinstance(given, str) or not given or given.startswith("~") or folder_of(given) is None:
            continue
        found[name] = str(folder / given)
    if isinstance(url := found.get("ledger_url"), str):
        found["ledger_url"] = _RELATIVE_SQLITE.sub(rf"\1{quote(str(folder))}/", url)
    return found


def place_of(setting: str, root: Path, environ: Mapping[str, str]) -> str | None:
    """Return the source of a setting's value: the variable, or file and line; None for others."""
    variable = f"PLATFORM_{setting.upper()}"
    if variable in environ:
        return variable
    return _place(root / PROJECT_FILE, setting) if setting in read_settings_file(root / PROJECT_FILE) else None


def _place(file: Path, setting: str) -> str:
    """Return file and line of a setting."""
    named = re.compile(rf"""\s*\[*\s*["']?{re.escape(setting)}["']?\s*[=.\]]""")
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    line = next((number for number, text in lines if named.match(text)), None)
    return f"{file}, line {line}" if line else str(file)


def make_importable() -> None:
    """Let this process and its children import packages of the project's folder."""
    folder = str(project_folder() or "")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder and folder not in paths:  # Spark's Python processes know no other way
        # A random.py of the project must not come before Python's own, there as little as here.
        own = [sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"), sysconfig.get_path("purelib")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, *own, folder]))


def platform_in_use(state: Path, environ: Mapping[str, str]) -> tuple[str, bool]:
    """Return the platform of this process in a line, and whether a person could mistake it for another."""
    folder = project_folder()
    over = [name for name in ("PLATFORM_STATE", "PLATFORM_DOMAINS") if environ.get(name)]
    if folder:
        over_it = f", but for {' and '.join(over)} of the environment" if over else ""
        return f"{state}, by {folder / PROJECT_FILE}{over_it}", bool(over) or folder != Path.cwd()
    if "PLATFORM_STATE" in over:
        return f"{state}, by PLATFORM_STATE", False
    return f"{state}: no {PROJECT_FILE} in this folder or above it", not Path.cwd().is_relative_to(installation_root())
