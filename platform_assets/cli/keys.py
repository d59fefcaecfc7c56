"""Keys as an option of commands: columns and their values, as they are shown."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from platform_assets.cli.console import UsageError

_QUOTED = re.compile(r'((?:^|,)\s*"(?:[^"]|"")*")\s*(?=,|\Z)')
"""A value in double quotes with the blanks behind it, at which `csv` stops."""


def parse_keys(options: Sequence[str]) -> dict[str, list[str]]:
    """The texts of values that a person names, by column; all of a column that is named several times.

    Args:
        options: each COLUMN=VALUE,… with the values as a line of CSV; blanks around one do not belong to it.

    Raises:
        UsageError: one is not so.
    """
    asked: dict[str, list[str]] = {}
    for option in options:
        name, _, listed = option.partition("=")
        try:
            line = csv.reader([_QUOTED.sub(r"\1", listed)], skipinitialspace=True, strict=True)
            values = [value.strip() for value in next(line, [])]
        except csv.Error as error:
            raise _no_keys(option, f"The values {listed!r} cannot be told apart: {error}.") from error
        if not (name.strip() and values and all(values)):
            raise _no_keys(option, f"It was read as column {name.strip()!r} with the values {values}.")
        asked.setdefault(name.strip(), []).extend(values)
    return asked


def _no_keys(option: str, why: str) -> UsageError:
    return UsageError(
        f"{option!r} is not COLUMN=VALUE,…. {why}",
        "Write --only store_id=330,337, and in double quotes a value that has a comma: --only 'name=\"Smith, J\",Lee'.",
    )
