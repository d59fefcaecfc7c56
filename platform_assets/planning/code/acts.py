"""Whether a module does anything when it is imported, besides binding names; rather yes than no, and nothing is run.

A module that only binds names counts by the names that somebody uses. One that acts, as by entering a function in a
list, counts whole, for all tables of the domain: nobody needs to find out what exactly it changes. A call acts unless
it is of Python's or a library's own, or of a function of the user's that only computes: one that stores into nothing
but what it made itself, and uses only what computes.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from platform_assets.planning.code.lookup import Lookup, Target
from platform_assets.planning.code.names import chain_of, parameters
from platform_assets.planning.code.source import DEFINITIONS, Module, Statement

_READING = frozenset(
    {"copy", "count", "decode", "encode", "endswith", "format", "get", "index", "isdisjoint", "issubset", "issuperset"}
    | {"items", "join", "keys", "lower", "replace", "split", "startswith", "strip", "title", "upper", "values"}
    # Of Spark's columns and tables, which do not change.
    | {"agg", "alias", "asc", "between", "cast", "desc", "distinct", "drop", "filter", "groupBy", "isNotNull", "isNull"}
    | {"isin", "otherwise", "over", "select", "substr", "transform", "unionByName", "when", "where", "withColumn"}
)
"""Methods that leave what they are called on as it is, whatever that is."""

_ACTING = frozenset(
    {"__import__", "compile", "delattr", "eval", "exec", "globals", "input", "locals", "next", "open", "print"}
    | {"setattr", "vars"}
)
_COMPUTING = frozenset(dir(builtins)) - _ACTING
"""Python's own functions that change nothing."""

_CONTAINERS = frozenset({"Counter", "OrderedDict", "defaultdict", "deque", "dict", "list", "set"})

_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__", "__set_name__"})
"""Methods that making an object, or a class from another one, calls."""

_ACCESSORS = frozenset({"classmethod", "property", "staticmethod"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Acts:
    """Finds modules that do something when they are imported.

    Args:
        lookup: of names.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._acts: dict[str, bool] = {}

    def acts(self, module: Module) -> bool:
        """Tell whether importing a module does anything besides binding names."""
        if module.name not in self._acts:
            self._acts[module.name] = any(self._does(module, statement) for statement in module.executed)
        return self._acts[module.name]

    def _does(self, module: Module, statement: Statement) -> bool:
        """Tell whether a statement that runs with a module, or with the body of a class, does anything."""
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
                return False
            case ast.Assign(targets=targets, value=value):
                return not all(map(_is_name, targets)) or self._calls(module, value)
            case ast.AnnAssign(target=target, value=value):
                return not _is_name(target) or self._calls(module, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                defaults = [*statement.args.defaults, *statement.args.kw_defaults]
                return self._is_entered(module, statement) or any(self._calls(module, one) for one in defaults)
            case ast.ClassDef(bases=bases, keywords=keywords, body=body):
                made_by = [*bases, *(keyword.value for keyword in keywords)]
                return (
                    self._is_entered(module, statement)
                    or any(self._calls(module, one) or not self._only_computes(module, one) for one in made_by)
                    or any(self._does(module, one) for one in body)
                )
            case ast.If(test=test, body=body, orelse=orelse):
                return self._calls(module, test) or any(self._does(module, one) for one in [*body, *orelse])
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                caught = [one for handler in handlers for one in handler.body]
                return any(self._does(module, one) for one in [*body, *caught, *orelse, *final])
            case _:
                return type(statement).__name__ != "TypeAlias"

    def _is_entered(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """Tell whether a decorator may do more than to give another function or class."""
        for decorator in node.decorator_list:
            chain = chain_of(decorator)
            if chain[-1:] in [("setter",), ("deleter",)] or (chain and chain[0] in _ACCESSORS):
                continue
            if self._calls(module, decorator) or self._is_acting_call(module, decorator):
                return True
            at_once = any(_calls_what_it_is_given(one) for _, one in self._definitions(module, decorator))
            if at_once and not self._body_computes(module, node, set()):
                return True
        return False

    def _calls(self, module: Module, expression: ast.expr | None) -> bool:
        """Tell whether an expression has a call in it that does anything, or an operator or property of the user's."""
        parts = list(_at_once(expression))
        calls = [part for part in parts if isinstance(part, ast.Call)]
        return (
            any(self._is_acting_call(module, call.func) or self._fills(module, call) for call in calls)
            or (bool(calls) and not self._only_computes(module, expression))
            or any(self._is_acting_object(module, part) for part in parts if isinstance(part, ast.Name | ast.Attribute))
        )

    def _is_acting_object(self, module: Module, node: ast.expr) -> bool:
        """Tell whether a name is bound to an object of a class whose operators or properties store anything."""
        made_by = [
            (owner, value.func)
            for owner, one in self._definitions(module, node)
            if isinstance(value := _value(one), ast.Call)
        ]
        classes = [found for owner, function in made_by for found in self._definitions(owner, function)]
        return any(
            _is_method(method)
            and (method.name.startswith("__") or method.decorator_list)
            and not self._stores_nothing(owner, method)
            for owner, one in classes
            if isinstance(one, ast.ClassDef)
            for method in one.body
        )

    def _is_acting_call(self, module: Module, function: ast.expr) -> bool:
        """Tell whether calling something is known to act by how it is named, whatever is in it."""
        while isinstance(function, ast.Call):
            function = function.func
        chain = chain_of(function)
        if not chain:
            is_read = isinstance(function, ast.Attribute) and function.attr in _READING
            return not is_read and self._is_own(module, _root(function))
        targets = self._lookup.resolve(module, chain)
        if not targets:
            return chain[0] not in _COMPUTING
        return any(self._is_acting_target(target, chain[-1]) for target in targets) or not (
            self._only_computes(module, function)
        )

    def _is_acting_target(self, target: Target, method: str) -> bool:
        if target.module is None or not target.name:
            return target.module is not None
        statements = target.module.bound.get(target.name, [])
        if target.attribute:
            if not all(isinstance(one, ast.ClassDef) for one in statements):
                return method not in _READING
            bodies = (one.body for one in statements if isinstance(one, ast.ClassDef))
            methods = (one for body in bodies for one in body if _is_method(one) and one.name == target.attribute)
            return not any(map(_is_of_class, methods))
        # Of a value it is not known what calling it does, unless it is another name for a function.
        values = [value for one in statements if not isinstance(one, DEFINITIONS) for value in [_value(one)]]
        return not all(
            isinstance(value, ast.Lambda)
            or (isinstance(value, ast.Name) and not self._is_acting_call(target.module, value))
            for value in values
        )

    def _is_own(self, module: Module, root: ast.expr) -> bool:
        """Tell whether an expression may begin with anything of the user's."""
        if isinstance(root, ast.Constant | ast.JoinedStr):
            return False
        chain = chain_of(root)
        targets = self._lookup.resolve(module, chain) if chain else []
        if targets:
            return any(target.module for target in targets)
        return not chain or chain[0] not in _COMPUTING - {"type"}

    def _fills(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a library is given an empty list, or the like, which nobody needs who puts nothing in."""
        given = (chain_of(one) for one in [*call.args, *(keyword.value for keyword in call.keywords)])
        targets = [target for chain in given if chain for target in self._lookup.resolve(module, chain)]
        empty = any(
            target.module and any(_is_empty(_value(one)) for one in target.module.bound.get(target.name, ()))
            for target in targets
        )
        function = chain_of(call.func)
        return empty and not (function and function[0] in _COMPUTING and not self._lookup.resolve(module, function))

    def _definitions(self, module: Module, expression: ast.expr) -> Iterator[tuple[Module, Statement]]:
        """Give what binds the names of an expression, each with its module."""
        for chain in module.names(expression).used:
            for target in self._lookup.resolve(module, chain):
                for one in target.module.bound.get(target.name, ()) if target.module else ():
                    if target.module:
                        yield target.module, one

    def _only_computes(self, module: Module, node: ast.AST | None, seen: set[ast.AST] | None = None) -> bool:
        """Tell whether all functions and classes that some code names, and what they use, only compute."""
        seen = set() if seen is None else seen
        names = module.names(node)
        for chain in names.used:
            for target in self._lookup.resolve(module, chain, names.imports):
                for one in target.module.bound.get(target.name, ()) if target.module else ():
                    if target.module and one not in seen:
                        seen.add(one)
                        if not self._body_computes(target.module, one, seen):
                            return False
        return True

    def _body_computes(self, module: Module, statement: Statement, seen: set[ast.AST]) -> bool:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions: list[_Function] = [statement]
            case ast.ClassDef(body=body):
                functions = [one for one in body if _is_method(one) and (one.name in _MAKING or _is_of_class(one))]
            case _:
                functions = [part for part in ast.walk(statement) if isinstance(part, ast.Lambda)]
        return all(self._stores_nothing(module, one) for one in functions) and self._only_computes(
            module, statement, seen
        )

    def _stores_nothing(self, module: Module, function: _Function) -> bool:
        """Tell whether a function, with those within it, stores only into what it made itself."""
        parts = [part for part in ast.walk(function) if part is not function]
        made = _made_in(parts) - frozenset().union(
            *(parameters(one.args) for one in (function, *parts) if isinstance(one, _Function))
        )
        for part in parts:
            match part:
                case ast.Global() | ast.Nonlocal():
                    return False
                case ast.Attribute(value=inner, ctx=ast.Store() | ast.Del()):
                    if not (getattr(function, "name", "") in _MAKING and _name(inner) == "self"):
                        return False
                case ast.Subscript(value=inner, ctx=ast.Store() | ast.Del()):
                    if _name(inner) not in made:
                        return False
                case ast.AugAssign(target=ast.Name(id=name)):
                    if name not in made:
                        return False
                case ast.Call(func=ast.Name(id=name)):
                    if name in _ACTING:
                        return False
                case ast.Call(func=ast.Attribute(value=inner, attr=method) as called) if method not in _READING:
                    if _name(inner) not in made and not self._is_made_by_others(module, function, called):
                        return False
        return True

    def _is_made_by_others(self, module: Module, function: _Function, called: ast.Attribute) -> bool:
        """Tell whether a method is one of a library, or of what a library or Python has just made."""
        root = _root(called)
        match called.value:
            case ast.Constant() | ast.JoinedStr() | ast.List() | ast.Dict() | ast.Set():
                return True
            case ast.Call(func=ast.Name(id=name)) if name in {"super", "str", *_CONTAINERS}:
                return True
        chain = chain_of(root)
        targets = self._lookup.resolve(module, chain, module.names(function).imports) if chain else []
        return bool(targets) and all(
            target.module is None or (target.name and not target.attribute and root is called) for target in targets
        )


def _calls_what_it_is_given(statement: Statement) -> bool:
    """Tell whether a function, or one within it, calls a parameter of its own as soon as it is called."""
    for function in ast.walk(statement):
        if isinstance(function, _Function):
            own = parameters(function.args)
            body = function.body if isinstance(function.body, list) else [function.body]
            for part in (part for one in body for part in _at_once(one)):
                if isinstance(part, ast.Call) and _name(part.func) in own:
                    return True
    return False


def _made_in(parts: Iterable[ast.AST]) -> frozenset[str]:
    """Find the names that some code binds only to what is new: numbers, texts, containers."""
    made: dict[str, bool] = {}
    for part in parts:
        match part:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                            made[name.id] = made.get(name.id, True) and target is name and _is_new(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                made[name] = made.get(name, True) and _is_new(value)
            case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                made |= {name.id: False for name in ast.walk(target) if isinstance(name, ast.Name)}
            case ast.NamedExpr(target=ast.Name(id=name)) | ast.withitem(optional_vars=ast.Name(id=name)):
                made[name] = False
    return frozenset(name for name, is_new in made.items() if is_new)


def _is_new(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _CONTAINERS
        case ast.Constant() | ast.JoinedStr() | ast.BinOp() | ast.List() | ast.Dict() | ast.Set():
            return True
        case _:
            return isinstance(value, ast.ListComp | ast.DictComp | ast.SetComp)


def _at_once(node: ast.AST | None) -> Iterator[ast.AST]:
    """Give the parts of some code that run where it stands, without the bodies of functions."""
    todo = [] if node is None else [node]
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, _Function):
            defaults = (*part.args.defaults, *part.args.kw_defaults, *getattr(part, "decorator_list", ()))
            todo += [one for one in defaults if one is not None]
        else:
            todo += ast.iter_child_nodes(part)


def _root(node: ast.expr) -> ast.expr:
    """Give what an expression begins with: a name with attributes, or what has no name."""
    while not chain_of(node):
        match node:
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.BinOp(left=inner) | ast.Subscript(value=inner):
                node = inner
            case _:
                break
    return node


def _is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[] | [_], keywords=[]):
            return name in _CONTAINERS
        case _:
            return False


def _value(statement: Statement) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_method(node: Statement) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_of_class(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a method is called on the class."""
    return any(_name(decorator) in {"classmethod", "staticmethod"} for decorator in node.decorator_list)


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
