"""Plan files on disk: read so that every mistake names its line and field, and written to be reviewed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.planning.backfill.plan_file import PlanFile

_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_.,()'-]*( [A-Za-z0-9_.,()'-]+)*")
SCHEMA = "plan.schema.json"
"""The file beside a new plan that says what plans may hold."""
_MOST_BYTES = 1 << 20


class PlanFileError(PlatformError):
    """A plan file cannot be read, or says what no plan can say."""

    is_misspelt = True


def read_plan(path: Path) -> PlanFile:
    """The plan in a file.

    Raises:
        PlanFileError: there is none, it is no YAML, or fields of it are wrong: all of them, each with its line.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise PlanFileError(f"{path} has more than {_MOST_BYTES:,} bytes.", "Name a plan file.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanFileError(
            f"{path} cannot be read: {error.strerror}.", "Name a plan file; `platform-assets plan new` writes one."
        ) from error
    except UnicodeDecodeError as error:
        raise PlanFileError(f"{path} is no text in UTF-8.", "Name a plan file.") from error
    return parse_plan(text, str(path))


def parse_plan(text: str, name: str) -> PlanFile:
    """The plan in a text.

    Args:
        text: YAML 1.2.
        name: of the file, for errors.

    Raises:
        PlanFileError: as for `read_plan`.
    """
    try:
        said = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise PlanFileError(f"{where}: {error.problem or error}.", "Correct the YAML there.") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise PlanFileError(f"{name} is no YAML: {error}.", "Correct it.") from error
    if not isinstance(said, CommentedMap):
        raise PlanFileError(f"{name} holds no fields.", "Begin with `name:`; `platform-assets plan new` writes one.")
    try:
        return PlanFile.model_validate_json(json.dumps(said, default=_plain), strict=True)
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise PlanFileError(
                f"{name} holds what no plan can say: {error}.", "Write texts, numbers and days."
            ) from error
        first, *more = (f"{name}, line {line}, {what}" for line, what in sorted(_mistakes(error, said)))
        raise PlanFileError(
            first, "Correct the file; `platform-assets plan new` writes one in which every field is explained.", more
        ) from error


def plan_schema() -> dict[str, Any]:
    """JSON Schema of plan files, by which editors complete and check them."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **PlanFile.model_json_schema()}


def new_plan(file: PlanFile, place: Path) -> None:
    """Write a plan to be reviewed, and beside it the schema by which editors complete and check it.

    Raises:
        PlanFileError: there is something in its place.
    """
    schema = place.with_name(SCHEMA)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as opened:
            opened.write(f"# yaml-language-server: $schema={SCHEMA}\n{written(file)}\n")
    except FileExistsError as error:
        raise PlanFileError(f"{place} is there already.", "Choose another name, or edit that file.") from error
    schema.write_text(json.dumps(plan_schema(), indent=2) + "\n", encoding="utf-8")


def written(file: PlanFile) -> str:
    """A plan as YAML, with what every field that it sets means above it, and the others as comments to fill in."""
    yaml = YAML()
    yaml.width = 100
    lines = ["# A backfill as reviewed code. `platform-assets plan explain FILE` shows what it comes to.", ""]
    said = file.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    for name, field in PlanFile.model_fields.items():
        lines += [f"# {field.description}"] if field.description else []
        if name in said:
            out = StringIO()
            yaml.dump({name: _shown(said[name])}, out)
            lines += out.getvalue().rstrip().splitlines()
        else:
            default = json.dumps(_defaults().get(name))
            lines.append(f"# {name}: {default}")
        lines.append("")
    return "\n".join(lines)


def _defaults() -> dict[str, Any]:
    bare = PlanFile.model_validate(
        {"name": "a", "reason": "a", "owner": "a", "tables": ["gold.a"], "days": {"stale": True}}
    )
    return bare.model_dump(mode="json", exclude_none=True)


def _shown(value: Any) -> Any:
    """A value as a person would write it; text is in quotes unless it is plain words."""
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
    """What is wrong, each with its line."""
    for wrong in error.errors(include_url=False):
        field = ".".join(map(str, wrong["loc"])) or "the plan"
        what = wrong["msg"].removeprefix("Value error, ")
        if wrong["type"] == "extra_forbidden":
            what = (
                f"there is no such field. {did_you_mean(str(wrong['loc'][-1]), _fields_beside(wrong['loc']))}".strip()
            )
        else:
            what = f"{what}."
        yield _line(said, wrong["loc"]), f"{field}: {what}"


def _line(said: Any, loc: tuple[int | str, ...]) -> int:
    """Of the innermost part of a place that the file has, from 1."""
    line = 0
    for part in loc:
        if isinstance(said, CommentedMap) and part in said:
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
