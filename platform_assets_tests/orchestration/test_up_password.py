"""What a whole `up` keeps to itself: its password, and where it listens."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
import requests

from platform_assets_tests.support.orchestration.processes import processes_of
from platform_assets_tests.support.orchestration.readings import SENSORS
from platform_assets_tests.support.orchestration.up import Server, up, wait

PASSWORD = "correct horse battery"
FIRST = date(2017, 1, 1)
LOADED = "{ repositoriesOrError { __typename } }"
WEBSERVER = "orchestration.webserver"


def loaded(server: Server) -> bool:
    """Whether it knows the definitions, asked with the password."""
    try:
        asked = requests.post(f"{server.url}/graphql", json={"query": LOADED}, timeout=30, auth=("anna", PASSWORD))
    except requests.ConnectionError:
        return False
    return "RepositoryConnection" in asked.text


def listening(processes: dict[int, str]) -> set[str]:
    """Addresses and ports at which processes listen, as the kernel writes them."""
    open_files = set()
    for pid in processes:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                open_files.add(str(file.readlink()))
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in open_files}


@pytest.mark.proof
@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_nothing_but_its_webserver_gets_the_password_or_listens_and_that_on_this_machine_alone(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_WEBSERVER_HOST", "0.0.0.0")
    chosen = {"calendar_first": FIRST, "calendar_last": FIRST, "today": FIRST}
    with up(tmp_path, *options, domains=SENSORS, ui_password=PASSWORD, **chosen) as server:
        wait(lambda: loaded(server), "the definitions", 120)
        found = processes_of(server.world.settings.state)
        assert any("platform_assets.definitions" in command for command in found.values()), "the code server"
        assert listening(found) == {f"0100007F:{int(server.url.rpartition(':')[2]):04X}"}

        assert not [command for command in found.values() if PASSWORD in command]
        knowing = [pid for pid in found if PASSWORD.encode() in Path(f"/proc/{pid}/environ").read_bytes()]
        webserver, command = sorted(knowing, key=lambda pid: WEBSERVER not in found[pid])
        assert WEBSERVER in found[webserver]
        assert " up --port " in found[command]

    logs = [tmp_path / "up.log", *(file for file in server.world.settings.state.rglob("*") if file.is_file())]
    assert not [log for log in logs if PASSWORD.encode() in log.read_bytes()]
    assert "for the password in PLATFORM_UI_PASSWORD" in (tmp_path / "up.log").read_text()
