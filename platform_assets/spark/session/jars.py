"""Jars that Spark needs: downloaded once, afterwards local files known by their sha256.

A session start that asks a registry for its jars depends on the network and on whatever half-filled caches lie in the
user's home. What is downloaded here must be the files this version of the platform was tested with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from platform_assets.addresses import without_secrets
from platform_assets.errors import PlatformError
from platform_assets.places import store_of
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.settings import Settings

_REGISTRY = "https://repo1.maven.org/maven2"
_REPOSITORIES = "spark.jars.repositories"
"""Spark's own setting for registries, separated by commas; here they are asked in place of Maven's."""

_ANSWERS_WITHIN_S, _GOES_ON_WITHIN_S = 15, 60
_ALL_WITHIN_S = 600
_PIECE_BYTES = 1024 * 1024


class JarsError(PlatformError):
    """Jars that Spark needs are neither in the folder nor to be had."""


@dataclass(frozen=True)
class Jar:
    """One file of a registry, and the content it must have.

    Args:
        classifier: which of several files of a module; the only one by default.
    """

    organisation: str
    module: str
    revision: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        """Its name in the folder of jars."""
        return "-".join(filter(None, (self.module, self.revision, self.classifier))) + ".jar"

    @property
    def path(self) -> str:
        """Where it lies in a registry, as Maven lays one out."""
        return f"{self.organisation.replace('.', '/')}/{self.module}/{self.revision}/{self.file}"


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
    """Return the jars that Spark starts with, as the lake's place asks for."""
    return (*ALWAYS, *_LOCKED.get(store_of(settings.lake) or "", ()))


def faults(folder: Path, jars: Sequence[Jar]) -> tuple[str, ...]:
    """Return what is wrong with a folder of jars, one sentence each; nothing when it can be used."""
    problems = []
    for jar in jars:
        path = folder / jar.file
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif sha256_of(path) != jar.sha256:
            problems.append(f"{path} has another content than the release it is named after")
    return tuple(problems)


def bring(
    settings: Settings, jars: Sequence[Jar] | None = None, progress: OnProgress = no_progress
) -> tuple[Path, ...]:
    """Return jars as local files, downloaded first if they lack; by default all that Spark needs.

    Several processes may ask at once: one downloads, the others wait for it. A damaged file is replaced.

    Raises:
        JarsError: no registry can be reached, or they deliver something else than the pinned files.
    """
    jars = needed(settings) if jars is None else jars
    folder = settings.jars
    paths = tuple(folder / jar.file for jar in jars)
    if not faults(folder, jars):
        return paths
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with meanwhile(progress, "downloading jars for Spark"), FileLock(folder / ".lock", timeout=_ALL_WITHIN_S):
            _download(settings, [jar for jar in jars if faults(folder, (jar,))])
    except Timeout as error:
        raise JarsError(
            f"Another process has been downloading jars into {folder} for {_ALL_WITHIN_S} s.",
            "Wait for it or stop it, then start again.",
        ) from error
    except OSError as error:
        raise JarsError(
            f"The jars for Spark cannot be written to {folder}: {error}.",
            "Make the folder writable, or name another with PLATFORM_JARS.",
        ) from error
    return paths


def _download(settings: Settings, jars: Sequence[Jar]) -> None:
    """Download jars from the first registry that has them; a file appears under its name only when it is right."""
    named = settings.spark_conf.get(_REPOSITORIES, "").split(",")
    registries = [each.strip().rstrip("/") for each in named if each.strip()] or [_REGISTRY]
    draft = settings.jars / ".downloading"
    try:
        for jar in jars:
            problems: list[str] = []
            for registry in registries:
                problem = _fetched(f"{registry}/{jar.path}", draft, jar)
                if problem is None:
                    draft.replace(settings.jars / jar.file)
                    break
                problems.append(f"{without_secrets(registry)} {problem}")
            else:
                names = ", ".join(f"{each.organisation}:{each.module}:{each.revision}" for each in jars)
                raise JarsError(
                    f"The jar {jar.file} for Spark could not be downloaded: {'; '.join(problems)}.",
                    f"They are needed once: connect to the network and start again, name a registry with "
                    f"{_REPOSITORIES} in PLATFORM_SPARK_CONF, or put {names} into {settings.jars}.",
                )
    finally:
        draft.unlink(missing_ok=True)


def _fetched(url: str, file: Path, jar: Jar) -> str | None:
    """Write what a registry delivers into a file; return what is wrong with it, as the end of a sentence."""
    import requests  # which nearly every start of Spark does without

    try:
        with requests.get(url, stream=True, timeout=(_ANSWERS_WITHIN_S, _GOES_ON_WITHIN_S)) as answer:
            if not answer.ok:
                return f"answers {answer.status_code}"
            with file.open("wb") as written:
                for piece in answer.iter_content(_PIECE_BYTES):
                    written.write(piece)
    except requests.RequestException as error:
        return f"cannot be reached ({type(error).__name__})"
    return None if sha256_of(file) == jar.sha256 else "delivers another content than that release has"


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
