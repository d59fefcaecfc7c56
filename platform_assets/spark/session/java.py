"""Java: where it is and whether Spark can run on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platform_assets.errors import PlatformError

OLDEST = 17
NEWEST = 25
"""What Spark 4.2 runs on: Java 17, 21 and 25, and what lies between."""

_HOW_TO_GET_IT = (
    "Install Java 17 or 21 (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17) and put it on PATH, or point JAVA_HOME at it."
)
MORE_OPTIONS, WINNING_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"), "_JAVA_OPTIONS"
"""Variables in which it finds options besides those of its command line, and the one that would win over that."""
_SAYS_NOTHING = re.compile(r"(?:NOTE: )?Picked up |Error: (?:A fatal exception|Could not create the Java Virtual)")
_ANSWER_WITHIN_S = 60


class JavaError(PlatformError):
    """Java is missing, does not start, or is of a version Spark cannot use."""


@dataclass(frozen=True)
class Java:
    """A Java that answered.

    Args:
        major: 17 for 17.0.15.
        build: everything it says about itself; two Javas of one build can share a class archive.
    """

    executable: Path
    major: int
    build: str

    @property
    def version(self) -> str:
        """The full version, such as 17.0.15."""
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
        raise JavaError(f"{executable} does not tell its version: {build[:200]!r}.", _HOW_TO_GET_IT)
    first, *rest = re.findall(r"\d+", version)
    major = int(rest[0]) if first == "1" and rest else int(first)
    if not OLDEST <= major <= NEWEST:
        raise JavaError(
            f"{executable} is Java {version}; Spark needs Java {OLDEST} to {NEWEST}.",
            _HOW_TO_GET_IT,
        )
    return Java(executable, major, build)


def _reason(error: Exception) -> str:
    """Return its last words; of some options Java complains where others have their output."""
    streams = (error.stderr, error.stdout) if isinstance(error, subprocess.CalledProcessError) else ()
    said = [line for stream in streams for line in _words(stream)]
    return (said[-1] if said else str(error)).removesuffix(".")


def _words(said: str) -> list[str]:
    """Return what Java says, line by line, without what it says of variables, and of what every failure is."""
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
