"""Readings of sources: how far a source was read, by raw's publications, and readings as files of its folder.

The position of a reading is in the names of its files. It counts once raw has ingested all of them, so it is published
with the rows: no other file can contradict it, and a ledger rebuilt from the lake has it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple

from platform_assets.contracts import Contract
from platform_assets.contracts.landing import format_of
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.planning.arrivals import comes_with
from platform_assets.sources.landing import Problem
from platform_assets.sources.source import Again, Drift, Reading, SoFar, Source, SourceError, Waits

_NAME = re.compile(r"(\d{8})\.([A-Za-z0-9_-]{1,80})\.(\d+)of(\d+)\.\w.*")
_POSITION = re.compile(r"[A-Za-z0-9_-]{1,80}")
_RESTS_S = 60
"""A file is whole when it gets its name; nothing has to wait until it rests."""


class _Part(NamedTuple):
    """A file of a reading, parsed from its name."""

    number: int
    position: str
    part: int
    parts: int


_NONE = _Part(0, "", 0, 0)


def _part_of(path: str) -> _Part | None:
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return _Part(int(found[1]), found[2], int(found[3]), int(found[4])) if found else None


@dataclass(frozen=True)
class Readings:
    """Readings of a source in raw and in the landing folder.

    Args:
        refused: paths of files still there that were refused whole for another reason than each of their rows.
    """

    so_far: SoFar
    waiting: tuple[str, ...]
    refused: tuple[str, ...]
    dates: frozenset[str]
    newest: int


def source_of(contract: Contract) -> Source:
    """Return the source that a raw table reads.

    Raises:
        SourceError: its source delivers files, or it has none.
    """
    if isinstance(contract.source, Source):
        return contract.source
    raise SourceError(
        f"{contract.name} has no source that is read.",
        "Name a raw table with one, such as a PostgresTable; `platform-assets status sources` shows them.",
    )


def readings(platform: Platform, contract: Contract) -> Readings:
    """Return how far the source of a table was read."""
    release = platform.current_release()
    arrivals = [one for one in platform.ledger.arrivals(contract.name) if one.kind == "delivery"]
    known = {one.path: one for one in arrivals}  # of a file that came again, as it came last
    folder = platform.settings.landing_folder / source_of(contract).folder
    names = (f"{source_of(contract).folder}/{file.parent.name}/{file.name}" for file in folder.glob("*/[!._]*"))
    there = {path for path in names if _part_of(path)}
    refused = {path for path, one in known.items() if one.reason is not None and not one.refused}
    every = {path: part for path in known.keys() | there if (part := _part_of(path))}
    taken = {path: part for path, part in every.items() if path in known and path not in refused}
    parts = Counter(part._replace(part=0) for part in taken.values())
    newest: dict[str, _Part] = {}
    for one in arrivals:
        if part := taken.get(one.path):
            newest[one.publication] = max(newest.get(one.publication, _NONE), part)
    so_far = SoFar(
        position=max((part for part, number in parts.items() if number == part.parts), default=_NONE).position,
        positions=frozenset(part.position for part in taken.values()),
        today=platform.settings.current_day(),
        lake=platform.lake,
        release=release,
        withdrawn=frozenset(path for path in platform.ledger.withdrawn(contract.name) if path),
        publications={publication: part.position for publication, part in newest.items()},
        files={path: path in taken for path in every.keys() & known.keys()},
    )
    return Readings(
        so_far=so_far,
        waiting=tuple(sorted(there - known.keys())),
        refused=tuple(sorted(there & refused)),
        dates=frozenset(path.split("/")[-2] for path in known.keys() | there),
        newest=max((part.number for part in every.values()), default=0),  # no name is given twice
    )


def unread(platform: Platform, contract: Contract, read: Readings | None = None) -> Waits:
    """Return what a source has that was not read yet, by a bounded query.

    Raises:
        SourceError: the source cannot be read.
    """
    read = read or readings(platform, contract)
    if stuck := _stuck(contract, read):
        raise stuck
    if read.waiting:
        return Waits(0, f"{len(read.waiting):,} files of the last reading wait for `platform-assets refresh`")
    return source_of(contract).waits(contract, read.so_far)


def unread_by_table(platform: Platform, contracts: Iterable[Contract]) -> tuple[dict[str, str], list[Problem]]:
    """Return the position of each table whose source has new rows, and why others cannot be read."""
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for contract in contracts:
        if isinstance(contract.source, Source):
            try:
                read = readings(platform, contract)
                if unread(platform, contract, read).rows != 0:
                    found[contract.name] = read.so_far.position
            except SourceError as error:
                problems.append(_problem(contract, error))
    return found, problems


def pull(platform: Platform, contract: Contract, asked: Again | None = None) -> int:
    """Read new rows into files of the landing folder; nothing while files of an earlier reading wait.

    The caller holds the table's ingest lock.

    Args:
        asked: request to read again instead of reading new rows.

    Returns:
        How many files wait for ingest.

    Raises:
        SourceError: the source cannot be read; nothing of the reading is kept.
    """
    read = readings(platform, contract)
    if stuck := _stuck(contract, read):
        raise stuck
    if read.waiting and asked:
        raise _waits(contract, read)
    if read.waiting:
        return len(read.waiting)
    with private_folder(platform, contract) as folder:
        source = source_of(contract)
        reading = (
            source.again(contract, read.so_far, folder, asked) if asked else source.read(contract, read.so_far, folder)
        )
        return 0 if reading is None else _land(platform, contract, reading, read, folder)


def pull_alone(platform: Platform, contract: Contract, asked: Again | None = None) -> int:
    """Call `pull` with the table's ingest lock."""
    source_of(contract)
    with ingest_lock(platform.lake, contract.name):
        platform.settle()
        return pull(platform, contract, asked)


def pull_each(
    platform: Platform, contracts: Iterable[Contract], how: Callable[[Platform, Contract], int] = pull_alone
) -> tuple[Problem, ...]:
    """Read the sources of some tables; return errors, which stop no other table."""
    problems: list[Problem] = []
    for contract in contracts:
        if isinstance(contract.source, Source):
            try:
                how(platform, contract)
            except SourceError as error:
                problems.append(_problem(contract, error))
    return tuple(problems)


def verify_source(
    platform: Platform, contract: Contract, days: Iterable[date] | None, most: int, *, repair: bool = True
) -> Drift:
    """Compare raw with its source, and land what drifted for ingestion.

    Raises:
        SourceError: the source cannot be compared, or files of it wait.
    """
    source = source_of(contract)
    with ingest_lock(platform.lake, contract.name):  # or a newer reading could count as older
        platform.settle()
        read = readings(platform, contract)
        if stuck := _stuck(contract, read):
            raise stuck
        if read.waiting:
            raise _waits(contract, read)
        with private_folder(platform, contract) as folder:
            found = source.drift(contract, read.so_far, folder, days, most)
            if found.repair and repair:
                _land(platform, contract, found.repair, read, folder)
    return found


def _problem(contract: Contract, error: SourceError) -> Problem:
    return Problem(source_of(contract).folder, error.what.rstrip("."), error.todo)


def _waits(contract: Contract, read: Readings) -> SourceError:
    return SourceError(
        f"{len(read.waiting):,} files of {contract.name} wait, so raw is behind what was read.",
        "`platform-assets refresh` takes them; run the same then.",
    )


def _stuck(contract: Contract, read: Readings) -> SourceError | None:
    if not read.refused:
        return None
    return SourceError(
        f"{read.refused[0]} of {contract.name} was refused, and what comes after it would be taken without it.",
        f"`platform-assets status files` says why. Correct the contract and `platform-assets quarantine replay "
        f"{contract.name}`, or remove the file: then it is read again.",
    )


@contextmanager
def private_folder(platform: Platform, contract: Contract) -> Iterator[Path]:
    """Yield an empty folder that is removed afterwards."""
    platform.settings.make_state()
    folder = platform.settings.state / "reading" / contract.table
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _land(platform: Platform, contract: Contract, reading: Reading, read: Readings, folder: Path) -> int:
    """Name the files of a reading, each at once; return how many there are."""
    source = source_of(contract)
    if not _POSITION.fullmatch(reading.position):
        raise SourceError(
            f"The source of {contract.name} read up to {reading.position!r}, which is no position.",
            "Its `read` must return a position of 1 to 80 letters, digits, hyphens and underscores.",
        )
    files = [(day, file) for day, some in sorted(reading.files.items()) for file in some]
    quiet = _quiet_dates(platform, contract, reading, read)
    if quiet:
        empty = _empty_file(contract, folder)
        files += [(day, empty) for day in quiet]
    landing = platform.settings.landing_folder / source.folder
    for left in landing.glob("*/.*"):
        if _part_of(left.name[1:]):  # of a process that was killed
            left.unlink()
    for number, (day, file) in enumerate(files, 1):
        if format_of(file.name) is None:
            raise SourceError(
                f"The source of {contract.name} wrote {file.name}, which is no file of a landing format.",
                "Its `read` must write .parquet, .csv or .jsonl files.",
            )
        target = landing / day.isoformat()
        target.mkdir(parents=True, exist_ok=True)
        ending = "".join(file.suffixes)
        name = f"{read.newest + 1:08}.{reading.position}.{number}of{len(files)}{ending}"
        hidden = target / f".{name}"
        land_file(file, hidden, platform.settings.settle_s)
        hidden.replace(target / name)
    return len(files)


def land_file(file: Path, hidden: Path, settle_s: float) -> None:
    """Copy a file to where nothing lists it until it gets its name, as one that has rested for long enough."""
    shutil.copyfile(file, hidden)
    with hidden.open("rb") as written:
        os.fsync(written.fileno())
    rests = hidden.stat().st_mtime - max(_RESTS_S, settle_s)
    os.utime(hidden, (rests, rests))


def _quiet_dates(platform: Platform, contract: Contract, reading: Reading, read: Readings) -> list[date]:
    """Return arrival dates on which rows were expected and the source says that none came."""
    have = read.dates | {day.isoformat() for day in reading.files}
    due = (comes_with(contract, day) for day in platform.calendar.days() if contract.expects(day))
    expects = contract.delivers != "on change"
    return sorted(day for day in due if expects and day < reading.until and day.isoformat() not in have)


def _empty_file(contract: Contract, folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = folder / "quiet.parquet"
    pq.write_table(pa.schema([(name, pa.string()) for name in contract.column_names]).empty_table(), file)
    return file
