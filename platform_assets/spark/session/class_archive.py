"""The class archive: classes of Spark and Delta, parsed once and mapped into every later JVM (AppCDS).

The first session of an installation records which classes it loads, and its JVM writes them to a file beside the jars
when it ends. That takes some fifteen seconds of one core, after the session's process may have ended. Later sessions
map the file and start about a third faster.

Its sha256 is recorded beside it at first use, and checked before every start, as for the jars. A changed archive, or
one that another user could have written, is not used.

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

from platform_assets.places import is_ours_alone
from platform_assets.settings import Settings
from platform_assets.spark.session.jars import needed, sha256_of
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
        is_used: whether the archive is there and is as it was recorded.
    """

    file: Path
    lock: int | None = None
    is_used: bool = False

    @property
    def jvm_options(self) -> str:
        """Options for the JVM; none when there is nothing to use or to record."""
        if self.lock is not None:
            return f'"-XX:ArchiveClassesAtExit={recording_of(self.file)}" {_QUIET}'
        return f'"-XX:SharedArchiveFile={self.file}" {_QUIET}' if self.is_used else ""

    def handed_over(self) -> ClassArchive:
        """Return the archive after the JVM was started (or was not): from now on only the JVM holds the lock."""
        if self.lock is not None:
            os.close(self.lock)
        return ClassArchive(self.file)

    def discard(self) -> None:
        """Remove an archive that a JVM would not start with."""
        for path in (self.file, recording_of(self.file), _note(self.file)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def archive_path(settings: Settings, java: Java) -> Path:
    """Return where the archive lies: another Java, other jars or another installation of Spark have another one."""
    parts = (java.build, str(java.executable.resolve()), version("pyspark"), sys.prefix, str(settings.jars))
    key = hashlib.sha256("\0".join((*parts, *(jar.sha256 for jar in needed(settings)))).encode()).hexdigest()
    return settings.jars / f"classes-{key[:16]}.jsa"


def is_as_recorded(file: Path) -> bool:
    """Return whether an archive is there and is what a JVM of ours recorded, written by no one else."""
    note = _note(file)
    try:
        if not (is_ours_alone(file) and is_ours_alone(note)):
            return False
        return note.read_text(encoding="ascii") == sha256_of(file)
    except (OSError, ValueError):
        return False


def class_archive(settings: Settings, java: Java, *, record: bool) -> ClassArchive:
    """Return what the next JVM should do: use the archive, record it, or neither while another one records it."""
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
    """Take what an earlier JVM recorded into use, if it finished; to be called under the lock."""
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
    """Return where a JVM records an archive while it ends; the next start takes it into use."""
    return file.with_suffix(".recording")
