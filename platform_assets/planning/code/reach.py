"""The user's code that a transform can reach: statically, by the names it uses, and rather more than less.

A definition counts for who uses it, over any number of modules. What a module does when it is imported counts for all
who import it; so does a definition, or a constant, whose making may change something else of the user's. Where
only running the code could tell what it uses, whole modules count. Its order counts as `order` has it, and of modules
that others have imported before, what `beforehand` has.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from platform_assets.planning.code.beforehand import Beforehand, imports_before
from platform_assets.planning.code.bindings import Chain, Import, packages
from platform_assets.planning.code.canonical import canonical, canonical_body
from platform_assets.planning.code.lookup import Find, Lookup, Target, Variable
from platform_assets.planning.code.on_import import OnImport, bindings
from platform_assets.planning.code.order import Order, Reached
from platform_assets.planning.code.source import Module, Statement

Below = Callable[[str], Iterable[str]]
"""Names all modules of the user's own that lie in the same package as one of them, at any depth."""

_SEES_ALL_NAMES = frozenset({"eval", "exec", "globals", "locals", "vars", "compile"})
_IMPORTS_BY_NAME = ("builtins.__import__", "importlib.import_module", "importlib.reload", "importlib.util",
                    "importlib.machinery", "pkgutil", "pydoc.locate", "runpy", "sys.modules")  # fmt: skip


class Code(NamedTuple):
    """What a function's result can depend on.

    Args:
        texts: normalised and sorted; the same for code that does the same.
        modules: that it lies in, by name, sorted.
    """

    texts: tuple[str, ...]
    modules: tuple[str, ...]


def reached_code(find: Find, below: Below, module: str, function: str) -> Code:
    """What a function's result can depend on.

    Args:
        find: gives modules.
        below: names the modules of a package.
        module: that the function is taken from, of a package of transforms.
        function: its name there. Whether there is such a name is for who calls it.
    """
    start = imports_before(module)
    before = _before(find, below, start)
    reach = _Reach(before.lookup, below, before)
    if (own := find(module)) is not None:
        reach.loads(own)
        reach.follow(own, (function,))
        if not before.lookup.resolve(own, (function,)):
            reach.takes_whole(own)
        reach.finish()
        reach.texts.update(reach.order(before).texts(start.name))
    return Code(tuple(sorted(reach.texts)), reach.modules())


@lru_cache(maxsize=1)
def _before(find: Find, below: Below, start: Module) -> Beforehand:
    """What is the same for all tables that a module imports the transforms of; looking it up takes most of the time."""
    lookup = Lookup(lambda name: start if name == start.name else find(name))

    @cache
    def called(module: Module, chain: Chain) -> _Reach:
        reach = _Reach(lookup, below)
        reach.follow(module, chain)
        reach.finish()
        return reach

    return Beforehand(lookup, OnImport(lookup, called), start)


class _Reach:
    """What was reached so far.

    Args:
        lookup: of names.
        below: names the modules of a package.
        before: what is imported before; None where what modules do when they are imported does not count.

    Attributes:
        texts: what counts.
        changed: what of the user's it may change when it is called.
        touched: names in the user's modules that it uses.
        changes_own: whether it may change what it is, an object or a function within another.
        is_own: whether any of it is the user's.
    """

    def __init__(self, lookup: Lookup, below: Below, before: Beforehand | None = None) -> None:
        self._lookup, self._below, self._before = lookup, below, before
        self.texts: set[str] = set()
        self.changed: set[Variable] = set()
        self.touched: set[Variable] = set()
        self.changes_own = False
        self.is_own = False
        self._subclasses = False
        self._loaded: list[Module] = []
        self._todo: list[tuple[Module, Statement]] = []
        self._seen: set[tuple[str, ...]] = set()
        self._taken: dict[Statement, str] = {}
        self._doing: dict[Statement, Module] = {}
        self._whole: set[str] = set()

    def finish(self) -> None:
        """Go on until what was taken in uses nothing new."""
        is_more = True
        while is_more:
            while self._todo:
                self._uses(*self._todo.pop())
            if self._subclasses:
                self._takes_subclasses()
            if self._before:
                self._takes_changes(self._before)
            is_more = bool(self._todo)

    def modules(self) -> tuple[str, ...]:
        """Names of those that something was taken of."""
        own = {module.name for module in (*self._loaded, *self._doing.values())}
        return tuple(sorted(name for name in own if name and self._lookup.find(name)))

    def order(self, before: Beforehand) -> Order:
        """In which order what was taken in runs, where that counts."""
        modules = list(dict.fromkeys([*self._loaded, *self._doing.values()]))
        return Order(self._lookup, before.on_import, Reached(modules, self._whole, self._taken, self._doing.keys()))

    def follow(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> None:
        """Take in what a name stands for, used in a module with imports of its own."""
        key = ("follow", module.name, *chain, "", *(str(import_) for import_ in imports if import_.bound == chain[0]))
        if not self._is_new(key):
            return
        self.touched.add(Variable(module.name, chain[0]))
        targets = self._lookup.resolve(module, chain, imports)
        for target in targets:
            self._take(module, chain, target)
        if not targets and chain[0] in _SEES_ALL_NAMES:
            self.takes_whole(module)
        if not targets and chain[0] == "__import__":
            self._takes_package(module)

    def takes_whole(self, module: Module) -> None:
        """Take in all of a module, and of the modules it has imported."""
        if not self._is_new(("whole", module.name)):
            return
        self.loads(module)
        self._whole.add(module.name)
        if self._before:
            self.texts.add(f"{module.name}: {canonical_body(module.body)}")
        names = module.names()
        for import_ in (*module.imports, *names.imports):
            self._imports(module, import_)
            if import_.bound != "*":
                # A dotted import binds a package for one module in it, not for all.
                chain = (
                    (import_.bound,) if import_.name or import_.module == import_.loads else (import_.bound, "__name__")
                )
                self.follow(module, chain, names.imports)
            if not import_.name and (imported := self._lookup.find(import_.loads)):
                self.takes_whole(imported)
        self._uses(module, None)

    def loads(self, module: Module) -> None:
        """Take in what happens when a module is imported: its own doing, and that of its packages and imports."""
        if not self._before or not self._is_new(("loads", module.name)):
            return
        for above in packages(module.name):
            if package := self._lookup.find(above):
                self.loads(package)
        self._loaded.append(module)
        for import_ in module.imports:
            self._imports(module, import_)
        for statement in (*module.effects, *self._before.on_import.registrations(module)):
            self._does(module, statement)

    def _is_new(self, key: tuple[str, ...]) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _take(self, module: Module, chain: Chain, target: Target) -> None:
        if (target.module, target.name) != (module, chain[0]):
            self.texts.add(f"{module.name}.{chain[0]} is {target}")
        if target.module is None:
            if target.name in {f"builtins.{name}" for name in _SEES_ALL_NAMES}:
                self.takes_whole(module)
            if any(_overlap(target.name, name) for name in _IMPORTS_BY_NAME):
                self._takes_package(module)
            return
        self.is_own = True
        self.touched.add(Variable(target.module.name, target.name))
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
        if self._before:
            if statement not in self._taken:
                self._taken[statement] = canonical(statement)
            self.texts.add(f"{module.name}.{role}: {self._taken[statement]}")
        self._todo.append((module, statement))

    def _does(self, module: Module, statement: Statement) -> None:
        self._doing[statement] = module
        self._takes(module, statement, "on import")

    def _uses(self, module: Module, node: Statement | None) -> None:
        """Take in what a part of a module, or all of it, uses."""
        names = module.names(node)
        for import_ in names.imports:
            self._imports(module, import_)
        for chain in sorted(names.used):
            self.follow(module, chain, names.imports)
        self._subclasses |= names.subclasses
        if self._before:
            return
        if _is_called_later(node):
            self.changes_own |= names.changes_own
            for chain in names.changed:
                self.changed.update(self._lookup.variables(module, chain, names.imports))
            self.changed.update(self._lookup.given_away(module, names))
        # Whoever has a list that is filled later may hand it to what fills it.
        self.changed.update(variable for chain in names.used for variable in self._lookup.containers(module, chain))

    def _imports(self, module: Module, import_: Import) -> None:
        """Take in what an import does, whoever uses what it binds."""
        for name in (*packages(import_.loads), import_.loads, f"{import_.loads}.{import_.name}"):
            if imported := self._lookup.find(name):
                self.loads(imported)
        if import_.bound == "*":
            self.texts.add(f"{module.name} has all of {import_.module}")
            if imported := self._lookup.find(import_.module):
                self.takes_whole(imported)

    def _takes_package(self, module: Module) -> None:
        """Take in all that lies beside a module which imports by a name that it computes."""
        self.takes_whole(module)
        for name in self._below(module.name):
            if beside := self._lookup.find(name):
                self.takes_whole(beside)

    def _takes_modules_in(self, package: Module) -> None:
        """Take in the modules of a package, of which any may be taken by a name that is computed."""
        for name in self._below(package.name):
            if name.startswith(f"{package.name}.") and (module := self._lookup.find(name)):
                self.takes_whole(module)

    def _takes_subclasses(self) -> None:
        """Take in the classes with a base of the user's, once somebody asks a class for those that are made from it."""
        for module in [*self._loaded, *(self._before.modules if self._before else ())]:
            for statement in bindings(module):
                if isinstance(statement, ast.ClassDef) and self._is_new(("subclass", module.name, statement.name)):
                    chains = (chain for base in statement.bases for chain in module.names(base).used)
                    if any(target.module for chain in chains for target in self._lookup.resolve(module, chain)):
                        self._does(module, statement)

    def _takes_changes(self, before: Beforehand) -> None:
        """Take in what modules that nothing here imports may have changed of what is reached, being imported before."""
        loaded = {module.name for module in self._loaded}
        for module in before.modules:
            for statement, changed in before.changing(module) if module.name not in loaded else ():
                if statement not in self._doing and (changed is None or any(map(self._is_reached, changed))):
                    self._does(module, statement)

    def _is_reached(self, variable: Variable) -> bool:
        return variable in self.touched or variable.module in self._whole


def _is_called_later(node: Statement | None) -> bool:
    """Whether some code is, or has in it, what is run by who calls it, and not only where it stands."""
    match node:
        case None:
            return False
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return isinstance(value, ast.Lambda)
        case _:
            return not isinstance(node, ast.Expr | ast.AugAssign)


def _overlap(name: str, other: str) -> bool:
    """Whether a dotted name is another, lies in it or has it within."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")
