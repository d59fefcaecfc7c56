"""The names that a piece of Python uses from around it, by the scopes that Python itself has; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

Chain = tuple[str, ...]
"""A name and the attributes taken of it: `rates.NET.scale` is `("rates", "NET", "scale")`."""


class Import(NamedTuple):
    """One name that an import binds.

    Args:
        bound: the name; `*` for all that a module has.
        module: the module, by its absolute name.
        name: what is taken of the module; empty for the module itself.
        loads: the module that has to run for it.
    """

    bound: str
    module: str
    name: str
    loads: str


@dataclass(frozen=True)
class Names:
    """What some code needs of the module it stands in.

    Args:
        used: names it does not bind itself, with the attributes taken of them.
        changed: names among these whose content it may change, as `registry` in `registry.steps.append(step)`.
        imports: that it holds itself, those within functions included.
    """

    used: frozenset[Chain]
    changed: frozenset[Chain]
    imports: tuple[Import, ...]


def names_in(nodes: Iterable[ast.AST], package: str) -> Names:
    """The names that some code uses.

    Args:
        nodes: statements or expressions of one module.
        package: that relative imports in it start from.
    """
    found = _Names(package)
    for node in nodes:
        found.visit(node)
    return Names(frozenset(found.used), frozenset(found.changed), tuple(found.imports))


def imports_of(node: ast.Import | ast.ImportFrom, package: str) -> tuple[Import, ...]:
    """What an import statement binds."""
    if isinstance(node, ast.Import):
        return tuple(
            Import(one.asname, one.name, "", one.name)
            if one.asname
            else Import(one.name.partition(".")[0], one.name.partition(".")[0], "", one.name)
            for one in node.names
        )
    module = node.module or ""
    if node.level:
        above = package.split(".")[: max(len(package.split(".")) - node.level + 1, 0)]
        module = ".".join([*above, *([module] if module else [])])
    return tuple(Import(one.asname or one.name, module, one.name, module) for one in node.names)


def bound_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind where they stand: neither in functions and classes within, nor by an import."""
    return frozenset(name for node in nodes for name in _bound(node))


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

READING = frozenset(
    {"copy", "count", "decode", "encode", "endswith", "format", "get", "index", "isdisjoint", "issubset", "issuperset"}
    | {"items", "join", "keys", "lower", "replace", "split", "startswith", "strip", "title", "upper", "values"}
)
"""Methods of Python's own containers and texts that leave them as they are."""


class _Names(ast.NodeVisitor):
    def __init__(self, package: str) -> None:
        self._package = package
        self._around: list[tuple[frozenset[str], frozenset[str]]] = []
        self.used: set[Chain] = set()
        self.changed: set[Chain] = set()
        self.imports: list[Import] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_all(*node.decorator_list, node.args, node.returns, *getattr(node, "type_params", ()))
        self._visit_within(_parameters(node.args), node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._visit_within(_parameters(node.args), [node.body])

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _Comprehension):
            self.visit(node.generators[0].iter)  # which is computed outside
            rest = [part for one in node.generators for part in (one.iter, *one.ifs)][1:]
            values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            self._visit_within(bound_in(one.target for one in node.generators), [*rest, *values], imports=False)
        else:
            super().generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports += imports_of(node, self._package)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports += imports_of(node, self._package)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self._use((node.id,))
        elif self._around and not self._is_bound(node.id):  # declared global
            self.changed.add((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if chain := chain_of(node):
            self._use(chain)
        else:
            self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            self._change(node)
            self._change(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr not in READING:
            self._change(node.func.value)
        self.generic_visit(node)

    def _visit_all(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _visit_within(self, parameters: frozenset[str], body: Iterable[ast.AST], *, imports: bool = True) -> None:
        """Visit what has names of its own, which hide those around it."""
        body = list(body)
        outside = frozenset(name for node in body for name in _declared_global(node)) if imports else frozenset()
        # A name that an import binds is followed, even where it is bound in another way as well.
        imported = {one.bound for node in body for one in imports_within(node, self._package)} if imports else set()
        self._around.append((parameters | (bound_in(body) - imported), outside))
        self._visit_all(*body)
        self._around.pop()

    def _is_bound(self, name: str) -> bool:
        for bound, outside in reversed(self._around):
            if name in outside:
                return False
            if name in bound:
                return True
        return False

    def _use(self, chain: Chain) -> None:
        if not self._is_bound(chain[0]):
            self.used.add(chain)

    def _change(self, node: ast.expr) -> None:
        """What an assignment to a part of something, or a call of its method, may change."""
        while not (chain := chain_of(node)):
            match node:
                case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                    node = inner
                case _:
                    return
        if not self._is_bound(chain[0]):
            self.changed.add(chain)


def chain_of(node: ast.expr) -> Chain:
    """A name with attributes; empty for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()


def _parameters(args: ast.arguments) -> frozenset[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return frozenset(one.arg for one in every if one is not None)


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
            yield from (one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr))
            return
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and those within it, but for functions and classes."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                yield from _statements(child)


def _declared_global(node: ast.AST) -> list[str]:
    return [name for one in _statements(node) if isinstance(one, ast.Global) for name in one.names]


def imports_within(node: ast.AST, package: str) -> list[Import]:
    """What the imports of a statement bind, but for those in functions and classes within."""
    found = [one for one in _statements(node) if isinstance(one, ast.Import | ast.ImportFrom)]
    return [one for statement in found for one in imports_of(statement, package)]
