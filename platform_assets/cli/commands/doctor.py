"""`admin doctor`: check whether this machine can run the platform, and say what to do if it cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from platform_assets.contracts import Catalogue
from platform_assets.contracts.domain import ROUTE
from platform_assets.engine.admissions import why_no_sail
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.pending import landing_problem
from platform_assets.engine.platform import lake_to_write
from platform_assets.engine.user_code import refuse_wrong_functions
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake, stored
from platform_assets.lakehouse.releases import published
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import require_one_history
from platform_assets.operations.opening import open_folders
from platform_assets.operations.outbox import addresses
from platform_assets.operations.readers import released
from platform_assets.places import folder_of
from platform_assets.project import platform_in_use
from platform_assets.report import Mark, Report, Table
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.sail.server import start_server
from platform_assets.spark.session.jars import archive_path, faults, is_as_recorded, needed, recording_of
from platform_assets.spark.session.java import Java, find_java
from platform_assets.spark.session.reasons import (
    SET_HADOOP_FOLDER,
    places_of,
    what_is_asked,
    why_no_yarn,
    why_unreachable,
)
from platform_assets.words import counted

_ENOUGH_FREE_GB = 5
_PACKAGES = ("dagster", "pyspark", "delta-spark", "deltalake", "sqlalchemy")
_PACKAGES_OF_CONNECT = ("grpc", "grpc_status", "pandas", "pyarrow", "zstandard")


@dataclass(frozen=True)
class Finding:
    """Result of one check; `do` is empty if nothing has to be done."""

    name: str
    ok: bool
    message: str
    todo: str = ""


class _WrongError(PlatformError):
    """Something must be done before the platform works."""


def doctor() -> Report:
    """Check Java, jars, folders, ledger, versions and free disk; exit code 1 if something must be done."""
    findings = list(examine(load_settings()))
    rows = []
    for one in findings:
        lines = (one.message, *([f"What to do: {one.todo}"] if one.todo else []))
        rows.append((one.name, Mark("ok", "green") if one.ok else Mark("no", "bold red"), lines))
    table = Table("What this machine has", ("what", "", "found"), rows)
    return Report([table], findings, not all(one.ok for one in findings))


def examine(settings: Settings) -> Iterator[Finding]:
    """Check everything that the platform needs of a machine, without starting Spark."""
    yield _finding("Tables", lambda: _tables(settings))
    yield from check_spark(settings)
    yield _finding("Platform", lambda: platform_in_use(settings.state, os.environ)[0])
    yield _finding("State", lambda: _folder(settings.state))
    if settings.engine != "spark":
        yield _finding("Engine", lambda: _engine(settings))
    yield _finding("Lake", lambda: _lake(settings))
    yield _finding("Who may look", lambda: _who_may_look(settings))
    yield _finding("Landing", lambda: _landing(settings))
    yield _finding("Free disk", lambda: _disk(settings.state))
    yield _finding("Ledger", lambda: _ledger(settings))
    yield _finding("Release", lambda: _release(settings))
    yield _finding("Ledger and lake", lambda: _history(settings))
    yield _finding("Exposures", lambda: _exposures(settings))
    yield Finding("Versions", True, ", ".join(f"{name} {version(name)}" for name in _PACKAGES))


def _finding(name: str, look: Callable[[], str]) -> Finding:
    """Return the result of a check; an error that it raises is a finding too."""
    try:
        return Finding(name, True, look())
    except PlatformError as error:
        return Finding(name, False, error.what, error.todo)
    except OSError as error:
        what = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
        return Finding(name, False, what, "Check that this path is as it should be and that this user may use it.")


def _nearest(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _folder(folder: Path) -> str:
    there = _nearest(folder)
    if not there.is_dir():
        raise _WrongError(f"{there} is not a folder.", "Move it away, or correct the setting.")
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        raise _WrongError(f"{there} cannot be written by this user.", "Change its owner, or the setting.")
    return f"{folder}{'' if there == folder else ', made on first use'}"


def _engine(settings: Settings) -> str:
    if why := why_no_sail(settings):
        raise _WrongError(f"{why}.", "Compute with PLATFORM_ENGINE=spark.")
    start_server(settings).stop()
    return f"Sail {version('pysail')} starts, with {settings.sail_memory} of memory at most."


def _lake(settings: Settings) -> str:
    """Check that the lake can be written: its folder, or the abilities of its object store."""
    if folder := folder_of(settings.lake):
        Lake.at(settings.lake)
        return _folder(folder)
    from platform_assets.lakehouse.storage.object_store import try_store  # which a lake on a disk does without

    lake = lake_to_write(settings)
    try_store(stored(settings.lake))
    if lake.lock_url:
        return f"{settings.lake}: conditional writes, and locks in PostgreSQL"
    locks = f"locks, which only keep this machine's processes apart, in {lake.lock_folder}"
    return f"{settings.lake}: conditional writes; {locks}"


def _who_may_look(settings: Settings) -> str:
    if found := list(open_folders(settings)):
        whom = ("every user of this machine" if each.given & 0o007 else "its group" for each in found)
        shown = "; ".join(f"{each.folder} is open to {who}" for each, who in zip(found, whom, strict=True))
        raise _WrongError(f"{shown}.", " && ".join(each.close for each in found))
    access = settings.access
    lake = f", the lake {access.lake:o}" if access.lake_is_wider else ""
    return f"the state folder has the mode {access.state:o}{lake}"


def _catalogue(settings: Settings) -> Catalogue | None:
    with suppress(PlatformError):  # a finding of its own
        return load_catalogue(settings)
    return None


def _landing(settings: Settings) -> str:
    catalogue = _catalogue(settings)
    if catalogue and (problem := landing_problem(settings, catalogue)):
        todo = f"{problem.todo[0].upper()}{problem.todo[1:].rstrip('.')}."
        raise _WrongError(f"{problem.path} {problem.what}.", todo)
    folder = folder_of(settings.landing)
    return _folder(folder) if folder else f"{settings.landing} can be listed"


def _disk(folder: Path) -> str:
    free_gb = shutil.disk_usage(_nearest(folder)).free / 1e9
    if free_gb < _ENOUGH_FREE_GB:
        todo = f"Free at least {_ENOUGH_FREE_GB} GB, or move the state with PLATFORM_STATE."
        raise _WrongError(f"{free_gb:.0f} GB", todo)
    return f"{free_gb:.0f} GB"


def _tables(settings: Settings) -> str:
    catalogue = load_catalogue(settings)
    refuse_wrong_functions(catalogue)
    return ", ".join(catalogue.names)


def _exposures(settings: Settings) -> str:
    """Check that exposures and routes have addresses, as far as this process knows."""
    if (catalogue := _catalogue(settings)) is None:
        return "Not checked: tables cannot be loaded."
    known = addresses(catalogue, settings)
    targets = [each.name for each in catalogue.exposures] + [f"{ROUTE}{name}" for name in settings.notify]
    if wrong := [f"{each}: {problem}" for each in targets if (problem := known[each].problem)]:
        todo = "Set it where `up` is started, and where `admin outbox` is; until then its messages wait."
        raise _WrongError(f"{'; '.join(wrong)}.", todo)
    return ", ".join(f"{each} by {known[each].variable}" for each in targets) or "None are declared."


def _ledger(settings: Settings) -> str:
    with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        return f"{counted(len(ledger.indexed()), 'publication')}, {counted(len(ledger.holds()), 'hold')}"


def _history(settings: Settings) -> str:
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


def check_spark(settings: Settings) -> Iterator[Finding]:
    """Check Java, the jars and the class archive, in that order; with Spark Connect the server has all of them.

    A Spark Connect client needs packages of an extra. For a server or a cluster only the port is checked: whether it
    has room shows when a session starts.
    """
    if settings.spark_remote:
        if lacking := [name for name in _PACKAGES_OF_CONNECT if find_spec(name) is None]:
            what = f"Spark Connect needs packages that are not installed: {', '.join(lacking)}."
            yield Finding("Packages", False, what, "Install them: uv sync --inexact --extra connect.")
        yield _finding("Spark", lambda: _spark_answer(settings, "Java and jars are the server's"))
        return
    found: list[Java] = []

    def java() -> str:
        found.append(find_java())
        return f"Java {found[0].version} at {found[0].executable}."

    yield _finding("Java", java)
    yield _finding("Jars", lambda: _jars(settings))
    if found:
        yield _finding("Class archive", lambda: _class_archive(settings, found[0]))
    if places_of(settings) or settings.spark_master == "yarn":
        yield _finding("Spark", lambda: _spark_answer(settings, "executors come with the first work"))


def _spark_answer(settings: Settings, more: str) -> str:
    if settings.spark_master == "yarn" and not settings.spark_remote:
        if why := why_no_yarn(os.environ, settings.spark_conf):
            raise _WrongError(f"YARN is not found: {why}.", SET_HADOOP_FOLDER)
        return "YARN is asked for where yarn-site.xml says; not tried here."
    places = places_of(settings)
    what, setting = what_is_asked(settings)
    if why := why_unreachable(places):
        raise _WrongError(f"{what} does not answer at {why}.", f"Start it, or correct {setting}.")
    answers = f" answers at {', '.join(f'{host}:{port}' for host, port in places)}" if places else ""
    return f"{what}{answers}: {more}."


def _jars(settings: Settings) -> str:
    """Check the jars: missing ones are downloaded, damaged ones replaced, at the next start of Spark.

    A lake in a bucket needs dozens more jars than one in a folder, so these are counted.
    """
    jars = needed(settings)
    there = tuple(jar for jar in jars if (settings.jars / jar.file).exists())
    if problems := faults(settings.jars, there):
        raise _WrongError(f"{'; '.join(problems)}.", "Start anything that uses Spark with the network at hand.")
    if not there:
        return f"Not there yet; the first start brings them to {settings.jars}."
    if lacking := len(jars) - len(there):
        what = f"{lacking} of {len(jars)} files are not in {settings.jars} yet"
        return f"{what}; the next start of Spark brings them, for which it needs the network."
    return f"{len(jars)} files in {settings.jars}, as released."


def _class_archive(settings: Settings, java: Java) -> str:
    """Check the class archive, which only makes starts faster."""
    file = archive_path(settings, java)
    if is_as_recorded(file):
        size = f"{file.stat().st_size / 1e6:.0f} MB at {file}"
        return f"A cache of Spark's classes, with which it starts about a third faster: {size}."
    if file.is_file():
        why = "it was changed since it was made, or others can write it; the next command that uses Spark makes it anew"
        return f"The cache of Spark's classes, {file}, is not used: {why}."
    if recording_of(file).exists():
        return "A cache of Spark's classes was recorded; the next command that uses Spark starts with it."
    made = "the first command that uses Spark makes it, and Spark then starts about a third faster"
    return f"No cache of Spark's classes yet: {made}."
