"""Decide whether importing a module does anything besides binding names. Runs nothing; if in doubt, yes.

A module that only binds names counts by the names that a transform uses. One that acts, as by entering a function in a
list, counts whole, for all tables of the domain: what exactly it changes need not be found out. Calls of Python's and
of libraries' functions are no acts, nor are those of the user's *straight* functions. A straight function consists of
assignments to local names and a result, and calls nothing that would be an act itself.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypeGuard

from platform_assets.planning.code.names import Chain, Import, chain_of, parameters
from platform_assets.planning.code.source import DEFINITIONS, Lookup, Module, Statement, Target

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
"""Python's own functions that change nothing; what they may call of what they are given, `_is_safe_to_pass` judges."""

_UNCHANGING = ("datetime", "decimal", "pathlib", "pyspark.sql", "re", "zoneinfo")
"""Of these libraries, what a function gives is not changed by a method of it."""

_KEEPING = ("dataclasses", "functools.partial", "functools.wraps", "pyspark", "typing")
"""These keep a function that they are given, and call it later, if at all."""

_FILLED_LATER = frozenset(
    {"ChainMap", "Counter", "OrderedDict", "count", "cycle", "defaultdict", "deque", "dict", "iter", "list", "set"}
)
_MAKING = frozenset({"__call__", "__getattribute__", "__new__", "__set_name__", "__setattr__"})
_ACCESSORS = frozenset({"classmethod", "property", "staticmethod"})
_DUNDER = re.compile(r"__(?!(name|file|doc|members|version|init|post_init)__)\w+__$")


class Acts:
    """Finds modules that do something when they are imported.

    Args:
        lookup: of names.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._acts: dict[str, bool] = {}
        self._straight: dict[tuple[ast.AST, int], bool] = {}

    def acts(self, module: Module) -> bool:
        """Return whether importing a module does anything besides binding names."""
        if module.name not in self._acts:
            self._acts[module.name] = "__getattr__" in module.bound or any(
                self._does(module, statement) for statement in module.executed
            )
        return self._acts[module.name]

    def _does(self, module: Module, statement: Statement) -> bool:
        """Return whether a statement at the top of a module or class body does anything."""
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
                return False
            case ast.Assign(targets=targets, value=value):
                return not (all(map(_is_name, targets)) and self._computes(module, value))
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                return not (_is_name(target) and self._computes(module, annotation) and self._computes(module, value))
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
                every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
                parts = [
                    *args.defaults,
                    *args.kw_defaults,
                    *(one.annotation for one in every if one),
                    statement.returns,
                ]
                return not (
                    self._is_only_wrapped(module, statement) and all(self._computes(module, one) for one in parts)
                )
            case ast.ClassDef(bases=bases, keywords=keywords, body=body):
                return (
                    not self._is_only_wrapped(module, statement)
                    or not all(self._is_plain_base(module, base) for base in bases)
                    or any(keyword.arg == "metaclass" and self._own(module, keyword.value) for keyword in keywords)
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

    def _is_only_wrapped(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """Return whether decorators only return another function or class."""
        for decorator in node.decorator_list:
            layers, function = (2, decorator.func) if isinstance(decorator, ast.Call) else (1, decorator)
            chain = chain_of(function)
            targets = self._lookup.resolve(module, chain) if chain else []
            if not targets and (
                chain[-1:] in [("setter",), ("deleter",)] or chain[:1] in [(one,) for one in _ACCESSORS]
            ):
                continue
            given = (
                [*decorator.args, *(one.value for one in decorator.keywords)] if isinstance(decorator, ast.Call) else []
            )
            if not targets or not all(
                self._is_straight(target, layers) if target.module else not _imports_by_name(target)
                for target in targets
            ):
                return False
            if not all(self._computes(module, one) for one in given):
                return False
        return True

    def _is_plain_base(self, module: Module, base: ast.expr) -> bool:
        """Return whether creating a class from a base runs none of the user's code."""
        inner = base.value if isinstance(base, ast.Subscript) else base
        chain = chain_of(inner)
        targets = self._lookup.resolve(module, chain) if chain else []
        if not targets:
            return bool(chain) and chain[0] in _COMPUTING
        for target in targets:
            for one in target.module.bound.get(target.name, ()) if target.module else ():
                if not isinstance(one, ast.ClassDef):
                    return False
                methods = {part.name for part in one.body if _is_method(part)}
                if target.attribute or "__init_subclass__" in methods or "__class_getitem__" in methods:
                    return False
                if target.module and (
                    not all(self._is_plain_base(target.module, above) for above in one.bases)
                    or any(
                        keyword.arg == "metaclass" and self._own(target.module, keyword.value)
                        for keyword in one.keywords
                    )
                ):
                    return False
        return True

    def _computes(
        self,
        module: Module,
        expression: ast.expr | None,
        local: frozenset[str] = frozenset(),
        imports: Sequence[Import] = (),
    ) -> bool:
        """Return whether evaluating an expression changes nothing.

        Args:
            expression: with the bodies of lambdas, which may be called by what they are given to.
            local: names that a function around has for its own.
        """
        if expression is None:
            return True
        parts = list(ast.walk(expression))
        local |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        local = local.union(*(parameters(part.args) for part in parts if isinstance(part, ast.Lambda)))
        for part in parts:
            match part:
                case ast.Await() | ast.Yield() | ast.YieldFrom():
                    return False
                case ast.Attribute(attr=name) if _DUNDER.match(name):
                    return False
                case ast.Name(id=name) if name not in local and not self._is_plain(module, (name,), imports):
                    return False
                case ast.Attribute() if (chain := chain_of(part)) and not self._is_plain_attribute(
                    module, chain, local, imports
                ):
                    return False
                case ast.Call() if not self._is_harmless(module, part, local, imports):
                    return False
        return True

    def _is_harmless(self, module: Module, call: ast.Call, local: frozenset[str], imports: Sequence[Import]) -> bool:
        """Return whether a call changes nothing. Its arguments were checked before."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(keyword.arg == "inplace" for keyword in call.keywords):
            return False
        chain = chain_of(call.func)
        if not chain:
            root = _root(call.func)
            above = chain_of(root)
            targets = self._lookup.resolve(module, above, imports) if above and above[0] not in local else []
            if targets and all(target.module is None or self._is_made_by(target, _UNCHANGING) for target in targets):
                return True
            is_read = isinstance(call.func, ast.Attribute) and call.func.attr in _READING
            return is_read and not targets and not isinstance(root, ast.Call)
        if chain[0] in local:
            return len(chain) > 1 and chain[-1] in _READING
        targets = self._lookup.resolve(module, chain, imports)
        if not targets:
            is_known = chain[0] in _COMPUTING if len(chain) == 1 else chain[-1] in _READING
            return (is_known or _has_library_star(module)) and all(
                self._is_safe_to_pass(module, one, imports) for one in given
            )
        for target in targets:
            if target.module is None:
                keeps = any(_lies_in(target.name, one) for one in _KEEPING)
                if _imports_by_name(target) or not (
                    keeps or all(self._is_safe_to_pass(module, one, imports) for one in given)
                ):
                    return False
            elif target.attribute:
                if not self._is_made_by(target, _UNCHANGING) and chain[-1] not in _READING:
                    return False
            elif not self._is_straight(target, 1):
                return False
        return True

    def _is_safe_to_pass(self, module: Module, given: ast.expr, imports: Sequence[Import]) -> bool:
        """Return whether an argument is safe to be called: a user's function has to be straight-line code."""
        return all(
            self._is_straight(target, 1)
            for part in ast.walk(given)
            if isinstance(part, ast.Name | ast.Attribute) and (chain := chain_of(part))
            for target in self._lookup.resolve(module, chain, imports)
            if target.module and any(isinstance(one, DEFINITIONS) for one in target.module.bound.get(target.name, ()))
        )

    def _is_straight(self, target: Target, layers: int) -> bool:
        """Return whether calling a user's function or class only computes.

        Args:
            target: a name in one of the user's modules.
            layers: how often it is called: twice where what it gives is called with a function to decorate.
        """
        module = target.module
        if module is None or not target.name or target.attribute:
            return False
        for one in (statements := module.bound.get(target.name, [])):
            if (one, layers) not in self._straight:
                self._straight[one, layers] = True  # for functions that call each other
                self._straight[one, layers] = self._bound_is_straight(module, one, layers)
            if not self._straight[one, layers]:
                return False
        return len(statements) == 1

    def _bound_is_straight(self, module: Module, statement: Statement, layers: int) -> bool:
        match statement:
            case ast.FunctionDef(decorator_list=decorators):
                if decorators:  # what another library made of it is called then
                    return not any(self._own(module, one) for one in decorators)
                return self._body_is_straight(module, statement, layers, module.names(statement).imports)
            case ast.ClassDef(body=body, bases=bases, keywords=keywords, decorator_list=decorators):
                methods = [one for one in body if _is_method(one)]
                return (
                    layers == 1
                    and not any(
                        self._own(module, one) for one in (*bases, *decorators, *(key.value for key in keywords))
                    )
                    and not _MAKING.intersection(one.name for one in methods)
                    and all(self._computes(module, value) for one in body if (value := _value(one)))
                    and all(
                        self._body_is_straight(module, one, 1, module.names(one).imports)
                        for one in methods
                        if one.name in ("__init__", "__post_init__")
                    )
                )
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
                if isinstance(value, ast.Lambda):
                    return layers == 1 and self._computes(module, value)
                chain = chain_of(value.func if isinstance(value, ast.Call) else value)
                targets = self._lookup.resolve(module, chain) if chain else []
                if isinstance(value, ast.Call):
                    given = [*value.args, *(keyword.value for keyword in value.keywords)]
                    return (
                        bool(targets)
                        and all(one.module is None for one in targets)
                        and all(self._is_safe_to_pass(module, one, ()) for one in given)
                    )
                return bool(targets) and all(one.module is None or self._is_straight(one, layers) for one in targets)
            case _:
                return False

    def _body_is_straight(
        self, module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef, layers: int, imports: Sequence[Import]
    ) -> bool:
        """Return whether the body of a function consists of assignments to local names and a return."""
        parts = [part for one in function.body for part in ast.walk(one)]
        stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        inner = {part.name for part in parts if isinstance(part, DEFINITIONS)}
        local = parameters(function.args) | stored | inner
        itself = (
            function.args.args[0].arg if function.name in ("__init__", "__post_init__") and function.args.args else ""
        )

        def is_straight(statement: Statement) -> bool:
            match statement:
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    return True
                case ast.ImportFrom() | ast.Import():
                    return not any(self._lookup.find(one.loads) for one in imports)
                case ast.Return(value=value) | ast.Raise(exc=value):
                    return self._computes(module, value, local, imports)
                case ast.Assign(targets=targets, value=value):
                    return all(_is_name(one) or _is_attribute(one, itself) for one in targets) and self._computes(
                        module, value, local, imports
                    )
                case ast.AnnAssign(target=target, value=value):
                    return (_is_name(target) or _is_attribute(target, itself)) and self._computes(
                        module, value, local, imports
                    )
                case ast.If(test=test, body=body, orelse=orelse):
                    return self._computes(module, test, local, imports) and all(map(is_straight, [*body, *orelse]))
                case ast.FunctionDef(decorator_list=decorators):
                    return all(self._computes(module, one, local, imports) for one in decorators) and (
                        layers == 1 or self._body_is_straight(module, statement, layers - 1, imports)
                    )
                case _:
                    return False

        return not any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts) and all(
            map(is_straight, function.body)
        )

    def _own(self, module: Module, node: ast.expr) -> bool:
        """Return whether an expression uses any name of the user's code, or an unknown name."""
        chains = module.names(node).used
        targets = [self._lookup.resolve(module, chain) for chain in chains]
        return any(
            any(target.module for target in found)
            if found
            else chain[0] not in _COMPUTING and not _has_library_star(module)
            for chain, found in zip(chains, targets, strict=True)
        )

    def _is_plain(self, module: Module, chain: Chain, imports: Sequence[Import]) -> bool:
        """Return whether a name is bound to a value that use on import cannot change."""
        return all(
            isinstance(one, DEFINITIONS) or (len(bound) == 1 and self._is_plain_value(target.module, _value(one)))
            for target in self._lookup.resolve(module, chain, imports)
            if target.module and target.name
            for bound in [target.module.bound.get(target.name, [])]
            for one in bound
        )

    def _is_plain_attribute(
        self, module: Module, chain: Chain, local: frozenset[str], imports: Sequence[Import]
    ) -> bool:
        """Return whether an attribute is safe to use: not a method that may change its object."""
        if chain[0] in local:
            return True
        if not self._is_plain(module, chain, imports):
            return False
        return all(
            target.module is None
            or not target.name
            or not target.attribute
            or target.attribute in _READING
            or self._is_made_by(target, ("",))
            or any(isinstance(one, ast.ClassDef) for one in target.module.bound.get(target.name, ()))
            for target in self._lookup.resolve(module, chain, imports)
        )

    def _is_plain_value(self, module: Module, value: ast.expr | None) -> bool:
        """Return whether a value is no object of a user's class, not empty, and not consumed by use."""
        match value:
            case None:
                return True
            case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.GeneratorExp():
                return False
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _FILLED_LATER and (
                not value.args or name not in ("dict", "list", "set")
            ):
                return False
        return not any(
            isinstance(part, ast.Call)
            and (chain := chain_of(part.func))
            and any(
                isinstance(one, ast.ClassDef)
                for target in self._lookup.resolve(module, chain)
                for one in (target.module.bound.get(target.name, ()) if target.module else ())
            )
            for part in ast.walk(value)
        )

    def _is_made_by(self, target: Target, libraries: Sequence[str]) -> bool:
        """Return whether a name is bound to a text, a number, or the result of a function of some libraries."""
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
    """Give what an expression begins with: a name with attributes, or what has no name."""
    while not chain_of(node):
        match node:
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.BinOp(left=inner) | ast.Subscript(value=inner):
                node = inner
            case _:
                break
    return node


def _value(statement: Statement) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _is_method(node: Statement) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_attribute(target: ast.expr, itself: str) -> bool:
    """Return whether an assignment sets an attribute of the new object."""
    return (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == itself
        and not target.attr.startswith("__")
    )


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
