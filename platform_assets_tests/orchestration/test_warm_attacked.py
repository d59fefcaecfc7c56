"""Spark that is kept ready, with what goes wrong around it: nobody computes otherwise, or waits for long."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_assets.settings import load_settings
from platform_assets.spark.session.configuration import engine_key
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.warm import UNREHEARSED, Warm, an_installation, is_there, wait_for

proof = pytest.mark.proof
OWN = "found['own'] = SparkContext._gateway.proc is not None"
ONE_THAT_GOES_ON = """
import threading, time
sleep = SparkContext._jvm.java.lang.Thread.sleep
threading.Thread(target=sleep, args=(10**7,), daemon=True).start()
time.sleep(1)
"""
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


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    """Nothing is kept yet."""
    with an_installation(tmp_path) as found:
        yield found


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
def test_one_that_goes_on_between_two_jobs_is_not_lent_again(warm: Warm) -> None:
    """As after Ctrl-C: Java hears nothing of it, and goes on with the call."""
    warm.keep(UNREHEARSED)
    first = warm.worked(ONE_THAT_GOES_ON)
    wait_for(lambda: not is_there(first["jvm"]))
    wait_for(warm.is_ready)
    assert warm.worked()["jvm"] != first["jvm"]


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


@proof
@pytest.mark.timeout(900)
def test_a_keeper_goes_on_where_its_jvm_is_killed_in_the_rehearsal(warm: Warm) -> None:
    keeper = warm.begin()
    wait_for(lambda: any((warm.state / "spark").glob("*/rehearsal/lake/raw")))
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    # Beside it may be what looks into delivered files.
    [jvm] = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
    os.kill(jvm, signal.SIGKILL)
    wait_for(warm.is_ready)
    assert is_there(keeper)
    assert not warm.worked(OWN)["own"]


@proof
def test_nothing_is_left_of_one_that_is_ended_while_it_starts(warm: Warm) -> None:
    keeper = warm.begin(UNREHEARSED)
    wait_for(lambda: any((warm.state / "spark").glob("*/spark-*")))
    os.kill(keeper, signal.SIGTERM)
    wait_for(lambda: not is_there(keeper))
    assert not any((warm.state / "spark").iterdir())


@proof
def test_a_keeper_that_finds_no_way_to_be_found_says_so_and_tries_again(warm: Warm) -> None:
    """What lies in the link's place is not its own to remove."""
    (warm.state / "warm.sock").mkdir(parents=True)
    warm.errors = subprocess.PIPE
    keeper = warm.begin(UNREHEARSED)
    said = warm.first_line()
    assert said.startswith("Spark cannot be kept ready, so that runs start their own: ")
    assert is_there(keeper)
    assert warm.worked(OWN)["own"]
    (warm.state / "warm.sock").rmdir()
    wait_for(warm.is_ready)
    assert not warm.worked(OWN)["own"]


@proof
def test_a_table_that_was_built_anew_in_its_place_is_read_as_it_is(warm: Warm, tmp_path: Path) -> None:
    warm.keep(UNREHEARSED)
    place = tmp_path / "table"
    read = f"found['id'] = spark.read.format('delta').option('versionAsOf', 0).load({str(place)!r}).first()['id']"
    found = []
    for number in range(2):
        write_deltalake(place, pa.table({"id": [number]}))
        found.append(warm.worked(read))
        shutil.rmtree(place)
    assert [each["id"] for each in found] == [0, 1]
    assert found[0]["jvm"] == found[1]["jvm"]


@proof
def test_it_is_lent_in_a_folder_of_a_group_whose_path_is_long(tmp_path: Path) -> None:
    """A socket's own path may have a hundred characters."""
    with an_installation(tmp_path / ("a" * 100) / ("b" * 100)) as warm:
        warm.keep(UNREHEARSED, PLATFORM_STATE_MODE="770")
        assert not warm.worked(OWN)["own"]
        socket = (warm.state / "warm.sock").readlink()
        assert socket.stat().st_mode & 0o077 == 0
