"""`doctor`: whether this machine can run the platform, and what to do where it cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from platform_assets.engine.admissions import why_no_sail
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.functions import refuse_wrong_functions
from platform_assets.engine.ingest.listing import landing_problem
from platform_assets.engine.platform import lake_to_write
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import published
from platform_assets.lakehouse.store_trial import tried
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import require_one_history
from platform_assets.operations.folders import open_folders
from platform_assets.operations.outbox import addresses
from platform_assets.operations.readers import released
from platform_assets.places import folder_of
from platform_assets.report import Mark, Report, Table
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.sail.server import SailError, start_server
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
from platform_assets.words import counted

_ENOUGH_FREE_GB = 5
_PACKAGES = ("dagster", "pyspark", "delta-spark", "deltalake", "sqlalchemy")

_PACKAGES_OF_CONNECT = ("grpc", "grpc_status", "pandas", "pyarrow", "zstandard")


def doctor() -> Report:
    """Check Java, jars, folders, ledger, versions and free disk; exit code 1 if something has to be done."""
    findings = list(examine(load_settings()))
    rows = []
    for one in findings:
        lines = (one.message, *([f"What to do: {one.todo}"] if one.todo else []))
        rows.append((one.name, Mark("ok", "green") if one.ok else Mark("no", "bold red"), lines))
    table = Table("What this machine has", ("what", "", "found"), rows)
    return Report([table], findings, not all(one.ok for one in findings))


def examine(settings: Settings) -> Iterator[Finding]:
    """Everything the platform needs of a machine, looked at without starting Spark."""
    yield _looked("Tables", lambda: _tables(settings))
    yield from check_spark(settings)
    yield _folder("State", settings.state)
    yield from _engine(settings)
    yield _lake(settings)
    yield _who_may_look(settings)
    yield _landing(settings)
    yield _disk(settings.state)
    yield _looked("Ledger", lambda: _ledger(settings))
    yield _looked("Release", lambda: _release(settings))
    yield _looked("Ledger and lake", lambda: _history(settings))
    yield _exposures(settings)
    yield Finding("Versions", True, ", ".join(f"{name} {version(name)}" for name in _PACKAGES))


def _nearest(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _folder(name: str, folder: Path) -> Finding:
    there = _nearest(folder)
    if not there.is_dir():
        return Finding(name, False, f"{there} is not a folder.", "Move it away, or correct the setting.")
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        return Finding(name, False, f"{there} cannot be written by this user.", "Change its owner, or the setting.")
    return Finding(name, True, f"{folder}{'' if there == folder else ', made on first use'}")


def _engine(settings: Settings) -> Iterator[Finding]:
    """Whether Sail starts here, where it was asked for."""
    if settings.engine == "spark":
        return
    name, instead = "Engine", "Compute with PLATFORM_ENGINE=spark."
    if why := why_no_sail(settings):
        yield Finding(name, False, f"{why}.", instead)
        return
    try:
        start_server(settings).stop()
    except SailError as error:
        yield Finding(name, False, error.what, error.todo)
        return
    yield Finding(name, True, f"Sail {version('pysail')} starts, with {settings.sail_memory} of memory at most.")


def _lake(settings: Settings) -> Finding:
    """Whether the lake can be written: its folder, or what an object store has to be able to do."""

    def look() -> str | Finding:
        if folder := folder_of(settings.lake):
            Lake.at(settings.lake)
            return _folder("Lake", folder)
        return f"{settings.lake}: {tried(lake_to_write(settings))}"

    return _looked("Lake", look)


def _looked(name: str, look: Callable[[], str | Finding]) -> Finding:
    """What a look brought; what it raises is a finding, too."""
    try:
        found = look()
    except PlatformError as error:
        return Finding(name, False, error.what, error.todo)
    except OSError as error:
        what = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
        return Finding(name, False, what, "Check that this path is as it should be and that this user may use it.")
    return Finding(name, True, found) if isinstance(found, str) else found


def _who_may_look(settings: Settings) -> Finding:
    """Whether others of this machine can look into what is not for them."""
    name = "Who may look"
    found = list(open_folders(settings))
    if found:
        told = "; ".join(f"{each.folder} is open to {_whom(each.given)}" for each in found)
        return Finding(name, False, f"{told}.", " && ".join(each.close for each in found))
    access = settings.access
    lake = f", the lake {access.lake:o}" if access.lake_is_wider else ""
    return Finding(name, True, f"the state folder has the mode {access.state:o}{lake}")


def _whom(given: int) -> str:
    return "every user of this machine" if given & 0o007 else "its group"


def _landing(settings: Settings) -> Finding:
    name = "Landing"
    try:
        catalogue = load_catalogue(settings)
    except PlatformError:  # a finding of its own
        catalogue = None

    def look() -> str | Finding:
        if catalogue and (problem := landing_problem(settings, catalogue)):
            todo = f"{problem.todo[0].upper()}{problem.todo[1:].rstrip('.')}."
            return Finding(name, False, f"{problem.path} {problem.what}.", todo)
        folder = folder_of(settings.landing)
        return _folder(name, folder) if folder else f"{settings.landing} can be listed"

    return _looked(name, look)


def _disk(folder: Path) -> Finding:
    free_gb = shutil.disk_usage(_nearest(folder)).free / 1e9
    ok = free_gb >= _ENOUGH_FREE_GB
    todo = "" if ok else f"Free at least {_ENOUGH_FREE_GB} GB, or move the state with PLATFORM_STATE."
    return Finding("Free disk", ok, f"{free_gb:.0f} GB", todo)


def _tables(settings: Settings) -> str:
    catalogue = load_catalogue(settings)
    refuse_wrong_functions(catalogue)
    return ", ".join(catalogue.names)


def _exposures(settings: Settings) -> Finding:
    """Whether messages to what is downstream have somewhere to go, as far as this process knows."""
    name = "Exposures"
    try:
        catalogue = load_catalogue(settings)
    except PlatformError:  # a finding of its own
        return Finding(name, True, "Not looked at: tables cannot be loaded.")
    if not catalogue.exposures:
        return Finding(name, True, "None are declared.")
    known = addresses(catalogue, settings)
    if wrong := [f"{each.name}: {problem}" for each in catalogue.exposures if (problem := known[each.name].problem)]:
        todo = "Set it where `up` is started, and where `outbox send` is; until then its messages wait."
        return Finding(name, False, f"{'; '.join(wrong)}.", todo)
    return Finding(name, True, ", ".join(f"{each.name} by {each.url_env}" for each in catalogue.exposures))


def _ledger(settings: Settings) -> str:
    with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        return f"{counted(len(ledger.indexed()), 'publication')}, {counted(len(ledger.holds()), 'hold')}"


def _history(settings: Settings) -> str:
    """Whether ledger and lake are of one history."""
    lake = Lake.at(settings.lake)
    with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        indexed, mended = ledger.indexed(), ledger.notes.catch_ups()
    shown = {publication: release for release, publication in published(lake)}
    require_one_history(lake, indexed, shown)
    lacking = len(shown) - len(indexed)
    lacks = f"The ledger lacks {counted(lacking, 'publication')}, which the next command indexes."
    last = f"; on {mended[-1].created_at:%Y-%m-%d}: {mended[-1].text}" if mended else ""
    return f"{lacks if lacking else 'In step'}{last}"


def _release(settings: Settings) -> str:
    release = released(settings)
    if not release.versions:
        return "Nothing was published yet."
    return f"Release {release.number} of {len(release.versions)} tables"


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
