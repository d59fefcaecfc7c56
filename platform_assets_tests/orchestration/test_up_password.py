"""The password of `up`: asked for by its webserver, and known to nothing else that it starts."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import requests

from platform_assets_tests.support.orchestration.processes import processes_of
from platform_assets_tests.support.orchestration.readings import SENSORS
from platform_assets_tests.support.orchestration.up import up, wait

PASSWORD = "correct horse battery"
FIRST = date(2017, 1, 1)
LOADED = "{ repositoriesOrError { __typename } }"


@pytest.mark.proof
@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_nothing_but_the_webserver_gets_the_password(options: tuple[str, ...], tmp_path: Path) -> None:
    chosen = {"calendar_first": FIRST, "calendar_last": FIRST, "today": FIRST}
    with up(tmp_path, *options, domains=SENSORS, ui_password=PASSWORD, **chosen) as server:
        assert requests.get(server.url, timeout=30).status_code == 401
        assert requests.get(server.url, timeout=30, auth=("anna", PASSWORD)).ok

        def loaded() -> bool:
            asked = requests.post(f"{server.url}/graphql", json={"query": LOADED}, timeout=30, auth=("up", PASSWORD))
            return "RepositoryConnection" in asked.text

        wait(loaded, "the definitions", 120)
        found = processes_of(server.world.settings.state)
        assert any("platform_assets.definitions" in command for command in found.values()), "the code server"
        assert not [command for command in found.values() if PASSWORD in command]
        knows = {
            command for pid, command in found.items() if PASSWORD.encode() in Path(f"/proc/{pid}/environ").read_bytes()
        }
        assert len(knows) == 2, "the command itself, and its webserver"
        assert all(" up " in command or "orchestration.webserver" in command for command in knows)
    logs = [tmp_path / "up.log", *(file for file in server.world.settings.state.rglob("*") if file.is_file())]
    assert not [log for log in logs if PASSWORD.encode() in log.read_bytes()]
    assert "for the password in PLATFORM_UI_PASSWORD" in (tmp_path / "up.log").read_text()
