"""Tables in SQL: the file of a query, its mistakes, and the sources of its columns.

sqlglot reads a query for this. It is imported late, since it takes a second, and it decides neither what runs nor the
code version: `planning.code.statement` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY, AsOf, Catalogue, Contract, ContractError, Input, Span
from platform_assets.errors import did_you_mean
from platform_assets.planning.code.statement import Statement, UnreadableStatementError, parse_statement, place_in
from platform_assets.planning.windows import EVERY_ROW, SOURCE_DAY, VALID, WINDOW_DAYS, window_text

if TYPE_CHECKING:
    from sqlglot import exp

_CLOCK = "reads the clock"
_CAUSES = {
    _CLOCK: "curdate current_date current_time current_timestamp current_timezone localtimestamp now",
    "draws random numbers": "rand randn random randstr uniform uuid shuffle",
    "depends on where rows lie": "monotonically_increasing_id spark_partition_id input_file_name input_file_block_start"
    " input_file_block_length",
    "depends on who runs it": "current_user user session_user current_database current_schema current_catalog",
    "calls Java, which may return anything": "java_method reflect try_reflect",
}
_CHANGING = {name: why for why, names in _CAUSES.items() for name in names.split()}
_MOVING = re.compile(r"""[rR]?(['"])\s*(now|today|tomorrow|yesterday)\b[^'"]*\1""", re.IGNORECASE)
"""Texts that Spark takes for a moment of the clock where it makes a date or timestamp of them."""
_BEFORE_MOMENT = re.compile(r"(?<![a-z])(date|timestamp(_[ln]tz)?)\W*$")
_AFTER_MOMENT = re.compile(r"(as|: :) (date|timestamp(_[ln]tz)?)\b")


@dataclass(frozen=True)
class Query:
    """The query of one table, and its file."""

    file: Path
    statement: Statement

    def place(self, offset: int) -> str:
        """Return file, line and column of an offset in the file."""
        return f"{self.file}, {place_in(self.statement.source, offset)}"


def read_query(file: Path, contract: Contract) -> Query:
    """Read the query of a table.

    Raises:
        ContractError: it is not one statement in UTF-8.
    """
    try:
        source = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _error(contract, f"{file} cannot be read: {error}", str(file), "Save it as UTF-8.") from error
    try:
        return Query(file, parse_statement(source))
    except UnreadableStatementError as error:
        place = f"{file}, {place_in(source, error.offset)}"
        todo = "Write one SELECT, with constants in it; a semicolon may end it."
        raise _error(contract, f"The query of {contract.name} {error.what} in {place}", place, todo) from error


def query_mistakes(query: Query, contract: Contract) -> Iterator[ContractError]:
    """Yield the mistakes of a query that can be found without Spark."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = _parsed(query)
    except (SqlglotError, RecursionError) as error:
        errors = getattr(error, "errors", None) or [{}]
        place, said = str(query.file), errors[0].get("description") or "it is nested too deeply"
        if line := errors[0].get("line"):
            column = max(errors[0]["col"] - len(errors[0].get("highlight") or "") + 1, 1)
            place = f"{query.file}, line {line}, column {column}"
        what = f"The query of {contract.name} cannot be read by sqlglot in {place}: {said.partition(' <Token')[0]}"
        yield _error(contract, what, place, "Correct it. If Spark reads it, write it in another way or in Python.")
        return
    if not isinstance(tree, exp.Query) or tree.find(exp.DDL, exp.DML, exp.Command, exp.Into):
        place = query.place(query.statement.tokens[0].start)
        what = f"The query of {contract.name} in {place} is no SELECT"
        yield _error(contract, what, place, "Write what the table's rows are: the platform creates and writes it.")
        return
    if refused := list(_refused(query, contract)):
        yield from refused
        return
    yield from _undeclared(query, contract, tree)
    yield from _changing(query, contract)


def query_columns(query: Query, contract: Contract, catalogue: Catalogue) -> Mapping[str, tuple[str, ...]]:
    """Return the columns that each column of a table in SQL is computed from, as `<layer>.<table>.<column>`.

    Empty if sqlglot cannot tell.
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.lineage import lineage

    tables = {f"input {name}": (read.table, more) for name, (read, more) in _readable(contract).items()}
    schema = {
        name: dict.fromkeys((*catalogue[table].column_names, DAY, *more), "string")
        for name, (table, more) in tables.items()
    }
    found: dict[str, tuple[str, ...]] = {}
    try:
        tree = _parsed(query)
        for table in _tables(tree):  # a CTE may have the name of the input that it reads
            if not table.alias:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            table.set("this", exp.to_identifier(f"input {table.name.lower()}", quoted=True))
        for column, node in lineage(None, tree, schema, dialect="spark").items():
            ends = (end for end in node.walk() if isinstance(end.source, exp.Table) and not end.downstream)
            read = {
                (tables[end.source.name][0], end.name.rpartition(".")[2]) for end in ends if end.source.name in tables
            }
            there = (f"{table}.{name}" for table, name in read if name in catalogue[table].column_names)
            found[column.lower()] = tuple(sorted(there))
    except (SqlglotError, RecursionError):
        return {}
    return found


def relations(read: Input) -> dict[str, tuple[str, ...]]:
    """Return the relations that a query can read of an input, by name, with the columns added to the input's own."""
    match read.window:
        case Span(0, 0):
            return {read.parameter: ()}
        case AsOf():
            return {read.parameter: VALID}
        case _:
            name = read.parameter
            return {name: (SOURCE_DAY,), f"{name}{EVERY_ROW}": (), f"{name}{WINDOW_DAYS}": (SOURCE_DAY,)}


def _readable(contract: Contract) -> dict[str, tuple[Input, tuple[str, ...]]]:
    """Return all relations that a query can read, by name, with the input and the added columns."""
    return {name: (read, more) for read in contract.transform_inputs for name, more in relations(read).items()}


def _parsed(query: Query) -> exp.Expr:
    from sqlglot import parse_one

    return parse_one(query.statement.source, dialect="spark")


def _tables(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables that a query reads, without its common table expressions."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    sources = (source for scope in traverse_scope(tree) for source in scope.sources.values())
    tables = {id(source): source for source in sources if isinstance(source, exp.Table) and source.name}
    return sorted(tables.values(), key=_start)


def _start(node: exp.Expr) -> int:  # of the name of a table or column
    return int(node.this.meta.get("start", 0))


def _refused(query: Query, contract: Contract) -> Iterator[ContractError]:
    """Yield the clauses that no query may have: a program of the machine, and a recursive query."""
    tokens = query.statement.tokens
    for before, token in pairwise(tokens):
        words, place = (before.text.upper(), token.text.upper()), query.place(before.start)
        if words == ("WITH", "RECURSIVE"):
            todo = "Compute the table in Python, or write its steps out as common table expressions."
            yield _error(contract, f"The query of {contract.name} is recursive in {place}", place, todo)
        # A function of this name is called within brackets, and nothing is behind USING but a join's columns.
        if words[0] == "USING" and token.kind == "text":
            what = f"The query of {contract.name} runs a program of the machine, by TRANSFORM … USING, in {place}"
            yield _error(contract, what, place, "Compute the table in Python.")


def _undeclared(query: Query, contract: Contract, tree: exp.Expr) -> Iterator[ContractError]:
    known = _readable(contract)
    for table in _tables(tree):
        name, place = table.name.lower(), query.place(_start(table))
        full = ".".join(part for part in (table.catalog, table.db, table.name) if part)
        if full == table.name and name in known:
            continue
        what, base = f"The query of {contract.name} reads {full} in {place}", name
        for ending in (EVERY_ROW, WINDOW_DAYS):
            base = base.removesuffix(ending)
        if full == table.name and base in known:
            read = known[base][0]
            what = f"{what}, but its contract reads {read.table} through {window_text(read.window)}"
            yield _error(contract, what, place, f'Declare a window, as Input("{read.table}", span(6)); or read {base}.')
        else:
            todo = f"{did_you_mean(name, known)}Declare it in `inputs`, or read {', '.join(known)}."
            yield _error(contract, f"{what}, which is no input of its contract", place, todo)
    names = [name for read in contract.transform_inputs for name in relations(read)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        what = f"Two inputs of {contract.name} give its query {twice}"
        yield _error(contract, what, str(query.file), "Compute the table in Python, or rename one of the inputs.")


def _changing(query: Query, contract: Contract) -> Iterator[ContractError]:
    tokens = query.statement.tokens
    for number, token in enumerate(tokens):
        name, after = token.text.lower(), "".join(one.text for one in tokens[number + 1 : number + 3])
        before = tokens[number - 1].text.upper() if number else ""
        is_called = after.startswith("(") or (name.startswith(("current_", "local")) and after[:1] not in (".", ":"))
        why = _CHANGING.get(name) or (_CLOCK if (name, after) == ("unix_timestamp", "()") else None)
        is_call = why and is_called and token.kind == "word" and before not in (".", ":", "AS")
        if is_call or _is_moment(query.statement, number):
            place = query.place(token.start)
            why = why or _CLOCK
            what = f"The query of {contract.name} would not give the same result again: {name} in {place} {why}"
            todo = "Leave it out: what it gives belongs into the data, where it is the same every time."
            yield _error(contract, what, place, todo)


def _is_moment(statement: Statement, number: int) -> bool:
    """Return whether a text next to a type, function or column of moments names one by the clock."""
    tokens = statement.tokens
    if not _MOVING.fullmatch(tokens[number].text):
        return False
    before, after = (
        " ".join(token.text.lower() for token in tokens[max(first, 0) : last])
        for first, last in ((number - 3, number), (number + 1, number + 4))
    )
    return bool(_BEFORE_MOMENT.search(before) or _AFTER_MOMENT.match(after))


def _error(contract: Contract, what: str, place: str, todo: str) -> ContractError:
    return ContractError(f"{what}.", todo, table=contract.name, place=place)
