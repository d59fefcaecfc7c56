"""What names stand for in modules of the user's own, followed over imports; nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from platform_assets.planning.code.names import Chain, Import
from platform_assets.planning.code.source import Module

Find = Callable[[str], Module | None]
"""Gives a module of the user's own by its absolute name; None for anybody else's and for what is none."""


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


class Lookup:
    """Looks names up, each once.

    Args:
        find: gives modules.
    """

    def __init__(self, find: Find) -> None:
        self.find = find
        self._resolved: dict[tuple[str, Chain], list[Target]] = {}
        self._resolving: set[tuple[str, Chain]] = set()

    def resolve(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> list[Target]:
        """Find what a name, with attributes, stands for in a module; nothing for Python's own and for what is unknown.

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
            elif import_.bound == "*" and (other := self.find(import_.module)) and other is not module:
                targets += self.resolve(other, chain)
        if head in module.bound:
            targets.append(Target(module, head, rest[0] if rest else ""))
        if not targets and module.is_package and self.find(f"{module.name}.{head}"):
            targets += self._at(f"{module.name}.{head}", rest)
        self._resolving.discard(key)
        if not imports and not self._resolving:  # within another one, it may have been cut short
            self._resolved[key] = targets
        return targets

    def _at(self, dotted: str, rest: Sequence[str]) -> list[Target]:
        """Find what attributes of a module, by its absolute name, stand for."""
        module = self.find(dotted)
        if module is None:
            return self._at(f"{dotted}.{rest[0]}", rest[1:]) if rest else [Target(None, dotted)]
        if not rest:
            return [Target(module, "")]
        targets = list(self.resolve(module, tuple(rest)))
        if module.is_package and self.find(f"{dotted}.{rest[0]}"):
            targets += self._at(f"{dotted}.{rest[0]}", rest[1:])
        if targets and module.has_order:  # which decides what the name stands for
            targets.append(Target(module, rest[0]))
        return targets or [Target(module, "", rest[0])]
