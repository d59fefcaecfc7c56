"""Errors a person can act on: what happened, where, and what to do next.

Every mistake of a user, a source or a machine that the platform expects ends in one of these.
Each room derives its own from `PlatformError`; the command line and Dagster print `str(error)` and no traceback.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import FrameType
from typing import ClassVar

from platform_assets.words import visible

_PLATFORM = Path(__file__).parent


class PlatformError(Exception):
    """An expected failure with its remedy.

    Args:
        what: what happened and where (table, day, file, field), as one sentence.
        todo: what the reader can do next, as one sentence.
        lines: of what happened, if it is more than a sentence: a line break within one is not ours.
    """

    is_misspelt: ClassVar[bool] = False
    """Whether the request was written wrongly, as opposed to a problem of the platform's state."""

    def __init__(self, what: str, todo: str, lines: Iterable[str] = ()) -> None:
        self.lines = (what, *lines)
        self.what = "\n".join(self.lines)
        self.todo = todo
        # The text is for people: control characters are made visible wherever it is printed.
        super().__init__("\n".join((*map(visible, self.lines), f"  What to do: {visible(todo)}")))


def did_you_mean(written: str, choices: Collection[str]) -> str:
    """Return the question whether the nearest choice was meant, to precede a sentence.

    Returns:
        `Did you mean <choice>? `; empty where none is near.
    """
    return "".join(f"Did you mean {close}? " for close in get_close_matches(written, choices, 1))


def led_to(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, the root cause last."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


def users_line(error: BaseException, package: str | None = None) -> str | None:
    """Return file and line of a user's own code where an error arose, also if libraries raised it.

    Args:
        package: package of the user, which may be installed among the libraries.

    Returns:
        `<file>, line <n>`; None if no code of a user is on the way.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    users = users_frames(traceback.walk_tb(error.__traceback__), package)
    return f"{users[-1][0].f_code.co_filename}, line {users[-1][1]}" if users else None


def users_frames(frames: Iterable[tuple[FrameType, int]], package: str | None = None) -> list[tuple[FrameType, int]]:
    """Return the frames of a user's own code, each with its line; only those of one package if there are any."""
    frames = list(frames)
    top = package.partition(".")[0] if package else ""
    # Shipped domains are inside the platform's own package.
    above = f"{_PLATFORM.name}.domains." if top == _PLATFORM.name else f"{top}."
    own = [at for at in frames if top and f"{at[0].f_globals.get('__name__')}.".startswith(above)]
    return own or [at for at in frames if _is_of_a_user(at[0].f_code.co_filename)]


def _is_of_a_user(file: str) -> bool:
    # Code without a file, like Python's import system, is not a user's.
    if file.startswith(("<", *_libraries())):
        return False
    return not Path(file).is_relative_to(_PLATFORM) or Path(file).is_relative_to(_PLATFORM / "domains")


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of libraries; cached and only for errors, because Python reads a file for it."""
    return tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
