"""Whether a module does anything when it is imported, besides binding names; rather yes than no, and nothing is run.

A module that only binds names counts by the names that a transform uses. One that acts, as by entering a function in a
list, counts whole, for all tables of the domain: what exactly it changes need not be found out. So does one that calls
a function or a decorator of the user's own, whatever that does. Calls of Python's and of libraries' functions are no
acts, nor is making an object of a class without a constructor of its own.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Literal

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
"""By these, code imports what only running it could tell."""

_READING = frozenset(name for kind in (str, frozenset, Decimal, datetime, re.Pattern) for name in dir(kind)) | {
    "fromkeys",
    "get",
    "items",
    "keys",
    "values",
}
"""Methods that leave what they are called on as it is, unless that is an object of the user's own classes."""

_COMPUTING = frozenset(dir(builtins)) - frozenset(
    {"__import__", "compile", "delattr", "eval", "exec", "filter", "getattr", "globals", "input", "locals", "map"}
    | {"next", "open", "print", "setattr", "super", "vars"}
)
"""Python's own functions that change nothing, unless they are given a function of the user's own to call."""

_UNCHANGING = ("datetime", "decimal", "pathlib", "pyspark.sql", "re", "zoneinfo")
"""Of these libraries, what a function gives is not changed by a method of it."""

_KEEPING = ("dataclasses", "functools.partial", "functools.wraps", "pyspark", "typing")
"""These keep a function that they are given, and call it later, if at all."""

_CHANGED_BY_READING = frozenset(
    {"chain", "count", "cycle", "defaultdict", "filter", "islice", "iter", "map", "open", "zip"}
)
"""What these give is another after something was taken of it."""

Kind = Literal["code", "fixed", "made", "value", "other"]
"""What a name is bound to: a function or class; what no method changes, as a text; what a library's function gives; any
other value; and what even reading may change, as an object of the user's own classes or a generator."""

_DERIVING = frozenset({"__class_getitem__", "__init_subclass__"})
_MAKING = _DERIVING | {"__getattribute__", "__init__", "__new__", "__post_init__", "__set_name__", "__setattr__"}
"""Methods that run when a subclass is made of a class, or an object."""

_ACCESSORS = ("setter", "deleter", "getter")
_DUNDER = re.compile(r"__(?!(name|file|doc|members|version)__)\w+__$")


class Acts:
    """Finds modules that do something when they are imported."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._acts: dict[str, bool] = {}
        self._kinds: dict[ast.AST, Kind] = {}
        self._plain: dict[tuple[ast.ClassDef, frozenset[str]], bool] = {}

    def acts(self, module: Module) -> bool:
        """Tell whether importing a module does anything besides binding names."""
        if module.name not in self._acts:
            self._acts[module.name] = "__getattr__" in module.bound or any(
                self._does(module, statement) for statement in module.executed
            )
        return self._acts[module.name]

    def _does(self, module: Module, statement: Statement) -> bool:
        """Tell whether a statement that runs with a module, or with the body of a class, does anything."""
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
                return False
            case ast.Assign(targets=targets, value=value):
                return not (all(map(_is_name, targets)) and self._computes(module, value))
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                return not (_is_name(target) and self._computes(module, annotation) and self._computes(module, value))
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
                every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
                annotations = [*(one.annotation for one in every if one), statement.returns]
                parts = [*args.defaults, *args.kw_defaults, *annotations]
                return not (
                    self._is_only_wrapped(module, statement) and all(self._computes(module, one) for one in parts)
                )
            case ast.ClassDef(bases=bases, keywords=keywords, body=body):
                return not (
                    self._is_only_wrapped(module, statement)
                    and all(
                        self._is_foreign(module, base) or self._is_plain_class(module, base, _DERIVING)
                        for base in bases
                    )
                    and all(self._computes(module, one.value) for one in keywords)
                    and all(self._is_foreign(module, one.value) for one in keywords if one.arg == "metaclass")
                    and not any(self._does(module, one) for one in body)
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

    def _is_only_wrapped(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """Tell whether decorators are Python's or a library's."""
        for decorator in node.decorator_list:
            given = _given(decorator) if isinstance(decorator, ast.Call) else []
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            is_known = self._is_foreign(module, function) or chain_of(function)[-1:] in [(one,) for one in _ACCESSORS]
            if not (is_known and all(self._computes(module, one) for one in given)):
                return False
        return True

    def _is_foreign(self, module: Module, expression: ast.expr) -> bool:
        """Tell whether an expression names something of Python's or a library's that imports nothing by name."""
        chain = chain_of(expression.value if isinstance(expression, ast.Subscript) else expression)
        if targets := self._targets(module, chain):
            return all(one.module is None and not _lies_in_any(one.name, IMPORTS_BY_NAME) for one in targets)
        has_library_star = any(import_.bound == "*" for import_ in module.imports)
        return len(chain) == 1 and (chain[0] in _COMPUTING or has_library_star)

    def _is_plain_class(self, module: Module, expression: ast.expr, hooks: frozenset[str]) -> bool:
        """Tell whether an expression names a class of the user's that has none of some methods, nor inherits one."""
        targets = self._targets(module, chain_of(expression))
        return bool(targets) and all(
            target.module is not None
            and not target.attribute
            and len(bound := _bound(target)) == 1
            and isinstance(made := bound[0], ast.ClassDef)
            and self._has_none_of(target.module, made, hooks)
            for target in targets
        )

    def _has_none_of(self, module: Module, made: ast.ClassDef, hooks: frozenset[str]) -> bool:
        key = (made, hooks)
        if key not in self._plain:
            self._plain[key] = False  # for what is its own base, by an import of the same name
            self._plain[key] = (
                not hooks.intersection(getattr(part, "name", "") for part in made.body)
                and not self._does(module, made)
                and not any(self._may_call(module, value) for part in made.body if (value := _value(part)))
                and all(
                    self._is_foreign(module, base) or self._is_plain_class(module, base, hooks) for base in made.bases
                )
            )
        return self._plain[key]

    def _computes(self, module: Module, expression: ast.expr | None, own: frozenset[str] = frozenset()) -> bool:
        """Tell whether evaluating an expression, in which some names are not the module's, changes nothing."""
        parts = [] if expression is None else list(_evaluated(expression))
        local = own | {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for part in parts:
            match part:
                case ast.Await() | ast.Yield() | ast.YieldFrom():
                    return False
                case ast.Attribute(attr=name) if _DUNDER.match(name):
                    return False
                case ast.Name() | ast.Attribute() if (
                    (chain := chain_of(part)) and chain[0] not in local and not self._may_be_read(module, chain)
                ):
                    return False
                case ast.Call() if not self._is_harmless(module, part, local):
                    return False
        return True

    def _is_harmless(self, module: Module, call: ast.Call, local: frozenset[str]) -> bool:
        """Tell whether a call, of which all else was looked at, changes nothing."""
        given = _given(call)
        chain = chain_of(call.func)
        targets = [] if chain[:1] and chain[0] in local else self._targets(module, chain)
        is_kept = bool(targets) and all(one.module is None and _lies_in_any(one.name, _KEEPING) for one in targets)
        if any(one.arg == "inplace" for one in call.keywords):
            return False
        if not is_kept and any(self._may_call(module, one) for one in given):
            return False
        if isinstance(call.func, ast.Attribute) and (not targets or any(one.attribute for one in targets)):
            root = chain_of(_root(call.func.value))
            return call.func.attr in _READING or (
                root[:1] not in [(one,) for one in local] and self._is_fixed(module, root)
            )
        return (
            chain[:1] != ()
            and chain[0] not in local
            and (self._is_foreign(module, call.func) or self._is_plain_class(module, call.func, _MAKING))
        )

    def _may_call(self, module: Module, given: ast.expr) -> bool:
        """Tell whether what is passed to a function has a function or class of the user's own in it."""
        return any(
            (isinstance(part, ast.Lambda) and not self._computes(module, part.body, parameters(part.args)))
            or any(
                isinstance(one, DEFINITIONS)
                for target in self._targets(module, chain_of(part))
                for one in _bound(target)
            )
            for part in ast.walk(given)
            if isinstance(part, ast.expr)
        )

    def _may_be_read(self, module: Module, chain: Chain) -> bool:
        """Tell whether a name, with attributes, may be used on import without changing what it is bound to.

        Of a value of Python's, methods may not be taken: they may be called later.
        """
        kinds = [(self._kind(one), one.attribute) for one in self._targets(module, chain) if one.module and one.name]
        return all(
            kind in ("code", "fixed", "made") or (kind == "value" and (not attribute or attribute in _READING))
            for kind, attribute in kinds
        )

    def _is_fixed(self, module: Module, chain: Chain) -> bool:
        """Tell whether a name stands for what no method changes."""
        return bool(targets := self._targets(module, chain)) and all(
            _lies_in_any(one.name, _UNCHANGING) if one.module is None else self._kind(one) == "fixed" for one in targets
        )

    def _kind(self, target: Target) -> Kind:
        """Tell what kind of thing a name of the user's is bound to."""
        bound = _bound(target)
        if all(isinstance(one, DEFINITIONS) for one in bound):
            return "code"
        if len(bound) > 1:
            return "other"
        if bound[0] not in self._kinds:
            self._kinds[bound[0]] = "value"  # for names that are bound to each other
            assert target.module is not None
            self._kinds[bound[0]] = self._kind_of(target.module, _value(bound[0]))
        return self._kinds[bound[0]]

    def _kind_of(self, module: Module, value: ast.expr | None) -> Kind:
        if value is None or isinstance(value, ast.GeneratorExp):
            return "value" if value is None else "other"
        for part in ast.walk(value):
            if isinstance(part, ast.Call) and (chain := chain_of(part.func)):
                own = any(one.module for one in self._targets(module, chain) if not one.attribute)
                if own or chain[-1] in _CHANGED_BY_READING:
                    return "other"
        if isinstance(root := _root(value), ast.Constant | ast.JoinedStr) or self._is_fixed(module, chain_of(root)):
            return "fixed"
        targets = self._targets(module, chain_of(root))
        if any(one.module and self._kind(one) == "other" for one in targets):
            return "other"
        return "made" if targets and not any(one.module for one in targets) else "value"

    def _targets(self, module: Module, chain: Chain) -> list[Target]:
        return self._lookup.resolve(module, chain) if chain else []


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Give the parts of an expression that are computed with it, without the bodies of lambdas."""
    yield node
    for child in ast.iter_child_nodes(node.args if isinstance(node, ast.Lambda) else node):
        yield from _evaluated(child)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _bound(target: Target) -> list[Statement]:
    return target.module.bound.get(target.name, []) if target.module else []


def _value(statement: Statement) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _lies_in_any(name: str, packages: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


def _root(node: ast.expr) -> ast.expr:
    """Give what an expression begins with: a name with attributes, or what has no name."""
    while not chain_of(node):
        match node:
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.BinOp(left=inner) | ast.Subscript(value=inner):
                node = inner
            case _:
                break
    return node


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
