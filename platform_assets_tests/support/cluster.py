"""A real Spark cluster for tests: a standalone master and two workers on this machine, from the installed PySpark.

Workers belong to another user where that is possible, so that they and the driver share nothing but the lake: neither
the landing folder, nor the state, nor Spark's own folders can be read by both.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Protocol
from uuid import uuid4

import pyspark
import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.configuration import of_s3
from platform_assets.spark.session.jars import spark_jars
from platform_assets.spark.session.java import find_java
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.other_user import NOBODY
from platform_assets_tests.support.processes import children_of, free_port, wait

HOME = Path(pyspark.__file__).parent
_OF_ALL = {"spark.authenticate": "true", "spark.authenticate.secret": "a-secret-of-tests"}
_IN_TURKISH = "-Duser.language=tr -Duser.country=TR"
_MOUNT = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
_PYTHON = "/usr/bin/python3"
"""One that every user may start; for functions of ours that run on workers it has the version of the driver's."""


@dataclass
class Cluster:
    """A running master with its workers.

    Args:
        master: its URL.
        folder: of its logs, and of what workers write.
        of_this_user: whether workers share with this process what lies in folders.
    """

    master: str
    folder: Path
    of_this_user: bool = False
    _started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _before: tuple[str, ...] = ()

    def conf(self) -> dict[str, str]:
        """What a driver says to Spark: executors as small as they can be, at this machine's own address."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.executor.cores": "1",
            "spark.ui.enabled": "false",
        } | _OF_ALL

    @property
    def hadoop(self) -> Path:
        """The folder with the cluster's settings of Hadoop, for which its owner had other uses in mind than ours."""
        return self.folder / "hadoop"

    def start(self, name: str, *command: str, **environ: str) -> None:
        """One of Spark's own programs, in a folder of its own, with some variables more."""
        own = self.folder / name
        own.mkdir(exist_ok=True)
        own.chmod(0o777)
        user = NOBODY if is_readable_to_all(HOME) and not self.of_this_user else None
        with (self.folder / f"{name}.log").open("wb") as log:
            self._started[name] = subprocess.Popen(
                [*self._before, HOME / "bin" / "spark-class", *command],
                cwd=own,
                env={
                    "PATH": os.environ["PATH"],
                    "JAVA_HOME": os.environ.get("JAVA_HOME", ""),
                    "HOME": str(own),
                    "SPARK_HOME": str(HOME),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_LOCAL_DIRS": str(own),
                    "SPARK_DAEMON_MEMORY": "128m",
                    "SPARK_DAEMON_JAVA_OPTS": " ".join(f"-D{name}={value}" for name, value in _OF_ALL.items()),
                    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
                    "PYSPARK_PYTHON": _PYTHON,
                    "HADOOP_CONF_DIR": str(self.hadoop),
                    **environ,
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )

    def start_worker(self, name: str, *, over: Path | None = None) -> None:
        """A worker with room for one executor, on a machine of another country.

        Args:
            name: of its own.
            over: a folder in place of which it alone sees an empty one.
        """
        given = ("--cores", "1", "--memory", "700m", "--host", "127.0.0.1", "--webui-port", "0")
        work = str(self.folder / name / "work")
        worker = ("org.apache.spark.deploy.worker.Worker", *given, "--work-dir", work, self.master)
        self._before = () if over is None else (*_MOUNT, str(over))
        self.start(name, *worker, TZ="America/New_York", LC_ALL="C", JAVA_TOOL_OPTIONS=_IN_TURKISH)
        self._before = ()

    def start_connect(self, name: str, jars: Iterable[Path], store: ObjectStore) -> str:
        """A Spark Connect server that computes in itself, as somebody else runs it; returns its URL."""
        kept = self.folder / "jars"
        kept.mkdir(exist_ok=True)
        given = [Path(copyfile(jar, kept / jar.name)) for jar in jars]
        port = free_port()
        of_server = {
            **self.conf(),
            **of_s3(store.environ),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.jars": ",".join(map(str, given)),
        }
        said = [word for name, value in of_server.items() for word in ("--conf", f"{name}={value}")]
        server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
        submit = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]")
        self.start(name, *submit, *said, *server, **store.environ, SPARK_DAEMON_MEMORY="1g")
        wait(port)
        return f"sc://127.0.0.1:{port}"

    def kill(self, name: str) -> None:
        """End a program and all that it started, as if its machine were gone; one that is gone already is left so."""
        if (process := self._started.pop(name, None)) is None:
            return
        for pid in (*children_of(process.pid), process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def kill_executors(self) -> int:
        """End every executor that runs now; their workers start others. Returns how many there were."""
        executors = [pid for process in self._started.values() for pid in children_of(process.pid)]
        for pid in executors:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(executors)

    def stop(self) -> None:
        """All of it."""
        for name in list(self._started):
            self.kill(name)


def is_readable_to_all(folder: Path) -> bool:
    """Whether another user can read it, as root can find out."""
    if os.geteuid() != 0:
        return False
    return all(place.stat().st_mode & 0o005 == 0o005 for place in (folder, *folder.parents))


@contextmanager
def running_cluster(workers: Iterable[str] = ("first", "second"), *, of_this_user: bool = False) -> Iterator[Cluster]:
    """Start a master and some workers, and stop them again."""
    port = free_port()
    with TemporaryDirectory(prefix="cluster-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o777)
        cluster = Cluster(f"spark://127.0.0.1:{port}", Path(name), of_this_user)
        write_settings(cluster.hadoop, port=free_port())
        try:
            master = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
            cluster.start("master", "org.apache.spark.deploy.master.Master", *master)
            wait(port)
            for worker in workers:
                cluster.start_worker(worker)
            yield cluster
        finally:
            cluster.stop()


_SETTINGS = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:{port}</value></property>
<property><name>ipc.client.connect.max.retries</name><value>0</value></property>
<property><name>mapreduce.input.linerecordreader.line.maxlength</name><value>20</value></property>
<property><name>mapred.linerecordreader.maxlength</name><value>20</value></property>
<property><name>mapreduce.input.pathFilter.class</name><value>com.example.NoSuchFilter</value></property>
<property><name>io.compression.codecs</name><value>com.example.NoSuchCodec</value></property>
</configuration>"""


def write_settings(folder: Path, *, port: int) -> None:
    """Write them as `core-site.xml`: no line is longer than 20 bytes, and its file system is at a port of nobody's."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "core-site.xml").write_text(_SETTINGS.format(port=port))
    (folder / "core-site.xml").chmod(0o644)


class Start(Protocol):
    """Starts a command with what it sees besides the variables of this process."""

    def __call__(self, *args: str, environment: Mapping[str, str]) -> subprocess.Popen[str]: ...


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for the tests of this module; each leaves it with two workers."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def elsewhere(cluster: Cluster, object_store: ObjectStore) -> Mapping[str, str]:
    """Settings by which an installation computes on the cluster."""
    return {
        "PLATFORM_SPARK_MASTER": cluster.master,
        "PLATFORM_LAKE": f"{object_store.url}/{uuid4().hex}/lake",
        "PLATFORM_SPARK_CONF": json.dumps(cluster.conf()),
        "HADOOP_CONF_DIR": str(cluster.hadoop),
    }


@pytest.fixture
def behind_connect(cluster: Cluster, object_store: ObjectStore) -> Iterator[Mapping[str, str]]:
    """Settings by which an installation computes in a Spark Connect server of somebody else's."""
    bucket = f"{object_store.url}/{uuid4().hex}/lake"
    jars = spark_jars(load_settings(jars=JARS, lake=bucket), find_java())
    remote = cluster.start_connect("connect", jars, object_store)
    yield {"PLATFORM_SPARK_REMOTE": remote, "PLATFORM_LAKE": bucket, "PLATFORM_SPARK_CONF": "{}"}
    cluster.kill("connect")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command as a process of its own, which is not waited for, and ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def command(*args: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        own = {"PLATFORM_SPARK_DRIVER_MEMORY": "1g", "COLUMNS": "200", **environment}
        started.append(subprocess.Popen(
            [sys.executable, "-c", "from platform_assets.cli import main; main()", *args],
            env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ))  # fmt: skip
        return started[-1]

    yield command
    for process in started:
        with process:
            process.kill()


def wait_for(what: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    """Until something lies in the bucket."""
    until = time.monotonic() + 240
    # Unlike pathlib's, it passes over a folder that is being removed.
    while not glob(f"**/{pattern}", root_dir=what, recursive=True):  # noqa: PTH207
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until, f"no {pattern} in {what}"
        time.sleep(0.05)


def folder_of(store: ObjectStore, settings: Mapping[str, str]) -> Path:
    """Where the lake of an installation lies as files."""
    return store.folder / settings["PLATFORM_LAKE"].removeprefix(f"{store.url}/")
