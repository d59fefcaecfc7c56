"""Where Dagster keeps its storage: in the state folder, with the project's `dagster.yaml`."""

from __future__ import annotations

import os
from pathlib import Path

from platform_assets.settings import Settings, project_root


def dagster_home(settings: Settings) -> Path:
    """The folder for `DAGSTER_HOME`; the working directory is moved to the project's root.

    The project's `dagster.yaml` names storage relative to the working directory. For a state folder elsewhere a copy
    with that folder's path is kept in it, so that installations never share a storage by accident.
    """
    root = project_root()
    os.chdir(root)
    if settings.state == root / ".platform":
        (settings.state / "dagster").mkdir(parents=True, exist_ok=True)
        return root
    home = settings.state / "dagster-home"
    home.mkdir(parents=True, exist_ok=True)
    text = (root / "dagster.yaml").read_text(encoding="utf-8")
    (home / "dagster.yaml").write_text(text.replace(".platform/", f"{settings.state}/"), encoding="utf-8")
    return home
