"""The names that a piece of Python uses from around it, by the scopes that Python itself has; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from platform_assets.planning.code.bindings import (
    Chain,
    Import,
    bound_in,
    chain_of,
    declared_global,
    held_in,
    imports_of,
    imports_within,
    parameters,
)
from platform_assets.planning.code.scopes import MAKING_OBJECTS, Class, Scope, method_scope, methods_of, shared_by


@dataclass(frozen=True)
class Names:
    """What some code needs of the module it stands in.

    Args:
        used: names it does not bind itself, with the attributes taken of them.
        changed: names among these whose content it may change, as `registry` in `registry.steps.append(step)`.
        passed: names among these that it gives to what it calls, alone or in a list, a dict or the like.
        gives_on: names among these that it calls with a parameter of a function in it, or gives along with one.
        imports: that it holds itself, those within functions included.
        changes_given: whether a function in it may change what it is called with.
        changes_own: whether methods in it change their object, or functions within functions what is around them.
        subclasses: whether it asks a class for its subclasses.
    """

    used: frozenset[Chain]
    changed: frozenset[Chain]
    passed: frozenset[Chain]
    gives_on: frozenset[Chain]
    imports: tuple[Import, ...]
    changes_given: bool
    changes_own: bool
    subclasses: bool


def names_in(nodes: Iterable[ast.AST], package: str, *, at_once: bool = False) -> Names:
    """The names that some code uses.

    Args:
        nodes: statements or expressions of one module.
        package: that relative imports in it start from.
        at_once: only what runs where it stands, without the bodies of functions.
    """
    visitor = _Names(package, at_once=at_once)
    for node in nodes:
        visitor.visit(node)
    return Names(
        frozenset(visitor.used),
        frozenset(visitor.changed),
        frozenset(visitor.passed),
        frozenset(visitor.gives_on),
        tuple(visitor.imports),
        visitor.changes_given,
        visitor.changes_own,
        visitor.subclasses,
    )


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

READING = frozenset(
    {"copy", "count", "decode", "encode", "endswith", "format", "get", "index", "isdisjoint", "issubset", "issuperset"}
    | {"items", "join", "keys", "lower", "replace", "split", "startswith", "strip", "title", "upper", "values"}
)
"""Methods of Python's own containers and texts that leave them as they are."""


CALLED = "()"
"""Stands in a chain for the call of what is before it."""


class _Names(ast.NodeVisitor):
    def __init__(self, package: str, *, at_once: bool) -> None:
        self._package, self._at_once = package, at_once
        self._around: list[Scope] = []
        self._class: Class | None = None
        self.used: set[Chain] = set()
        self.changed: set[Chain] = set()
        self.passed: set[Chain] = set()
        self.gives_on: set[Chain] = set()
        self.imports: list[Import] = []
        self.changes_given = False
        self.changes_own = False
        self.subclasses = False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        around = self._class
        methods = frozenset(
            statement.name for statement in node.body if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        self._class = Class(around.name if around else node.name, shared_by(node), methods)
        self.generic_visit(node)
        self._class = around

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_all(*node.decorator_list, node.args, node.returns, *getattr(node, "type_params", ()))
        owner, self._class = self._class, None
        self._visit_within(parameters(node.args), node.body, as_method=method_scope(node, owner) if owner else None)
        self._class = owner

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._visit_within(parameters(node.args), [node.body])

    def visit_Assign(self, node: ast.Assign) -> None:
        self._name_given((chain[0] for chain in held_in(node.value)), node.targets)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._name_given((part.id for part in ast.walk(node.iter) if isinstance(part, ast.Name)), [node.target])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self._class:  # which has the name from around it until then
            self._change(node.target)
        elif isinstance(node.target, ast.Name):  # which makes a list longer for whoever has it
            self.changes_given |= self._is_given(node.target.id)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _Comprehension):
            self.visit(node.generators[0].iter)  # which is computed outside
            rest = [part for generator in node.generators for part in (generator.iter, *generator.ifs)][1:]
            values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            self._visit_scope(
                Scope(bound_in(generator.target for generator in node.generators), frozenset()), [*rest, *values]
            )
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
        """A use of the whole chain; setting or deleting one changes the object, and what had the attribute before."""
        self.subclasses |= node.attr == "__subclasses__"
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
        """A method may change its object, and some functions what they are given; so may any that is the user's own."""
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr not in READING
            and not self._is_own_method(node.func)
        ):
            self._change(node.func.value)
        match node:
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[changed, *_]):
                self._change(ast.Attribute(changed, "__dict__", ast.Load()))
            case ast.Call(func=ast.Name(id="next"), args=[changed, *_]):
                self._change(changed)
        self._give(node)
        self.generic_visit(node)

    def _visit_all(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _visit_within(
        self, parameters: frozenset[str], body: Sequence[ast.AST], *, as_method: Scope | None = None
    ) -> None:
        """Visit the body of a function, unless only what runs at once is asked for."""
        if self._at_once:
            return
        outside = frozenset(name for node in body for name in declared_global(node))
        # A name that an import binds is followed, even where it is bound in another way as well.
        imported = {import_.bound for node in body for import_ in imports_within(node, self._package)}
        bound = parameters | (bound_in(body) - imported)
        scope = as_method or Scope(bound, outside)
        given = parameters - {scope.itself}
        self._visit_scope(scope._replace(bound=bound, outside=outside, given=given), body)

    def _visit_scope(self, scope: Scope, body: Iterable[ast.AST]) -> None:
        """Visit what has names of its own, which hide those around it."""
        self._around.append(scope)
        self._visit_all(*body)
        self._around.pop()

    def _binding(self, name: str) -> Scope | None:
        """The innermost scope around that has a name for its own."""
        for scope in reversed(self._around):
            if name in scope.outside:
                return None
            if name in scope.bound:
                return scope
        return None

    def _is_bound(self, name: str) -> bool:
        return self._binding(name) is not None

    def _use(self, chain: Chain) -> None:
        if not self._is_bound(chain[0]):
            self.used.add(chain)

    def _is_given(self, name: str) -> bool:
        """Whether a name is a parameter of a function around."""
        scope = self._binding(name)
        return scope is not None and name in scope.given

    def _name_given(self, held: Iterable[str], targets: Iterable[ast.AST]) -> None:
        """What has a parameter, or a part of one, by another name is changed like it."""
        if self._around and any(map(self._is_given, held)):
            scope = self._around[-1]
            self._around[-1] = scope._replace(given=scope.given | bound_in(targets))

    def _give(self, call: ast.Call) -> None:
        """What a call hands to a function, which may change it."""
        given = {
            chain for node in (*call.args, *(keyword.value for keyword in call.keywords)) for chain in held_in(node)
        }
        passed = {chain for chain in given if not self._is_bound(chain[0])}
        self.passed |= passed
        if any(self._is_given(chain[0]) for chain in given):
            function = chain_of(call.func)
            self.gives_on |= passed | ({function} if function and not self._is_bound(function[0]) else set())

    def _is_own_method(self, function: ast.Attribute) -> bool:
        """Whether a method is one that stands in the same class, where it is seen what it changes."""
        match function.value:
            case ast.Name(id=name):
                scope = self._binding(name)
                return scope is not None and name == scope.itself and function.attr in methods_of(scope)
            case _:
                return False

    def _change(self, node: ast.expr) -> None:
        """What an assignment to a part of something, or a call of its method, may change."""
        while not (chain := chain_of(node)):
            match node:
                case ast.Call(func=ast.Name(id="type"), args=[inner]):  # which is inner.__class__
                    node = ast.Attribute(inner, "__class__", ast.Load())
                case ast.Call(func=ast.Name(id=name)):
                    chain = (name, CALLED)  # what a function gives is not the function
                    break
                case ast.Call(func=ast.Attribute(value=inner)):
                    node = inner
                case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                    node = inner
                case _:
                    return
        self._change_chain(chain)

    def _change_chain(self, chain: Chain) -> None:
        if (scope := self._binding(chain[0])) is None:
            self.changed.add(chain)
        elif scope.owner is not None and chain[0] == scope.itself:
            self._change_own(scope, scope.owner, chain[1:])
        else:
            self.changes_own |= scope is not self._around[-1]
            self.changes_given |= chain[0] in scope.given

    def _change_own(self, scope: Scope, owner: Class, attributes: Chain) -> None:
        """What a method changes of its object, or of its class, which everybody has."""
        self.changes_own |= scope.method not in MAKING_OBJECTS
        of_class = scope.of_class or attributes[:1] == ("__class__",)
        if attributes and (of_class or attributes[0] in owner.shared) and not self._is_bound(owner.name):
            self.changed.add((owner.name, *attributes))
