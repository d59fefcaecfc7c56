"""Plan files: read so that every mistake names its line and field, and written for review."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any, get_args
from warnings import catch_warnings

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.planning.backfill.plan_file import WRITTEN_AS, MisplacedError, PlanFile

_MOST_BYTES = 1 << 20
_DEEPEST = 20
_NO_TEXTS = {f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp")}
_UNREADABLE = (
    YAMLError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What the library raises of odd texts: not only its own errors."""
_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_.,()'-]*( [A-Za-z0-9_.,()'-]+)*")
SCHEMA = "plan.schema.json"
"""The file beside a new plan that says what plans may hold."""
_ENDINGS = (".yaml", ".yml")
_NEVER_BLANK = {
    "only": ("compute all rows", "columns and values"),
    "code": ("compute with the code that is here", "tables and versions"),
}
"""Fields that must not be empty by accident, each with the effect of leaving it out, and its content."""


class PlanFileError(PlatformError):
    """A plan file cannot be read, or has impossible content."""

    is_misspelt = True


def plan_text(path: Path) -> str:
    """Return the text of a file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)  # what has no size may have no end either
        if len(content) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes")
        return content.decode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise PlanFileError(
            f"{path} cannot be read: {why}.", "Name a plan file; `platform-assets backfill new` writes one."
        ) from error


class _KeysAsWritten(RoundTripConstructor):
    """Keep the values in `only` as text: in a text column 007, 1e3 and 2017-1-1 are other keys than 7 and so on."""

    def construct_document(self, node: Node) -> object:
        for name, value in node.value if isinstance(node, MappingNode) else ():
            if name.value == "only":
                _as_texts(value)
        return super().construct_document(node)


def said_in(text: str, name: str) -> CommentedMap:
    """Return the fields of a plan, unchecked, each with its line."""
    try:
        _refuse_what_grows(text, name)
        yaml = YAML(typ="rt")
        yaml.Constructor = _KeysAsWritten
        with catch_warnings(category=ReusedAnchorWarning, action="ignore"):  # nothing refers to them
            said = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise PlanFileError(f"{where}: {error.problem or error}.", "Correct the YAML there.") from error
    except _UNREADABLE as error:
        raise PlanFileError(f"{name} is no YAML: {error}.", "Correct it.") from error
    if not isinstance(said, CommentedMap):
        raise PlanFileError(
            f"{name} holds no fields.", "Begin with `name:`; `platform-assets backfill new` writes one."
        )
    return said


def _as_texts(node: Node) -> None:
    match node:
        case ScalarNode(style=None) if node.tag in _NO_TEXTS:
            node.tag = "tag:yaml.org,2002:str"
        case MappingNode():
            for pair in node.value:
                for part in pair:
                    _as_texts(part)
        case SequenceNode():
            for part in node.value:
                _as_texts(part)


def _refuse_what_grows(text: str, name: str) -> None:
    """Refuse aliases, which expand a few lines to gigabytes, and types: people read a plan line by line."""
    depth = 0
    for event in YAML(typ="rt").parse(text):
        depth += isinstance(event, CollectionStartEvent)
        depth -= isinstance(event, CollectionEndEvent)
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            raise PlanFileError(f"{name}, line {line}: *{event.anchor} repeats what stands elsewhere.", "Write it out.")
        if tag := getattr(event, "tag", None):
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            raise PlanFileError(f"{name}, line {line}: {shown} gives a value a type.", "Write the value alone.")
        if depth > _DEEPEST:
            raise PlanFileError(f"{name}, line {line}: more than {_DEEPEST} levels.", "Write fewer levels.")


def plan_in(folder: Path, name: str) -> Path:
    """Return the plan file in the folder of plans by its name; files elsewhere have none."""
    within = folder.resolve()
    files = {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if file.suffix in _ENDINGS and file.is_file() and file.resolve().is_relative_to(within)
    }
    if whole := files.get(name):
        return whole
    found = [files[name + ending] for ending in _ENDINGS if name + ending in files]
    if len(found) > 1:
        raise PlanFileError(
            f"There are two plans {name!r} in {folder}: {' and '.join(file.name for file in found)}.",
            "Name one with its ending, or remove the other.",
        )
    if found:
        return found[0]
    known = f"There are {', '.join(files)}." if files else "`platform-assets backfill new` writes one there."
    raise PlanFileError(f"There is no plan {name!r} in {folder}.", f"{did_you_mean(name, files)}{known}")


class PlacedError(PlatformError):
    """An error about a field of a plan.

    Args:
        field: its place in the file; empty if the error is about no field.
    """

    field: tuple[int | str, ...] = ()

    def within(self, text: str, name: str) -> PlatformError:
        """Return the error with the line of the field."""
        if not self.field:
            return self
        first, *more = self.lines
        return PlatformError(f"{name}, line {_line(said_in(text, name), self.field)}: {first}", self.todo, more)


class PlanFieldError(PlanFileError):
    """A field of a plan has a value that is impossible on this platform."""

    def __init__(self, what: str, todo: str, field: tuple[int | str, ...]) -> None:
        super().__init__(f"{'.'.join(map(str, field))}: {what}", todo)
        self.field = field

    def within(self, text: str, name: str) -> PlanFileError:
        """Return the error with the line of the field."""
        return PlanFileError(f"{name}, line {_line(said_in(text, name), self.field)}, {self.what}", self.todo)


@contextmanager
def plan_at(path: Path) -> Iterator[PlanFile]:
    """Yield the plan in a file. Errors about its fields that are raised in this block get the line."""
    text = plan_text(path)
    try:
        yield parse_plan(text, str(path))
    except (PlanFieldError, PlacedError) as error:
        raise error.within(text, str(path)) from error


def line_of(path: Path, field: tuple[int | str, ...]) -> int:
    """Return the line of a field, or of its parent, in a readable plan file."""
    return _line(said_in(plan_text(path), str(path)), field)


def read_plan(path: Path) -> PlanFile:
    """Return the plan in a file."""
    return parse_plan(plan_text(path), str(path))


def parse_plan(text: str, name: str) -> PlanFile:
    """Return the plan in a text."""
    said = said_in(text, name)
    for field, (means, holds) in _NEVER_BLANK.items():
        if said.get(field, said) is None:
            raise PlanFieldError(
                f"it is left blank, which would {means}.", f"Give {holds}, or leave it out.", (field,)
            ).within(text, name)
    try:
        return PlanFile.model_validate_json(json.dumps(said, default=_plain), strict=True)
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise PlanFileError(
                f"{name} holds what no plan can say: {error}.", "Write texts, numbers and days."
            ) from error
        first, *more = (f"{name}, line {line}, {what}" for line, what in sorted(_mistakes(error, said)))
        raise PlanFileError(
            first,
            "Correct the file; `platform-assets backfill new` writes one in which every field is explained.",
            more,
        ) from error


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of plan files, with which editors complete and check them."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **PlanFile.model_json_schema()}


def new_plan(file: PlanFile, place: Path) -> None:
    """Write a plan for review, and next to it the schema for editors."""
    schema = place.with_name(SCHEMA)
    if place == schema:
        raise PlanFileError(f"{place} is where the schema of plans lies.", "Choose another name.")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as opened:
            opened.write(f"# yaml-language-server: $schema={SCHEMA}\n{written(file)}\n")
    except FileExistsError as error:
        raise PlanFileError(f"{place} is there already.", "Choose another name, or edit that file.") from error
    schema.write_text(json.dumps(plan_schema(), indent=2) + "\n", encoding="utf-8")


def written(file: PlanFile) -> str:
    """Return a plan as YAML, with the meaning above each field, and unset fields as comments."""
    yaml = YAML()
    yaml.width = 100
    lines = ["# A backfill as reviewed code. `platform-assets backfill explain FILE` shows what it would do.", ""]
    said = file.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    fields: type[BaseModel] = PlanFile
    defaults = fields.model_construct().model_dump(mode="json", exclude_none=True)
    for name, field in PlanFile.model_fields.items():
        lines += _explained(field)
        if name in said:
            out = StringIO()
            yaml.dump({name: _shown(said[name])}, out)
            lines += out.getvalue().rstrip().splitlines()
        else:
            lines.append(f"# {name}: {json.dumps(defaults.get(name))}")
        lines.append("")
    return "\n".join(lines)


def _explained(field: FieldInfo) -> Iterator[str]:
    """Yield the meaning of a field and of its parts, as comments."""
    types = (field.annotation, *get_args(field.annotation))
    part = next((one for one in types if isinstance(one, type) and issubclass(one, BaseModel)), None)
    yield f"# {field.description or (part.__doc__ if part else '')}"
    for name, one in part.model_fields.items() if part else ():
        yield f"#   {name}: {one.description}"


def _shown(value: Any) -> Any:
    """Return a value as a person would write it; text is in quotes unless it is plain words."""
    match value:
        case str() if not _WORDS.fullmatch(value):
            return DoubleQuotedScalarString(value)
        case list():
            return CommentedSeq([_shown(part) for part in value])
        case dict():
            return CommentedMap({name: _shown(part) for name, part in value.items()})
        case _:
            return value


def _plain(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{value!r} is no text, number or day")


def _mistakes(error: ValidationError, said: CommentedMap) -> Iterator[tuple[int, str]]:
    """Yield the mistakes, each with its line."""
    for wrong in error.errors(include_url=False):
        cause = wrong.get("ctx", {}).get("error")
        loc = (*wrong["loc"], *(cause.field if isinstance(cause, MisplacedError) else ()))
        field = ".".join(map(str, loc)) or "the plan"
        what = wrong["msg"].removeprefix("Value error, ")
        if wrong["type"] == "extra_forbidden":
            what = (
                f"there is no such field. {did_you_mean(str(wrong['loc'][-1]), _fields_beside(wrong['loc']))}".strip()
            )
        elif example := WRITTEN_AS.get(str(wrong.get("ctx", {}).get("pattern", ""))):
            what = f"{wrong['input']!r} is not written as it has to be, such as {example}."
        else:
            what = f"{what}."
        yield _line(said, loc), f"{field}: {what}"


def _line(said: Any, loc: tuple[int | str, ...]) -> int:
    """Return the line, from 1, of the innermost part of a place that the file contains."""
    line = 0
    for part in loc:
        if isinstance(said, CommentedMap) and part in (said.lc.data or ()):  # which lacks what was merged
            line = said.lc.key(part)[0]
        elif isinstance(said, CommentedSeq) and isinstance(part, int) and part < len(said):
            line = said.lc.item(part)[0]
        else:
            break
        said = said[part]
    return int(line) + 1


def _fields_beside(loc: tuple[int | str, ...]) -> tuple[str, ...]:
    schema: Mapping[str, Any] = PlanFile.model_json_schema()
    parts: Mapping[str, Any] = schema
    for part in loc[:-1]:
        found = parts.get("properties", {}).get(part, {}) if isinstance(part, str) else parts
        found = next((one for one in found.get("anyOf", [found]) if one.get("type") != "null"), found)
        found = found.get("items", found)
        parts = schema["$defs"].get(str(found.get("$ref", "")).rpartition("/")[2], {})
    return tuple(parts.get("properties", {}))
