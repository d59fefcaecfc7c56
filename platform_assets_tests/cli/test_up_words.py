"""What `up` says before it is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.cli.commands.up import describe_automation
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.cluster import free_port

__all__ = ["state"]


def test_it_says_what_runs_by_itself_and_when(settings: Settings) -> None:
    chosen = settings.model_copy(update={"daily_cron": "30 2 * * *"})
    words = describe_automation(chosen)
    assert "files that land are taken within half a minute" in words
    assert "all tables at '30 2 * * *'" in words
    assert "maintenance at '0 4 * * 0'" in words


@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_a_folder_for_temporary_files_without_room_for_a_socket_is_told_before_anything_starts(
    options: tuple[str, ...], tmp_path: Path, state: Path
) -> None:
    """Dagster answers at sockets, and would say so with every request to one, for a minute."""
    long = tmp_path / ("long" * 25)
    long.mkdir()
    said = run_apart("up", "--port", str(free_port()), *options, TMPDIR=str(long))
    assert said.code == 3
    assert "too long a path for sockets" in said.err
    assert "TMPDIR" in said.err
