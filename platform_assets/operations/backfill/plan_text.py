"""The text of a plan file as fields with their lines; what YAML can do and no plan needs is refused before it acts."""

from __future__ import annotations

from pathlib import Path
from warnings import catch_warnings

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from platform_assets.errors import PlatformError

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


class PlanFileError(PlatformError):
    """A plan file cannot be read, or says what no plan can say."""

    is_misspelt = True


def plan_text(path: Path) -> str:
    """What a file says, whatever it is.

    Raises:
        PlanFileError: there is none, it has no end that a plan would have, or is no text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)  # what has no size may have no end either
    except OSError as error:
        raise PlanFileError(
            f"{path} cannot be read: {error.strerror}.", "Name a plan file; `platform-assets plan new` writes one."
        ) from error
    except ValueError as error:
        raise PlanFileError(f"{str(path)!r} can be no file: {error}.", "Name a plan file.") from error
    if len(content) > _MOST_BYTES:
        raise PlanFileError(f"{path} has more than {_MOST_BYTES:,} bytes.", "Name a plan file.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PlanFileError(f"{path} is no text in UTF-8.", "Name a plan file.") from error


class _KeysAsWritten(RoundTripConstructor):
    """Leaves the values in `only` texts: to a column of text 007, 1e3 and 2017-1-1 are other keys than 7 and so on."""

    def construct_document(self, node: Node) -> object:
        for name, value in node.value if isinstance(node, MappingNode) else ():
            if name.value == "only":
                _as_texts(value)
        return super().construct_document(node)


def said_in(text: str, name: str) -> CommentedMap:
    """The fields of a plan, not looked at yet, each with its line.

    Args:
        text: YAML 1.2.
        name: of the file, for errors.

    Raises:
        PlanFileError: it is no YAML, repeats what it said elsewhere, or holds no fields.
    """
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
        raise PlanFileError(f"{name} holds no fields.", "Begin with `name:`; `platform-assets plan new` writes one.")
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
    """Aliases make gigabytes of a few lines, and a plan is read by people, line by line."""
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
            raise PlanFileError(f"{name}, line {line}: more than {_DEEPEST} levels.", "No plan has as many.")
