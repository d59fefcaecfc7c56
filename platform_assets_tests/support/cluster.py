"""A real Spark cluster for tests: a standalone master and two workers on this machine, from the installed PySpark.

Workers belong to another user where that is possible, so that they and the driver share nothing but the lake: neither
the landing folder, nor the state, nor Spark's own folders can be read by both.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import pyspark

from platform_assets.spark.session.configuration import of_s3
from platform_assets_tests.support.hadoop import write_settings
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.other_user import NOBODY

HOME = Path(pyspark.__file__).parent
_ANSWERS_WITHIN_S = 60
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


def children_of(pid: int) -> list[int]:
    """The processes that it started and that these started, the youngest first."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            children += map(int, (task / "children").read_text().split())
    return [grandchild for child in children for grandchild in children_of(child)] + children


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


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait(port: int) -> None:
    """Until somebody listens at a port."""
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")
