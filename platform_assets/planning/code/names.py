"""The names that Python binds, imports and uses, by the scopes that Python itself has; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

Chain = tuple[str, ...]
"""A name and the attributes taken of it: `rates.NET.scale` is `("rates", "NET", "scale")`."""


class Import(NamedTuple):
    """One name that an import binds.

    Args:
        bound: the name; `*` for all that a module has.
        module: the module, by its absolute name.
        name: imported from the module; empty for the module itself.
        loads: the module that has to run for it.
    """

    bound: str
    module: str
    name: str
    loads: str


class Names(NamedTuple):
    """What some code needs of the module it stands in.

    Args:
        used: names it does not bind itself, with the attributes taken of them.
        imports: that it holds itself, those within functions included.
        subclasses: whether it asks a class for its subclasses.
    """

    used: frozenset[Chain]
    imports: tuple[Import, ...]
    subclasses: bool


def names_in(nodes: Iterable[ast.AST], package: str) -> Names:
    """Find the names that statements or expressions of one module use.

    Args:
        package: that relative imports in them start from.
    """
    visitor = _Names(package)
    for node in nodes:
        visitor.visit(node)
    return Names(frozenset(visitor.used), tuple(visitor.imports), visitor.subclasses)


def imports_of(node: ast.Import | ast.ImportFrom, package: str) -> tuple[Import, ...]:
    """List what an import statement binds."""
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
    """List what the imports of a statement bind, without those in functions and classes within it."""
    statements = [statement for statement in statements_in(node) if isinstance(statement, ast.Import | ast.ImportFrom)]
    return [import_ for statement in statements for import_ in imports_of(statement, package)]


def bound_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Find the names that statements bind where they stand: neither in functions and classes, nor by an import."""
    return frozenset(name for node in nodes for name in _bound(node))


def chain_of(node: ast.expr) -> Chain:
    """Give a name with its attributes; nothing for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()


def packages(name: str) -> Iterator[str]:
    """Name the packages that a module lies in, outermost first."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts)))


def parameters(args: ast.arguments) -> frozenset[str]:
    """Find the names that a function gives to what it is called with."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return frozenset(arg.arg for arg in every if arg is not None)


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Give a statement and those within it, without functions and classes."""
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


class _Scope(NamedTuple):
    """A function, or another part of the code that has names of its own.

    Args:
        bound: its own names.
        outside: names that it takes from the module in spite of functions around it.
    """

    bound: frozenset[str]
    outside: frozenset[str] = frozenset()


class _Names(ast.NodeVisitor):
    def __init__(self, package: str) -> None:
        self._package = package
        self._around: list[_Scope] = []
        self.used: set[Chain] = set()
        self.imports: list[Import] = []
        self.subclasses = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *getattr(node, "type_params", ())):
            self.visit(part)
        self._visit_annotation(node.returns)
        self._visit_function(parameters(node.args), node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_arg(self, node: ast.arg) -> None:
        self._visit_annotation(node.annotation)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._visit_annotation(node.annotation)
        for part in (node.target, node.value):
            if part is not None:
                self.visit(part)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._visit_function(parameters(node.args), [node.body])

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            self.visit(node.generators[0].iter)  # which is computed outside
            rest = [part for generator in node.generators for part in (generator.iter, *generator.ifs)][1:]
            values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            self._visit_scope(_Scope(bound_in(generator.target for generator in node.generators)), [*rest, *values])
        else:
            super().generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports += imports_of(node, self._package)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports += imports_of(node, self._package)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self._use((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.subclasses |= node.attr == "__subclasses__"
        if chain := chain_of(node):
            self._use(chain)
        else:
            self.visit(node.value)

    def _visit_annotation(self, node: ast.expr | None) -> None:
        """Visit an annotation, which may be written as a text."""
        for part in [] if node is None else ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                with suppress(SyntaxError):
                    self.visit(ast.parse(part.value, mode="eval"))
        if node is not None:
            self.visit(node)

    def _visit_function(self, own: frozenset[str], body: Sequence[ast.AST]) -> None:
        outside = frozenset(
            name
            for node in body
            for statement in statements_in(node)
            if isinstance(statement, ast.Global)
            for name in statement.names
        )
        # A name that an import binds is followed, even where it is bound in another way as well.
        imported = {import_.bound for node in body for import_ in imports_within(node, self._package)}
        self._visit_scope(_Scope(own | (bound_in(body) - imported), outside), body)

    def _visit_scope(self, scope: _Scope, body: Iterable[ast.AST]) -> None:
        """Visit what has names of its own, which hide those around it."""
        self._around.append(scope)
        for node in body:
            self.visit(node)
        self._around.pop()

    def _use(self, chain: Chain) -> None:
        for scope in reversed(self._around):
            if chain[0] in scope.outside:
                break
            if chain[0] in scope.bound:
                return
        self.used.add(chain)
