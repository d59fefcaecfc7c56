"""Every command line that a page or a message shows can be typed: its command and its options exist.

The other examples of pages are well-formed, and their declarations use fields that contracts have; many also run, in
the tests of their subjects.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from platform_assets import contracts
from platform_assets.cli.app import COMMANDS, build
from platform_assets.settings import project_root

ROOT = project_root()
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
MODULES = sorted((ROOT / "platform_assets").rglob("*.py"))
FENCE = re.compile(r"^ *```(sh|text)?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"(?:^|[\s`$('])platform-assets (?!package|up`)([^`\n#|>;]*)")
FIRST = sorted({name.partition(" ")[0] for name in COMMANDS})
INLINE = re.compile(rf"`((?:{'|'.join(FIRST)}) [^`]+)`")


@cache
def commands() -> TyperGroup:
    app = get_command(build())
    assert isinstance(app, TyperGroup)
    return app


def in_page(text: str) -> Iterator[str]:
    """Yield the command lines of a page, without `platform-assets`: of its blocks, and quoted in its sentences."""
    for _, block in FENCE.findall(text):
        yield from LINE.findall(re.sub(r"\s#.*", "", block.replace("\\\n", " ")))
    sentences = re.sub(r"\s*\n\s*", " ", FENCE.sub("", text))
    yield from (found.removeprefix("platform-assets ") for found in re.findall(r"`(platform-assets [^`]+)`", sentences))
    yield from INLINE.findall(sentences)


def in_module(path: Path) -> Iterator[str]:
    """Yield the command lines in a module's texts; what a text fills in stands as X."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        yield from re.findall(r"`platform-assets ([^`]+)`", text)


def mistake(line: str) -> str | None:
    """Return what cannot be typed in a command line, if anything."""
    words = re.sub(r"\"[^\"]*\"|'[^']*'", "X", line).split()
    command: Any = commands()
    while words and isinstance(command, TyperGroup) and not words[0].startswith("-"):
        names = re.split(r"[|]", words.pop(0).rstrip(".,:;"))
        if names in (["…"], ["X"], ["ID"]):
            return None
        if unknown := [name for name in names if name not in command.commands]:
            return f"{line}: no command {unknown[0]}"
        command = command.commands[names[0]]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        for option in re.findall(r"^\[?(--[a-z-]+|-[a-z]\b)", word):
            if option not in options | {"--help"}:
                return f"{line}: no option {option}"
    return None


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "changelog.md"], ids=lambda page: page.name)
def test_every_command_of_the_docs_can_be_typed(page: Path) -> None:
    assert [found for line in in_page(page.read_text(encoding="utf-8")) if (found := mistake(line))] == []


def test_every_command_of_a_message_can_be_typed() -> None:
    lines = {line: path for path in MODULES for line in in_module(path)}
    assert len(lines) > 80
    assert [f"{path.name}: {found}" for line, path in lines.items() if (found := mistake(line))] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("refresh --stage NAME", None),
        ("backfill new|explain|approve", None),
        ("late forgive FILE", "no command forgive"),
        ("undo run:RUN --reson X", "no option --reson"),
    ],
)
def test_a_mistake_is_found(line: str, wrong: str | None) -> None:
    assert (mistake(line) or "").endswith(wrong or "")
    assert bool(mistake(line)) == bool(wrong)


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a page in a language; an ellipsis in them stands for further arguments, or any text."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    left = (re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found)
    return [re.sub(r"…, |, …(?=\))", "", re.sub(r":\n\Z", ": ...", block)) for block in left]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_of_the_docs_is_well_formed(page: Path) -> None:
    for language, parsed in (("json", json.loads), ("toml", tomllib.loads), ("yaml", yaml.safe_load)):
        for block in blocks(page, language):
            assert parsed(block)
    for block in blocks(page, "python"):
        for call in (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)):
            declares = getattr(contracts, getattr(call.func, "id", ""), None)
            fields = inspect.signature(declares).parameters if declares else {}
            wrong = {word.arg for word in call.keywords if word.arg} - {*fields} if declares else set()
            assert not wrong, f"{page.name}: {ast.unparse(call.func)} has no {wrong}"
