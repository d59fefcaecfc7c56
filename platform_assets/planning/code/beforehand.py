"""What happens before anything is computed: all modules of a domain's transforms are imported, in one fixed order.

So what a process sees does not depend on which tables it computes. What the modules of other tables do then counts for
a table as far as it may change something that the table reaches; the rest of their code does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from platform_assets.contracts.table import LAYERS
from platform_assets.planning.code.bindings import bound_in, packages, statements_in
from platform_assets.planning.code.lookup import Lookup, Variable
from platform_assets.planning.code.on_import import OnImport, bindings
from platform_assets.planning.code.source import Module, Statement, parse_module

Changing = tuple[Statement, frozenset[Variable] | None]
"""A statement and the user's variables that it may change; None where it may change what belongs to others."""

_OWN_NAMES = frozenset({"globals", "locals"})


def transform_modules(package: str) -> tuple[str, ...]:
    """Where the transforms of a package may lie, in the order in which the modules that are there are imported."""
    return tuple(f"{package}.{layer}" for layer in LAYERS if layer != "raw")


def imports_before(module: str) -> Module:
    """What is imported before a function of a module computes anything: as a module that does it."""
    names = dict.fromkeys([*transform_modules(module.rpartition(".")[0]), module])
    return parse_module("(before)", "".join(f"import {name}\n" for name in names))


class Beforehand:
    """Finds what modules may change when they are imported.

    Args:
        lookup: of names.
        on_import: finds what statements change.
        start: imports the modules.
    """

    def __init__(self, lookup: Lookup, on_import: OnImport, start: Module) -> None:
        self.lookup, self.on_import, self._start = lookup, on_import, start
        self._changing: dict[str, list[Changing]] = {}

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The user's own among those that are imported, by functions as well, any of which may be called then."""
        modules: dict[str, Module] = {}
        todo = [self._start]
        while todo:
            module = todo.pop()
            for import_ in (import_ for statement, _ in module.executed for import_ in module.names(statement).imports):
                for name in (*packages(import_.loads), import_.loads, f"{import_.loads}.{import_.name}"):
                    if name not in modules and (imported := self.lookup.find(name)):
                        modules[name] = imported
                        todo.append(imported)
        return tuple(modules.values())

    def changing(self, module: Module) -> Iterable[Changing]:
        """The statements at the top of a module that may change something besides what they bind."""
        if module.name not in self._changing:
            effects = {statement: self._by_effect(module, statement) for statement in module.effects}
            values = {
                statement: self._by_value(module, statement)
                for statement in bindings(module)
                if statement not in effects
            }
            self._changing[module.name] = [
                changing for changing in (*effects.items(), *values.items()) if changing[1] != frozenset()
            ]
        return self._changing[module.name]

    def _by_effect(self, module: Module, statement: Statement) -> frozenset[Variable] | None:
        """All that it touches, as it is there to change something."""
        if any(self._changes_others(module, part) for part in statements_in(statement) if isinstance(part, ast.stmt)):
            return None
        # `STEPS += [step]` binds a name and makes the list longer that somebody else has by it.
        names = {chain[0] for chain in module.names(statement, at_once=True).used} | bound_in([statement])
        return self._by_value(module, statement).union(*(self._variables(module, name) for name in names))

    def _by_value(self, module: Module, statement: Statement) -> frozenset[Variable]:
        """What it is known to change, and of what that may be a part, or another name."""
        changed = frozenset(self.on_import.changed_by(module, statement))
        return changed.union(*(self._made_from(variable) for variable in changed))

    def _made_from(self, variable: Variable) -> Iterator[Variable]:
        if (module := self.lookup.find(variable.module)) and module.is_variable(variable.name):
            yield from self._variables(module, variable.name)

    def _variables(self, module: Module, name: str) -> Iterator[Variable]:
        """What the use of a name touches of the user's that may be changed."""
        for variable in (Variable(module.name, name), *self.on_import.called(module, (name,)).touched):
            owner = self.lookup.find(variable.module)
            if owner and owner.is_variable(variable.name) and owner.may_hold(variable.name):
                yield variable

    def _changes_others(self, module: Module, statement: Statement) -> bool:
        """Whether a simple statement does something, but not to anything of the user's that is known."""
        match statement:
            case ast.Expr() | ast.Assert():
                does = any(isinstance(node, ast.Call) for node in ast.walk(statement))
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Delete():
                does = any(
                    isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
                    for node in ast.walk(statement)
                )
            case _:
                does = False
        names = module.names(statement, at_once=True)
        own = any(chain[0] in _OWN_NAMES for chain in names.changed)
        return does and not own and not any(True for _ in self.on_import.changed_by(module, statement))
