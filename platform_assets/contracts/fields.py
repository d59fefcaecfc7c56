"""Whether a declaration's fields hold what their annotations say: types, choices and ranges, checked in one place."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isclass, isroutine
from typing import Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from platform_assets.contracts.errors import ContractError

Days = Annotated[int, Field(ge=0, le=36_500)]
"""A number of days. A hundred years are more than anybody means, and dates can still be counted with them."""

Percent = Annotated[int, Field(ge=0, le=100)]
"""A share of something, in whole percents."""

_SHOWN = 80
_ADAPTERS: dict[type, dict[str, TypeAdapter[Any]]] = {}


def field_problems(declared: object, whose: str, table: str | None = None) -> Iterator[ContractError]:
    """Every field of another type than its annotation says, or outside its range; nothing is converted.

    Args:
        declared: a dataclass whose annotations say what is allowed.
        whose: what it is, to begin the messages with.
        table: that it is about, where it knows.

    Returns:
        Errors that name the field, its value and what is allowed.
    """
    for name, allowed in _adapters(type(declared)).items():
        try:
            allowed.validate_python(getattr(declared, name), strict=True)
        except ValidationError as error:
            where, problems = _first_place(error)
            value = problems[0]["input"]
            problem = ContractError(
                f"{whose} has {name}{where}={_shown(value)}.",
                f"Correct `{name}`: {_allowed(name, value, problems)}.",
                table=table,
                field=name,
            )
            problem.__cause__ = error
            yield problem


def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    """What checks each field of a dataclass; made once, which takes longer than to check."""
    if kind not in _ADAPTERS:
        hints = get_type_hints(kind, include_extras=True)
        _ADAPTERS[kind] = {name: TypeAdapter(hint) for name, hint in hints.items()}
    return _ADAPTERS[kind]


def _first_place(error: ValidationError) -> tuple[str, list[ErrorDetails]]:
    """The first part of a field that is wrong, and all that could be there instead."""
    by_place: dict[str, list[ErrorDetails]] = {}
    for problem in error.errors():
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
