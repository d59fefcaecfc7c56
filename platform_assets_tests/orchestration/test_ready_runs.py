"""Processes of runs begin with what they need imported, but for the user's code, while it is what is on the disk."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from platform_assets.orchestration.warm.code_server import code_on_disk
from platform_assets.settings import project_root

LOOK = """
import json, os, sys, threading
import platform_assets.orchestration.warm.imported
print(json.dumps({
    "domains": [name for name in sys.modules if name.startswith("platform_assets.domains")],
    "threads": threading.active_count(),
    "has": [name in sys.modules for name in ("dagster", "pyspark.sql", "platform_assets.engine.refresh")],
    "files": [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if int(number) > 2
              and os.path.exists(f"/proc/self/fd/{number}")],
}))
"""


def asked(*command: str) -> Any:
    """What another process says, as JSON."""
    done = subprocess.run([sys.executable, *command], cwd=project_root(), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def test_they_begin_with_what_was_imported_and_anew_where_code_was_changed() -> None:
    found = asked("-m", "platform_assets_tests.support.orchestration.ready_runs", "changed")
    ended = {"is it": True, "code": 0, "alive": False}
    assert found == [{"has it": True, **ended}, {"has it": False, **ended}]


@pytest.mark.proof
def test_they_go_on_where_the_process_that_they_are_copies_of_is_killed() -> None:
    """Nobody may take one for dead; and the next is a copy of another one, which was started for it."""
    found = asked("-m", "platform_assets_tests.support.orchestration.ready_runs", "killed")
    assert found == [{"has it": True, "then": True}] * 2


def test_they_have_the_servers_environment_and_do_what_is_left_for_their_end_and_draw_numbers_of_their_own() -> None:
    found = asked("-m", "platform_assets_tests.support.orchestration.ready_runs", "ends")
    assert found["done"] == ["known", "known"]
    assert len(set(found["drawn"])) == 2


def test_what_they_have_is_nothing_of_the_user_and_nothing_that_copies_cannot_share() -> None:
    found = asked("-c", LOOK)
    assert found["has"] == [True, True, True]
    assert found["domains"] == []
    assert found["threads"] == 1
    assert [file for file in found["files"] if not file.startswith(("pipe:", "/dev/", "anon_inode:"))] == []


def test_code_is_this_package_and_what_is_installed() -> None:
    files = {path for path, _, _ in code_on_disk()}
    assert any(path.endswith("engine/refresh.py") for path in files)
    assert any(path.endswith("site-packages") for path in files)
    assert not any("/platform_assets/domains/" in path for path in files)
