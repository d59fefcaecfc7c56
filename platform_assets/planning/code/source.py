"""A module as its source has it, what it binds and imports in which order, and what names stand for over imports.

Nothing is run. Python code as text is the same for code that does the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from platform_assets.planning.code.names import Chain, Import, Names, bound_in, imports_within, names_in

Statement = ast.stmt

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Module:
    """One module of Python code.

    Args:
        name: absolute.
        is_package: whether modules may lie in it.
        bound: the statements at its top that bind a name, by name, in order.
        executed: its top-level statements that are executed with it, in order.
        imports: its imports, in order.
        body: all its statements.
    """

    name: str
    is_package: bool
    bound: dict[str, list[Statement]]
    executed: tuple[Statement, ...]
    imports: tuple[Import, ...]
    body: tuple[Statement, ...]
    _names: dict[ast.AST | None, Names] = field(default_factory=dict)

    @cached_property
    def has_order(self) -> bool:
        """Return whether a name gets another value later on, by a second binding or an import of all of a module."""
        sources: dict[str, set[tuple[str, str]]] = {}
        for import_ in self.imports:
            sources.setdefault(import_.bound, set()).add((import_.module, import_.name))
        return (
            "*" in sources
            or any(len(statements) > 1 for statements in self.bound.values())
            or any(len(several) > 1 or name in self.bound for name, several in sources.items())
        )

    @property
    def package(self) -> str:
        """Return what relative imports start from."""
        return _package(self.name, is_package=self.is_package)

    def names(self, node: ast.AST | None = None) -> Names:
        """Find the names that a part of the module uses; by default, all of it."""
        if node not in self._names:
            self._names[node] = names_in(self.body if node is None else [node], self.package)
        return self._names[node]


@lru_cache(maxsize=1024)
def parse_module(name: str, source: str, *, is_package: bool = False) -> Module:
    """Read a module from its source.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it has NUL in it.
    """
    body = tuple(ast.parse(source).body)
    executed = tuple(_executed(body))
    bound: dict[str, list[Statement]] = {}
    for statement in executed:
        # Opening the platform waits for this: expressions are looked through only where one of them binds a name.
        for bound_name in sorted(bound_in([statement] if ":=" in source else _binding(statement))):
            bound.setdefault(bound_name, []).append(statement)
    package = _package(name, is_package=is_package)
    imports = (import_ for statement in executed for import_ in imports_within(statement, package))
    return Module(name, is_package, bound, executed, tuple(imports), body)


def _package(name: str, *, is_package: bool) -> str:
    return name if is_package else name.rpartition(".")[0]


def _executed(body: Iterable[Statement]) -> Iterable[Statement]:
    """Give top-level statements, without what only a type checker, or who runs the module as a program, gets to see."""
    for statement in body:
        match statement:
            case ast.If(
                test=ast.Name(id="TYPE_CHECKING")
                | ast.Attribute(attr="TYPE_CHECKING")
                | ast.Compare(
                    left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
                ),
                orelse=instead,
            ):
                yield from _executed(instead)
            case _:
                yield statement


def _binding(statement: Statement) -> Sequence[ast.AST]:
    """Give the parts of a statement that bind names."""
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
        case ast.Expr():
            return ()
        case _:
            return [statement]


def canonical(node: object) -> str:
    """Code as text that is the same for code that does the same, on every version of Python.

    Without comments, formatting, docstrings, positions and empty fields, because a newer Python adds fields.
    """
    match node:
        case ast.JoinedStr(values=values):
            return f"JoinedStr(values={canonical(_joined(values))})"
        case ast.AST():
            fields = ((name, value) for name, value in ast.iter_fields(node) if name not in ("kind", "type_comment"))
            shown = ((name, _without_docstring(node, value) if name == "body" else value) for name, value in fields)
            parts = (f"{name}={canonical(value)}" for name, value in shown if value is not None and value != [])
            # The constant None, to distinguish it from a missing field.
            value = "None" if isinstance(node, ast.Constant) and node.value is None else ",".join(parts)
            return f"{type(node).__name__}({value})"
        case list():
            return f"[{','.join(map(canonical, node))}]"
        case _:
            return ascii(node)


def canonical_body(body: Iterable[ast.stmt]) -> str:
    """Statements as text, but for those that are a text alone, as docstrings are."""
    return " ".join(
        canonical(statement)
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    )


def _without_docstring(node: ast.AST, body: object) -> object:
    match node, body:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef(), [
            ast.Expr(value=ast.Constant(value=str())),
            *rest,
        ]:
            return rest or [ast.Pass()]
    return body


def _joined(values: Iterable[ast.expr]) -> list[ast.expr]:
    """Join neighbouring texts of an f-string: where a text ends is up to the version of Python."""
    parts: list[ast.expr] = []
    for value in values:
        match parts, value:
            case _, ast.Constant(value=""):
                pass
            case [*_, ast.Constant(value=str(before))], ast.Constant(value=str(after)):
                parts[-1] = ast.Constant(value=before + after)
            case _:
                parts.append(value)
    return parts


Find = Callable[[str], Module | None]
"""Returns a user's module by its absolute name; None for other modules and unknown names."""


class Target(NamedTuple):
    """What a name stands for.

    Args:
        module: of the user's own; None for anything else.
        name: a definition in it; empty for the module itself. Without a module, the dotted name of what it is.
        attribute: that is taken of it; empty for all of it.
    """

    module: Module | None
    name: str
    attribute: str = ""

    def __str__(self) -> str:
        return f"{self.module.name}:{self.name}" if self.module else self.name


class Lookup:
    """Looks names up, each once.

    Args:
        find: gives modules.
    """

    def __init__(self, find: Find) -> None:
        self.find = find
        self._resolved: dict[tuple[str, Chain], list[Target]] = {}
        self._resolving: set[tuple[str, Chain]] = set()

    def resolve(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> list[Target]:
        """Find what a name, with attributes, stands for in a module; empty for builtins and unknown names.

        Args:
            imports: more of them, of the function that it is used in.
        """
        key = (module.name, chain)
        head, *rest = chain
        if imports:
            imports = [import_ for import_ in imports if import_.bound == head]
        if not imports and key in self._resolved:
            return self._resolved[key]
        if key in self._resolving:
            return []
        self._resolving.add(key)
        targets: list[Target] = []
        for import_ in (*imports, *module.imports):
            if import_.bound == head:
                targets += self._at(import_.module, [import_.name, *rest] if import_.name else rest)
            elif import_.bound == "*" and (other := self.find(import_.module)) and other is not module:
                targets += self.resolve(other, chain)
        if head in module.bound:
            targets.append(Target(module, head, rest[0] if rest else ""))
        if not targets and module.is_package and self.find(f"{module.name}.{head}"):
            targets += self._at(f"{module.name}.{head}", rest)
        self._resolving.discard(key)
        if not imports and not self._resolving:  # within another one, it may have been cut short
            self._resolved[key] = targets
        return targets

    def _at(self, dotted: str, rest: Sequence[str]) -> list[Target]:
        """Find what attributes of a module, by its absolute name, stand for."""
        module = self.find(dotted)
        if module is None:
            return self._at(f"{dotted}.{rest[0]}", rest[1:]) if rest else [Target(None, dotted)]
        if not rest:
            return [Target(module, "")]
        targets = list(self.resolve(module, tuple(rest)))
        if module.is_package and self.find(f"{dotted}.{rest[0]}"):
            targets += self._at(f"{dotted}.{rest[0]}", rest[1:])
        if targets and module.has_order:  # which decides what the name stands for
            targets.append(Target(module, rest[0]))
        return targets or [Target(module, "", rest[0])]
