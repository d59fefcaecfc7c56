"""Routes of announcements besides the log and the webhook: by kind, owner, and hours."""

from __future__ import annotations

import re
from datetime import datetime, time
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, field_validator

Kind = Literal["held", "circuit", "failed", "plan", "schema"]
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_QUIET = re.compile(r"(\d\d:\d\d)-(\d\d:\d\d)(?: ([A-Za-z_/+-]+\d*))?")


class Route(BaseModel):
    """Send announcements to an address of Apprise.

    Args:
        url_env: the environment variable that holds the address, which is a secret.
        kinds: of incidents, `plan` for events that plan files list, and `schema` for columns otherwise than declared.
        owners: of tables, and of plans; empty for all.
        quiet: hours at which nothing is sent, as `22:00-07:00` in UTC or `22:00-07:00 Europe/Berlin`. Afterwards the
            route gets incidents that still last.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url_env: str
    kinds: tuple[Kind, ...] = get_args(Kind)
    owners: tuple[str, ...] = ()
    quiet: str = ""

    @field_validator("url_env")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not _VARIABLE.fullmatch(value):  # not shown: it may be the address itself
            raise ValueError("must name the environment variable that holds the address, such as FINANCE_CHAT")
        return value

    @field_validator("quiet")
    @classmethod
    def _is_readable(cls, value: str) -> str:
        if value:
            _hours(value)
        return value

    def wants(self, kind: Kind, owners: frozenset[str]) -> bool:
        """Return whether it gets a kind of announcement about something of these owners; without owners, all do."""
        return kind in self.kinds and (not self.owners or not owners or not owners.isdisjoint(self.owners))

    def is_quiet(self, now: datetime) -> bool:
        """Return whether nothing is sent at a time."""
        if not self.quiet:
            return False
        first, last, zone = _hours(self.quiet)
        at = now.astimezone(zone).time().replace(tzinfo=None)
        return first <= at < last if first < last else at >= first or at < last


def _hours(text: str) -> tuple[time, time, ZoneInfo]:
    found = _QUIET.fullmatch(text)
    try:
        if not found or found[1] == found[2]:
            raise ValueError
        zone = ZoneInfo(found[3] or "UTC")
        first, last = (time.fromisoformat(part) for part in (found[1], found[2]))
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"{text!r} is not written like 22:00-07:00 or 22:00-07:00 Europe/Berlin") from error
    return first, last, zone
