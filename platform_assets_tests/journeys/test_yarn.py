"""The platform on YARN by settings alone, whatever a cluster's Hadoop settings say, and whichever of its parts end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.jars import Jar, JarsError, bring
from platform_assets.spark.session.java import JavaError, find_java
from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.cluster import HOME, Start, start, wait_for, write_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.own_domain import deliver_sales, write_domain
from platform_assets_tests.support.places import Digests, digests_of
from platform_assets_tests.support.processes import children_of, free_port

SERVERS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-client-minicluster",
        "3.5.0",
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    Jar(
        "org.bouncycastle",
        "bcprov-jdk18on",
        "1.82",
        "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce",
    ),
    Jar(
        "org.bouncycastle",
        "bcpkix-jdk18on",
        "1.82",
        "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63",
    ),
    Jar(
        "org.bouncycastle",
        "bcutil-jdk18on",
        "1.82",
        "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d",
    ),
)
"""What YARN needs besides the jars of PySpark: 66 MB."""
HOW_TO_GET_IT = "no YARN to test with: connect to the network once, it comes from Maven's registry"
EXECUTOR = "YarnCoarseGrainedExecutorBackend"
_STARTS_WITHIN_S = 90
_OPTIONS = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-opens=java.base/java.lang=ALL-UNNAMED")
_SERVER = "org.apache.hadoop.yarn.server"
_NODE = {
    "yarn.nodemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.address": "127.0.0.1:0",
    "yarn.nodemanager.localizer.address": "127.0.0.1:0",
    "yarn.nodemanager.collector-service.address": "127.0.0.1:0",
    "yarn.nodemanager.webapp.address": "127.0.0.1:0",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
    "yarn.nodemanager.env-whitelist": "JAVA_HOME,TZ",
}
LARGE_MIB, SMALL_MIB = 2200, 1100
"""Room for two executors, or for one and the application's own process; and for one of any."""


@dataclass
class Yarn:
    """A running cluster.

    Args:
        folder: of the files of each process.
        ports: of the ResourceManager, by what is asked for there.
    """

    folder: Path
    ports: Mapping[str, int] = field(
        default_factory=lambda: {
            name: free_port() for name in ("address", "scheduler.address", "resource-tracker.address",
                                           "admin.address", "webapp.address")
        }
    )  # fmt: skip
    _started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def site(self) -> dict[str, str]:
        """What a client is told: where the ResourceManager is."""
        return {f"yarn.resourcemanager.{name}": f"127.0.0.1:{port}" for name, port in self.ports.items()}

    def settings(self) -> dict[str, str]:
        """Settings and variables by which an installation computes here, its executors as small as they can be.

        The folder that `HADOOP_CONF_DIR` names also has what Hadoop is told for other work.
        """
        client = self.folder / "client"
        write_settings(client, port=free_port())
        write_site(client / "yarn-site.xml", self.site)
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.executor.cores": "1",
            "spark.authenticate": "true",
            # Else 400 MB are packed and sent with every command
            "spark.yarn.jars": f"local:{HOME / 'jars' / '*'}",
            "spark.yarn.stagingDir": f"file:{self.folder / 'staging'}",
        }
        return {
            "HADOOP_CONF_DIR": str(client),
            "PLATFORM_SPARK_MASTER": "yarn",
            "PLATFORM_SPARK_CONF": json.dumps(conf),
        }

    def start(self, name: str, server: str, said: Mapping[str, str]) -> None:
        """One of YARN's own programs, in a folder of its own, on a machine of another country."""
        java = find_java()
        jars = bring(load_settings(state=self.folder / "state", jars=JARS), java, SERVERS)
        own = self.folder / name
        write_site(own / "yarn-site.xml", {**self.site, **said})
        write_site(own / "core-site.xml", {"fs.defaultFS": "file:///"})
        class_path = os.pathsep.join((str(own), *map(str, jars), str(HOME / "jars" / "*")))
        with (self.folder / f"{name}.log").open("wb") as log:
            self._started[name] = subprocess.Popen(
                [java.executable, *_OPTIONS, "-cp", class_path, f"{_SERVER}.{server}"],
                cwd=own,
                env={"PATH": os.environ["PATH"], "JAVA_HOME": str(java.executable.resolve().parent.parent),
                     "HOME": str(own), "TZ": "America/New_York", "LC_ALL": "C"},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def start_node(self, name: str, memory_mib: int) -> None:
        """A NodeManager, with so much room for executors."""
        own = self.folder / name
        said = {"local-dirs": str(own / "local"), "log-dirs": str(own / "log"), "resource.memory-mb": str(memory_mib)}
        own_site = {f"yarn.nodemanager.{name}": value for name, value in said.items()}
        self.start(name, "nodemanager.NodeManager", _NODE | own_site)

    def wait(self, nodes: int) -> None:
        """Until so many NodeManagers have announced themselves."""
        until = time.monotonic() + _STARTS_WITHIN_S
        while True:
            with suppress(OSError):
                if self._asked("metrics")["clusterMetrics"]["activeNodes"] == nodes:
                    return
            assert time.monotonic() < until, [log.read_text()[-2000:] for log in self.folder.glob("*.log")]
            time.sleep(0.2)

    def applications(self) -> list[str]:
        """The state of every application that there was, in order."""
        applications = (self._asked("apps")["apps"] or {}).get("app", [])
        return [each["state"] for each in sorted(applications, key=lambda each: str(each["id"]))]

    def _asked(self, what: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self.ports['webapp.address']}/ws/v1/cluster/{what}", timeout=5) as answer:
            return json.load(answer)

    def kill_each(self, what: str) -> int:
        """End every process of an application that runs now. Returns how many there were.

        Args:
            what: its main class, as `EXECUTOR`.
        """
        return sum(self._kill(pid, what) for process in self._started.values() for pid in children_of(process.pid))

    @staticmethod
    def _kill(pid: int, what: str) -> bool:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/java") and any(what.encode() in word for word in words):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def stop(self) -> None:
        """All of it, and what runs in containers, which would outlive the NodeManager that began them."""
        for process in self._started.values():
            for pid in (*children_of(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def write_site(file: Path, said: Mapping[str, str]) -> None:
    """Settings as Hadoop reads them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    each = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in said.items())
    file.write_text(f"<configuration>{''.join(each)}</configuration>")


@contextmanager
def running_yarn() -> Iterator[Yarn]:
    """Start a ResourceManager and two NodeManagers, and stop them again."""
    with TemporaryDirectory(prefix="yarn-", ignore_cleanup_errors=True) as name:
        yarn = Yarn(Path(name))
        capacity = {"queues": "default", "default.capacity": "100"}
        of_queues = {f"yarn.scheduler.capacity.root.{what}": value for what, value in capacity.items()}
        of_queues["yarn.scheduler.capacity.maximum-am-resource-percent"] = "0.9"
        write_site(yarn.folder / "manager" / "capacity-scheduler.xml", of_queues)
        try:
            yarn.start("manager", "resourcemanager.ResourceManager", {"yarn.scheduler.minimum-allocation-mb": "64"})
            yarn.start_node("large", LARGE_MIB)
            yarn.start_node("small", SMALL_MIB)
            yarn.wait(nodes=2)
            yield yarn
        except (JarsError, JavaError):
            pytest.skip(HOW_TO_GET_IT)
        finally:
            yarn.stop()


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
    erased = run_apart("admin", "erase", *asked, **{**there, **place})
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
