"""What is kept ready: Spark, which who asks gets as if it were new, and processes of runs with what they need imported.

Nobody else can have them, whatever goes wrong around them; nothing of the user's is imported beforehand.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from platform_assets.orchestration.servers import code_on_disk
from platform_assets.settings import load_settings, project_root
from platform_assets.spark.session.configuration import engine_key
from platform_assets.spark.session.warm import borrow, link_to_keeper
from platform_assets_tests.support.cli.commands import run_apart
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.other_user import a_place_for_all, as_other_user, needs_root
from platform_assets_tests.support.places import digests_of
from platform_assets_tests.support.world import product, sale

PATIENCE_S = 300
UNREHEARSED = "unrehearsed"
CLIENT = """
import json, sys
from pyspark import SparkContext
from platform_assets.settings import load_settings
from platform_assets.spark.session.session import create_session, stop_session
spark = create_session(load_settings(), record_classes=False)
found = {"jvm": int(SparkContext._jvm.java.lang.ProcessHandle.current().pid())}
exec(sys.argv[1])
print(json.dumps(found), flush=True)
if sys.stdin.readline():
    stop_session(spark)
"""


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.2)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class Warm:
    """An installation in which Spark is kept ready.

    Args:
        state: its folder.
        folder: of the socket.
        errors: where keepers write; where this process does by default.
    """

    state: Path
    folder: Path
    errors: int | None = None
    environ: dict[str, str] = field(default_factory=dict)
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def keep(self, *options: str, **settings: str) -> int:
        """Keep Spark ready from now on; the keeper's process, once it is."""
        keeper = self.begin(*options, **settings)
        wait_for(self.is_ready)
        return keeper

    def begin(self, *options: str, **settings: str) -> int:
        """Start to keep Spark ready; the keeper's process."""
        self.environ = {
            **os.environ,
            "PLATFORM_STATE": str(self.state),
            "PLATFORM_JARS": str(JARS),
            "PLATFORM_WARM": "true",
            "PLATFORM_SPARK_CONF": OWN_PROCESS,
            "PLATFORM_SPARK_DRIVER_MEMORY": "1g",
            "PLATFORM_SETTLE_S": "0",
            **settings,
        }
        command = [
            sys.executable,
            "-m",
            "platform_assets.orchestration.keeper",
            str(self.folder / "warm.sock"),
            *options,
        ]
        self._started.append(subprocess.Popen(command, env=self.environ, stderr=self.errors, text=True))
        return self._started[-1].pid

    def first_line(self) -> str:
        """What a keeper says to whom there is a pipe, first."""
        said = self._started[0].stderr
        assert said is not None
        return said.readline()

    def is_ready(self) -> bool:
        """Whether somebody who asks now finds it."""
        return (self.state / "warm.sock").is_socket()

    def way(self) -> int | None:
        """Tells the way to a keeper's JVM from that to another one; None while there is none."""
        try:
            return (self.state / "warm.sock").lstat().st_ctime_ns
        except FileNotFoundError:
            return None

    def client(self, code: str = "", **settings: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        """A process with a session, which it stops once it is told to, and what it found."""
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, code],
            env=self.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def worked(self, code: str = "", **settings: str) -> dict[str, Any]:
        """What a process found that has worked and stopped."""
        process, found = self.client(code, **settings)
        process.communicate("stop\n", timeout=PATIENCE_S)
        return found

    def stop(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


@contextmanager
def an_installation(folder: Path) -> Iterator[Warm]:
    """Nothing is kept yet."""
    with TemporaryDirectory(prefix="warm-") as name:
        found = Warm(folder / "state", Path(name))
        try:
            yield found
        finally:
            found.stop()


proof = pytest.mark.proof

CONNECT = """
answers = []
try:
    socket.socket(socket.AF_UNIX).connect({socket!r})
    answers.append("connected")
except OSError as error:
    answers.append(type(error).__name__)
print(json.dumps(answers))
"""


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    """Nothing is kept yet."""
    with an_installation(tmp_path) as found:
        yield found


def test_where_nobody_keeps_one_or_does_not_answer_none_is_waited_for(tmp_path: Path) -> None:
    """As a keeper that was stopped by a signal: its connections are taken by the operating system."""
    settings = load_settings(state=tmp_path / "state", jars=JARS)
    settings.make_state()
    assert borrow(settings, "key") is None
    with TemporaryDirectory(prefix="warm-") as name, socket.socket(socket.AF_UNIX) as silent:
        place = Path(name) / "warm.sock"
        silent.bind(str(place))
        place.chmod(0o600)
        link_to_keeper(settings).symlink_to(place)
        assert borrow(settings, "key") is None, "nobody listens"
        silent.listen()
        began = time.monotonic()
        assert borrow(settings, "key") is None
        assert time.monotonic() - began < 6
        place.chmod(0o666)
        began = time.monotonic()
        assert borrow(settings, "key") is None, "others could have put it there"
        assert time.monotonic() - began < 0.5


@proof
def test_each_gets_it_as_if_it_were_new(warm: Warm) -> None:
    warm.keep(UNREHEARSED)
    leave = "spark.conf.set('spark.sql.ansi.enabled', 'false'); spark.range(3).cache().createTempView('left')"
    first = warm.worked(leave)
    ask = (
        "found |= {'ansi': spark.conf.get('spark.sql.ansi.enabled'), 'views': len(spark.catalog.listTables()), "
        "'cached': spark._jsparkSession.sharedState().cacheManager().isEmpty(), 'rows': spark.range(9).count(), "
        "'own': SparkContext._gateway.proc is not None, 'parts': spark.conf.get('spark.sql.shuffle.partitions')}"
    )
    second = warm.worked(ask)
    alone = warm.worked(ask, PLATFORM_WARM="false")
    assert second == {**alone, "jvm": first["jvm"], "own": False}
    assert alone["jvm"] != first["jvm"]


@proof
def test_a_second_one_and_one_with_other_settings_start_their_own(warm: Warm) -> None:
    warm.keep(UNREHEARSED)
    working, first = warm.client()
    assert warm.worked()["jvm"] != first["jvm"]
    working.communicate("stop\n", timeout=PATIENCE_S)
    assert warm.worked(PLATFORM_SPARK_DRIVER_MEMORY="900m")["jvm"] != first["jvm"]
    assert warm.worked()["jvm"] == first["jvm"]


@proof
def test_what_somebody_began_who_was_killed_ends_with_the_jvm(warm: Warm) -> None:
    warm.keep(UNREHEARSED)
    work = "import threading; threading.Thread(target=spark.range(10**15).selectExpr('sum(id % 7)').collect).start()"
    working, first = warm.client(work)
    working.kill()
    wait_for(lambda: not is_there(first["jvm"]))
    wait_for(warm.is_ready)
    assert warm.worked()["jvm"] != first["jvm"]


@proof
def test_one_that_left_work_or_filled_its_memory_is_not_lent_again(warm: Warm) -> None:
    warm.keep(UNREHEARSED, PLATFORM_WARM_MIB="256")
    work = (
        "import threading, time; "
        "threading.Thread(target=spark.range(10**15).selectExpr('sum(id % 7)').collect, daemon=True).start(); "
        "time.sleep(5)"
    )
    first = warm.worked(work)
    wait_for(lambda: not is_there(first["jvm"]))
    wait_for(warm.is_ready)
    fill = (
        "java = SparkContext._jvm; "
        "java.java.lang.System.getProperties().put('kept', SparkContext._gateway.new_array(java.long, 50_000_000))"
    )
    second = warm.worked(fill)
    wait_for(lambda: not is_there(second["jvm"]))
    wait_for(warm.is_ready)
    assert warm.worked()["jvm"] not in (first["jvm"], second["jvm"])


@proof
def test_one_that_nobody_asks_for_is_ended_and_started_for_who_asks(warm: Warm) -> None:
    warm.keep(UNREHEARSED, PLATFORM_WARM_IDLE_S="3")
    first = warm.worked()
    wait_for(lambda: not is_there(first["jvm"]))
    assert warm.is_ready()
    found = warm.worked("found['own'] = SparkContext._gateway.proc is not None")
    assert found["jvm"] != first["jvm"]
    assert not found["own"]


@proof
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_keeper_that_ends(warm: Warm, number: signal.Signals) -> None:
    keeper = warm.keep(UNREHEARSED)
    working, found = warm.client()
    os.kill(keeper, number)
    wait_for(lambda: not is_there(found["jvm"]))
    working.communicate("stop\n", timeout=PATIENCE_S)
    assert working.returncode == 0, "it stops as always"
    alone = warm.worked()
    assert alone["jvm"] != found["jvm"]


@proof
@needs_root
def test_another_user_does_not_get_it() -> None:
    with a_place_for_all() as place:
        warm = Warm(place / "state", place / "sockets")
        warm.folder.mkdir(0o755)
        try:
            warm.keep(UNREHEARSED)
            ask = CONNECT.format(socket=str(warm.folder / "warm.sock"))
            assert as_other_user(place, ask) == ["PermissionError"]
        finally:
            warm.stop()


@proof
def test_days_come_out_the_same_and_a_jvm_that_is_killed_loses_nothing(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = tmp_path / "landing"
    days = ("2017-01-01", "2017-01-02")
    given = {"CALENDAR_LAST": days[-1], "TODAY": days[-1], "LANDING": str(landing)}
    settings = {f"PLATFORM_{name}": value for name, value in given.items()}
    put(landing / "products" / days[0] / "p.jsonl", [product(1, days[0], "MEAT")])
    for day in days:
        put(landing / "transactions" / day / "s.jsonl", [sale(int(day[-2:]) * 10 + n, 1, day) for n in range(4)])
    warm.keep(**settings)
    for name, value in warm.environ.items():
        monkeypatch.setenv(name, value)
    jvm = warm.worked()["jvm"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from platform_assets.cli import main; main()", "refresh"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for(lambda: any((warm.state / "lake").glob("raw/transactions/**/*.parquet")))
    os.kill(jvm, signal.SIGKILL)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, said
    assert "Spark's JVM was ended in the middle of work: `up`, which keeps it ready, was ended, the machine" in said
    assert "Traceback" not in said
    wait_for(warm.is_ready)
    assert warm.worked()["jvm"] != jvm
    assert run_apart("refresh").code == 0
    alone = {"PLATFORM_STATE": str(tmp_path / "alone"), "PLATFORM_LAKE": str(tmp_path / "alone" / "lake")}
    assert run_apart("refresh", **alone).code == 0
    assert digests_of(str(warm.state / "lake")) == digests_of(alone["PLATFORM_LAKE"]) != {}


def put(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


OWN = "found['own'] = SparkContext._gateway.proc is not None"
CALL = """
import mine
from pyspark.sql import functions as F
found['mine'] = spark.range(1, 2).select(F.udf(mine.times, 'long')('id')).first()[0]
"""

SEEN_BY_ALL = {
    "a view of all sessions": "spark.range(3).createGlobalTempView('left')",
    "a table of the catalogue": "spark.sql('create table left (id int) using parquet')",
    "a setting of Hadoop": "spark.sparkContext._jsc.hadoopConfiguration().set('left', 'yes')",
    "how much is logged": "spark.sparkContext.setLogLevel('OFF')",
    "Spark that was stopped": "spark._jsparkSession.sparkContext().stop()",
}


def test_a_jvm_is_known_by_where_its_python_finds_modules_and_by_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(state=tmp_path, jars=JARS)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    keys = [engine_key(settings)]
    for name in ("PYTHONPATH", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.setenv(name, "another")
        keys.append(engine_key(settings))
    monkeypatch.chdir(tmp_path)
    assert engine_key(settings) == keys[-1], "no module is taken from there"
    monkeypatch.syspath_prepend("")
    keys.append(engine_key(settings))
    assert len(set(keys)) == len(keys)


@proof
def test_functions_in_python_are_those_that_whoever_borrows_it_has_today(warm: Warm, tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("one", "other")}
    for factor, folder in enumerate(folders.values(), start=2):
        folder.mkdir()
        (folder / "mine.py").write_text(f"def times(x): return x * {factor}\n")
    warm.keep(UNREHEARSED, PYTHONPATH=str(folders["one"]))
    first = warm.worked(CALL)
    assert first["mine"] == 2
    wait_for(lambda: not is_there(first["jvm"]))
    wait_for(warm.is_ready)
    assert warm.worked(CALL, PYTHONPATH=str(folders["other"]))["mine"] == 3
    (folders["one"] / "mine.py").write_text("def times(x): return x * 40_000\n")
    assert warm.worked(CALL)["mine"] == 40_000


@proof
@pytest.mark.parametrize("left", SEEN_BY_ALL.values(), ids=SEEN_BY_ALL)
def test_one_in_which_somebody_left_what_all_sessions_see_is_not_lent_again(warm: Warm, left: str) -> None:
    warm.keep(UNREHEARSED)
    untouched = warm.worked("spark.range(9).count(); spark.sql('select 1 as one').createTempView('own')")
    first = warm.worked(left)
    assert first["jvm"] == untouched["jvm"]
    wait_for(lambda: not is_there(first["jvm"]))
    wait_for(warm.is_ready)
    assert warm.worked(OWN)["own"] is False


@proof
def test_one_that_does_not_answer_is_waited_for_once_and_replaced(warm: Warm) -> None:
    """Stopped by a signal while nobody has it, then while somebody has."""
    warm.keep(UNREHEARSED)
    first, way = warm.worked(), warm.way()
    os.kill(first["jvm"], signal.SIGSTOP)
    assert warm.worked(OWN)["own"]
    wait_for(lambda: not is_there(first["jvm"]))
    wait_for(lambda: warm.way() not in (None, way))  # one that does not answer is killed before the way is closed
    way = warm.way()
    working, second = warm.client(OWN)
    assert not second["own"]
    os.kill(second["jvm"], signal.SIGSTOP)
    began = time.monotonic()
    working.communicate("stop\n", timeout=60)
    assert time.monotonic() - began < 10
    wait_for(lambda: not is_there(second["jvm"]))
    wait_for(lambda: warm.way() not in (None, way))
    assert not warm.worked(OWN)["own"]


LOOK = """
import json, os, sys, threading
import platform_assets.orchestration.imported
print(json.dumps({
    "domains": [name for name in sys.modules if name.startswith("platform_assets.domains")],
    "threads": threading.active_count(),
    "has": [name in sys.modules for name in ("dagster", "pyspark.sql", "platform_assets.engine.refresh")],
    "files": [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if int(number) > 2
              and os.path.exists(f"/proc/self/fd/{number}")],
}))
"""


def asked(*command: str) -> Any:
    """What another process says, as JSON."""
    done = subprocess.run([sys.executable, *command], cwd=project_root(), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def test_they_begin_with_what_was_imported_and_anew_where_code_was_changed() -> None:
    found = asked("-m", "platform_assets_tests.support.orchestration.ready_runs", "changed")
    ended = {"is it": True, "code": 0, "alive": False}
    assert found == [{"has it": True, **ended}, {"has it": False, **ended}]


@pytest.mark.proof
def test_they_have_the_servers_environment_and_do_what_is_left_for_their_end_and_draw_numbers_of_their_own() -> None:
    found = asked("-m", "platform_assets_tests.support.orchestration.ready_runs", "ends")
    assert found["done"] == ["known", "known"]
    assert len(set(found["drawn"])) == 2


@pytest.mark.proof
def test_what_they_have_is_nothing_of_the_user_and_nothing_that_copies_cannot_share() -> None:
    found = asked("-c", LOOK)
    assert found["has"] == [True, True, True]
    assert found["domains"] == []
    assert found["threads"] == 1
    assert [file for file in found["files"] if not file.startswith(("pipe:", "/dev/", "anon_inode:"))] == []


def test_code_is_this_package_and_what_is_installed() -> None:
    files = {path for path, _, _ in code_on_disk()}
    assert any(path.endswith("engine/refresh.py") for path in files)
    assert any(path.endswith("site-packages") for path in files)
    assert not any("/platform_assets/domains/" in path for path in files)
