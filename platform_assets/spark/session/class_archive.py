"""The class archive: classes of Spark and Delta, parsed once and mapped into every later JVM (AppCDS).

The first session of an installation records which classes it loads, and its JVM writes them to a file beside the jars
when it ends. That takes some fifteen seconds of one core, so nobody waits for it: the session's process can be gone
meanwhile. Later sessions map the file and start about a third faster.

Nothing depends on it. A JVM that cannot use the archive starts without it, and one that does not even start with it is
started again without.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from platform_assets.settings import Settings
from platform_assets.spark.session.jars import NEEDED
from platform_assets.spark.session.java import Java

_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_HEADER_BYTES = 4


@dataclass(frozen=True)
class ClassArchive:
    """How one JVM uses the archive.

    Args:
        file: the finished archive, whether it exists or not.
        lock: while this JVM is to record the archive: an open lock file, which the JVM must inherit, so that the
            operating system holds the lock exactly as long as the JVM lives.
    """

    file: Path
    lock: int | None = None

    @property
    def jvm_options(self) -> str:
        """Options for the JVM; none when there is nothing to use or to record."""
        if self.lock is not None:
            return f'"-XX:ArchiveClassesAtExit={_recording(self.file)}" {_QUIET}'
        return f'"-XX:SharedArchiveFile={self.file}" {_QUIET}' if self.file.is_file() else ""

    def handed_over(self) -> ClassArchive:
        """The archive after the JVM was started (or was not): from now on only the JVM holds the lock."""
        if self.lock is not None:
            os.close(self.lock)
        return ClassArchive(self.file)

    def discard(self) -> None:
        """Remove an archive that a JVM would not start with."""
        for path in (self.file, _recording(self.file)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def archive_path(settings: Settings, java: Java) -> Path:
    """Where the archive lies: another Java, other jars or another installation of Spark have another one."""
    parts = (java.build, str(java.executable.resolve()), version("pyspark"), sys.prefix, str(settings.jars))
    key = hashlib.sha256("\0".join((*parts, *(jar.sha256 for jar in NEEDED))).encode()).hexdigest()
    return settings.jars / f"classes-{key[:16]}.jsa"


def class_archive(settings: Settings, java: Java, *, record: bool) -> ClassArchive:
    """What the next JVM should do: use the archive, record it, or neither while another one records it.

    Args:
        settings: names the folder of the jars.
        java: the Java about to be started.
        record: whether this JVM may record an archive if there is none.
    """
    file = archive_path(settings, java)
    if file.is_file():
        return ClassArchive(file)
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
        return ClassArchive(file)
    return ClassArchive(file, lock)


def _adopt(file: Path) -> bool:
    """Take what an earlier JVM recorded into use, if it finished; to be called under the lock."""
    recording = _recording(file)
    if file.is_file():
        return True
    if not recording.is_file():
        return False
    with recording.open("rb") as recorded:
        finished = any(recorded.read(_HEADER_BYTES))  # a JVM writes the header after everything else
    if finished:
        recording.replace(file)
    else:
        recording.unlink()
    return finished


def _recording(file: Path) -> Path:
    return file.with_suffix(".recording")
