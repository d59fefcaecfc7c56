"""The JVM behind a session: started with our class path, options and class archive, and really ended again.

PySpark starts a JVM and leaves it running until Python ends. Ours ends with the session, so that memory is free again,
the class archive is written, and the next session of the process gets its own settings.

Spark would put its temporary data (shuffled rows) into the system's folder for temporary files, where a killed JVM's
would stay for ever. Here each JVM has a folder in the state folder, with a lock next to it that the operating system
holds for exactly as long as the JVM lives. The next start removes the folders whose locks are free.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from py4j.java_gateway import JavaClass, JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from platform_assets.errors import PlatformError
from platform_assets.places import make_folder
from platform_assets.settings import Settings
from platform_assets.spark.session.jars import ClassArchive
from platform_assets.spark.session.java import MORE_OPTIONS, environment_of_jvm, last_words, log_file
from platform_assets.sql_settings import OF_JAVA

OF_EVERY_COUNTRY = tuple(f"-D{name}={value}" for name, value in OF_JAVA.items())
"""Of every JVM that computes, the driver's and executors'."""

_COLLECTOR = "-XX:+UseParallelGC"

OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    # Batch work on few cores: throughput counts, not pauses, and it needs less memory beside the heap than G1
    _COLLECTOR,
    # What lies beside the heap, bounded: with 3 GiB of heap the process stays below 4 GiB
    "-XX:MaxMetaspaceSize=384m",
    # It is not searched for garbage before that: Spark's classes stay, and fill 21 MiB, the default, at once
    "-XX:MetaspaceSize=128m",
    "-XX:MaxDirectMemorySize=256m",
    "-XX:ReservedCodeCacheSize=160m",
    # No file of counters in the system's folder for temporary files, which a JVM that is killed leaves there
    "-XX:+PerfDisableSharedMem",
    *OF_EVERY_COUNTRY,
    f'"-Dlog4j2.configurationFile={Path(__file__).parent / "log4j2.properties"}"',
)
"""Options of every JVM we start; `spark.driver.extraJavaOptions` of the settings come after them and win."""

_A_COLLECTOR = re.compile(r"-XX:\+Use(?:G1|Parallel|Serial|Shenandoah|Z|Epsilon)GC\b")

_END_WITHIN_S = 60
_RECORDING: WeakSet[JavaGateway] = WeakSet()
_SCRATCHES: WeakKeyDictionary[JavaGateway, Scratch] = WeakKeyDictionary()


class SessionError(PlatformError):
    """Spark does not start."""


_ASKED_FOR_WITH_EVERY_COLUMN = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
)
_BY_SHORT_NAMES = ("functions", "PythonUtils")
"""What PySpark calls some of them, too."""


class _KnownClass(JavaClass):
    """A Java class whose methods are looked up once each."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        vars(self)[name] = member
        return member


def remember_classes(gateway: JavaGateway) -> None:
    """Keep PySpark from asking the JVM for classes with every column and literal.

    For a short name Java searches all jars, in each package that could have it: a sixth of a small refresh.
    """
    for name in _ASKED_FOR_WITH_EVERY_COLUMN:
        known = _KnownClass(name, gateway._gateway_client)
        vars(gateway.jvm)[name] = known
        if (short := name.rpartition(".")[2]) in _BY_SHORT_NAMES:
            vars(gateway.jvm)[short] = known


BRIEF_OPTIONS = ("-XX:TieredStopAtLevel=1",)
"""Of a JVM that ends before what its better compiler makes would have paid for the compiling."""


def start_jvm(settings: Settings, class_path: tuple[Path, ...], archive: ClassArchive, *, brief: bool = False) -> None:
    """Start the JVM of this process; PySpark finds it afterwards.

    A class archive that prevents the start is removed, and the start is tried again without it.

    Raises:
        SessionError: the JVM ended at once; the message has its last words.
    """
    log = log_file(settings)
    said_before = log.stat().st_size if log.is_file() else 0
    options = archive.jvm_options
    try:
        with new_scratch(settings) as scratch:
            more = (options, scratch.jvm_option, *(BRIEF_OPTIONS if brief else ()))
            gateway = _launch(settings, class_path, more, (archive.lock, scratch.lock))
    except PySparkException as error:
        if options:
            archive.handed_over().discard()
            start_jvm(settings, class_path, ClassArchive(archive.file), brief=brief)
            return
        words = last_words(log, said_before)
        raise SessionError(
            f"The JVM of Spark ended as soon as it started: {words or 'it said nothing'} (log: {log}).",
            "Check PLATFORM_SPARK_DRIVER_MEMORY against the free memory, and PLATFORM_SPARK_CONF.",
        ) from error
    remember_classes(gateway)
    archive.handed_over()
    _SCRATCHES[gateway] = scratch
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm
    if archive.lock is not None:
        _RECORDING.add(gateway)


def end_jvm() -> None:
    """End the JVM of this process, if there is one.

    A JVM that records the class archive is asked to end without waiting: it writes for some seconds.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = None
    SparkContext._jvm = None
    gateway.close()
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is None or process.stdin is None:
        return
    process.stdin.close()
    if gateway in _RECORDING:
        return
    try:
        process.wait(_END_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if scratch := _SCRATCHES.pop(gateway, None):
        scratch.remove()


def scratch_of_jvm() -> Path | None:
    """Return the temporary folder of this process's JVM; none for another's JVM."""
    gateway = SparkContext._gateway
    scratch = None if gateway is None else _SCRATCHES.get(gateway)
    return scratch.folder.resolve() if scratch else None


def options_beside(given: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return our options added to others': a foreign garbage collector replaces ours, as Java refuses two."""
    others = " ".join((given, *(environ.get(name, "") for name in MORE_OPTIONS)))
    return tuple(option for option in OPTIONS if option != _COLLECTOR or not _A_COLLECTOR.search(others))


def kill_jvm() -> None:
    """End the JVM of this process at once. A thread that waits for its answer gets an error."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


def _launch(
    settings: Settings, class_path: tuple[Path, ...], more_options: tuple[str, ...], inherited: tuple[int | None, ...]
) -> JavaGateway:
    """Start the JVM through Spark's own launcher.

    Only what a JVM must know from the start goes on its command line, which everyone on the machine can read; the rest
    of the configuration may hold secrets and is passed afterwards.
    """
    extra = settings.spark_conf
    conf = SparkConf(loadDefaults=False)
    conf.set(
        "spark.driver.memory",
        extra.get("spark.driver.memory", settings.spark_driver_memory),
    )
    paths = (*map(str, class_path), extra.get("spark.driver.extraClassPath", ""))
    conf.set("spark.driver.extraClassPath", os.pathsep.join(filter(None, paths)))
    given = extra.get("spark.driver.extraJavaOptions", "")
    options = (*options_beside(given, os.environ), *more_options, given)
    conf.set("spark.driver.extraJavaOptions", " ".join(filter(None, options)))
    popen: dict[str, object] = {"pass_fds": tuple(lock for lock in inherited if lock is not None)}
    popen["umask"] = settings.access.umask  # also in a notebook, without changing the notebook's own files
    with log_file(settings).open("ab") as log, environment_of_jvm():
        try:
            gateway: JavaGateway = launch_gateway(conf, popen | {"stdout": log, "stderr": log})
        except BaseException as error:  # a person's Ctrl-C, or a run that was terminated, while it starts
            _end_half_started(error)
            raise
    return gateway


def _end_half_started(error: BaseException) -> None:
    """End the JVM for which PySpark was waiting.

    It would stay for ever: its file for the port is gone, it fails at that, and its other threads go on. Only the frame
    that waited knows its process, or one that had just begun it.
    """
    trace = error.__traceback__
    while trace is not None:
        for known in (trace.tb_frame.f_locals.get(name) for name in ("proc", "self")):
            if isinstance(known, subprocess.Popen) and getattr(known, "pid", None) is not None:
                known.kill()
                known.wait()
        trace = trace.tb_next


@dataclass(frozen=True)
class Scratch:
    """The temporary folder of one JVM, and an open lock file, which the JVM must inherit."""

    folder: Path
    lock: int

    @property
    def jvm_option(self) -> str:
        """Return the JVM's option for its temporary folder."""
        return f'"-Djava.io.tmpdir={self.folder.resolve()}"'

    def remove(self) -> None:
        """Remove the folder, once its JVM has ended."""
        shutil.rmtree(self.folder.resolve(), ignore_errors=True)
        if self.folder.is_symlink():
            self.folder.unlink()
        _lock_of(self.folder).unlink(missing_ok=True)


def scratch_folder(settings: Settings) -> Path:
    """Return the path of the temporary folders of an installation's JVMs."""
    return settings.state / "spark"


@contextmanager
def new_scratch(settings: Settings) -> Iterator[Scratch]:
    """Make a folder for a JVM that is started in this block; afterwards only the JVM holds its lock.

    Folders of dead JVMs are removed.
    """
    every = scratch_folder(settings)
    settings.make_state()
    make_folder(every, settings.access.state)
    _remove_dead(every)
    scratch = _taken(every, settings.access.state)
    try:
        yield scratch
    except BaseException:
        scratch.remove()
        raise
    finally:
        os.close(scratch.lock)


def _taken(every: Path, mode: int) -> Scratch:
    while True:
        folder = every / f"{os.getpid()}-{token_hex(4)}"
        lock = os.open(_lock_of(folder), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode & 0o666)
        if _take(lock) and _lock_of(folder).exists():  # or another process removed it before that
            if "," in str(folder):  # which ends a folder's name for Spark
                folder.symlink_to(mkdtemp(prefix="platform-assets-"))
            else:
                make_folder(folder, mode)
            return Scratch(folder, lock)
        os.close(lock)


def _remove_dead(every: Path) -> None:
    for file in every.glob("*.lock"):
        # What another user left, in a folder of a group, is that user's to remove.
        with suppress(OSError), closing(file.open("rb+")) as lock:
            if _take(lock.fileno()):
                Scratch(file.with_suffix(""), lock.fileno()).remove()


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")
