"""What is known of the functions and classes around a piece of code: the names they have, and what they share."""

from __future__ import annotations

import ast
from typing import NamedTuple

_OF_CLASSES = frozenset({"__class_getitem__", "__init_subclass__", "__new__"})
MAKING_OBJECTS = frozenset({"__init__", "__post_init__"})


class Class(NamedTuple):
    """A class around some code.

    Args:
        name: of the outermost one.
        shared: attributes whose content all its objects share.
        methods: names of its own functions.
    """

    name: str
    shared: frozenset[str]
    methods: frozenset[str]


class Scope(NamedTuple):
    """A function, or another part of the code that has names of its own.

    Args:
        bound: its own names.
        outside: names that it takes from the module in spite of functions around it.
        given: its parameters, but for the one that it is called on, and other names for them or their parts.
        method: its name, where it is a method.
        owner: the class that it is a method of.
        itself: the parameter for the object, or the class, that it is called on.
        of_class: whether that is the class.
    """

    bound: frozenset[str]
    outside: frozenset[str]
    given: frozenset[str] = frozenset()
    method: str = ""
    owner: Class | None = None
    itself: str = ""
    of_class: bool = False


def method_scope(node: ast.FunctionDef, owner: Class) -> Scope:
    """What is known of a method by its first line."""
    parameters = [*node.args.posonlyargs, *node.args.args]
    decorators = {decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)}
    itself = parameters[0].arg if parameters and "staticmethod" not in decorators else ""
    of_class = "classmethod" in decorators or node.name in _OF_CLASSES or itself == "cls"
    return Scope(frozenset(), frozenset(), frozenset(), node.name, owner, itself, of_class)


def methods_of(scope: Scope) -> frozenset[str]:
    """Names of the functions of the class that a method stands in."""
    return scope.owner.methods if scope.owner else frozenset()


def shared_by(node: ast.ClassDef) -> frozenset[str]:
    """Attributes that a class binds to what can be changed, for all its objects together."""
    values = (
        (target, statement.value)
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    )
    return frozenset(target.id for target, value in values if isinstance(target, ast.Name) and _can_change(value))


def _can_change(value: ast.expr | None) -> bool:
    match value:
        # Of a dataclass, every object has its own.
        case ast.Call(func=ast.Name(id="field") | ast.Attribute(attr="field")):
            return False
        case _:
            return isinstance(
                value, ast.Call | ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
            )
