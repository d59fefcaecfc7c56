"""The session: Delta works, it is quiet, closed to others and ends; settings that change results are refused."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.lakehouse.layout import located
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.configuration import (
    TUNING,
    configuration,
    refuse_other_settings,
)
from platform_assets.spark.session.jars import ALWAYS, archive_path, class_archive, spark_jars
from platform_assets.spark.session.java import find_java
from platform_assets.spark.session.jvm import OPTIONS, SessionError, options_beside
from platform_assets.spark.session.session import create_session
from platform_assets.spark.tables.staging import stage
from platform_assets.sql_settings import REQUIRED
from platform_assets_tests.support.installation import JARS, fake_java, says


@dataclass(frozen=True)
class Outcome:
    """What a process of its own printed, and how it ended."""

    code: int
    out: str
    err: str


def run(code: str, settings: Settings, environ: Mapping[str, str] | None = None, timeout_s: float = 240) -> Outcome:
    """Run Python in a fresh process; `settings` is ready there."""
    given = {"state": str(settings.state), "jars": str(settings.jars), "spark_conf": settings.spark_conf}
    given |= {"spark_driver_memory": settings.spark_driver_memory, "spark_master": settings.spark_master}
    program = f"""
import json
from platform_assets.settings import load_settings
from platform_assets.errors import PlatformError
settings = load_settings(**json.loads({json.dumps(given)!r}))
from platform_assets.spark.session.session import create_session, stop_session
{code}
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ if environ is None else environ), cwd=settings.state.parent,
        capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


def wait_until_free(lock: Path, within_s: float = 120) -> None:
    """Wait until no JVM holds a lock file any more."""
    end = time.monotonic() + within_s
    with lock.open() as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                assert time.monotonic() < end, f"{lock} is still held after {within_s} s"
                time.sleep(0.2)


def test_a_process_has_one_session(spark: SparkSession, settings: Settings) -> None:
    assert create_session(settings) is spark


def test_the_settings_win_over_the_tuning(settings: Settings) -> None:
    own = load_settings(state=settings.state, spark_conf={"spark.ui.enabled": "true", "spark.x": "y"})
    conf = configuration(own, ())
    assert (conf["spark.ui.enabled"], conf["spark.x"], conf["spark.sql.ansi.enabled"]) == ("true", "y", "true")


def test_jars_and_extensions_of_the_settings_come_beside_ours(settings: Settings) -> None:
    own = {"spark.jars": "/own.jar", "spark.sql.extensions": "com.example.Own"}
    elsewhere = load_settings(state=settings.state, spark_master="spark://host:7077", spark_conf=own)
    conf = configuration(elsewhere, (Path("/ours.jar"), Path("/hadoop.jar")))
    assert conf["spark.jars"] == "/ours.jar,/hadoop.jar,/own.jar"
    assert conf["spark.sql.extensions"] == f"{TUNING['spark.sql.extensions']},com.example.Own"


@pytest.mark.parametrize("name", ["spark_conf", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_another_garbage_collector_takes_the_place_of_ours(name: str) -> None:
    """Java does not start with two."""
    ours, theirs = "-XX:+UseParallelGC", "-Xss8m -XX:+UseG1GC"
    options = options_beside(theirs, {}) if name == "spark_conf" else options_beside("", {name: theirs})
    assert options == tuple(option for option in OPTIONS if option != ours)
    assert options_beside("-XX:+UseGCOverheadLimit", {}) == OPTIONS
    told = [option for option in options if option.startswith("-XX")]
    subprocess.run([find_java().executable, *told, *theirs.split(), "-version"], capture_output=True, check=True)


def test_few_long_rows_are_held_at_once(settings: Settings) -> None:
    conf = configuration(settings, ())
    assert int(conf["spark.sql.parquet.columnarReaderBatchSize"]) <= 256
    assert int(conf["spark.hadoop.parquet.page.size.row.check.min"]) <= 4


def test_a_local_session_is_bound_to_this_machine_and_a_cluster_gets_the_jars(settings: Settings) -> None:
    jars = spark_jars(settings)
    local = configuration(settings, jars)
    assert (local["spark.driver.host"], local["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    cluster = configuration(load_settings(state=settings.state, spark_master="spark://host:7077"), jars)
    assert "spark.driver.bindAddress" not in cluster
    assert cluster["spark.jars"] == ",".join(map(str, jars))


@pytest.mark.proof
def test_of_two_sessions_of_a_process_each_listens_on_loopback_only_and_has_the_memory_it_asks_for(
    settings: Settings,
) -> None:
    done = run(
        """
import os, pathlib
from pyspark import SparkContext

def listening():
    jvm = SparkContext._gateway.proc.pid
    mine = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{jvm}/fd").iterdir() if os.path.lexists(fd)}
    for family in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{jvm}/net/{family}").read_text().splitlines()[1:]:
            part = line.split()
            if part[3] == "0A" and f"socket:[{part[9]}]" in mine:
                words = bytes.fromhex(part[1].split(":")[0])
                yield b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4)).hex()

for memory in ("600m", "700m"):
    spark = create_session(load_settings(state=settings.state, jars=settings.jars, spark_driver_memory=memory),
                           record_classes=False)
    if memory == "600m":
        spark.range(10).repartition(2).count()
        print("listens", *listening())
    print(memory, spark._jvm.Runtime.getRuntime().maxMemory() >> 20 > 600)
    stop_session(spark)
""",
        settings,
    )
    assert done.code == 0, done.err
    said = {words[0]: words[1:] for words in map(str.split, done.out.splitlines())}
    assert said["listens"]
    assert set(said["listens"]) <= {"7f000001", "00" * 10 + "ffff7f000001", "00" * 15 + "01"}
    assert (said["600m"], said["700m"]) == (["False"], ["True"])


@pytest.mark.proof
def test_a_rehearsal_has_as_many_tasks_for_a_shuffle_as_a_run(settings: Settings) -> None:
    code = """
from platform_assets.spark.session.warm import LentJvm
jvm = LentJvm(settings, lambda given: create_session(given, record_classes=False, own=True))
tasks = "spark.sql.shuffle.partitions"
print(jvm.new_session().conf.get(tasks) == jvm.session.conf.get(tasks) != "200")
jvm.end()
"""
    done = run(code, settings)
    assert (done.code, done.out, done.err) == (0, "True\n", "")


@pytest.mark.proof
def test_with_an_empty_home_it_starts_computes_and_stops_without_a_word_or_a_trace(
    settings: Settings, tmp_path: Path
) -> None:
    """A process of its own, with a JVM that nothing was prepared for."""
    home = tmp_path / "home"
    home.mkdir()
    environ = {**os.environ, "HOME": str(home), "JAVA_TOOL_OPTIONS": f"-Duser.home={home}"}
    done = run(
        """
import os
from pyspark import SparkContext
spark = create_session(settings, record_classes=False)
print(spark.range(1000).repartition(4).selectExpr("sum(id) AS total").collect()[0].total)
jvm = SparkContext._gateway.proc.pid
stop_session(spark)
print(os.path.exists(f"/proc/{jvm}"), SparkContext._gateway)
""",
        settings,
        environ,
    )
    assert (done.code, done.out, done.err) == (0, "499500\nFalse None\n", "")
    assert not list(home.iterdir())


@pytest.mark.proof
@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "xx_XX.UTF-8"])
def test_folders_with_spaces_and_odd_characters_work_in_every_locale(tmp_path: Path, locale: str) -> None:
    state = tmp_path / "a state, 'quoted' & umläut"
    (state / "jars").mkdir(parents=True)
    for jar in ALWAYS:
        (state / "jars" / jar.file).symlink_to(JARS / jar.file)
    settings = load_settings(state=state)
    code = """
spark = create_session(settings)
spark.range(3).write.format("delta").save(str(settings.state / "table"))
print(spark.read.format("delta").load(str(settings.state / "table")).count())
print(spark.sql("SELECT upper('ié') = 'IÉ'").first()[0])
stop_session(spark)
"""
    elsewhere = {"LC_ALL": locale, "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.country=TR"}
    done = run(code, settings, {**os.environ, **elsewhere})
    assert (done.code, done.out, done.err) == (0, "3\nTrue\n", "")


@pytest.mark.proof
def test_of_a_spark_that_ends_while_it_starts_its_last_words_are_told(settings: Settings, tmp_path: Path) -> None:
    """As where it can write in no folder of somebody's choice; Python hears only that nobody answers."""
    (tmp_path / "file").touch()
    code = """
try:
    create_session(settings, record_classes=False)
except PlatformError as error:
    print(error.what)
"""
    done = run(code, settings, {**os.environ, "SPARK_LOCAL_DIRS": str(tmp_path / "file" / "folder")})
    assert f"Failed to create local dir in {tmp_path / 'file' / 'folder'}" in done.out, done.err


@pytest.mark.proof
def test_variables_of_another_spark_change_nothing(settings: Settings, tmp_path: Path) -> None:
    """As whoever has worked with one before has them: its folder, its defaults, its master, packages for a notebook."""
    defaults = {"spark.master": "yarn", "spark.sql.session.timeZone": "Asia/Tokyo", "spark.jars.packages": "no:such:1"}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in defaults.items()))
    variables = {
        "SPARK_HOME": str(tmp_path / "spark-3.5"),
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_SUBMIT_OPTS": "-XX:+UseG1GC",
        "SPARK_LAUNCHER_OPTS": "-XX:NoSuchOption",
        "PYSPARK_SUBMIT_ARGS": "--packages no:such:1 pyspark-shell",
        "MASTER": "spark://127.0.0.1:9",
        "SPARK_REMOTE": "sc://127.0.0.1:9",
        "SPARK_API_MODE": "connect",
        "SPARK_CONNECT_MODE": "1",
        "SPARK_CONNECT_MODE_ENABLED": "1",
        "PYSPARK_PYTHON": "/usr/bin/python2",
        "PATH": os.defpath,
    }
    code = """
from pyspark.sql import functions as F
spark = create_session(settings, record_classes=False)
print(spark.range(3).select(F.sum(F.udf(lambda id: id, "int")("id"))).first()[0], spark.sparkContext.master)
print(spark.conf.get("spark.sql.session.timeZone"), spark.sparkContext.getConf().get("spark.jars.packages"))
stop_session(spark)
"""
    done = run(code, settings, {**os.environ, **variables})
    assert (done.code, done.out, done.err) == (0, f"3 {settings.spark_master}\nUTC None\n", "")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("PATH", "There is no Java"),
        ("version", "Spark needs Java 17 to 25"),
        ("memory", "The JVM of Spark ended as soon as it started"),
        pytest.param("master", "Spark does not start on local[none]", marks=pytest.mark.proof),
    ],
)
def test_what_keeps_spark_from_starting_is_told_without_a_traceback(
    broken: str, message: str, settings: Settings, tmp_path: Path
) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    given: dict[str, Any] = {"state": settings.state, "jars": settings.jars}
    if broken == "PATH":
        environ["PATH"] = str(tmp_path)
    if broken == "version":
        fake_java(tmp_path / "bin", says("11.0.2"))
        environ["PATH"] = f"{tmp_path / 'bin'}:{environ['PATH']}"
    if broken == "memory":
        given["spark_driver_memory"] = "900000g"
    if broken == "master":
        given["spark_master"] = "local[none]"
    code = """
try:
    create_session(settings, record_classes=False)
except PlatformError as error:
    print(error)
"""
    done = run(code, load_settings(**given), environ)
    assert done.code == 0, done.err
    assert message in done.out
    assert "What to do: " in done.out
    assert "Traceback" not in done.out + done.err


@pytest.fixture
def own_jars(tmp_path: Path) -> Settings:
    """An installation with jars of its own, so that it has no class archive yet."""
    settings = load_settings(state=tmp_path / "state", spark_driver_memory="1g")
    settings.jars.mkdir(parents=True)
    spark_jars(load_settings(jars=JARS))
    for jar in ALWAYS:
        shutil.copy(JARS / jar.file, settings.jars)
    return settings


START = "spark = create_session(settings); print(spark.range(3).count()); stop_session(spark)"


@pytest.mark.proof
def test_the_first_session_leaves_a_class_archive_that_later_ones_use(own_jars: Settings) -> None:
    file = archive_path(own_jars, find_java())
    first = run(START, own_jars)
    assert (first.out, first.err) == ("3\n", "")
    wait_until_free(file.with_suffix(".lock"))
    traced = load_settings(
        state=own_jars.state, spark_conf={"spark.driver.extraJavaOptions": "-Xlog:class+load=info:stdout"}
    )
    second = run(START, traced)
    assert (second.out, second.err) == ("3\n", "")
    assert file.is_file()
    log = (own_jars.state / "logs" / "spark.log").read_text(errors="replace")
    assert "org.apache.spark.SparkContext source: shared objects file (top)" in log
    assert "org.apache.spark.sql.delta.catalog.DeltaCatalog source: shared objects file (top)" in log


def test_only_one_process_records_the_class_archive(own_jars: Settings) -> None:
    java = find_java()
    first = class_archive(own_jars, java, record=True)
    second = class_archive(own_jars, java, record=True)
    assert "ArchiveClassesAtExit" in first.jvm_options
    assert second.jvm_options == ""
    first.handed_over()
    third = class_archive(own_jars, java, record=True)
    assert "ArchiveClassesAtExit" in third.jvm_options
    third.handed_over()


def test_what_a_killed_jvm_recorded_by_half_is_thrown_away_and_the_whole_is_taken(own_jars: Settings) -> None:
    java = find_java()
    file = archive_path(own_jars, java)
    recording = file.with_suffix(".recording")
    recording.write_bytes(bytes(4096) + b"regions without a header")
    again = class_archive(own_jars, java, record=True)
    assert "ArchiveClassesAtExit" in again.jvm_options
    assert not recording.exists()
    again.handed_over()
    recording.write_bytes(b"header and regions")
    assert "SharedArchiveFile" in class_archive(own_jars, java, record=True).jvm_options
    assert file.read_bytes() == b"header and regions"


def test_a_class_archive_that_somebody_changed_or_could_have_written_is_not_used(own_jars: Settings) -> None:
    java = find_java()
    file = archive_path(own_jars, java)

    def used() -> bool:
        return "SharedArchiveFile" in class_archive(own_jars, java, record=False).jvm_options

    file.with_suffix(".recording").write_bytes(b"header and regions")
    assert used()
    file.chmod(0o666)
    assert not used()
    file.chmod(0o444)
    assert used()
    file.chmod(0o644)
    file.write_bytes(b"header and Regions")
    assert not used()
    assert not file.exists(), "the next session records it anew"


ZONE, OF_OTHERS = "spark.sql.session.timeZone", "spark.sql.legacy.sizeOfNull"
DATES = "spark.sql.datetime.java8API.enabled"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which a test changes settings as anybody may; afterwards they are as they were."""
    yield spark
    for name, value in REQUIRED.items():
        spark.conf.set(name, value)
    spark.conf.unset(OF_OTHERS)


def test_a_session_of_ours_has_the_values_that_days_are_computed_with(spark: SparkSession) -> None:
    refuse_other_settings(spark)
    assert {name: str(spark.conf.get(name)) for name in REQUIRED} == REQUIRED


def test_what_is_required_is_sparks_own_default_but_for_four(spark: SparkSession) -> None:
    """A transform that is tried in a session of one's own gives what the platform publishes."""
    java = cast("Any", spark)._jvm.org.apache.spark.sql.internal
    entries = getattr(getattr(java, "SQLConf$"), "MODULE$")
    defaults = {name: entries.getConfigEntry(name).defaultValueString() for name in REQUIRED}
    other = {name for name, value in defaults.items() if value.lower() != REQUIRED[name].lower()}
    of_files = {"spark.sql.parquet.outputTimestampType", "spark.sql.legacy.parquet.nanosAsLong"}
    assert other - {ZONE} == {DATES, *of_files}, "the zone is that of the machine"


def test_executors_of_another_time_zone_find_the_rows_of_a_date(spark: SparkSession, tmp_path: Path) -> None:
    """A file in which no other date is they would leave out, where the filter came to them as an instant."""
    spark.sql("SELECT DATE'2017-01-03' AS since").write.parquet(str(tmp_path / "of one date"))
    found = spark.read.parquet(str(tmp_path / "of one date")).where("since = DATE'2017-01-03'")
    java = cast("Any", found)
    java._jdf.queryExecution().executedPlan()  # here is where the filter is made
    zones = cast("Any", spark)._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        assert java._jdf.count() == 1
        assert len(found.collect()) == 1
    finally:
        zones.setDefault(before)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (ZONE, "America/New_York", "has to be UTC"),
        ("spark.sql.ansi.enabled", "false", "has to be true"),
        (OF_OTHERS, "true", "has to stay as Spark has it"),
        ("spark.sql.preserveCharVarcharTypeInfo", "true", "has to be false"),
        ("spark.sql.analyzer.failAmbiguousSelfJoin", "false", "has to be true"),
    ],
)
def test_what_somebody_set_since_is_refused_by_name(session: SparkSession, name: str, value: str, told: str) -> None:
    session.conf.set(name, value)
    with pytest.raises(SessionError, match=f"it sets {name}, which {told}"):
        refuse_other_settings(session)


def test_what_nobody_set_is_looked_at_too(session: SparkSession) -> None:
    plain = session.newSession()
    plain.conf.unset(ZONE)
    plain.conf.set("spark.sql.caseSensitive", "TRUE")
    with pytest.raises(SessionError, match=r"spark\.sql\.caseSensitive"):
        refuse_other_settings(plain)


def test_nothing_is_staged_in_such_a_session(session: SparkSession, tmp_path: Path) -> None:
    rows = session.sql("SELECT 1 AS k, DATE'2017-01-01' AS event_date")
    session.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(SessionError):
        stage(rows, located(tmp_path / "stage"))
    assert not (tmp_path / "stage").exists()


def test_no_setting_is_one_of_which_spark_warns(spark: SparkSession) -> None:
    """Over Spark Connect whoever computes would read it with every command."""
    known: Any = spark.sparkContext._jvm
    deprecated = known.org.apache.spark.sql.internal.SQLConf.deprecatedSQLConfigs()
    assert deprecated.contains("spark.sql.optimizer.metadataOnly")
    assert [name for name in TUNING if deprecated.contains(name)] == []
