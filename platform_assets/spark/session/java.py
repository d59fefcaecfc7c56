"""Environment of a JVM: Java, variables, and its log.

Settings say which Spark is used, where it computes and how it is configured. A machine with another Spark may have
variables that say otherwise.
"""

from __future__ import annotations

import locale
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platform_assets.errors import PlatformError
from platform_assets.settings import Settings

OLDEST = 17
NEWEST = 25
"""What Spark 4.2 runs on: Java 17, 21 and 25, and what lies between."""

_HOW_TO_GET_IT = (
    "Install Java 17 or 21 (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17) and put it on PATH, or point JAVA_HOME at it."
)
MORE_OPTIONS, WINNING_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"), "_JAVA_OPTIONS"
"""Variables with more options for Java, and the one that overrides its command line."""
_SAYS_NOTHING = re.compile(r"(?:NOTE: )?Picked up |Error: (?:A fatal exception|Could not create the Java Virtual)")
_ANSWER_WITHIN_S = 60


class JavaError(PlatformError):
    """Java is missing, does not start, or has a version that Spark cannot use."""


@dataclass(frozen=True)
class Java:
    """A working Java.

    Args:
        major: 17 for 17.0.15.
        build: its full version output; two Javas of one build can share a class archive.
    """

    executable: Path
    major: int
    build: str

    @property
    def version(self) -> str:
        """Return the full version, such as 17.0.15."""
        return _version(self.build) or str(self.major)


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Return the Java that Spark will start: the one of JAVA_HOME, else the first on PATH."""
    environ = os.environ if environ is None else environ
    executable = _executable(environ)
    try:
        done = subprocess.run(
            [executable, "-XX:TieredStopAtLevel=1", "-version"],
            env={name: value for name, value in environ.items() if name != WINNING_OPTIONS},
            capture_output=True, text=True, errors="replace", timeout=_ANSWER_WITHIN_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        given = " and ".join(name for name in MORE_OPTIONS if environ.get(name))
        todo = f"Correct {given}, which Java starts with, or: {_HOW_TO_GET_IT}" if given else _HOW_TO_GET_IT
        raise JavaError(f"{executable} does not run: {_reason(error)}.", todo) from error
    build = "\n".join(_words(done.stderr))
    version = _version(build)
    if version is None:
        raise JavaError(f"{executable} does not print its version: {build[:200]!r}.", _HOW_TO_GET_IT)
    first, *rest = re.findall(r"\d+", version)
    major = int(rest[0]) if first == "1" and rest else int(first)
    if not OLDEST <= major <= NEWEST:
        raise JavaError(
            f"{executable} is Java {version}; Spark needs Java {OLDEST} to {NEWEST}.",
            _HOW_TO_GET_IT,
        )
    return Java(executable, major, build)


def _reason(error: Exception) -> str:
    """Return Java's last words; it reports some wrong options on standard output."""
    streams = (error.stderr, error.stdout) if isinstance(error, subprocess.CalledProcessError) else ()
    said = [line for stream in streams for line in _words(stream)]
    return (said[-1] if said else str(error)).removesuffix(".")


def _words(said: str) -> list[str]:
    """Return Java's output, line by line, without remarks on variables and lines common to every failure."""
    return [line for line in said.splitlines() if line.strip() and not _SAYS_NOTHING.match(line)]


def _executable(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise JavaError(f"JAVA_HOME is {home}, but {executable} is no program.", _HOW_TO_GET_IT)
        return executable
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path is None:
        raise JavaError(
            "There is no Java: JAVA_HOME is not set and PATH has no java.",
            _HOW_TO_GET_IT,
        )
    return Path(on_path)


def _version(build: str) -> str | None:
    match = re.search(r'version "([^"]+)"', build)
    return match[1] if match else None


UTF_8 = "C.UTF-8"
"""A locale with every letter, which every Linux has."""
_WHERE = ("MASTER", "SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE", "PYSPARK_GATEWAY_PORT")
"""By which PySpark goes to another master or server, or refuses to go anywhere."""
_OF_ANOTHER_SPARK = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_SUBMIT_OPTS",
    "SPARK_LAUNCHER_OPTS",
    "PYSPARK_SUBMIT_ARGS",
    "_JAVA_OPTIONS",
)
"""By which a JVM gets classes, defaults and options of another Spark, or such that win over its command line's."""
HADOOP_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Folders of a cluster's Hadoop settings; some change what is read, such as the longest line."""
_OF_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of the Java that only puts the command line of Spark's together: half of its time."""
_PYTHON = "PYSPARK_PYTHON"
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


@contextmanager
def only_as_settings_say(*, by_connect: bool, is_here: bool) -> Iterator[None]:
    """Hide the environment's Spark settings while a session begins, and on one machine also its Python.

    PySpark asks again where it computes whenever it looks for its session, so those variables stay hidden.

    Args:
        by_connect: whether a Spark Connect server computes; otherwise functions must not make columns for one.
        is_here: whether all of it happens on this machine: then a cluster's settings are ignored, and Python functions
            run in this process's Python, not in the first `python3` of the path.
    """
    for name in _WHERE if by_connect else (*_WHERE, _CONNECT_MODE):
        os.environ.pop(name, None)
    with _changed({_PYTHON: sys.executable, **dict.fromkeys(HADOOP_FOLDERS)} if is_here else {}):
        yield


@contextmanager
def environment_of_jvm() -> Iterator[None]:
    """Set the environment of a JVM: the Spark installed with the platform, and only our defaults.

    One malloc arena per thread wastes memory; a choice of the user's stays. With a locale that has only ASCII letters,
    as under cron, or one that is not installed, as in a container with a foreign `LC_ALL`, Java cannot open a file with
    other letters in its name.
    """
    changes: dict[str, str | None] = dict.fromkeys(_OF_ANOTHER_SPARK)
    changes["SPARK_LAUNCHER_OPTS"] = _OF_LAUNCHER
    changes["MALLOC_ARENA_MAX"] = os.environ.get("MALLOC_ARENA_MAX") or "2"
    if sys.getfilesystemencoding() == "utf-8" and locale.getencoding().upper() != "UTF-8":
        changes["LC_ALL"] = UTF_8
    with _changed(changes):
        yield


@contextmanager
def _changed(changes: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_ROTATE_AT_BYTES = 20_000_000


def log_file(settings: Settings) -> Path:
    """Return the log file of Spark, its JVM and Ivy; a large one is kept next to it once."""
    path = settings.state / "logs" / "spark.log"
    settings.make_state()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.stat().st_size > _ROTATE_AT_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path


def last_words(path: Path, since: int) -> str:
    """Return the last three lines written after a position of the file, for an error message; no stack lines."""
    with path.open("rb") as file:
        file.seek(since)
        text = file.read().decode(errors="replace")
    lines = (line.strip() for line in text.splitlines())
    return " | ".join([line for line in lines if line and not line.startswith("at ")][-3:])
