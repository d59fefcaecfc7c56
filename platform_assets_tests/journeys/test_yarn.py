"""The platform on YARN by settings alone, whatever a cluster's Hadoop settings say, and whichever of its parts end."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.on_cluster import Start, start, wait_for
from platform_assets_tests.support.own_domain import deliver_sales, write_domain
from platform_assets_tests.support.published import Digests, digests_of
from platform_assets_tests.support.yarn import EXECUTOR, Yarn, running_yarn

__all__ = ["start", "state"]
pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
TILLS = 40


@pytest.fixture(scope="module")
def yarn() -> Iterator[Yarn]:
    """One for the tests of this module."""
    with running_yarn() as yarn:
        yield yarn


@pytest.fixture(autouse=True)
def landing(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deliveries of three days."""
    monkeypatch.setenv("PYTHONPATH", str(write_domain(tmp_path / "own")))
    for name, value in {"LANDING": tmp_path / "landing", "SETTLE_S": 0, "DOMAINS": "own_till"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    for day in DAYS:
        deliver_sales(tmp_path / "landing", day, TILLS)


@pytest.fixture
def alone(landing: None, tmp_path: Path) -> Digests:
    """What one machine makes of them."""
    place = tmp_path / "alone"
    ended = run_apart("refresh", PLATFORM_STATE=str(place), PLATFORM_LAKE=str(place / "lake"))
    assert ended.code == 0, ended.err
    return digests_of(str(place / "lake"))


@pytest.fixture
def there(yarn: Yarn, tmp_path: Path) -> Mapping[str, str]:
    """Settings by which an installation computes on YARN, with settings of Hadoop that were made for other work."""
    return {**yarn.settings(), "PLATFORM_LAKE": str(tmp_path / "lake")}


def test_hostile_settings_and_executors_that_end_change_nothing_nor_does_a_killed_driver(
    start: Start, yarn: Yarn, there: Mapping[str, str], alone: Digests, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    killed = start("refresh", environment=there)
    wait_for(lake, "raw/**/*.parquet", killed)
    assert yarn.kill_each(EXECUTOR), "there was none to end"
    wait_for(lake, "silver/**/*.parquet", killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    process = start("refresh", environment=there)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert digests_of(str(lake)) == alone
    until = time.monotonic() + 60
    while {"ACCEPTED", "RUNNING"} & {*yarn.applications()}:
        assert time.monotonic() < until, "an application was left behind"
        time.sleep(0.5)


def test_functions_in_python_run_there_as_one_by_which_rows_of_a_person_are_erased(
    there: Mapping[str, str], alone: Digests, tmp_path: Path
) -> None:
    place = {"PLATFORM_STATE": str(tmp_path / "alone"), "PLATFORM_LAKE": str(tmp_path / "alone" / "lake")}
    asked = ("raw.sales", "--key", f"till={TILLS - 1}", "--reason", "asked for", "--by", "zoe", "--yes")
    erased = run_apart("erase", *asked, **{**there, **place})
    assert erased.code == 0, erased.err
    left = digests_of(place["PLATFORM_LAKE"])["raw.sales"]
    assert [digest.partition("-")[0] for digest in left.values()] == [str(TILLS - 1)] * len(DAYS)


@pytest.mark.parametrize(
    ("memory", "told"),
    [("1700m", "yarn gave no executor within 3 seconds"), ("1900m", "Required executor memory (1900 MB)")],
)
def test_no_room_is_told_before_any_work(memory: str, told: str, there: Mapping[str, str], tmp_path: Path) -> None:
    """Where the application's own process has taken it, or none of the machines is large enough."""
    greedy = {"spark.executor.memory": memory, "spark.yarn.am.memory": "1000m"}
    conf = json.dumps(json.loads(there["PLATFORM_SPARK_CONF"]) | greedy)
    said = run_apart("refresh", **{**there, "PLATFORM_SPARK_CONF": conf, "PLATFORM_SPARK_WAIT_S": "3"})
    assert (said.code, told in said.err) == (3, True), said.err
    assert digests_of(str(tmp_path / "lake")) == {}
