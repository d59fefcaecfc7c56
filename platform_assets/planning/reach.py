"""The user's code that a transform can reach: statically, by the names it uses, and rather more than less.

A definition counts for who uses it, over any number of modules. What a module does when it is imported counts for all
who import it. Where only running the code could tell what it uses, whole modules count.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from platform_assets.planning.names import READING, Chain, Import, chain_of
from platform_assets.planning.source import DEFINITIONS, Module, Statement, canonical, makers

Find = Callable[[str], Module | None]
"""Gives a module of the user's own by its absolute name; None for anybody else's and for what is none."""

Below = Callable[[str], Iterable[str]]
"""Names all modules of the user's own that lie in the same package as one of them, at any depth."""

_SEES_ALL_NAMES = frozenset({"eval", "exec", "globals", "locals", "vars", "compile"})
_IMPORTS_BY_NAME = ("builtins.__import__", "importlib.import_module", "importlib.reload", "importlib.util",
                    "importlib.machinery", "pkgutil", "pydoc.locate", "runpy", "sys.modules")  # fmt: skip


class _Target(NamedTuple):
    """What a name stands for.

    Args:
        module: of the user's own; None for anything else.
        name: a definition in it; empty for the module itself. Without a module, the dotted name of what it is.
    """

    module: Module | None
    name: str


def reached_code(find: Find, below: Below, module: str, function: str) -> tuple[str, ...]:
    """What a function's result can depend on, as normalised text, sorted; the same for code that does the same.

    Args:
        find: gives modules.
        below: names the modules of a package.
        module: that the function is taken from.
        function: its name there. Whether there is such a name is for who calls it.
    """
    reach = _Reach(find, below)
    if (start := find(module)) is not None:
        reach.loads(start)
        reach.follow(start, (function,))
        if not reach.resolve(start, (function,)):
            reach.takes_whole(start)
        reach.finish()
    return tuple(sorted(reach.texts))


class _Reach:
    """What was reached so far.

    Args:
        find: gives modules.
        below: names the modules of a package.
        effects: whether what modules do when they are imported counts.
    """

    def __init__(self, find: Find, below: Below, *, effects: bool = True) -> None:
        self._find, self._below, self._effects = find, below, effects
        self.texts: set[str] = set()
        self.changed: set[str] = set()
        self.is_own = False
        self._todo: list[tuple[Module, Statement]] = []
        self._seen: set[tuple[str, ...]] = set()
        self._resolving: set[tuple[str, Chain]] = set()

    def finish(self) -> None:
        """Go on until what was taken in uses nothing new."""
        while self._todo:
            self._uses(*self._todo.pop())

    def follow(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> None:
        """Take in what a name stands for, used in a module with imports of its own."""
        key = ("follow", module.name, *chain, "", *(str(one) for one in imports if one.bound == chain[0]))
        if not self._is_new(key):
            return
        found = self.resolve(module, chain, imports)
        for target in found:
            self._take(module, chain, target)
        if not found and chain[0] in _SEES_ALL_NAMES:
            self.takes_whole(module)
        if not found and chain[0] == "__import__":
            self._takes_package(module)

    def resolve(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> list[_Target]:
        """What a name, with attributes, stands for in a module; nothing for Python's own and for what is unknown."""
        if (key := (module.name, chain)) in self._resolving:
            return []
        self._resolving.add(key)
        head, *rest = chain
        found: list[_Target] = []
        for one in (*imports, *module.imports):
            if one.bound == head:
                found += self._at(one.module, [one.name, *rest] if one.name else rest)
        if head in module.bound:
            found.append(_Target(module, head))
        if not found and module.is_package and self._find(f"{module.name}.{head}"):
            found += self._at(f"{module.name}.{head}", rest)
        self._resolving.discard(key)
        return found

    def takes_whole(self, module: Module) -> None:
        """Take in all of a module, and of the modules it has imported."""
        if not self._is_new(("whole", module.name)):
            return
        self.loads(module)
        self.texts.add(f"{module.name}: {' '.join(map(canonical, _without_texts(module.body)))}")
        names = module.names()
        for one in (*module.imports, *names.imports):
            self._imports(module, one)
            if one.bound != "*":
                self.follow(module, (one.bound,), names.imports)
            if not one.name and (found := self._find(one.loads)):
                self.takes_whole(found)
        self._uses(module, None)

    def loads(self, module: Module) -> None:
        """Take in what happens when a module is imported: its own doing, and that of its packages and imports."""
        if not self._effects or not self._is_new(("loads", module.name)):
            return
        for above in _packages(module.name):
            if package := self._find(above):
                self.loads(package)
        for one in module.imports:
            self._imports(module, one)
        for statement in (*module.effects, *self._registrations(module)):
            self._takes(module, statement, "on import")

    def _is_new(self, key: tuple[str, ...]) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _at(self, dotted: str, rest: Sequence[str]) -> list[_Target]:
        """What attributes of a module, by its absolute name, stand for."""
        module = self._find(dotted)
        if module is None:
            return self._at(f"{dotted}.{rest[0]}", rest[1:]) if rest else [_Target(None, dotted)]
        if not rest:
            return [_Target(module, "")]
        found = self.resolve(module, tuple(rest))
        if module.is_package and self._find(f"{dotted}.{rest[0]}"):
            found += self._at(f"{dotted}.{rest[0]}", rest[1:])
        return found or [_Target(module, "")]

    def _take(self, module: Module, chain: Chain, target: _Target) -> None:
        of = f"{target.module.name}:{target.name}" if target.module else target.name
        if (target.module, target.name) != (module, chain[0]):
            self.texts.add(f"{module.name}.{chain[0]} is {of}")
        if target.module is None:
            if any(_overlap(target.name, one) for one in _IMPORTS_BY_NAME):
                self._takes_package(module)
            return
        self.is_own = True
        if not target.name:
            self.takes_whole(target.module)
        elif self._is_new(("name", target.module.name, target.name)):
            self.loads(target.module)
            for statement in target.module.bound[target.name]:
                self._takes(target.module, statement, target.name)

    def _takes(self, module: Module, statement: Statement, role: str) -> None:
        self.texts.add(f"{module.name}.{role}: {canonical(statement)}")
        self._todo.append((module, statement))

    def _uses(self, module: Module, node: Statement | None) -> None:
        """Take in what a part of a module, or all of it, uses."""
        names = module.names(node)
        for one in names.imports:
            self._imports(module, one)
        for chain in sorted(names.used):
            self.follow(module, chain, names.imports)
        if isinstance(node, DEFINITIONS):
            self.changed.update(one for chain in names.changed for one in self._variables(module, chain))

    def _imports(self, module: Module, one: Import) -> None:
        """Take in what an import does, whoever uses what it binds."""
        for name in (*_packages(one.loads), one.loads, f"{one.loads}.{one.name}"):
            if found := self._find(name):
                self.loads(found)
        if one.bound == "*":
            self.texts.add(f"{module.name} has all of {one.module}")
            if found := self._find(one.module):
                self.takes_whole(found)

    def _takes_package(self, module: Module) -> None:
        """Take in all that lies beside a module which imports by a name that it computes."""
        self.takes_whole(module)
        for name in self._below(module.name):
            if found := self._find(name):
                self.takes_whole(found)

    def _variables(self, module: Module, chain: Chain) -> Iterator[str]:
        """The variables of the user's modules that a name stands for."""
        for target in self.resolve(module, chain):
            if target.module and target.module.is_variable(target.name):
                yield f"{target.module.name}:{target.name}"

    def _registrations(self, module: Module) -> Iterator[Statement]:
        """Definitions whose making changes something of the user's, as a decorator does that enters them in a list."""
        for statement in dict.fromkeys(one for statements in module.bound.values() for one in statements):
            if any(self._changes_something(module, part) for part in makers(statement)):
                yield statement

    def _changes_something(self, module: Module, maker: ast.expr) -> bool:
        """Whether calling something may change a variable of the user's."""
        function = maker.func if isinstance(maker, ast.Call) else maker
        if isinstance(function, ast.Attribute) and function.attr not in READING:
            owner = chain_of(function.value)
            if owner and any(True for _ in self._variables(module, owner)):
                return True
        called = _Reach(self._find, self._below, effects=False)
        for chain in module.names(function).used:
            called.follow(module, chain)
        called.finish()
        if called.changed or not called.is_own:
            return bool(called.changed)
        return any(len(chain) == 1 and module.is_filled_later(chain[0]) for chain in module.names(maker).used)


def _packages(name: str) -> Iterator[str]:
    """The packages that a module lies in, outermost first."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(1, len(parts)))


def _overlap(one: str, other: str) -> bool:
    """Whether a dotted name is another, lies in it or has it within."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _without_texts(body: Iterable[Statement]) -> Iterator[Statement]:
    """Statements but for those that are a text alone, as docstrings are."""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                yield statement
