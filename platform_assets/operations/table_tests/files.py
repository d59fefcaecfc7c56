"""Read tests of tables from files: delivered rows and expected rows, each with its line."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from platform_assets.contracts import DAY, Catalogue, Contract
from platform_assets.errors import PlatformError, did_you_mean

ENDING = ".test.yaml"
"""What follows the table in the name of its file of tests, as in `gold.sales.test.yaml`."""
RULE = "rule"
"""Of rows in quarantine: the names of the rules that they break."""
_PARTS = ("given", "expect", "quarantined", "held")
_FORMS = "Write a list of rows, as - {item: tea, amount: 2.50}, or a text with a header and lines of CSV."


class TableTestError(PlatformError):
    """A file of tests has a mistake."""


class Row(NamedTuple):
    """A row of a test: texts by column, None for null, and its place in the file."""

    values: Mapping[str, str | None]
    place: str


Rows = tuple[Row, ...]
Given = Mapping[str, Mapping[date, Rows | Path]]
"""Of raw tables: rows or a file to deliver, by date of arrival."""


@dataclass(frozen=True)
class TableTest:
    """A test of a table.

    Args:
        expect: rows of each compared day.
        quarantined: rows of the table's quarantine, by day; None if they are not compared.
        held: check that must hold a day, by day; empty for any check.
    """

    table: str
    name: str
    file: Path
    line: int
    given: Given
    expect: Mapping[date, Rows]
    quarantined: Mapping[date, Rows] | None
    held: Mapping[date, str]

    @property
    def place(self) -> str:
        """Return its file and line."""
        return f"{self.file}, line {self.line}"

    @property
    def days(self) -> frozenset[date]:
        """Return the compared days of the table."""
        return frozenset({*self.expect, *self.held, *(self.quarantined or ())})


def test_files(packages: Collection[str]) -> Iterator[Path]:
    """Yield the files of tests of some domains, in the order of their names."""
    for package in packages:
        yield from sorted(Path(str(import_module(package).__file__)).parent.rglob(f"*{ENDING}"))


def tests_in(file: Path, catalogue: Catalogue) -> list[TableTest]:
    """Return the tests in a file.

    Raises:
        TableTestError: a mistake; the message names file and line.
    """
    table = file.name.removesuffix(ENDING)
    if table not in catalogue.names:
        todo = f"{did_you_mean(table, catalogue.names)}Name the file <layer>.<table>{ENDING}."
        _refuse(file, 1, f"its name says that it tests {table!r}, which is no table", todo)
    parts = _pairs(_root(file), file)
    shared = next((node for key, node in parts if key.value == "given"), None)
    return [_test(catalogue, catalogue[table], file, key, node, shared) for key, node in parts if key.value != "given"]


def _test(
    catalogue: Catalogue, contract: Contract, file: Path, name: Node, node: Node, shared: Node | None
) -> TableTest:
    parts = {key.value: part for key, part in _pairs(node, file, _PARTS, "part of a test")}
    given, outcome = parts.get("given", shared), parts.get("quarantined")
    if given is None or not parts.keys() & {"expect", "quarantined", "held"}:
        _refuse(file, _line(name), f"the test {name.value!r} lacks rows", "Write `given` and `expect`.")
    if outcome and contract.layer != "silver":
        _refuse(file, _line(outcome), f"{contract.name} quarantines nothing", "Test that with its silver table.")
    held = [(key, value.value) for key, value in _pairs(parts["held"], file)] if "held" in parts else []
    raw = (column.name for read in contract.inputs for column in catalogue[read.table].columns)
    test = TableTest(
        contract.name,
        str(name.value),
        file,
        _line(name),
        _given(given, file, catalogue),
        _by_day(parts.get("expect"), file, (DAY, *(column.name for column in contract.columns))),
        _by_day(outcome, file, (DAY, *raw, RULE)) if outcome else None,
        {_day(key, file): str(check) for key, check in held},
    )
    if not test.days and (test.quarantined is None or not any(test.given.values())):
        todo = "Write days in `expect`; one without rows is `2024-03-01: []`."
        _refuse(file, test.line, f"the test {test.name!r} compares no day", todo)
    return test


def _given(node: Node, file: Path, catalogue: Catalogue) -> Given:
    """Return the deliveries of a test; a name stands for the mapping in another file."""
    if isinstance(node, ScalarNode):
        file = _beside(node, file)
        node = _root(file)
    raw = [contract.name for contract in catalogue if contract.source]
    return {
        key.value: {
            _day(day, file): _beside(rows, file)
            if isinstance(rows, ScalarNode) and "\n" not in rows.value
            else _rows(rows, file, [column.name for column in catalogue[key.value].columns])
            for day, rows in _pairs(days, file)
        }
        for key, days in _pairs(node, file, raw, "raw table")
    }


def _beside(node: Node, file: Path) -> Path:
    path = file.parent / str(node.value)
    if not path.is_file():
        _refuse(file, _line(node), f"there is no file {path}", f"Name a file relative to this one. {_FORMS}")
    return path


def _by_day(node: Node | None, file: Path, known: Collection[str]) -> dict[date, Rows]:
    return {_day(key, file): _rows(rows, file, known) for key, rows in _pairs(node, file)} if node else {}


def _rows(node: Node, file: Path, known: Collection[str]) -> Rows:
    if isinstance(node, SequenceNode):
        return tuple(
            Row(
                {key.value: _text(value, file) for key, value in _pairs(row, file, known, "column here")},
                f"line {_line(row)}",
            )
            for row in node.value
        )
    if not isinstance(node, ScalarNode) or "\n" not in node.value:
        _refuse(file, _line(node), "here are no rows", _FORMS)
    # Blanks around values align them, and nothing between commas is null.
    lines = [[cell.strip() for cell in cells] for cells in csv.reader(node.value.splitlines(), skipinitialspace=True)]
    header = lines[0]
    _refuse_unknown(header, file, _line(node) + 1, known, "column here")
    for number, cells in enumerate(lines, _line(node) + 1):
        if len(cells) != len(header):
            what = f"{len(cells)} values, and {len(header)} columns"
            _refuse(file, number, what, "Write as many values as the header has.")
    return tuple(
        Row({name: cell or None for name, cell in zip(header, cells, strict=True)}, f"line {number}")
        for number, cells in enumerate(lines[1:], _line(node) + 2)
    )


def _text(node: Node, file: Path) -> str | None:
    if not isinstance(node, ScalarNode):
        _refuse(file, _line(node), "a value is no text or number", "Write one value for each column.")
    return None if str(node.tag).endswith(":null") else str(node.value)


def _day(node: Node, file: Path) -> date:
    try:
        return date.fromisoformat(node.value)
    except ValueError:
        _refuse(file, _line(node), f"{node.value!r} is no day", "Write it as 2024-03-01.")


def _pairs(node: Node, file: Path, known: Collection[str] | None = None, noun: str = "") -> list[tuple[Node, Node]]:
    if not isinstance(node, MappingNode) or not all(isinstance(key, ScalarNode) for key, _ in node.value):
        _refuse(file, _line(node), "here are no names with values", "Write lines as `name: value`.")
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            _refuse(file, _line(key), f"{key.value!r} is here twice", "Write each name once.")
        seen.add(key.value)
        if known is not None:
            _refuse_unknown([key.value], file, _line(key), known, noun)
    return list(node.value)


def _refuse_unknown(names: Collection[str], file: Path, line: int, known: Collection[str], noun: str) -> None:
    for name in names:
        if name not in known:
            todo = f"{did_you_mean(name, known)}Write one of {', '.join(known)}."
            _refuse(file, line, f"{name!r} is no {noun}", todo)


def _root(file: Path) -> Node:
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(file.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _refuse(file, mark.line + 1 if mark else 1, str(error.problem or error), "Correct the YAML there.")
    except (YAMLError, UnicodeDecodeError, OSError) as error:
        _refuse(file, 1, f"it cannot be read: {error}", "Write it as YAML in UTF-8.")
    if node is None:
        _refuse(file, 1, "it is empty", "Write a test: its name, and below it `given` and `expect`.")
    return node


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse(file: Path, line: int, what: str, todo: str) -> NoReturn:
    raise TableTestError(f"{file}, line {line}: {what}.", todo)
