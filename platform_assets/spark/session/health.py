"""Whether this machine can start Spark, answered without starting it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec

from platform_assets.settings import Settings
from platform_assets.spark.session.class_archive import archive_path, is_as_recorded, recording_of
from platform_assets.spark.session.jars import faults, needed
from platform_assets.spark.session.java import Java, JavaError, find_java
from platform_assets.spark.session.reach import (
    SET_HADOOP_FOLDER,
    places_of,
    what_is_asked,
    why_no_yarn,
    why_nobody_listens,
)

_PACKAGES_OF_CONNECT = ("grpc", "grpc_status", "pandas", "pyarrow", "zstandard")


@dataclass(frozen=True)
class Finding:
    """What a look at one thing brought.

    Args:
        name: what was looked at.
        ok: False if something has to be done before the platform works.
        message: what was found.
        todo: what to do, empty if nothing.
    """

    name: str
    ok: bool
    message: str
    todo: str = ""


def check_spark(settings: Settings) -> tuple[Finding, ...]:
    """Java, the jars and the class archive, in that order; with Spark Connect the server has all of them.

    A client of that needs packages that come with an extra only. Of a server or a cluster only that somebody listens
    there: whether it has room shows when it is asked for some.
    """
    if settings.spark_remote:
        reached = _reached(settings, "Java and jars are the server's")
        if lacking := [name for name in _PACKAGES_OF_CONNECT if find_spec(name) is None]:
            what = f"Spark Connect needs packages that are not installed: {', '.join(lacking)}."
            return Finding("Packages", False, what, "Install them: uv sync --inexact --extra connect."), reached
        return (reached,)
    java = _java()
    if isinstance(java, Finding):
        return java, check_jars(settings), *_cluster(settings)
    finding = Finding("Java", True, f"Java {java.version} at {java.executable}.")
    return finding, check_jars(settings), check_class_archive(settings, java), *_cluster(settings)


def _cluster(settings: Settings) -> tuple[Finding, ...]:
    places = places_of(settings)
    if settings.spark_master == "yarn" and not places and (why := why_no_yarn(os.environ)):
        return (Finding("Spark", False, f"YARN is not found: {why}.", SET_HADOOP_FOLDER),)
    if not places and settings.spark_master != "yarn":
        return ()
    return (_reached(settings, "executors come with the first work"),)


def _reached(settings: Settings, more: str) -> Finding:
    what, setting = what_is_asked(settings)
    if not (places := places_of(settings)):
        return Finding("Spark", True, f"{what}: {more}.")
    where = ", ".join(f"{host}:{port}" for host, port in places)
    if why := why_nobody_listens(places):
        return Finding("Spark", False, f"{what} does not answer at {why}.", f"Start it, or correct {setting}.")
    return Finding("Spark", True, f"{what} answers at {where}: {more}.")


def _java() -> Java | Finding:
    try:
        return find_java()
    except JavaError as error:
        return Finding("Java", False, error.what, error.todo)


def check_jars(settings: Settings) -> Finding:
    """The jars: some not yet is fine, a damaged one is replaced at the next start, which then needs the network.

    A lake that moves into a bucket asks for dozens more than one in a folder, so those are counted.
    """
    jars = needed(settings)
    there = tuple(jar for jar in jars if (settings.jars / jar.file).exists())
    problems = faults(settings.jars, there)
    if problems:
        return Finding(
            "Jars", False, f"{'; '.join(problems)}.", "Start anything that uses Spark with the network at hand."
        )
    if not there:
        return Finding("Jars", True, f"Not there yet; the first start brings them to {settings.jars}.")
    if lacking := len(jars) - len(there):
        what = f"{lacking} of {len(jars)} files are not in {settings.jars} yet"
        return Finding("Jars", True, f"{what}; the next start of Spark brings them, for which it needs the network.")
    return Finding("Jars", True, f"{len(jars)} files in {settings.jars}, as released.")


def check_class_archive(settings: Settings, java: Java) -> Finding:
    """The class archive, which only makes starts faster; whoever first reads of it is told so."""
    file, name = archive_path(settings, java), "Class archive"
    if not file.is_file() and recording_of(file).exists():
        return Finding(
            name, True, "A cache of Spark's classes was recorded; the next command that uses Spark starts with it."
        )
    if not file.is_file():
        made = "the first command that uses Spark makes it, and Spark then starts about a third faster"
        return Finding(name, True, f"No cache of Spark's classes yet: {made}.")
    if not is_as_recorded(file):
        why = "it was changed since it was made, or others can write it; the next command that uses Spark makes it anew"
        return Finding(name, True, f"The cache of Spark's classes, {file}, is not used: {why}.")
    size = f"{file.stat().st_size / 1e6:.0f} MB at {file}"
    return Finding(name, True, f"A cache of Spark's classes, with which it starts about a third faster: {size}.")
