"""Keep the demo in an installation of its own: its mark, its calendar and clock, and how all of it is removed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from platform_assets.cli.console import UsageError, errors
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import located
from platform_assets.places import folder_of
from platform_assets.settings import Settings, load_settings

_MARK = ".demo.json"
_SETTINGS = (
    "# Written by the demo, so that every command sees the same calendar and clock.\n"
    "calendar_last = {last}\n"
    "today = {today}\n"
)
_WRITTEN = re.compile(re.escape(_SETTINGS).replace(r"\{last\}", r"\S+").replace(r"\{today\}", r"\S+"))
_ELSEWHERE = "Run the demo in a state folder of its own: PLATFORM_STATE=/some/folder platform-assets demo."
_INSIDE = "Run the demo with a state folder of its own, and without a lake, landing folder or ledger elsewhere."


class DemoError(PlatformError):
    """The demo cannot go on."""


def is_half_removed(settings: Settings) -> bool:
    """Return whether `demo --fresh` was killed while it removed the demo."""
    try:
        return bool(json.loads((settings.state / _MARK).read_bytes())["is_being_removed"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def demo_clock(settings: Settings, last: date) -> date | None:
    """Return how far an earlier demo of this installation got; None if there was none.

    Raises:
        DemoError: the installation is somebody's own.
        UsageError: the earlier demo has another number of days, or the clock is set from outside.
    """
    for name in ("PLATFORM_CALENDAR_LAST", "PLATFORM_TODAY"):
        if os.environ.get(name):
            raise UsageError(f"{name} is set, and the demo keeps a calendar of its own.", f"Unset {name} for it.")
    if not _is_demo(settings) or not clock_file(settings).is_file():
        return None
    if settings.calendar_last != last:
        days = (settings.calendar_last - settings.calendar_first).days + 1 if settings.calendar_last else 0
        raise UsageError(
            f"This installation holds a demo of {days} days.",
            f"Run `demo --days {days}` to go on with it, or `demo --fresh` to remove it and start over.",
        )
    return settings.today


def begin_demo(settings: Settings) -> None:
    """Mark an empty installation as a demo's.

    Raises:
        DemoError: files were delivered to it, or its ledger knows another lake.
    """
    from platform_assets.ledger.ledger import Ledger

    if not _is_demo(settings):
        if delivered := next(_deliveries(settings.landing_folder), None):
            raise DemoError(f"{delivered} was not put there by a demo.", _ELSEWHERE)
        files = _ledger_files(settings)
        if not files or files[0].exists():
            with Ledger.open(settings.ledger_url.get_secret_value()) as ledger:
                if ledger.indexed():
                    raise DemoError("The ledger knows what somebody published in another lake.", _ELSEWHERE)
    _mark(settings, is_being_removed=False)


def set_clock(settings: Settings, last: date, today: date) -> Settings:
    """Write the demo's calendar and clock for every command, and return the settings that they see from now on."""
    (located(settings.state) / "settings.toml").replace(_SETTINGS.format(last=last, today=today).encode())
    return load_settings()


def clock_file(settings: Settings) -> Path:
    """Return the settings file that the demo writes."""
    return settings.state / "settings.toml"


def remove_demo(settings: Settings) -> None:
    """Remove landing area, lake, ledger and Dagster's storage of a demo's installation, with all that is in them.

    Where it is killed, the next demo goes on with it.

    Raises:
        DemoError: the installation is no demo's, or a part of it lies outside the state folder.
    """
    if not _is_demo(settings):
        return
    ledger, dagster = _ledger_files(settings), settings.state / "dagster"
    if not ledger:
        raise DemoError("The ledger is on a server, so the demo does not remove it.", _INSIDE)
    for place in (settings.lake, settings.landing, str(dagster), str(ledger[0])):
        folder = folder_of(place)
        if folder is None or settings.state.resolve() not in folder.resolve().parents:
            raise DemoError(
                f"{place} lies outside the state folder {settings.state}, so the demo does not remove it.", _INSIDE
            )
    _mark(settings, is_being_removed=True)
    # The ledger first: a lake without one gets it anew, and a ledger without its lake is refused.
    for path in (*ledger, settings.lake_folder, settings.landing_folder, dagster, clock_file(settings)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (settings.state / _MARK).unlink()
    errors.print("Removed the earlier demo.")  # standard output is for the JSON of the demo


def _mark(settings: Settings, *, is_being_removed: bool) -> None:
    settings.state.mkdir(parents=True, exist_ok=True)
    (located(settings.state) / _MARK).replace(json.dumps({"is_being_removed": is_being_removed}).encode())


def _is_demo(settings: Settings) -> bool:
    """Return whether a demo marked this installation.

    Raises:
        DemoError: the installation is somebody's own, so that no demo may begin or go on here.
    """
    marked, clock = (settings.state / _MARK).is_file(), clock_file(settings)
    if clock.is_file() and not _WRITTEN.fullmatch(clock.read_text(encoding="utf-8", errors="replace")):
        raise DemoError(f"{clock} is not as a demo writes it, so this installation is somebody's own.", _ELSEWHERE)
    if not marked and clock.is_file():
        raise DemoError(f"No demo marked {settings.state} as its own, so this installation is somebody's.", _ELSEWHERE)
    if not marked and next(iter(located(settings.lake).names()), None):
        raise DemoError(f"{settings.lake} already holds a lake that is not a demo's.", _ELSEWHERE)
    return marked


def _deliveries(landing: Path) -> Iterator[Path]:
    """Yield the files of a landing area that are not hidden."""
    files = (path for path in sorted(landing.rglob("*")) if path.is_file())
    return (path for path in files if not any(part.startswith(".") for part in path.relative_to(landing).parts))


def _ledger_files(settings: Settings) -> tuple[Path, ...]:
    """Return the ledger and what SQLite keeps beside it; nothing for a server."""
    from platform_assets.ledger.connection import parse_url, sqlite_file

    file = sqlite_file(parse_url(settings.ledger_url.get_secret_value()))
    return tuple(Path(f"{file}{ending}") for ending in ("", "-wal", "-shm", "-journal")) if file else ()
