"""Places where a test can make this process die, as if the machine had lost its power."""

from __future__ import annotations

import os
import signal

VARIABLE = "PLATFORM_FAILPOINT"

NAMES = (
    "publish.before_manifest",
    "publish.after_manifest",
    "publish.locked",
    "publish.before_table.0",
    "replace.before_commit",
    "replace.after_commit",
    "publish.after_table.0",
    "publish.before_table.1",
    "publish.after_table.1",
    "publish.before_release",
    "release.after_file",
    "release.after_commit",
    "publish.after_release",
)
"""Every fail point of a publication of two tables, in the order they are passed."""

DELETION_NAMES = (
    "delete.locked",
    "delete.before_cut",
    "delete.after_cut",
    "delete.after_file",
    "delete.before_folder",
    "delete.after_folder",
    "delete.done",
)
"""Every fail point of a deletion of files and folders, in the order they are passed."""


def failpoint(name: str) -> None:
    """Kill this process, without any clean-up, if the environment names this place; else do nothing."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
