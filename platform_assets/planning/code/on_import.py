"""What running a statement of a module changes of the user's, so that it counts for all who import the module."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Protocol

from platform_assets.planning.code.bindings import Chain, chain_of
from platform_assets.planning.code.lookup import Lookup, Target, Variable
from platform_assets.planning.code.names import READING
from platform_assets.planning.code.source import Module, Statement


class Called(Protocol):
    """What the call of something reaches."""

    @property
    def changed(self) -> Set[Variable]:
        """Variables of the user's that it may change."""
        ...

    @property
    def touched(self) -> Set[Variable]:
        """Names in the user's modules that it uses."""
        ...

    @property
    def changes_own(self) -> bool:
        """Whether it may change what it is, an object or a function within another."""
        ...

    @property
    def is_own(self) -> bool:
        """Whether any of it is the user's."""
        ...


class OnImport:
    """Finds what happens when modules are imported.

    Args:
        lookup: of names.
        called: what the call of a name, used in a module, reaches.
    """

    def __init__(self, lookup: Lookup, called: Callable[[Module, Chain], Called]) -> None:
        self._lookup, self.called = lookup, called

    def registrations(self, module: Module) -> Iterator[Statement]:
        """Definitions whose making changes something of the user's, as a decorator does that enters them in a list."""
        for statement in bindings(module):
            if any(True for _ in self.changed_by(module, statement)):
                yield statement

    def changed_by(self, module: Module, statement: Statement) -> Iterator[Variable]:
        """The variables of the user's that a statement at the top of a module may change, besides those it binds."""
        at_once = module.names(statement, at_once=True)
        for chain in at_once.changed:
            yield from self._lookup.variables(module, chain)
        for chain in at_once.passed:
            yield from self._lookup.containers(module, chain)
        yield from self._lookup.given_away(module, at_once)
        for part in module.makers(statement):
            yield from self._changed_by_calling(module, part)

    def _changed_by_calling(self, module: Module, maker: ast.expr) -> Iterator[Variable]:
        def uses(node: ast.expr) -> Iterator[tuple[Module, Target]]:
            for chain in module.names(node).used:
                targets = self._lookup.resolve(module, chain)
                yield from ((target.module, target) for target in targets if target.module)

        function = maker.func if isinstance(maker, ast.Call) else maker
        if isinstance(function, ast.Attribute) and function.attr not in READING and (owner := chain_of(function.value)):
            yield from self._lookup.variables(module, owner)
        called = [self.called(module, chain) for chain in module.names(function).used]
        changed = [variable for call in called for variable in call.changed]
        yield from changed
        if changed or not any(call.is_own for call in called):
            return
        if any(call.changes_own for call in called):
            yield from (Variable(of.name, target.name) for of, target in uses(function) if of.is_variable(target.name))
        yield from (
            Variable(of.name, target.name)
            for of, target in uses(maker)
            if not target.attribute and of.is_filled_later(target.name)
        )


def bindings(module: Module) -> Iterable[Statement]:
    """The statements at the top of a module that bind a name."""
    return dict.fromkeys(statement for statements in module.bound.values() for statement in statements)
