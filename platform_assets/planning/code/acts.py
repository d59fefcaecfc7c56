"""Decide whether importing a module does anything besides binding names. Runs nothing; if in doubt, yes.

Of a module that only binds names, the names that a transform uses count. One that acts, for example by adding a
function to a list, counts whole, for all tables of the domain: its exact effect need not be known. Calls of Python's
and of libraries' functions are no acts, nor is making an object of a class that only declares fields. Any other call of
the user's own functions and classes is one, and so is a decorator of the user's own.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from platform_assets.planning.code.source import (
    DEFINITIONS,
    Chain,
    Lookup,
    Module,
    Statement,
    Target,
    chain_of,
    parameters,
)

IMPORTS_BY_NAME = ("builtins.__import__", "importlib", "pkgutil", "pydoc.locate", "runpy", "sys.modules")
"""By these, code imports modules by computed names."""

_READING = (
    frozenset(name for kind in (str, frozenset, Decimal, datetime, re.Pattern) for name in dir(kind))
    | {"fromkeys", "get", "items", "keys", "values"}
    # Of Spark's columns and tables, which do not change either.
    | {"agg", "alias", "asc", "between", "cast", "desc", "distinct", "drop", "filter", "groupBy", "isNotNull", "isNull"}
    | {"isin", "otherwise", "over", "rlike", "select", "substr", "unionByName", "when", "where", "withColumn"}
)
"""Methods that leave what they are called on as it is, unless that is an object of the user's own classes."""

_COMPUTING = frozenset(dir(builtins)) - frozenset(
    {"__import__", "compile", "delattr", "eval", "exec", "filter", "getattr", "globals", "input", "locals", "map"}
    | {"next", "open", "print", "setattr", "super", "vars"}
)
"""Python's own functions that change nothing, unless they call what they are given."""

_UNCHANGING = ("datetime", "decimal", "pathlib", "pyspark.sql", "re", "zoneinfo")
"""Of these libraries, what a function gives is not changed by a method of it."""

_KEEPING = ("dataclasses", "functools.partial", "functools.wraps", "pyspark", "typing")
"""These keep a function that they are given, and call it later, if at all."""

_FILLED_LATER = frozenset(
    {"ChainMap", "Counter", "OrderedDict", "count", "cycle", "defaultdict", "deque", "dict", "iter", "list", "set"}
)
_MAKING = frozenset(
    {"__call__", "__getattribute__", "__init__", "__new__", "__post_init__", "__set_name__", "__setattr__"}
)
_INHERITED = frozenset({"__class_getitem__", "__init_subclass__"})
_ACCESSORS = frozenset({"classmethod", "property", "staticmethod", "setter", "deleter"})
_DUNDER = re.compile(r"__(?!(name|file|doc|members|version|init|post_init)__)\w+__$")


class Acts:
    """Find modules that do something when they are imported."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def acts(self, module: Module) -> bool:
        """Return whether importing a module does anything besides binding names."""
        return "__getattr__" in module.bound or any(self._does(module, one) for one in module.executed)

    def _does(self, module: Module, statement: Statement) -> bool:
        """Return whether a top-level statement of a module or class body does anything besides binding names."""
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
                return False
            case ast.Assign(targets=targets, value=value):
                return not (all(map(_is_name, targets)) and self._computes(module, value))
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                return not (_is_name(target) and self._computes(module, annotation, value))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                is_plain = self._computes(module, *_parts_of(statement.args), statement.returns)
                return not (is_plain and self._is_wrapped_by_libraries(module, statement))
            case ast.ClassDef(bases=bases, keywords=keywords, body=body):
                return (
                    not self._is_wrapped_by_libraries(module, statement)
                    or not all(self._is_plain_base(module, base) for base in bases)
                    or any(self._own(module, keyword.value) for keyword in keywords)
                    or any(self._does(module, one) for one in body)
                )
            case ast.If(test=test, body=body, orelse=orelse):
                inner = [*body, *orelse]
                imports = any(isinstance(part, ast.Import | ast.ImportFrom) for one in inner for part in ast.walk(one))
                return imports or not self._computes(module, test) or any(self._does(module, one) for one in inner)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                caught = [one for handler in handlers for one in handler.body]
                return any(self._does(module, one) for one in [*body, *caught, *orelse, *final])
            case _:
                return type(statement).__name__ != "TypeAlias"

    def _is_wrapped_by_libraries(
        self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> bool:
        """Return whether all decorators belong to Python or a library, with arguments that do not act."""
        for decorator in node.decorator_list:
            chain = chain_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
            targets = self._lookup.resolve(module, chain) if chain else []
            if not targets and (not chain or chain[-1] not in _ACCESSORS):
                return False
            if any(target.module or _imports_by_name(target) for target in targets):
                return False
            if not self._computes(module, *_parts_of(decorator)):
                return False
        return True

    def _is_plain_base(self, module: Module, base: ast.expr) -> bool:
        """Return whether creating a class from a base runs none of the user's code."""
        chain = chain_of(base.value if isinstance(base, ast.Subscript) else base)
        if not (targets := self._lookup.resolve(module, chain) if chain else []):
            return bool(chain) and chain[0] in _COMPUTING
        return all(
            isinstance(one, ast.ClassDef)
            and not target.attribute
            and not _INHERITED & _methods(one)
            and not any(self._own(target.module, keyword.value) for keyword in one.keywords)
            and all(self._is_plain_base(target.module, above) for above in one.bases)
            for target in targets
            if target.module
            for one in target.module.bound.get(target.name, ())
        )

    def _computes(self, module: Module, *expressions: ast.expr | None) -> bool:
        """Return whether evaluating expressions changes nothing, including the bodies of their lambdas."""
        parts = [part for one in expressions if one for part in ast.walk(one)]
        local = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        local = local.union(*(parameters(part.args) for part in parts if isinstance(part, ast.Lambda)))
        for part in parts:
            match part:
                case ast.Await() | ast.Yield() | ast.YieldFrom():
                    return False
                case ast.Attribute(attr=name) if _DUNDER.match(name):
                    return False
                case ast.Name(id=name) if name not in local and not self._is_plain(module, (name,)):
                    return False
                case ast.Attribute() if (chain := chain_of(part)) and chain[0] not in local:
                    if not self._is_plain_attribute(module, chain):
                        return False
                case ast.Call() if not self._is_harmless(module, part, local):
                    return False
        return True

    def _is_harmless(self, module: Module, call: ast.Call, local: set[str]) -> bool:
        """Return whether a call changes nothing. Its arguments were checked before."""
        if isinstance(call.func, ast.Call) or any(keyword.arg == "inplace" for keyword in call.keywords):
            return False
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        chain = chain_of(_root(call.func))
        if chain and chain[0] in local:
            return method in _READING
        given = any(part and self._own(module, part) for part in _parts_of(call))
        targets = self._lookup.resolve(module, chain) if chain else []
        if not targets:
            is_known = method in _READING or (not method and chain[0] in _COMPUTING)
            return (is_known or _has_library_star(module)) and not given
        for target in targets:
            if target.module is None:
                keeps = any(_lies_in(target.name, one) for one in _KEEPING)
                if _imports_by_name(target) or (given and not keeps):
                    return False
            elif method:
                if not self._is_made_by(target, _UNCHANGING) and method not in _READING:
                    return False
            elif not self._only_declares(target):
                return False
        return True

    def _own(self, module: Module | None, node: ast.expr) -> bool:
        """Return whether an expression names a user's function or class, which may be called then."""
        return module is not None and any(
            isinstance(one, DEFINITIONS)
            for part in ast.walk(node)
            if (chain := chain_of(part) if isinstance(part, ast.Name | ast.Attribute) else ())
            for target in self._lookup.resolve(module, chain)
            for one in (target.module.bound.get(target.name, ()) if target.module else ())
        )

    def _only_declares(self, target: Target) -> bool:
        """Return whether a name is bound to a class that runs no user code when an object is made."""
        module = target.module
        assert module is not None
        match module.bound.get(target.name):
            case [ast.ClassDef(bases=bases, keywords=keywords, body=body) as made] if not target.attribute:
                used = (*bases, *made.decorator_list, *(keyword.value for keyword in keywords))
                return (
                    not any(self._own(module, one) for one in used)
                    and not _MAKING & _methods(made)
                    and self._computes(module, *map(_value, body))
                )
        return False

    def _is_plain(self, module: Module, chain: Chain) -> bool:
        """Return whether a name is bound to a value that use on import cannot change."""
        return all(
            isinstance(one, DEFINITIONS)
            or ((len(bound) == 1 or _is_tuple(one)) and self._is_plain_value(target.module, _value(one)))
            for target in self._lookup.resolve(module, chain)
            if target.module and target.name
            for bound in [target.module.bound.get(target.name, [])]
            for one in bound
        )

    def _is_plain_attribute(self, module: Module, chain: Chain) -> bool:
        """Return whether using an attribute is safe: it is not a method that may change its object."""
        return self._is_plain(module, chain) and all(
            target.module is None
            or not target.name
            or not target.attribute
            or target.attribute in _READING
            or self._is_made_by(target, ("",))
            or any(isinstance(one, ast.ClassDef) for one in target.module.bound.get(target.name, ()))
            for target in self._lookup.resolve(module, chain)
        )

    def _is_plain_value(self, module: Module, value: ast.expr | None) -> bool:
        """Return whether a value is not an object of a user's class, not empty, and not consumed by use."""
        match value:
            case None:
                return True
            case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.GeneratorExp():
                return False
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _FILLED_LATER and (
                not value.args or name not in ("dict", "list", "set")
            ):
                return False
        return not any(isinstance(part, ast.Call) and self._own(module, part.func) for part in ast.walk(value))

    def _is_made_by(self, target: Target, libraries: Sequence[str]) -> bool:
        """Return whether a name is bound to a text, a number, or the result of certain library functions."""
        module = target.module
        if module is None:
            return False
        roots = [_root(value) for one in module.bound.get(target.name, []) if (value := _value(one)) is not None]
        chains = [chain_of(root) for root in roots]
        return bool(chains) and all(
            isinstance(root, ast.Constant | ast.JoinedStr)
            or (
                chain
                and (found := self._lookup.resolve(module, chain))
                and all(one.module is None and any(_lies_in(one.name, of) for of in libraries) for one in found)
            )
            for root, chain in zip(roots, chains, strict=True)
        )


def _imports_by_name(target: Target) -> bool:
    return any(_lies_in(target.name, one) for one in IMPORTS_BY_NAME)


def _has_library_star(module: Module) -> bool:
    """Return whether an unknown name may come from a library's star import."""
    return any(import_.bound == "*" for import_ in module.imports)


def _lies_in(name: str, package: str) -> bool:
    return not package or f"{name}.".startswith(f"{package}.")


def _root(node: ast.expr) -> ast.expr:
    """Return the beginning of an expression: a name with attributes, or an expression without a name."""
    while not chain_of(node):
        match node:
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.BinOp(left=inner) | ast.Subscript(value=inner):
                node = inner
            case _:
                break
    return node


def _parts_of(node: ast.expr | ast.arguments) -> list[ast.expr | None]:
    """Yield the arguments of a call, or the defaults and annotations of a function."""
    match node:
        case ast.Call(args=args, keywords=keywords):
            return [*args, *(keyword.value for keyword in keywords)]
        case ast.arguments(defaults=defaults, kw_defaults=by_name):
            every = (part for part in ast.walk(node) if isinstance(part, ast.arg))
            return [*defaults, *by_name, *(one.annotation for one in every)]
        case _:
            return []


def _value(statement: ast.AST) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _is_tuple(statement: ast.AST) -> bool:
    return isinstance(_value(statement), ast.Tuple)


def _methods(node: ast.ClassDef) -> set[str]:
    return {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def _is_name(target: ast.expr) -> bool:
    match target:
        case ast.Name():
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_name, parts))
        case ast.Starred(value=inner):
            return _is_name(inner)
        case _:
            return False
