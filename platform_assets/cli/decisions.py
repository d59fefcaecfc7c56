"""What commands share that write down a person's decision: who decides, and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from platform_assets.cli.console import UsageError

if TYPE_CHECKING:
    from platform_assets.engine.platform import Author


def decided_by(reason: str | None, who: str | None) -> Author:
    """The author of a decision.

    Raises:
        UsageError: the reason or the name is missing or blank.
    """
    from platform_assets.engine.platform import Author

    given: dict[str, str] = {}
    for name, value, example in (("reason", reason, "checked with the till vendor"), ("by", who, "zoe")):
        if value is None or not value.strip():
            raise UsageError(
                f"A decision needs --{name}: it is kept for the next person.", f'Add --{name} "{example}".'
            )
        given[name] = value.strip()
    return Author(run=f"process {os.getpid()}", why=given["reason"], who=given["by"])
