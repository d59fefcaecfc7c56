"""Jars that Spark needs: resolved once by its own Ivy, afterwards local files known by their sha256.

A session start that asks a registry for its jars depends on the network and on half-filled caches in the user's
home. So Ivy runs by itself (no Spark, about a second), with settings and cache of its own, and what it brings
must be the files this version of the platform was tested with.

The class archive (AppCDS) is beside them: classes of Spark and Delta, parsed once and mapped into every later JVM,
which then starts about a third faster. The first session of an installation records which classes it loads, and its
JVM writes them when it ends, in some fifteen seconds of one core, after the session's process may have ended. Its
sha256 is recorded at first use and checked before every start, as for the jars. A changed archive, or one that another
user could have written, is not used. Nothing depends on it: a JVM that cannot use the archive starts without it, and
one that does not even start with it is started again without.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock, Timeout

from platform_assets.errors import PlatformError
from platform_assets.places import is_ours_alone, store_of
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.settings import Settings
from platform_assets.spark.session.java import Java, find_java, log_file

_RESOLVE_WITHIN_S = 600
_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="15000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers><ibiblio name="central" m2compatible="true" timeoutConstraint="patience"/></resolvers>
</ivysettings>
"""
_IVY_DEPENDENCY = (
    '<dependency org="{organisation}" name="{module}" rev="{revision}" transitive="false">'
    '<artifact name="{module}" type="jar" ext="jar"{classified}/></dependency>'
)
_IVY_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="platform-assets" module="jars"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


class JarsError(PlatformError):
    """Jars that Spark needs are neither in the folder nor available."""


@dataclass(frozen=True)
class Jar:
    """One file of a registry, and its required content.

    Args:
        classifier: selects one of several files of a module; the only one by default.
    """

    organisation: str
    module: str
    revision: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        """Return its name in the folder of jars."""
        return "-".join(filter(None, (self.module, self.revision, self.classifier))) + ".jar"


def _locked() -> dict[str, tuple[Jar, ...]]:
    """Read the pinned jars, by when they are needed."""
    jars: dict[str, tuple[Jar, ...]] = {}
    for line in Path(__file__).with_name("jars.lock").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            when, name, sha256 = line.split()
            organisation, module, revision = name.split(":")
            jars[when] = (*jars.get(when, ()), Jar(organisation, module, revision, sha256))
    return jars


_LOCKED = _locked()
ALWAYS = _LOCKED["always"]
EVERY = tuple(dict.fromkeys(jar for jars in _LOCKED.values() for jar in jars))
"""All that any installation can need."""
DELTA_VERSION = next(jar.revision for jar in ALWAYS if jar.module.startswith("delta-spark"))


def needed(settings: Settings) -> tuple[Jar, ...]:
    """Return the jars that Spark starts with, for the lake's place."""
    return (*ALWAYS, *_LOCKED.get(store_of(settings.lake) or "", ()))


def faults(folder: Path, jars: tuple[Jar, ...]) -> tuple[str, ...]:
    """Return the problems of a folder of jars, one sentence each; empty if it can be used."""
    problems = []
    for jar in jars:
        path = folder / jar.file
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif sha256_of(path) != jar.sha256:
            problems.append(f"{path} has another content than the release it is named after")
    return tuple(problems)


def spark_jars(settings: Settings, java: Java | None = None, progress: OnProgress = no_progress) -> tuple[Path, ...]:
    """Return Delta's jars, and Hadoop's for the lake's kind of store, as local files, downloaded if missing.

    Several processes may ask at once: one resolves, the others wait for it. A damaged file is replaced.

    Raises:
        JarsError: the registry cannot be reached, or delivers something else than the pinned files.
    """
    return bring(settings, java, needed(settings), progress)


def bring(
    settings: Settings, java: Java | None, jars: tuple[Jar, ...], progress: OnProgress = no_progress
) -> tuple[Path, ...]:
    """Download any jars as `spark_jars` does."""
    folder = settings.jars
    paths = tuple(folder / jar.file for jar in jars)
    if not faults(folder, jars):
        return paths
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with meanwhile(progress, "downloading jars for Spark"), FileLock(folder / ".lock", timeout=_RESOLVE_WITHIN_S):
            if faults(folder, jars):
                _resolve(settings, java or find_java(), jars)
    except Timeout as error:
        raise JarsError(
            f"Another process has been resolving jars into {folder} for {_RESOLVE_WITHIN_S} s.",
            "Wait for it or stop it, then start again.",
        ) from error
    except OSError as error:
        raise JarsError(
            f"The jars for Spark cannot be written to {folder}: {error}.",
            "Make the folder writable, or name another with PLATFORM_JARS.",
        ) from error
    return paths


def _resolve(settings: Settings, java: Java, jars: tuple[Jar, ...]) -> None:
    for abandoned in settings.jars.glob(".resolving-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".resolving-", dir=settings.jars) as scratch:
        brought = Path(scratch) / "brought"
        reason = _run_ivy(settings, java, Path(scratch), brought, jars)
        wrong = faults(brought, jars)
        if wrong:
            names = ", ".join(f"{jar.organisation}:{jar.module}:{jar.revision}" for jar in jars)
            raise JarsError(
                f"Jars for Spark could not be brought: {reason or '; '.join(wrong)} (all in {log_file(settings)}).",
                f"They are needed once: connect to the network and start again, or put {names} into {settings.jars}.",
            )
        for jar in jars:
            (brought / jar.file).replace(settings.jars / jar.file)


def _run_ivy(settings: Settings, java: Java, scratch: Path, brought: Path, jars: tuple[Jar, ...]) -> str | None:
    """Run Ivy. If it failed, return the reason for a person."""
    (scratch / "settings.xml").write_text(_IVY_SETTINGS.format(cache=scratch / "cache"))
    (scratch / "ivy.xml").write_text(_IVY_MODULE.format(dependencies="".join(_dependency(jar) for jar in jars)))
    ivy_settings = settings.spark_conf.get("spark.jars.ivySettings", str(scratch / "settings.xml"))
    command = [
        str(java.executable), f"-Divy.default.ivy.user.dir={scratch}", f"-Duser.home={scratch}",
        "-cp", str(_ivy_jar()), "org.apache.ivy.Main",
        "-settings", ivy_settings, "-ivy", str(scratch / "ivy.xml"), "-types", "jar",
        "-cache", str(scratch / "cache"), "-retrieve", f"{brought}/[module]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    with log_file(settings).open("a+", encoding="utf-8", errors="replace") as log:
        start = log.tell()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                timeout=_RESOLVE_WITHIN_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"the registry did not deliver within {_RESOLVE_WITHIN_S} s"
        log.seek(start)
        said = log.read()
    if done.returncode == 0:
        return None
    if any(
        sign in said
        for sign in (
            "UnknownHost",
            "ConnectException",
            "SocketTimeout",
            "NoRouteToHost",
            "unreachable",
        )
    ):
        return "the registry of Java packages cannot be reached"
    return f"Ivy ended with {done.returncode}"


def _dependency(jar: Jar) -> str:
    classified = f' m:classifier="{jar.classifier}"' if jar.classifier else ""
    return _IVY_DEPENDENCY.format(**vars(jar), classified=classified)


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for folder in spec.submodule_search_locations or () if spec else ():
        for jar in sorted((Path(folder) / "jars").glob("ivy-*.jar")):
            return jar
    raise JarsError(
        "The installed PySpark has no Ivy among its jars.",
        "Install it again: uv sync --reinstall-package pyspark.",
    )


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_HEADER_BYTES = 4


@dataclass(frozen=True)
class ClassArchive:
    """How one JVM uses the archive.

    Args:
        file: the finished archive, whether it exists or not.
        lock: while this JVM is to record the archive: an open lock file, which the JVM must inherit, so that the
            operating system holds the lock exactly as long as the JVM lives.
        is_used: whether the archive exists with its recorded hash.
    """

    file: Path
    lock: int | None = None
    is_used: bool = False

    @property
    def jvm_options(self) -> str:
        """Return options for the JVM; none if there is nothing to use or to record."""
        if self.lock is not None:
            return f'"-XX:ArchiveClassesAtExit={recording_of(self.file)}" {_QUIET}'
        return f'"-XX:SharedArchiveFile={self.file}" {_QUIET}' if self.is_used else ""

    def handed_over(self) -> ClassArchive:
        """Return the archive after the JVM was started (or was not): now only the JVM holds the lock."""
        if self.lock is not None:
            os.close(self.lock)
        return ClassArchive(self.file)

    def discard(self) -> None:
        """Remove an archive with which a JVM did not start."""
        for path in (self.file, recording_of(self.file), _note(self.file)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def archive_path(settings: Settings, java: Java) -> Path:
    """Return the path of the archive: each Java, set of jars and installation of Spark has its own."""
    parts = (java.build, str(java.executable.resolve()), version("pyspark"), sys.prefix, str(settings.jars))
    key = hashlib.sha256("\0".join((*parts, *(jar.sha256 for jar in needed(settings)))).encode()).hexdigest()
    return settings.jars / f"classes-{key[:16]}.jsa"


def is_as_recorded(file: Path) -> bool:
    """Return whether an archive exists and was recorded by a JVM of ours and changed by no one else."""
    note = _note(file)
    try:
        if not (is_ours_alone(file) and is_ours_alone(note)):
            return False
        return note.read_text(encoding="ascii") == sha256_of(file)
    except (OSError, ValueError):
        return False


def class_archive(settings: Settings, java: Java, *, record: bool) -> ClassArchive:
    """Return whether the next JVM uses the archive, records it, or neither because another one records it."""
    file = archive_path(settings, java)
    if is_as_recorded(file):
        return ClassArchive(file, is_used=True)
    try:
        lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        return ClassArchive(file)  # a folder of jars that we may only read has no archive
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        adopted = _adopt(file)
    except OSError:
        adopted = True  # another JVM records it at this moment
    if adopted or not record:
        os.close(lock)
        return ClassArchive(file, is_used=adopted and is_as_recorded(file))
    return ClassArchive(file, lock)


def _adopt(file: Path) -> bool:
    """Adopt the recording of an earlier JVM, if it finished; call it under the lock."""
    recording = recording_of(file)
    if file.is_file():
        if is_as_recorded(file) or not is_ours_alone(file):
            return True
        file.unlink()  # damaged, or from before there was a note of it
    if not recording.is_file():
        return False
    with recording.open("rb") as recorded:
        finished = is_ours_alone(recording) and any(
            recorded.read(_HEADER_BYTES)
        )  # a JVM writes the header after everything else
    if finished:
        _note(file).write_text(sha256_of(recording), encoding="ascii")
        recording.replace(file)
    else:
        recording.unlink()
    return finished


def _note(file: Path) -> Path:
    return file.with_suffix(".sha256")


def recording_of(file: Path) -> Path:
    """Return the path where a JVM records an archive while it ends; the next start adopts it."""
    return file.with_suffix(".recording")
