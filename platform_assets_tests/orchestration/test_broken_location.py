"""A code location that cannot be loaded says why in one message, and keeps nothing else from going on."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import WorkspaceFileTarget

from platform_assets_tests.support.orchestration.daemon import DEFINITIONS, Daemon, instance_config
from platform_assets_tests.support.orchestration.up import up, wait
from platform_assets_tests.support.own_domain import CONTRACTS, PACKAGE, forget, write_domain

BROKEN_DOMAIN = """
from platform_assets.contracts import Column, Contract, Domain, LandingFiles

SALES = Contract("raw.sales", "", "", (Column("day", "date", "When."),), (), source=LandingFiles("s"), event_time="day")
DOMAIN = Domain("broken", (SALES,), "broken_domain")
"""
ANOTHER = """
import dagster as dg

@dg.sensor(default_status=dg.DefaultSensorStatus.RUNNING)
def another():
    return dg.SkipReason("at work")

defs = dg.Definitions(sensors=[another])
"""
RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "platform_assets") {
  ... on WorkspaceLocationEntry { locationOrLoadError {
    ... on PythonError { message stack cause { message } } } } } }"""
MISTAKE = ('Per till.", "me", (K, ', 'Per till.", "me", (AT, ')
TOLD = "The contract of gold.tills has the key column 'till' that it does not declare."


@pytest.mark.proof
def test_a_mistake_made_while_up_runs_is_told_once_in_the_platforms_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_domain(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    try:
        with up(tmp_path, domains=PACKAGE) as server:
            assert "cause" not in str(server.graphql(RELOAD))
            (tmp_path / PACKAGE / "contracts.py").write_text(CONTRACTS.replace(*MISTAKE))
            shown = server.graphql(RELOAD)["reloadRepositoryLocation"]["locationOrLoadError"]
            assert TOLD in shown["message"]
            assert (shown["stack"], shown["cause"]) == ([], None)
            daemon_knows = "UserWarning: Error loading repository location"
            wait(lambda: (tmp_path / "up.log").read_text().count(daemon_knows) == 2, "both were told", 90)
            time.sleep(35)  # each sensor is asked once more
    finally:
        forget()
    said = (tmp_path / "up.log").read_text()
    assert said.count(TOLD) == 1
    assert "What to do: " in said
    assert "contracts.py, line" in said
    assert "Traceback" not in said
    assert "Stack Trace" not in said


@pytest.mark.proof
def test_a_contract_with_an_error_is_told_and_the_other_location_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster loads two code locations, each in a process of its own."""
    for name, text in (("broken_domain", BROKEN_DOMAIN), ("definitions", DEFINITIONS), ("another", ANOTHER)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PLATFORM_DOMAINS", "broken_domain")
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path / "state"))
    locations = [
        {"python_file": {"relative_path": f"{name}.py", "location_name": name, "working_directory": str(tmp_path)}}
        for name in ("definitions", "another")
    ]
    (tmp_path / "workspace.yaml").write_text(yaml.safe_dump({"load_from": locations}))
    target = WorkspaceFileTarget([str(tmp_path / "workspace.yaml")])
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),  # says the same once more
        dg.DagsterInstance.from_config(str(instance_config(tmp_path / "dagster"))) as instance,
        create_test_daemon_workspace_context(target, instance) as workspace,
    ):
        shown = workspace.create_request_context().get_code_location_entries()["definitions"].load_error
        assert shown is not None
        assert shown.cause is not None
        assert shown.cause.message == (
            "platform_assets.contracts.errors.ContractError: The contract of raw.sales has no key. "
            f"It is declared in {tmp_path / 'broken_domain.py'}, line 4.\n"
            "  What to do: Name the columns that identify a row.\n"
        )
        daemon = Daemon(workspace)
        assert daemon.tick("another").skip_reason == "at work"
