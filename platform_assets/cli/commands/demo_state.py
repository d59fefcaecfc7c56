"""What of an installation is the demo's: its clock, and what it may remove to start over."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from platform_assets.cli.console import UsageError, errors
from platform_assets.errors import PlatformError
from platform_assets.ledger.connection import parse_url
from platform_assets.settings import Settings, load_settings

_SETTINGS = (
    "# Written by the demo, so that every command sees the same calendar and clock.\n"
    "calendar_last = {last}\n"
    "today = {today}\n"
)
_WRITTEN = re.compile(re.escape(_SETTINGS).replace(r"\{last\}", r"\S+").replace(r"\{today\}", r"\S+"))
_ELSEWHERE = "Run the demo in a state folder of its own: PLATFORM_STATE=/some/folder platform-assets demo."


class DemoError(PlatformError):
    """The demo cannot go on."""


def demo_clock(settings: Settings, last: date) -> date | None:
    """How far an earlier demo of this installation got; None if there was none.

    Raises:
        DemoError: the installation is somebody's own.
        UsageError: the earlier demo has another number of days.
    """
    if not holds_demo(settings):
        return None
    if settings.calendar_last != last:
        days = (settings.calendar_last - settings.calendar_first).days + 1 if settings.calendar_last else 0
        raise UsageError(
            f"This installation holds a demo of {days} days.",
            f"Run `demo --days {days}` to go on with it, or `demo --fresh` to remove it and start over.",
        )
    return settings.today


def holds_demo(settings: Settings) -> bool:
    """Whether a demo was here before; the settings that only it writes say so.

    Raises:
        DemoError: there is something that no demo made, so that none may begin or go on here.
    """
    clock = _clock_file(settings)
    if clock.is_file() and not _WRITTEN.fullmatch(clock.read_text(encoding="utf-8", errors="replace")):
        raise DemoError(f"{clock} is not as a demo writes it, so this installation is somebody's own.", _ELSEWHERE)
    if clock.is_file():
        return True
    if settings.lake.exists() and any(settings.lake.iterdir()):
        raise DemoError(f"{settings.lake} already holds a lake that is not a demo's.", _ELSEWHERE)
    _require_nothing_foreign(settings)
    return False


def set_clock(settings: Settings, last: date, today: date) -> Settings:
    """Have every command see the demo's calendar and clock; returns the settings that they see from now on."""
    file = _clock_file(settings)
    settings.state.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8") as content:
        content.write(_SETTINGS.format(last=last, today=today))
        content.flush()
        os.fsync(content.fileno())
    unfinished.replace(file)
    return load_settings()


def remove_demo(settings: Settings) -> None:
    """Remove what an earlier demo made; nothing is removed where anything of it could be somebody's own.

    Raises:
        DemoError: there is something that no demo made, or something of the demo lies outside its state folder.
    """
    if not holds_demo(settings):
        return
    _require_nothing_foreign(settings)
    folders = (settings.lake, settings.landing, settings.state / "dagster")
    ledger = parse_url(settings.ledger_url.get_secret_value()).database
    for path in (*folders, Path(ledger or "")):
        if not _is_inside(path, settings.state):
            raise DemoError(
                f"{path} lies outside the state folder {settings.state}, so the demo does not remove it.",
                "Run the demo with a state folder of its own, and without a lake, landing folder or ledger elsewhere.",
            )
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for file in (*settings.state.glob("ledger.db*"), _clock_file(settings)):
        file.unlink(missing_ok=True)
    errors.print("Removed the earlier demo.")  # what a program reads of the demo is on the other stream


def _clock_file(settings: Settings) -> Path:
    return settings.state / "settings.toml"


def _is_inside(path: Path, state: Path) -> bool:
    return state.resolve() in path.resolve().parents


def _require_nothing_foreign(settings: Settings) -> None:
    if foreign := next(_foreign(settings), None):
        raise DemoError(f"{foreign} was not put there by a demo.", _ELSEWHERE)


def _foreign(settings: Settings) -> Iterator[Path]:
    """What in lake and landing area neither the demo nor the sample put there."""
    from platform_assets.domains.retail import DOMAIN
    from platform_assets.domains.retail.sample import foreign_files
    from platform_assets.lakehouse.layout import LAYERS

    tables = {contract.table for contract in DOMAIN.tables}
    for layer in LAYERS:
        yield from (path for path in settings.lake.glob(f"{layer}/*") if path.name not in tables)
    yield from foreign_files(settings.landing)
