"""Variables of the environment that PySpark, or a JVM, looks at by itself while it starts: what it is to find there.

Which Spark there is, where it computes and what it is told stands in settings. Whoever has another Spark on the machine
has variables that say otherwise.
"""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
"""Folders of a cluster's settings of Hadoop; some change what is read, as the longest line that is not left out."""
_PYTHON = "PYSPARK_PYTHON"
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


@contextmanager
def only_as_settings_say(*, by_connect: bool, is_here: bool) -> Iterator[None]:
    """While a session begins, nothing of the environment says where it computes, nor, on one machine, by what Python.

    Where it computes PySpark asks again whenever it looks for its session, so those variables do not come back.

    Args:
        by_connect: whether a Spark Connect server computes; else functions must not make columns for one.
        is_here: whether all of it happens on this machine: a cluster's settings have no say then, and functions in
            Python run in what runs this process, not in the first `python3` of the path.
    """
    for name in _WHERE if by_connect else (*_WHERE, _CONNECT_MODE):
        os.environ.pop(name, None)
    with _changed({_PYTHON: sys.executable, **dict.fromkeys(HADOOP_FOLDERS)} if is_here else {}):
        yield


@contextmanager
def environment_of_jvm() -> Iterator[None]:
    """Set what a JVM starts with: the Spark that is installed with the platform, and no defaults but ours.

    One malloc arena per thread is memory nobody uses; a choice of the user's stays. And where the locale knows no
    letters but those of ASCII, as under cron, Java cannot open a file named with others. So it is, too, with one that
    is not installed, as in a container to which `LC_ALL` came along from elsewhere.
    """
    changes: dict[str, str | None] = dict.fromkeys(_OF_ANOTHER_SPARK)
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
