"""Errors a person can act on: what happened, where, and what to do next.

Every mistake of a user, a source or a machine that the platform expects ends in one of these.
Each room derives its own from `PlatformError`; the command line and Dagster print `str(error)` and no traceback.
"""

from __future__ import annotations


class PlatformError(Exception):
    """An expected failure with its remedy.

    Args:
        what: what happened and where (table, day, file, field), as one sentence.
        todo: what the reader can do next, as one sentence.
    """

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(f"{what}\n  What to do: {todo}")
        self.what = what
        self.todo = todo
