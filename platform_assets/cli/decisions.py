"""What commands share that write down a person's decision: who decides, and why."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from platform_assets.cli.console import UsageError

if TYPE_CHECKING:
    from platform_assets.engine.platform import Author
    from platform_assets.records.manifest import Decides


def decided_by(reason: str | None, who: str | None, decides: Decides = "") -> Author:
    """The author of a decision.

    Args:
        reason: as it was given.
        who: as it was given; the user of this machine by default.
        decides: what it is, where the kind of work does not say so.

    Raises:
        UsageError: the reason or the name is missing or blank.
    """
    if who is None:
        with suppress(KeyError, OSError):  # in a container, a user may have no name
            who = getpass.getuser()
    from platform_assets.engine.platform import Author

    given: dict[str, str] = {}
    for name, value, example in (("reason", reason, "checked with the till vendor"), ("by", who, "zoe")):
        if value is None or not value.strip():
            raise UsageError(
                f"A decision needs --{name}: it is kept for the next person.", f'Add --{name} "{example}".'
            )
        given[name] = value.strip()
    # Of runs in a container each is process 1.
    return Author(run=f"process {os.getpid()} {uuid4().hex[:8]}", why=given["reason"], who=given["by"], decides=decides)
