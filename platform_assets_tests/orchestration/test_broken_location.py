"""A code location that cannot be loaded says why in one message, and keeps nothing else from going on."""

from __future__ import annotations

import warnings
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import WorkspaceFileTarget

from platform_assets_tests.support.orchestration.daemon import DEFINITIONS, Daemon, instance_config

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
