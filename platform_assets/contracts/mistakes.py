"""Mistakes in declarations: by itself one raises its first; while a domain is loaded, those of all are gathered.

Python would stop at the first exception in a module, and a person would correct, try, and be told of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from traceback import walk_stack
from types import FrameType

from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.fields import field_problems

_FOLLOWS = (AttributeError, LookupError, TypeError, ValueError)
"""What looking at a declaration may end in that is made of wrong ones, which have been told by then."""


@dataclass(frozen=True)
class Gathered:
    """A problem of a declaration that was made all the same.

    Args:
        error: as it would have been raised.
        declared: that has the problem; None where it lies between declarations.
        frames: where it was made, outermost first, each with its line.
    """

    error: ContractError
    declared: object = field(default=None, repr=False, compare=False)
    frames: tuple[tuple[FrameType, int], ...] = field(repr=False, default=())


_GATHERING: ContextVar[list[Gathered] | None] = ContextVar("gathering", default=None)


@contextmanager
def gathering() -> Iterator[list[Gathered]]:
    """Within, declarations with mistakes are made and noted; whoever gathers must refuse what was made of them."""
    gathered: list[Gathered] = []
    token = _GATHERING.set(gathered)
    try:
        yield gathered
    finally:
        _GATHERING.reset(token)


def check_declaration(
    declared: object,
    whose: str,
    problems: Callable[[], Iterable[ContractError]] = lambda: (),
    table: str | None = None,
) -> None:
    """Refuse a declaration with a field that is not what its annotation says, or with fields that contradict others.

    Args:
        declared: a dataclass whose annotations say what is allowed.
        whose: what it is, to begin messages with.
        problems: of its fields with each other; asked for only where each by itself is right.
        table: that it is about, where it knows.

    Raises:
        ContractError: for the first problem, unless they are gathered.
    """

    def all_problems() -> Iterator[ContractError]:
        wrong = list(field_problems(declared, whose, table))
        yield from wrong
        if not wrong:
            yield from problems()

    refuse(all_problems(), declared)


def wrong_among(parts: Iterable[object], table: str) -> bool:
    """Whether parts of a table's declaration have mistakes that were noted: they are that table's from now on.

    What would be said of the whole because of such a part is no mistake of its own.

    Args:
        parts: as columns and inputs, made before the whole.
        table: that is declared with them.
    """
    gathered = _GATHERING.get() or ()
    mine = {id(part) for part in parts}  # equal ones may be another table's
    wrong = [found.error for found in gathered if found.declared is not None and id(found.declared) in mine]
    for error in wrong:
        error.table = error.table or table
    return bool(wrong)


def refuse(problems: Iterable[ContractError], declared: object = None) -> None:
    """Raise the first of some problems; note all of them where they are gathered.

    Args:
        problems: if any.
        declared: that has them, where it is one declaration.

    Raises:
        ContractError: there is one, and nobody gathers.
    """
    gathered = _GATHERING.get()
    if gathered is None:
        for problem in problems:
            raise problem
        return
    frames = tuple(reversed(list(walk_stack(None))))
    try:
        for problem in problems:
            gathered.append(Gathered(problem, declared, frames))
    except ContractError as error:
        gathered.append(Gathered(error, declared, frames))
    except _FOLLOWS:
        if not gathered:
            raise
