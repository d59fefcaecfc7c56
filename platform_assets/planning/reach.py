"""The user's code that a transform can reach: statically, by the names it uses, and rather more than less.

A definition counts for who uses it, over any number of modules. What a module does when it is imported counts for all
who import it; so does a definition, or a constant, whose making may change something else of the user's. Where
only running the code could tell what it uses, whole modules count.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from platform_assets.planning.bindings import Chain, Import, chain_of
from platform_assets.planning.names import READING
from platform_assets.planning.source import Module, Statement, canonical, makers

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
        attribute: that is taken of it; empty for all of it.
    """

    module: Module | None
    name: str
    attribute: str = ""


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

    Attributes:
        changed: what of the user's it may change when it is called.
        changes_own: whether it may change what it is, an object or a function within another.
        is_own: whether any of it is the user's.
    """

    def __init__(self, find: Find, below: Below, *, effects: bool = True) -> None:
        self._find, self._below, self._effects = find, below, effects
        self.texts: set[str] = set()
        self.changed: set[str] = set()
        self.changes_own = False
        self.is_own = False
        self._subclasses = False
        self._loaded: list[Module] = []
        self._calls: dict[tuple[str, Chain], _Reach] = {}
        self._resolved: dict[tuple[str, Chain], list[_Target]] = {}
        self._todo: list[tuple[Module, Statement]] = []
        self._seen: set[tuple[str, ...]] = set()
        self._resolving: set[tuple[str, Chain]] = set()

    def finish(self) -> None:
        """Go on until what was taken in uses nothing new."""
        while self._todo:
            self._uses(*self._todo.pop())
            if self._subclasses and not self._todo:
                self._takes_subclasses()

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
        key = (module.name, chain)
        if not imports and key in self._resolved:
            return self._resolved[key]
        if key in self._resolving:
            return []
        self._resolving.add(key)
        head, *rest = chain
        found: list[_Target] = []
        for one in (*imports, *module.imports):
            if one.bound == head:
                found += self._at(one.module, [one.name, *rest] if one.name else rest)
        if head in module.bound:
            found.append(_Target(module, head, rest[0] if rest else ""))
        if not found and module.is_package and self._find(f"{module.name}.{head}"):
            found += self._at(f"{module.name}.{head}", rest)
        self._resolving.discard(key)
        if not imports and not self._resolving:  # within another one, it may have been cut short
            self._resolved[key] = found
        return found

    def takes_whole(self, module: Module) -> None:
        """Take in all of a module, and of the modules it has imported."""
        if not self._is_new(("whole", module.name)):
            return
        self.loads(module)
        if self._effects:
            self.texts.add(f"{module.name}: {' '.join(map(canonical, _without_texts(module.body)))}")
        names = module.names()
        for one in (*module.imports, *names.imports):
            self._imports(module, one)
            if one.bound != "*":
                # A dotted import binds a package for one module in it, not for all.
                chain = (one.bound,) if one.name or one.module == one.loads else (one.bound, "__name__")
                self.follow(module, chain, names.imports)
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
        self._loaded.append(module)
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
        found = list(self.resolve(module, tuple(rest)))
        if module.is_package and self._find(f"{dotted}.{rest[0]}"):
            found += self._at(f"{dotted}.{rest[0]}", rest[1:])
        return found or [_Target(module, "", rest[0])]

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
            if target.module.is_package and target.attribute in ("", "__dict__"):
                self._takes_modules_in(target.module)
        elif self._is_new(("name", target.module.name, target.name)):
            self.loads(target.module)
            for statement in target.module.bound[target.name]:
                self._takes(target.module, statement, target.name)

    def _takes(self, module: Module, statement: Statement, role: str) -> None:
        # Who only asks what a call changes needs no texts, and writing them takes most of the time.
        if self._effects:
            self.texts.add(f"{module.name}.{role}: {canonical(statement)}")
        self._todo.append((module, statement))

    def _uses(self, module: Module, node: Statement | None) -> None:
        """Take in what a part of a module, or all of it, uses."""
        names = module.names(node)
        for one in names.imports:
            self._imports(module, one)
        for chain in sorted(names.used):
            self.follow(module, chain, names.imports)
        self._subclasses |= names.subclasses
        if self._effects:
            return
        if _is_called_later(node):
            self.changes_own |= names.changes_own
            self.changed.update(one for chain in names.changed for one in self._variables(module, chain))
        # Whoever has a list that is filled later may hand it to what fills it.
        self.changed.update(one for chain in names.used for one in self._containers(module, chain))

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

    def _takes_modules_in(self, package: Module) -> None:
        """Take in the modules of a package, of which any may be taken by a name that is computed."""
        for name in self._below(package.name):
            if name.startswith(f"{package.name}.") and (found := self._find(name)):
                self.takes_whole(found)

    def _takes_subclasses(self) -> None:
        """Take in the classes with a base of the user's, once somebody asks a class for those that are made from it."""
        for module in list(self._loaded):
            for statement in _bindings(module):
                if isinstance(statement, ast.ClassDef) and self._is_new(("subclass", module.name, statement.name)):
                    chains = (chain for base in statement.bases for chain in module.names(base).used)
                    if any(target.module for chain in chains for target in self.resolve(module, chain)):
                        self._takes(module, statement, "on import")

    def _variables(self, module: Module, chain: Chain) -> Iterator[str]:
        """What in the user's modules a name stands for, where it can be changed."""
        for target in self.resolve(module, chain):
            if target.module and target.name and target.module.may_be_changed(target.name, target.attribute):
                yield f"{target.module.name}:{target.name}"

    def _containers(self, module: Module, chain: Chain) -> Iterator[str]:
        """The lists, and the like, of the user's modules that a name stands for, where they are filled later."""
        for target in self.resolve(module, chain):
            if target.module and target.module.is_empty_container(target.name):
                yield f"{target.module.name}:{target.name}"

    def _registrations(self, module: Module) -> Iterator[Statement]:
        """Definitions whose making changes something of the user's, as a decorator does that enters them in a list."""
        for statement in _bindings(module):
            at_once = module.names(statement, at_once=True)
            changed = (one for chain in at_once.changed for one in self._variables(module, chain))
            passed = (one for chain in at_once.passed for one in self._containers(module, chain))
            called = (True for part in makers(statement) if self._changes_something(module, part))
            if any(True for found in (changed, passed, called) for _ in found):
                yield statement

    def _changes_something(self, module: Module, maker: ast.expr) -> bool:
        """Whether calling something may change a variable of the user's."""

        def uses(node: ast.expr) -> list[_Target]:
            return [one for chain in module.names(node).used for one in self.resolve(module, chain)]

        function = maker.func if isinstance(maker, ast.Call) else maker
        if isinstance(function, ast.Attribute) and function.attr not in READING:
            owner = chain_of(function.value)
            if owner and any(True for _ in self._variables(module, owner)):
                return True
        called = [self._called(module, chain) for chain in module.names(function).used]
        if any(one.changed for one in called) or not any(one.is_own for one in called):
            return any(one.changed for one in called)
        if any(one.changes_own for one in called) and any(
            one.module and one.module.is_variable(one.name) for one in uses(function)
        ):
            return True
        return any(one.module and not one.attribute and one.module.is_filled_later(one.name) for one in uses(maker))

    def _called(self, module: Module, chain: Chain) -> _Reach:
        """What the call of a name reaches, found once for all who call it."""
        if (key := (module.name, chain)) not in self._calls:
            called = self._calls[key] = _Reach(self._find, self._below, effects=False)
            called._resolved = self._resolved
            called.follow(module, chain)
            called.finish()
        return self._calls[key]


def _bindings(module: Module) -> Iterable[Statement]:
    """The statements at the top of a module that bind a name."""
    return dict.fromkeys(one for statements in module.bound.values() for one in statements)


def _is_called_later(node: Statement | None) -> bool:
    """Whether some code is, or has in it, what is run by who calls it, and not only where it stands."""
    match node:
        case None:
            return False
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return isinstance(value, ast.Lambda)
        case _:
            return not isinstance(node, ast.Expr | ast.AugAssign)


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
