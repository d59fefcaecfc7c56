"""The source of a module: its bindings and imports in order, and what names stand for across imports.

Nothing is run. The text form of Python code is equal for equivalent code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

Chain = tuple[str, ...]
"""A name and the attributes taken of it: `rates.NET.scale` is `("rates", "NET", "scale")`."""


class Import(NamedTuple):
    """One name that an import binds.

    Args:
        bound: the name; `*` for all names of a module.
        module: the module, by its absolute name.
        name: imported from the module; empty for the module itself.
        loads: module that has to run for it.
    """

    bound: str
    module: str
    name: str
    loads: str


class Names(NamedTuple):
    """Names that code needs from its module.

    Args:
        used: names it does not bind itself, with the attributes read from them.
    """

    used: frozenset[Chain]
    imports: tuple[Import, ...]
    subclasses: bool


def names_in(nodes: Iterable[ast.AST], package: str) -> Names:
    """Find the names that statements or expressions of one module use.

    Args:
        package: base of relative imports.
    """
    used, imports, subclasses = set[Chain](), list[Import](), False
    for node in nodes:
        parts = list(ast.walk(node))
        used.update(_used(node, package))
        for part in parts:
            if isinstance(part, ast.Import | ast.ImportFrom):
                imports += imports_of(part, package)
            subclasses |= isinstance(part, ast.Attribute) and part.attr == "__subclasses__"
    return Names(frozenset(used), tuple(imports), subclasses)


def _used(node: ast.AST, package: str) -> Iterator[Chain]:
    """Yield the names that a statement uses; of a function, not its own. Inner scopes are not distinguished."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _chains(node)
        return
    for part in (*node.decorator_list, node.args, *getattr(node, "type_params", ()), *_in_text(node.returns)):
        yield from _chains(part)
    outside = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
    # A name that an import binds is followed, even where it is bound in another way as well.
    imported = {import_.bound for statement in node.body for import_ in imports_within(statement, package)}
    own = (parameters(node.args) | bound_in(node.body)) - outside - imported
    yield from (chain for statement in node.body for chain in _chains(statement) if chain[0] not in own)


def _chains(node: ast.AST) -> Iterator[Chain]:
    """Yield all names that are read within a node, with their attributes."""
    if isinstance(node, ast.Name | ast.Attribute) and (chain := chain_of(node)):
        if not isinstance(node.ctx, ast.Store) or len(chain) > 1:
            yield chain
        return
    texts = _in_text(getattr(node, "annotation", None)) + _in_text(getattr(node, "returns", None))
    for child in (*ast.iter_child_nodes(node), *texts):
        yield from _chains(child)


def _in_text(annotation: ast.expr | None) -> list[ast.AST]:
    """Return an annotation with its texts parsed."""
    found: list[ast.AST] = [] if annotation is None else [annotation]
    for part in ast.walk(annotation) if annotation else ():
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            with suppress(SyntaxError):
                found.append(ast.parse(part.value, mode="eval"))
    return found


def imports_of(node: ast.Import | ast.ImportFrom, package: str) -> tuple[Import, ...]:
    """Return the names that an import statement binds."""
    if isinstance(node, ast.Import):
        return tuple(
            Import(alias.asname, alias.name, "", alias.name)
            if alias.asname
            else Import(alias.name.partition(".")[0], alias.name.partition(".")[0], "", alias.name)
            for alias in node.names
        )
    module = node.module or ""
    if node.level:
        above = package.split(".")[: max(len(package.split(".")) - node.level + 1, 0)]
        module = ".".join([*above, *([module] if module else [])])
    return tuple(Import(alias.asname or alias.name, module, alias.name, module) for alias in node.names)


def imports_within(node: ast.AST, package: str) -> list[Import]:
    """Return the names bound by imports within a statement, except in its functions and classes."""
    statements = [statement for statement in statements_in(node) if isinstance(statement, ast.Import | ast.ImportFrom)]
    return [import_ for statement in statements for import_ in imports_of(statement, package)]


def bound_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that statements bind directly: not in functions and classes, nor by an import."""
    return frozenset(name for node in nodes for name in _bound(node))


def chain_of(node: ast.expr) -> Chain:
    """Return a name with its attributes; nothing for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()


def packages(name: str) -> Iterator[str]:
    """Return the packages of a module, outermost first."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts)))


def parameters(args: ast.arguments) -> frozenset[str]:
    """Return the names of a function's parameters."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return frozenset(arg.arg for arg in every if arg is not None)


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and those within it, without functions and classes."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                yield from statements_in(child)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Lambda():
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            # Its own names end with it, but not those that `:=` binds.
            yield from (inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
            return
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


Statement = ast.stmt

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Module:
    """One module of Python code.

    Args:
        is_package: whether it can contain modules.
        bound: top-level statements that bind a name, by name, in order.
        executed: executed top-level statements, in order.
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
        """Return whether a name gets another value later, by a second binding or a star import."""
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
        """Return the base of relative imports."""
        return _package(self.name, is_package=self.is_package)

    def names(self, node: ast.AST | None = None) -> Names:
        """Return the names that a part of the module uses; by default, all of it."""
        if node not in self._names:
            self._names[node] = names_in(self.body if node is None else [node], self.package)
        return self._names[node]


@lru_cache(maxsize=1024)
def parse_module(name: str, source: str, *, is_package: bool = False) -> Module:
    """Read a module from its source.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it contains NUL.
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
    """Yield top-level statements, without those only for type checkers or for running the module as a program."""
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
    """Yield the parts of a statement that bind names."""
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
    """Return code as text that is equal for equivalent code, on every version of Python.

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
    """Return statements as text, without statements that are only a text, such as docstrings."""
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
    """Join neighbouring texts of an f-string: Python's versions split them differently."""
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
    """Meaning of a name.

    Args:
        module: the user's module; None for anything else.
        name: a definition in it; empty for the module itself. Without a module, its dotted name.
        attribute: attribute read from it; empty for all of it.
    """

    module: Module | None
    name: str
    attribute: str = ""

    def __str__(self) -> str:
        return f"{self.module.name}:{self.name}" if self.module else self.name


class Lookup:
    """Look names up, each once."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self._resolved: dict[tuple[str, Chain], list[Target]] = {}
        self._resolving: set[tuple[str, Chain]] = set()

    def resolve(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> list[Target]:
        """Return what a name, with attributes, stands for in a module; empty for builtins and unknown names.

        Args:
            imports: further imports, of the function that uses it.
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
        """Return what attributes of a module, by its absolute name, stand for."""
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
