"""The platform on a Spark cluster by settings alone, which shares nothing with the driver but a lake in a bucket."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from csv import DictReader
from io import StringIO
from itertools import product as product_of
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.cluster import (
    Cluster,
    Start,
    behind_connect,
    cluster,
    elsewhere,
    folder_of,
    start,
    wait_for,
)
from platform_assets_tests.support.installation import OWN_PROCESS
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.own_domain import write_domain
from platform_assets_tests.support.places import Digests, digests_of
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.world import product, sale

__all__ = ["behind_connect", "cluster", "elsewhere", "start", "state"]
pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
DEMO_DAYS = "3"
_OF_TWO_O_CLOCK = """def tills(sales):
    hour = F.udf(lambda at: at.hour, "int", useArrow=False)
    sales = sales.where("upper(concat('ié', till)) LIKE 'IÉ%'").where("since = DATE'2017-01-01'")
    sales = sales.where(F.col("at") == datetime(2017, 1, 1, 2)).where(hour("at") == 2)
"""


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the deliveries of three days, in several formats, and one by a name that is no plain word."""
    landing = tmp_path / "landing"
    monkeypatch.setenv("PLATFORM_LANDING", str(landing))
    monkeypatch.setenv("PLATFORM_SETTLE_S", "0")
    rows = [product(n, DAYS[0], "MEAT") for n in (1, 2)]
    put(landing, f"products/{DAYS[0]}/p.jsonl", "".join(json.dumps(row, default=str) + "\n" for row in rows))
    for day, part in product_of(DAYS, (1, 2)):
        sales = [sale(int(day[-2:]) * 1000 + part * 100 + n, 1 + n % 2, day) for n in range(4)]
        header, lines = ",".join(sales[0]), "".join(",".join(map(str, row.values())) + "\n" for row in sales)
        put(landing, f"transactions/{day}/all of {day} ({part}).csv", f"{header}\n{lines}")
    return landing


def put(landing: Path, path: str, text: str) -> None:
    file = landing / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def alone(tmp_path: Path, landing: Path, state: Path) -> Digests:
    """What one machine makes of the same deliveries."""
    place = tmp_path / "alone"
    ended = run_apart("refresh", PLATFORM_STATE=str(place), PLATFORM_LAKE=str(place / "lake"))
    assert ended.code == 0, ended.err
    return digests_of(str(place / "lake"))


def test_executors_that_end_and_a_worker_that_is_lost_change_nothing(
    start: Start, cluster: Cluster, elsewhere: Mapping[str, str], alone: Digests, object_store: ObjectStore
) -> None:
    lake = folder_of(object_store, elsewhere)
    process = start("refresh", environment=elsewhere)
    wait_for(lake, "raw/transactions/**/*.parquet", process)
    assert cluster.kill_executors(), "there was none to end"
    wait_for(lake, "silver/**/*.parquet", process)
    cluster.kill("first")
    said, _ = process.communicate(timeout=400)
    cluster.start_worker("third")
    assert process.returncode == 0, said
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == alone


def test_of_two_drivers_that_share_a_ledger_one_goes_on_where_the_other_is_killed(
    start: Start,
    elsewhere: Mapping[str, str],
    alone: Digests,
    object_store: ObjectStore,
    postgres_server: PostgresServer,
    tmp_path: Path,
) -> None:
    """Each has an executor, a state of its own, and nothing else of the other than lake and ledger."""
    conf = json.loads(elsewhere["PLATFORM_SPARK_CONF"]) | {"spark.cores.max": "1"}
    shared = {"PLATFORM_LEDGER_URL": postgres_server.new_database(), "PLATFORM_SPARK_CONF": json.dumps(conf)}
    killed = start("refresh", environment={**elsewhere, **shared})
    wait_for(folder_of(object_store, elsewhere), "raw/transactions/**/*.parquet", killed)
    other = start("refresh", environment={**elsewhere, **shared, "PLATFORM_STATE": str(tmp_path / "other")})
    wait_for(folder_of(object_store, elsewhere), "silver/**/*.parquet", killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    said, _ = other.communicate(timeout=400)
    assert other.returncode == 0, said
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == alone
    again = run_apart("refresh", **{**elsewhere, **shared})
    assert again.code == 0, again.err
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == alone


def test_the_demo_is_what_it_is_on_one_machine_though_executors_end(
    start: Start,
    cluster: Cluster,
    elsewhere: Mapping[str, str],
    state: Path,
    tmp_path: Path,
    object_store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through Dagster, with late corrections, and one more that is undone by the command that it says."""
    for name in ("CALENDAR_LAST", "TODAY"):
        monkeypatch.delenv(f"PLATFORM_{name}")
    place = str(tmp_path / "alone")
    days = ("demo", "--days", DEMO_DAYS, "--json")
    one = run_apart(*days, PLATFORM_STATE=place, PLATFORM_LAKE=f"{place}/lake")
    assert one.code == 0, one.err
    process = start(*days, environment=elsewhere)
    lake = folder_of(object_store, elsewhere)
    for pattern in ("raw/transactions/**/*.parquet", "gold/**/*.parquet"):
        wait_for(lake, pattern, process)
        assert cluster.kill_executors(), "there was none to end"
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == digests_of(f"{place}/lake")


def test_dates_moments_and_texts_are_what_they_are_in_whatever_countries_the_machines_are(
    elsewhere: Mapping[str, str], tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command's, and its workers': no row is lost to a filter, or in another hour, and no letter is another."""
    columns = ("PAID = ", 'SINCE = Column("since", "date", "Opened.")\nPAID = ')
    imported = ("from pyspark", "from datetime import datetime\n\nfrom pyspark")
    write_domain(
        tmp_path / "own",
        contracts=(columns, ("(K, AT, PAID)", "(K, AT, PAID, SINCE)")),
        gold=(imported, ("def tills(sales):\n", _OF_TWO_O_CLOCK)),
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    monkeypatch.setenv("PLATFORM_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("PLATFORM_SETTLE_S", "0")
    rows = (f'{{"till": {n}, "at": "{DAYS[0]}T02:00:00Z", "paid": "1.25", "since": "{DAYS[0]}"}}\n' for n in range(4))
    put(tmp_path / "landing", f"sales/{DAYS[0]}/sales.jsonl", "".join(rows))
    there = {**elsewhere, "PLATFORM_DOMAINS": "own_till", "TZ": "Asia/Tokyo"}
    said = run_apart("refresh", **there)
    assert said.code == 0, said.err
    shown = run_apart("read", "gold.tills", "--format", "csv", **there)
    assert [row["paid"] for row in DictReader(StringIO(shown.out))] == ["1.25"] * 4


def test_a_spark_connect_server_computes_the_same(behind_connect: Mapping[str, str], alone: Digests) -> None:
    said = run_apart("refresh", **behind_connect)
    assert said.code == 0, said.err
    assert digests_of(behind_connect["PLATFORM_LAKE"]) == alone


def test_a_spark_connect_server_that_is_killed_loses_nothing(
    start: Start, behind_connect: Mapping[str, str], cluster: Cluster, alone: Digests, object_store: ObjectStore
) -> None:
    process = start("refresh", environment=behind_connect)
    wait_for(folder_of(object_store, behind_connect), "silver/**/*.parquet", process)
    cluster.kill("connect")
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 3
    assert "PLATFORM_SPARK_REMOTE ended, or cannot be reached any more" in said
    assert "Traceback" not in said
    assert "UserWarning" not in said
    again = run_apart("refresh", **{**behind_connect, "PLATFORM_SPARK_REMOTE": "", "PLATFORM_SPARK_CONF": OWN_PROCESS})
    assert again.code == 0, again.err
    assert digests_of(behind_connect["PLATFORM_LAKE"]) == alone


def test_a_day_that_is_too_large_for_one_task_gets_several_files(
    cluster: Cluster,
    elsewhere: Mapping[str, str],
    alone: Digests,
    object_store: ObjectStore,
) -> None:
    tiny = cluster.conf() | {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "100b"}
    said = run_apart("refresh", **{**elsewhere, "PLATFORM_SPARK_CONF": json.dumps(tiny)})
    assert said.code == 0, said.err
    raw = folder_of(object_store, elsewhere) / "raw/transactions"
    assert len([*raw.glob(f"**/event_date={DAYS[1]}/*.parquet")]) > 1
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == alone
