"""What of an installation is the demo's: its mark, its calendar and its clock."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path

from platform_assets.cli.commands.demo_mark import Mark, holds_nothing, write_whole
from platform_assets.cli.console import UsageError
from platform_assets.errors import PlatformError
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


def demo_here(settings: Settings) -> Mark | None:
    """The mark of the demo that this installation is; None if there was none.

    Raises:
        DemoError: the installation is somebody's own, or was made to be, so that no demo may begin or go on here.
    """
    mark, clock = Mark.of(settings.state), clock_file(settings)
    if clock.is_file() and not _WRITTEN.fullmatch(clock.read_text(encoding="utf-8", errors="replace")):
        raise DemoError(f"{clock} is not as a demo writes it, so this installation is somebody's own.", _ELSEWHERE)
    if mark is None and clock.is_file():
        raise DemoError(f"No demo marked {settings.state} as its own, so this installation is somebody's.", _ELSEWHERE)
    if not holds_nothing(settings.lake) and not (mark and mark.is_in(settings.lake)):
        raise DemoError(f"{settings.lake} already holds a lake that is not a demo's.", _ELSEWHERE)
    return mark


def demo_clock(settings: Settings, last: date) -> date | None:
    """How far an earlier demo of this installation got; None if there was none.

    Raises:
        DemoError: the installation is somebody's own.
        UsageError: the earlier demo has another number of days, or the clock is set from outside.
    """
    for name in ("PLATFORM_CALENDAR_LAST", "PLATFORM_TODAY"):
        if os.environ.get(name):
            raise UsageError(f"{name} is set, and the demo keeps a calendar of its own.", f"Unset {name} for it.")
    if demo_here(settings) is None or not clock_file(settings).is_file():
        return None
    if settings.calendar_last != last:
        days = (settings.calendar_last - settings.calendar_first).days + 1 if settings.calendar_last else 0
        raise UsageError(
            f"This installation holds a demo of {days} days.",
            f"Run `demo --days {days}` to go on with it, or `demo --fresh` to remove it and start over.",
        )
    return settings.today


def begin_demo(settings: Settings) -> None:
    """Mark the installation, and all folders that are made for it, as a demo's; once more where that was killed.

    Raises:
        DemoError: there is something that no demo and no sample put there.
    """
    from platform_assets.domains.retail.sample import look_over
    from platform_assets.ledger.connection import parse_url, sqlite_file
    from platform_assets.ledger.ledger import Ledger

    if others := look_over(settings.landing_folder).deliveries_of_others:
        raise DemoError(f"{others[0]} was not put there by a demo.", _ELSEWHERE)
    url = settings.ledger_url.get_secret_value()
    file = sqlite_file(parse_url(url))
    if file is None or file.exists():
        with Ledger.open(url) as ledger:
            if ledger.indexed():
                raise DemoError("The ledger knows what somebody published in another lake.", _ELSEWHERE)
    mark = Mark.of(settings.state) or Mark.new(settings.state)
    mark.keep()
    for place in (settings.lake, settings.landing_folder, settings.state / "dagster"):
        mark.put_into(place)


def set_clock(settings: Settings, last: date, today: date) -> Settings:
    """Have every command see the demo's calendar and clock; returns the settings that they see from now on."""
    write_whole(clock_file(settings), _SETTINGS.format(last=last, today=today))
    return load_settings()


def clock_file(settings: Settings) -> Path:
    """The settings that the demo writes."""
    return settings.state / "settings.toml"
