"""Errors of declarations: a single one raises its first mistake; for a domain all are gathered.

Python would stop at the first exception in a module, and a person would correct and try once per mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from inspect import isclass, isroutine
from traceback import walk_stack
from types import FrameType, GenericAlias
from typing import Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from platform_assets.errors import PlatformError, did_you_mean


class ContractError(PlatformError):
    """A contract or a domain contradicts itself.

    Args:
        field: of the declaration, or the name of the column, rule or amount that is wrong.
        lines: further lines of the message, after the first.
        place: file and line of the declaration, if known.
    """

    def __init__(
        self,
        what: str,
        todo: str,
        *,
        table: str | None = None,
        field: str | None = None,
        lines: Iterable[str] = (),
        place: str | None = None,
    ) -> None:
        super().__init__(what, todo, lines)
        self.table = table
        self.field = field
        self.place = place


class UnknownTableError(PlatformError):
    """A table was named that no domain declares."""

    is_misspelt = True


def unknown_table(name: str, choices: Collection[str]) -> UnknownTableError:
    """Return the error for an unknown table name, the same in every command."""
    todo = f"{did_you_mean(name, choices)}Tables are {', '.join(choices)}."
    return UnknownTableError(f"There is no table {name!r}.", todo)


Days = Annotated[int, Field(ge=0, le=36_500)]
"""A number of days, at most a hundred years, which dates can still be counted with."""

Percent = Annotated[int, Field(ge=0, le=100)]
"""A share of something, in whole percents."""

Minutes = Annotated[int, Field(ge=1, le=525_600)]
"""A time to wait, up to a year."""

Times = Annotated[int, Field(ge=1, le=100)]
"""How often something has to happen."""

_SHOWN = 80
_ALLOWED: dict[type, tuple[tuple[str, ...], TypeAdapter[Any]]] = {}


def field_problems(declared: object, whose: str, table: str | None = None) -> Iterator[ContractError]:
    """Yield every field of another type than its annotation says, or outside its range; nothing is converted.

    Args:
        whose: what it is, to begin the messages with.

    Returns:
        Errors that name the field, its value and what is allowed.
    """
    names, allowed = _allowed_in(type(declared))
    values = {name: getattr(declared, name) for name in names}
    try:
        allowed.validate_python(tuple(values.values()), strict=True)
    except ValidationError as error:
        for name, found in _by_field(names, error).items():
            where, problems = _first_place(found)
            value = problems[0]["input"]
            problem = ContractError(
                f"{whose} has {name}{where}={_shown(value)}.",
                f"Correct `{name}`: {_allowed(name, value, problems)}.",
                table=table,
                field=name,
            )
            problem.__cause__ = error
            yield problem


def _allowed_in(kind: type) -> tuple[tuple[str, ...], TypeAdapter[Any]]:
    """Return the fields of a dataclass and one validator for all, cached: one for each takes twice as long."""
    if kind not in _ALLOWED:
        hints = get_type_hints(kind, include_extras=True)
        together: Any = GenericAlias(tuple, tuple(hints.values()))
        _ALLOWED[kind] = tuple(hints), TypeAdapter(together)
    return _ALLOWED[kind]


def _by_field(names: Sequence[str], error: ValidationError) -> dict[str, list[ErrorDetails]]:
    """Return the problems of each field, with their places within it."""
    found: dict[str, list[ErrorDetails]] = {}
    for problem in error.errors():
        number, *place = problem["loc"]
        found.setdefault(names[int(number)], []).append({**problem, "loc": tuple(place)})
    return found


def _first_place(found: Iterable[ErrorDetails]) -> tuple[str, list[ErrorDetails]]:
    """Return the first wrong part of a field, and all values allowed there."""
    by_place: dict[str, list[ErrorDetails]] = {}
    for problem in found:
        place = "".join(f"[{step}]" for step in problem["loc"] if isinstance(step, int))
        by_place.setdefault(place, []).append(problem)
    return next(iter(by_place.items()))


def _allowed(name: str, value: object, problems: list[ErrorDetails]) -> str:
    if problems[0]["type"] == "tuple_type":
        inside = ", ".join(map(_shown, value)) if isinstance(value, list | set | frozenset) else _shown(value)
        return f"it must be a tuple, and one of a single value ends with a comma, as in {name}=({inside},)"
    if isroutine(value) or isclass(value):
        return f"{value.__name__} stands there without brackets; write {value.__name__}(…) for what it gives"
    said = [problem["msg"].removeprefix("Input should be ") for problem in problems]
    return f"it must be {' or '.join(dict.fromkeys(said))}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_FOLLOWS = (AttributeError, LookupError, TypeError, ValueError)
"""Errors that follow from wrong declarations, which have been reported by then."""


@dataclass(frozen=True)
class Gathered:
    """A mistake of a declaration that was created nevertheless.

    Args:
        error: the error that would have been raised.
        declared: declaration with the mistake; None if it is between declarations.
        frames: where it was created, outermost first, each with its line.
    """

    error: ContractError
    declared: object = field(default=None, repr=False, compare=False)
    frames: tuple[tuple[FrameType, int], ...] = field(repr=False, default=())


_GATHERING: ContextVar[list[Gathered] | None] = ContextVar("gathering", default=None)


@contextmanager
def gathering() -> Iterator[list[Gathered]]:
    """Collect mistakes instead of raising them. The caller must refuse this block's declarations if there are any."""
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
    """Refuse a declaration with a field of a wrong value, or with fields that contradict each other.

    Args:
        problems: contradictions between its fields; called only if each field by itself is right.
    """

    def all_problems() -> Iterator[ContractError]:
        wrong = list(field_problems(declared, whose, table))
        yield from wrong
        if not wrong:
            yield from problems()

    refuse(all_problems(), declared)


def wrong_among(parts: Iterable[object], table: str) -> bool:
    """Return whether parts of a table's declaration have collected mistakes: they belong to that table from now on.

    A mistake of the whole that only follows from such a part is not a mistake of its own.
    """
    gathered = _GATHERING.get() or ()
    mine = {id(part) for part in parts}  # equal ones may be another table's
    wrong = [found.error for found in gathered if found.declared is not None and id(found.declared) in mine]
    for error in wrong:
        error.table = error.table or table
    return bool(wrong)


def refuse(problems: Iterable[ContractError], declared: object = None) -> None:
    """Raise the first problem, or collect all of them.

    Raises:
        ContractError: there is one, and no `gathering` is active.
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
