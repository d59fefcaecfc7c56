"""What names stand for in modules of the user's own, followed over imports; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from platform_assets.planning.code.bindings import Chain, Import, chain_of
from platform_assets.planning.code.names import Names
from platform_assets.planning.code.source import DEFINITIONS, Module, Statement

Find = Callable[[str], Module | None]
"""Gives a module of the user's own by its absolute name; None for anybody else's and for what is none."""

_COLUMNS = "pyspark.sql.functions."


class Target(NamedTuple):
    """What a name stands for.

    Args:
        module: of the user's own; None for anything else.
        name: a definition in it; empty for the module itself. Without a module, the dotted name of what it is.
        attribute: that is taken of it; empty for all of it.
    """

    module: Module | None
    name: str
    attribute: str = ""

    def __str__(self) -> str:
        return f"{self.module.name}:{self.name}" if self.module else self.name


class Variable(NamedTuple):
    """A name at the top of one of the user's modules.

    Args:
        module: its name.
        name: in it.
    """

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


class Lookup:
    """Looks names up, each once.

    Args:
        find: gives modules.
    """

    def __init__(self, find: Find) -> None:
        self.find = find
        self._resolved: dict[tuple[str, Chain], list[Target]] = {}
        self._resolving: set[tuple[str, Chain]] = set()
        self._change_given: dict[tuple[str, Chain], bool] = {}

    def resolve(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> list[Target]:
        """What a name, with attributes, stands for in a module; nothing for Python's own and for what is unknown.

        Args:
            module: that it is used in.
            chain: the name.
            imports: more of them, of the function that it is used in.
        """
        key = (module.name, chain)
        head, *rest = chain
        if imports:
            imports = [import_ for import_ in imports if import_.bound == head]
        if not imports and key in self._resolved:
            return self._resolved[key]
        if key in self._resolving:
            return []
        self._resolving.add(key)
        targets: list[Target] = []
        for import_ in (*imports, *module.imports):
            if import_.bound == head:
                targets += self._at(import_.module, [import_.name, *rest] if import_.name else rest)
        if head in module.bound:
            targets.append(Target(module, head, rest[0] if rest else ""))
        if not targets and module.is_package and self.find(f"{module.name}.{head}"):
            targets += self._at(f"{module.name}.{head}", rest)
        self._resolving.discard(key)
        if not imports and not self._resolving:  # within another one, it may have been cut short
            self._resolved[key] = targets
        return targets

    def variables(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> Iterator[Variable]:
        """What in the user's modules a name stands for, where it can be changed."""
        for target in self.resolve(module, chain, imports):
            if target.module and target.name and target.module.may_be_changed(target.name, target.attribute):
                yield Variable(target.module.name, target.name)

    def containers(self, module: Module, chain: Chain) -> Iterator[Variable]:
        """The lists, and the like, of the user's modules that a name stands for, where they are filled later."""
        for target in self.resolve(module, chain):
            if target.module and target.module.is_empty_container(target.name):
                yield Variable(target.module.name, target.name)

    def given_away(self, module: Module, names: Names) -> Iterator[Variable]:
        """What of the user's some code hands to a function that may change what it is given.

        Args:
            module: that the code stands in.
            names: of the code.
        """
        given = {
            (chain, Variable(target.module.name, target.name))
            for chain in names.passed
            for target in self.resolve(module, chain, names.imports)
            if target.module and target.name and self._may_be_changed(target.module, target.name)
        }
        if given:
            changing = {chain for chain in names.used if self._changes_given(module, chain, names.imports)}
            yield from (variable for chain, variable in sorted(given) if changing - {chain})

    def _at(self, dotted: str, rest: Sequence[str]) -> list[Target]:
        """What attributes of a module, by its absolute name, stand for."""
        module = self.find(dotted)
        if module is None:
            return self._at(f"{dotted}.{rest[0]}", rest[1:]) if rest else [Target(None, dotted)]
        if not rest:
            return [Target(module, "")]
        targets = list(self.resolve(module, tuple(rest)))
        if module.is_package and self.find(f"{dotted}.{rest[0]}"):
            targets += self._at(f"{dotted}.{rest[0]}", rest[1:])
        return targets or [Target(module, "", rest[0])]

    def _may_be_changed(self, module: Module, name: str) -> bool:
        """Whether a name is bound to what may change in somebody's hands: neither constants nor Spark's columns."""
        values = [
            statement.value for statement in module.bound[name] if isinstance(statement, ast.Assign | ast.AnnAssign)
        ]
        return module.may_hold(name) and not (
            len(values) == len(module.bound[name]) and all(self._is_column(module, value) for value in values)
        )

    def _is_column(self, module: Module, value: ast.expr | None) -> bool:
        while isinstance(value, ast.Call | ast.BinOp) or (isinstance(value, ast.Attribute) and not chain_of(value)):
            match value:
                case ast.Call(func=inner) | ast.BinOp(left=inner) | ast.Attribute(value=inner):
                    value = inner
        targets = self.resolve(module, chain) if value is not None and (chain := chain_of(value)) else []
        return bool(targets) and all(target.module is None and target.name.startswith(_COLUMNS) for target in targets)

    def _changes_given(self, module: Module, chain: Chain, imports: Sequence[Import]) -> bool:
        """Whether what a name stands for may change what it is called with, or gives it on to what may."""
        key = (module.name, chain)
        if any(import_.bound == chain[0] for import_ in imports):
            return self._hands_on(module, chain, imports)
        if key not in self._change_given:
            self._change_given[key] = self._hands_on(module, chain, ())
        return self._change_given[key]

    def _hands_on(self, module: Module, chain: Chain, imports: Sequence[Import]) -> bool:
        seen: set[Variable] = set()
        todo = [(module, chain, imports)]
        while todo:
            for target in self.resolve(*todo.pop()):
                if (
                    target.module is None
                    or not target.name
                    or (of := Variable(target.module.name, target.name)) in seen
                ):
                    continue
                seen.add(of)
                for statement in target.module.bound[target.name]:
                    names = target.module.names(statement, at_once=_is_value(statement))
                    if names.changes_given:
                        return True
                    further = names.gives_on if isinstance(statement, DEFINITIONS) else names.used
                    todo += [(target.module, used, names.imports) for used in further]
        return False


def _is_value(statement: Statement) -> bool:
    return isinstance(statement, ast.Assign | ast.AnnAssign) and not isinstance(statement.value, ast.Lambda)
