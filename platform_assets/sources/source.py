"""A source that is read instead of delivering: each reading becomes files of its landing folder.

So everything that ingestion does with files (refused rows, the late queue, audits, replays) applies to readings. How
far a source was read is in the names of these files, and so in raw's publications: the position advances with the rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple

from platform_assets.contracts import Contract, ContractError, LandingFiles
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release


class SourceError(PlatformError):
    """A source cannot be read."""


@dataclass(frozen=True)
class SoFar:
    """How far a source was read for a raw table.

    Args:
        position: position of the newest reading that raw has whole; empty before the first.
        positions: positions of all readings that raw has, whole or in part.
        today: the newest arrival date that there can be.
        withdrawn: arrivals whose rows no longer count.
        publications: publications that ingested readings, each with the newest position in it.
        files: paths of all files of readings that were ingested or refused whole.
    """

    position: str
    positions: frozenset[str]
    today: date
    lake: Lake
    release: Release
    withdrawn: frozenset[str] = frozenset()
    publications: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bool] = field(default_factory=dict)


class Waits(NamedTuple):
    """Unread rows: their number up to a bound (None if unknown), and for a person how far the source was read."""

    rows: int | None
    what: str


@dataclass(frozen=True)
class Reading:
    """A reading.

    Args:
        position: how far it came, in letters, digits, `_` and `-`, at most 80 of them. It identifies the reading.
        files: in a landing format, by arrival date; each date has at least one.
        until: earlier arrival dates are complete: those without a file had no rows.
    """

    position: str
    files: Mapping[date, Sequence[Path]]
    until: date


class DriftedKey(NamedTuple):
    """A key whose content differs between raw and the source."""

    day: date
    key: str
    what: str


@dataclass(frozen=True)
class Drift:
    """Comparison of a raw table with its source.

    Args:
        days: compared days.
        differing: days whose count or checksum differs.
        keys: numbers of drifted keys: `changed` without their watermark, `back-dated`, `deleted`, or `moved` to another
            day.
        examples: some of these.
        waiting: keys that differ because they were not read yet, or were refused.
        undated: rows of the source without a day.
        repair: reads the drifted keys again, with deletes as voids; None if nothing drifted.
    """

    days: int
    differing: tuple[date, ...] = ()
    keys: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[DriftedKey, ...] = ()
    waiting: int = 0
    undated: int = 0
    repair: Reading | None = None

    def __bool__(self) -> bool:
        return bool(self.keys)


@dataclass(frozen=True)
class Again:
    """A person's request to a source.

    Args:
        reason: becomes part of the position, and so of the files' names.
        first: start of the range to read again, in the source's own words.
        upto: end of the range; by default the source's position.
        accepts_loss: whether to continue after what the source no longer has, instead of reading anything.
        days: first and last day to read again, in place of a range; empty for a range.
    """

    reason: str
    first: str = ""
    upto: str = ""
    accepts_loss: bool = False
    days: tuple[date, date] | tuple[()] = ()


@dataclass(frozen=True)
class Source(LandingFiles):
    """Declare a source that is read; a source of your own is a subclass with two methods, as docs/own-source.md shows.

    Args:
        folder: folder for its readings, below the landing root. Only one raw table reads it.
    """

    def _problems(self) -> Iterator[ContractError]:
        yield from super()._problems()
        if self.complete is not None or self.order not in (None, "name"):
            yield ContractError(
                f"The source {self.folder!r} is read, and its files are complete and in order as they are named.",
                "Leave out `complete` and `order`.",
                field="complete",
            )

    @property
    def is_read(self) -> bool:
        """Return that it is read."""
        return True

    @abstractmethod
    def waits(self, contract: Contract, so_far: SoFar) -> Waits:
        """Return cheaply what was not read yet: every tick of the sensor calls this.

        Raises:
            SourceError: the source cannot be read.
        """
        raise NotImplementedError

    @abstractmethod
    def read(self, contract: Contract, so_far: SoFar, folder: Path) -> Reading | None:
        """Read everything new since a position into files of an empty folder.

        Returns:
            The reading; None if nothing is new.

        Raises:
            SourceError: the source cannot be read; nothing of the reading is kept.
        """
        raise NotImplementedError

    def again(self, contract: Contract, so_far: SoFar, folder: Path, asked: Again) -> Reading | None:
        """Read a range again, or accept a loss; the position stays after everything that raw has.

        Raises:
            SourceError: the source cannot be read, or not like this.
        """
        raise SourceError(
            f"The source of {contract.name} cannot read again.", "A source that can has `again`, as a KafkaTopic."
        )

    def sample(self, folder: Path) -> Path:
        """Write some rows with all that the source has of them into a file of JSON lines of a folder.

        Raises:
            SourceError: the source cannot be read, or not so.
        """
        raise SourceError(
            f"The source of {self.folder} gives no sample.",
            "A source that can has the method `sample`, as a KafkaTopic.",
        )

    def drift(self, contract: Contract, so_far: SoFar, folder: Path, days: Iterable[date] | None, most: int) -> Drift:
        """Compare raw with the source, day by day.

        Args:
            folder: empty; for the repair.
            days: only these; all by default.
            most: how many keys to name.

        Raises:
            SourceError: the source cannot be read, or not be compared.
        """
        raise SourceError(
            f"The source of {contract.name} cannot be compared with it.",
            "A source that can has the method `drift`, as a PostgresTable.",
        )
