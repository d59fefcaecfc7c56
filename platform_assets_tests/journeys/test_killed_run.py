"""A run of Dagster that is killed gives no verdict: the circuit of its table counts that as a failure, in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from platform_assets.failpoints import VARIABLE
from platform_assets_tests.support.installation import OWN_PROCESS
from platform_assets_tests.support.orchestration.daemon import instance_config

NIGHT = '''
"""Amounts of a night, in a domain of one module."""

from platform_assets.contracts import Circuit, Column, Contract, Domain, Input, LandingFiles, same_day

ID, AMOUNT = Column("id", "long", "Number.", nullable=False), Column("amount", "decimal(12,2)", "Dollars.")
AT = Column("sold_at", "timestamp", "When.", nullable=False)
RAW = Contract(
    name="raw.sales", description="Sales.", owner="a@example.com", columns=(ID, AMOUNT, AT), key=("id",),
    source=LandingFiles("sales"), event_time="sold_at",
)
SILVER = Contract(
    name="silver.sales", description="Sales.", owner="a@example.com", columns=(ID, AMOUNT, AT), key=("id",),
    inputs=(Input("raw.sales", same_day()),),
    circuit=Circuit(at_once=("missing",), verdict_within_minutes=1, wait_minutes=1),
)
DOMAIN = Domain("night", (RAW, SILVER), "night_transforms")
'''
COPY = '"""Take every sale."""\n\n\ndef sales(sales):\n    return sales\n'


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_no_verdict_of_a_killed_run_opens_the_circuit_and_a_good_run_closes_it(tmp_path: Path) -> None:
    (tmp_path / "night.py").write_text(NIGHT)
    (tmp_path / "night_transforms").mkdir()
    (tmp_path / "night_transforms" / "__init__.py").touch()
    (tmp_path / "night_transforms" / "silver.py").write_text(COPY)
    landed = tmp_path / "state" / "landing" / "sales" / "2024-03-01" / "sales.csv"
    landed.parent.mkdir(parents=True)
    landed.write_text("id,amount,sold_at\n1,10.00,2024-03-01T10:00:00Z\n")
    given = {
        "PYTHONPATH": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DAGSTER_HOME": str(instance_config(tmp_path / "dagster")),
        "PLATFORM_STATE": str(tmp_path / "state"), "PLATFORM_DOMAINS": "night", "PLATFORM_CALENDAR_FIRST": "2024-03-01",
        "PLATFORM_CALENDAR_LAST": "2024-03-01", "PLATFORM_TODAY": "2024-03-02", "PLATFORM_SETTLE_S": "0",
        "PLATFORM_SPARK_DRIVER_MEMORY": "1g", "PLATFORM_SPARK_CONF": OWN_PROCESS, "COLUMNS": "200",
    }  # fmt: skip

    def call(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command], capture_output=True, text=True, env=os.environ | given | more, timeout=240)

    def circuit() -> tuple[str, str]:
        shown = json.loads(call("platform-assets", "breaker", "show", "silver.sales", "--json").stdout)
        return shown["state"], shown["why"]

    job = (sys.executable, "-m", "dagster", "job", "execute", "-m", "platform_assets.definitions", "-j", "refresh")
    killed = call(*job, **{VARIABLE: "gate.judged"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    begun = time.monotonic()
    assert circuit() == ("closed", "")
    time.sleep(max(62 - (time.monotonic() - begun), 0))
    state, why = circuit()
    assert (state, why) == ("half-open", "missing: no verdict came within 1 minute")
    tried = call(*job)
    assert tried.returncode == 0, tried.stderr
    assert circuit() == ("closed", "")
    read = call("platform-assets", "read", "silver.sales", "--format", "json")
    assert [json.loads(line)["id"] for line in read.stdout.splitlines()] == [1]
