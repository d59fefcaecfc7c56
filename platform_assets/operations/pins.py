"""Pins: releases that people keep readable, so that maintenance does not delete their files.

A pin is a decision in the ledger and names the publication, not the number: after a restore, a number may belong to
another release, which was not pinned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Literal

from platform_assets.engine.day_contents import Files, files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.errors import DamagedTableError, LockLostError, UnknownReleaseError
from platform_assets.lakehouse.horizon import horizon_of, require_whole
from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.releases import Release, release
from platform_assets.planning.windows import Ranges, days_in
from platform_assets.records.decisions import PinDecision

if TYPE_CHECKING:
    from platform_assets.ledger.ledger import Ledger


@dataclass(frozen=True)
class FileCheck:
    """Check the files of a lake, each version of a table once."""

    lake: Lake
    _seen: dict[tuple[str, int], Files | str] = field(default_factory=dict)

    def problem(self, table: str, version: int, spans: Ranges) -> str | None:
        """Return a missing or changed file of some days of a table at a version, in words; None if all are whole."""
        files = self._files(table, version)
        if isinstance(files, str):
            return files
        for day in days_in(sorted(files), spans):
            for file in files[day]:
                size = (self.lake.table_path(table) / file.path).size()
                if size is None and self._is_cut(table, version):
                    return f"version {version} of {table} is beyond the rollback window, and its files were deleted"
                if size is None:
                    return f"the file {file.path} of {table} on {day} is gone"
                if size != file.size:
                    return f"the file {file.path} of {table} on {day} has {size:,} bytes; {file.size:,} were published"
        return None

    def _is_cut(self, table: str, version: int) -> bool:
        """Return whether the version was replaced before the first release whose files are all kept."""
        horizon = horizon_of(self.lake)
        return horizon.before > 0 and version < release(self.lake, horizon.before).versions.get(table, 0)

    def _files(self, table: str, version: int) -> Files | str:
        if (table, version) not in self._seen:
            try:
                self._seen[table, version] = files_at(self.lake, table, version)
            except DamagedTableError as error:
                self._seen[table, version] = f"version {version} of {table} is gone: {error.what}"
        return self._seen[table, version]


@dataclass(frozen=True)
class Pin:
    """A pinned release, which stays readable.

    Args:
        name: further name for reading it; empty without one.
    """

    release: int
    publication: str
    name: str
    reason: str
    who: str
    created_at: datetime


def pinned_releases(ledger: Ledger, *, as_far_as_readable: bool = False) -> dict[int, Pin]:
    """Return the pin of every pinned release, by number, oldest release first.

    Deletion asks under the publish lock, which pinning takes too.

    Args:
        as_far_as_readable: whether to skip damaged decisions; for display only.
    """
    indexed = ledger.indexed()
    standing: dict[int, Pin] = {}
    for decision in ledger.decisions(PinDecision, as_far_as_readable=as_far_as_readable):
        number = indexed.get(decision.publication)
        if number is not None and decision.kind == "unpin":
            standing.pop(number, None)
        elif number is not None:
            of_it = (decision.publication, decision.name, decision.reason, decision.who, decision.created_at)
            standing[number] = Pin(number, *of_it)
    return dict(sorted(standing.items()))


def pin(platform: Platform, number: int, author: Author, name: str | None = None) -> Pin:
    """Keep a release readable until it is unpinned.

    Raises:
        BeyondWindowError: files that only releases of its age needed were deleted, or are being deleted.
        LockLostError: the publish lock was lost; the release is not pinned.
        PlatformError: it is pinned already, the name is taken or unusable, or a part of the release is gone already.
    """
    if name is not None and not GIVEN_NAME.fullmatch(name):
        raise PlatformError(
            f"{name!r} cannot name a pin.", "Use letters, digits, dots, hyphens and underscores, a letter first."
        )
    wanted = release(platform.lake, number)
    with publish_lock(platform.lake) as still_held:
        platform.sync()
        pins = pinned_releases(platform.ledger)
        if number in pins:
            raise PlatformError(f"Release {number} is {described(pins[number])}.", "Unpin it first to change that.")
        taken = next((other for other in pins.values() if name and other.name == name), None)
        if taken is not None:
            raise PlatformError(
                f"The name {name!r} belongs to release {taken.release}.", "Choose another, or unpin it."
            )
        require_whole(platform.lake, number)
        _refuse_incomplete(platform, wanted)
        [publication] = [publication for publication, shown in platform.ledger.indexed().items() if shown == number]
        _decide(platform, "pin", publication, author, name or "")
        try:
            still_held()  # or another process may have deleted files before it saw the pin
        except LockLostError:
            _decide(platform, "unpin", publication, author)
            raise
    return pinned_releases(platform.ledger)[number]


def unpin(platform: Platform, number: int, author: Author) -> Pin:
    """Remove a pin, so that maintenance may delete the release's files."""
    pins = pinned_releases(platform.ledger)
    if number not in pins:
        todo = f"Name one that is: {', '.join(map(str, pins))}." if pins else "No release is pinned."
        raise PlatformError(f"Release {number} is not pinned.", todo)
    _decide(platform, "unpin", pins[number].publication, author)
    return pins[number]


def described(pinned: Pin) -> str:
    """Describe a pin in half a sentence."""
    named = f" as {pinned.name!r}" if pinned.name else ""
    return f"pinned{named} by {pinned.who} since {pinned.created_at:%Y-%m-%d %H:%M} UTC: {pinned.reason}"


def release_number(ledger: Ledger, which: str) -> int:
    """Return the number of a release named by number, pin, or publication."""
    if which.strip().isdecimal():
        return int(which)
    indexed = ledger.indexed()
    if which in indexed:
        return indexed[which]
    names = {
        pinned.name: pinned.release
        for pinned in pinned_releases(ledger, as_far_as_readable=True).values()
        if pinned.name
    }
    if which in names:
        return names[which]
    raise UnknownReleaseError(
        f"There is no release, pin or publication {which!r}.",
        did_you_mean(which, names) + "`platform-assets status releases` lists them.",
    )


def _decide(
    platform: Platform, kind: Literal["pin", "unpin"], publication: str, author: Author, name: str = ""
) -> None:
    platform.ledger.decide(PinDecision(kind, publication, name, **author.signature(datetime.now(UTC))))


def _refuse_incomplete(platform: Platform, wanted: Release) -> None:
    intact = FileCheck(platform.lake)
    for table, version in wanted.versions.items():
        if problem := intact.problem(table, version, ((date.min, date.max),)):
            raise PlatformError(
                f"Release {wanted.number} is no longer whole: {problem}.",
                "Pin a newer release, or restore the file from a backup first.",
            )
