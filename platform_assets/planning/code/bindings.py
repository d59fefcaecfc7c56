"""What statements of Python bind, where they stand: names, imports, parameters; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
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


def imports_of(node: ast.Import | ast.ImportFrom, package: str) -> tuple[Import, ...]:
    """What an import statement binds."""
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


def bound_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind where they stand: neither in functions and classes within, nor by an import."""
    return frozenset(name for node in nodes for name in _bound(node))


def chain_of(node: ast.expr) -> Chain:
    """A name with attributes; empty for any other expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()


def held_in(node: ast.expr) -> Iterator[Chain]:
    """The names in an expression whose objects are in what it gives, and not only used to compute it."""
    match node:
        case ast.Name() | ast.Attribute() if chain := chain_of(node):
            yield chain
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from held_in(inner)
        case (
            ast.List(elts=parts)
            | ast.Tuple(elts=parts)
            | ast.Set(elts=parts)
            | ast.Dict(values=parts)
            | ast.BoolOp(values=parts)
        ):
            for part in parts:
                yield from held_in(part)
        case ast.IfExp(body=body, orelse=orelse):
            yield from held_in(body)
            yield from held_in(orelse)


def packages(name: str) -> Iterator[str]:
    """The packages that a module lies in, outermost first."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts)))


def parameters(args: ast.arguments) -> frozenset[str]:
    """The names that a function gives to what it is called with."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return frozenset(arg.arg for arg in every if arg is not None)


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and those within it, but for functions and classes."""
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


def declared_global(node: ast.AST) -> list[str]:
    """The names that a statement takes from the module, whatever functions are around it."""
    return [name for statement in statements_in(node) if isinstance(statement, ast.Global) for name in statement.names]


def imports_within(node: ast.AST, package: str) -> list[Import]:
    """What the imports of a statement bind, but for those in functions and classes within."""
    statements = [statement for statement in statements_in(node) if isinstance(statement, ast.Import | ast.ImportFrom)]
    return [import_ for statement in statements for import_ in imports_of(statement, package)]
