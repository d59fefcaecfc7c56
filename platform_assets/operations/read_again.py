"""Ask the source of a raw table for some days once more, take the answer as an arrival, and say what differs by day.

A source that is read reads the days itself; one that delivers files is asked by the command of its contract.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from platform_assets.contracts import Contract
from platform_assets.contracts.landing import format_of
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.pending import list_arrivals
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.readings import land_file, private_folder, pull_alone
from platform_assets.engine.results import IngestResult
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.releases import Release
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.settings import project_root
from platform_assets.sources.postgres_rows import OWN
from platform_assets.sources.source import Again, SoFar, Source, SourceError
from platform_assets.sources.taken import differences

if TYPE_CHECKING:
    from platform_assets.spark.session.on_demand import SparkOnDemand

_MINUTE_S = 60.0
_REASON = 30
_SAID = 300
"""Characters of what a command wrote on standard error."""


@dataclass(frozen=True)
class ReadAgain:
    """A source's answer, and how it differs from raw.

    Args:
        files: number of files; 0 if a reading found no difference.
        taken: result of ingesting them.
        days: keys that are `changed`, `new`, `gone` or the `same` for readers of raw, by day.
    """

    files: int
    taken: IngestResult
    days: Mapping[date, Mapping[str, int]]


def read_again(
    platform: Platform,
    spark: SparkOnDemand,
    contract: Contract,
    days: Collection[date],
    author: Author,
    progress: OnProgress,
) -> ReadAgain:
    """Ask for the days from the first to the last of some, and ingest what comes.

    Raises:
        SourceError: the source cannot be asked, or gave nothing; nothing was taken. Or files wait already.
    """
    before = platform.current_release()
    first, last = min(days), max(days)
    with meanwhile(progress, "asking the source again"):
        if isinstance(contract.source, Source):
            files = pull_alone(platform, contract, Again(author.why, days=(first, last)))
        else:
            files = _ask(platform, contract, first, last, author.why)
    if not files:
        return ReadAgain(0, IngestResult(contract.name), {})
    taken = ingest(platform, spark, contract, author, progress=progress)
    return ReadAgain(
        files, taken, _differences(platform, contract, before, platform.current_release(), taken.published)
    )


def _ask(platform: Platform, contract: Contract, first: date, last: date, reason: str) -> int:
    """Have the command of a contract write files, and land all of them; return how many."""
    source = contract.source
    if source is None or not source.ask_again:
        raise SourceError(
            f"{contract.name} has no source that can be asked again.",
            "Name a raw table that reads a database or a topic, or declare the command `ask_again` in its source. What "
            "was refused is read again by `platform-assets quarantine replay`, all files by `admin reload`.",
        )
    with ingest_lock(platform.lake, contract.name):
        platform.settle()
        if waits := list_arrivals(platform, contract).pending:
            raise SourceError(
                f"{len(waits):,} files of {contract.name} wait, so that differences would be theirs, too.",
                "`platform-assets refresh` takes them; run the same then.",
            )
        with private_folder(platform, contract) as folder:
            _run(contract, [_filled(word, first, last, folder) for word in source.ask_again], source.ask_again_minutes)
            files = sorted(folder.iterdir())
            wrong = [
                file.name
                for file in files
                if file.is_symlink() or not file.is_file() or not format_of(file.name, source)
            ]
            if not files or wrong or (source.replaces and len(files) > 1):
                what = f"wrote {wrong[0]}, which is no file of a landing format" if wrong else "wrote no file"
                if files and not wrong:
                    what = (
                        f"wrote {len(files)} files, and a source that replaces whole {source.replaces} has them in one"
                    )
                raise _error(contract, what, "Days without a row are a file with a header and no rows")
            target = platform.settings.landing_folder / source.folder / platform.settings.current_day().isoformat()
            target.mkdir(parents=True, exist_ok=True)
            why = re.sub("[^A-Za-z0-9]+", "-", reason)[:_REASON].strip("-")
            stem = f"again-{first}-{last}-{why}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
            named = {
                file: f"{stem}.{number}of{len(files)}{''.join(file.suffixes)}" for number, file in enumerate(files, 1)
            }
            for file, name in named.items():
                land_file(file, target / f".{name}", platform.settings.settle_s)
            for name in named.values():
                if source.marks_files:
                    (target / f"{name}{source.complete}").touch()
                (target / f".{name}").replace(target / name)
    return len(files)


def _filled(word: str, first: date, last: date, folder: Path) -> str:
    for name, value in (("first", first), ("last", last), ("folder", folder)):
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _run(contract: Contract, command: list[str], minutes: int) -> None:
    """Run a command without a shell; what it started ends with it, or when its time is over."""
    with TemporaryFile() as errors:  # no pipe, which would last as long as anything that it started
        try:
            process = subprocess.Popen(
                command,
                cwd=project_root(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise _error(contract, f"cannot be run: {error.strerror}", "Name a program that is there") from error
        try:
            process.wait(minutes * _MINUTE_S)
        except subprocess.TimeoutExpired:
            raise _error(contract, f"took more than {minutes} minutes", "Ask for fewer days, or allow more") from None
        finally:
            with suppress(ProcessLookupError):  # nothing of it is left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(max(errors.seek(0, os.SEEK_END) - 4 * _SAID, 0))
        said = errors.read().decode(errors="replace").strip()
    if process.returncode:
        what = f"ended with {process.returncode}{f': {said[-_SAID:]}' if said else ''}"
        raise _error(contract, what, "Correct it")


def _error(contract: Contract, what: str, todo: str) -> SourceError:
    assert contract.source is not None
    command = contract.source.ask_again[0]
    return SourceError(
        f"The command {command} that asks the source of {contract.name} again {what}.",
        f"{todo}, in `ask_again` and `ask_again_minutes` of its source. Nothing was taken.",
    )


def _differences(
    platform: Platform, contract: Contract, before: Release, after: Release, days: Collection[date]
) -> dict[date, dict[str, int]]:
    """Compare the newest version of each key on some days of two releases, in what does not order versions."""
    own = {*contract.key, *contract.versioned_by, *OWN}
    columns = [name for name in contract.column_names if name not in own]
    withdrawn = frozenset(path for path in platform.ledger.withdrawn(contract.name) if path)
    so_far = SoFar("", frozenset(), platform.settings.current_day(), platform.lake, before, withdrawn)
    with private_folder(platform, contract) as folder:
        return differences(contract, so_far, replace(so_far, release=after), folder, columns, days)
