"""Find the user's code that a transform can reach: statically, by the names it uses, rather too much than too little.

A definition counts for everything that uses it, over any number of modules. A module that binds a name twice, or
star-imports another one, counts whole for users of any of it, since its order matters. One that acts when it is
imported counts whole for all tables of the domain, whose transforms are imported together, with the order in which
these run. If only running the code would show what it uses, whole modules count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from platform_assets.contracts.table import LAYERS
from platform_assets.planning.code.acts import IMPORTS_BY_NAME, Acts
from platform_assets.planning.code.source import (
    Chain,
    Find,
    Import,
    Lookup,
    Module,
    Statement,
    Target,
    canonical,
    canonical_body,
    packages,
    parse_module,
)

Below = Callable[[str], Iterable[str]]
"""Names all modules of the user's own that lie in the same package as one of them, at any depth."""

_SEES_ALL_NAMES = frozenset({"eval", "exec", "globals", "locals", "vars", "compile"})


class Code(NamedTuple):
    """Code that can affect a function's result.

    Args:
        texts: normalised and sorted; equal for equivalent code.
        modules: modules that contain it, by name, sorted.
    """

    texts: tuple[str, ...]
    modules: tuple[str, ...]


def reached_code(find: Find, below: Below, module: str, function: str | None) -> Code:
    """Find the code that can affect a function's result; for a query, code that acts when it is imported.

    Args:
        module: module of the function, in a package of transforms.
        function: its name there; None for a query. The caller checks that it exists.
    """
    names = dict.fromkeys([*transform_modules(module.rpartition(".")[0]), module])
    imported = _imported(find, parse_module("(before)", "".join(f"import {name}\n" for name in names)))
    reach = _Reach(imported, below)
    own = find(module) if function else None
    if function and own is not None:
        reach.loads(own)
        reach.follow(own, (function,))
        if not imported.lookup.resolve(own, (function,)):
            reach.takes_whole(own)
    if not function or own is not None:
        for acting in imported.acting:
            reach.takes_all(acting)
        reach.finish()
    return Code(tuple(sorted(reach.texts)), reach.modules())


def transform_modules(package: str) -> tuple[str, ...]:
    """Return the possible modules of transforms in a package, in the order in which existing ones are imported."""
    return tuple(f"{package}.{layer}" for layer in LAYERS if layer != "raw")


class _Imported:
    """Modules that a process imports before computing anything, the same for all tables of a domain."""

    def __init__(self, find: Find, start: Module) -> None:
        self.lookup = Lookup(find)
        self._start = start

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """Return the user's modules, including imports inside functions, in the order in which they run."""
        done: dict[str, Module] = {}
        begun: set[str] = set()

        def run(name: str) -> None:
            for dotted in (*packages(name), name):
                if dotted not in begun and (module := self.lookup.find(dotted)):
                    begun.add(dotted)
                    run_imports(module)
                    done[dotted] = module

        def run_imports(module: Module) -> None:
            later = (import_ for statement in module.executed for import_ in module.names(statement).imports)
            for import_ in dict.fromkeys([*module.imports, *later]):
                run(import_.loads)
                if import_.name:
                    run(f"{import_.loads}.{import_.name}")

        run_imports(self._start)
        return tuple(done.values())

    @cached_property
    def acting(self) -> tuple[Module, ...]:
        """Return modules that act when they are imported."""
        acts = Acts(self.lookup)
        return tuple(module for module in self.modules if acts.acts(module))


_imported = lru_cache(maxsize=1)(_Imported)


class _Reach:
    """Code reached so far; `texts` is what counts."""

    def __init__(self, imported: _Imported, below: Below) -> None:
        self._imported, self._lookup, self._below = imported, imported.lookup, below
        self.texts: set[str] = set()
        self._loaded: dict[str, Module] = {}
        self._todo: list[tuple[Module, Statement | None]] = []
        self._seen: set[tuple[str, ...]] = set()

    def finish(self) -> None:
        """Continue until the collected code uses nothing new."""
        while self._todo:
            module, node = self._todo.pop()
            names = module.names(node)
            for import_ in names.imports:
                self._imports(module, import_)
            for chain in sorted(names.used):
                self.follow(module, chain, names.imports)
            for other in self._imported.modules if names.subclasses else ():
                self.takes_all(other)
        if self._imported.acting:
            order = (module.name for module in self._imported.modules if module.name in self._loaded)
            self.texts.add(f"imported in order: {' '.join(order)}")

    def modules(self) -> tuple[str, ...]:
        """Return the names of modules with collected code."""
        return tuple(sorted(self._loaded))

    def follow(self, module: Module, chain: Chain, imports: Sequence[Import] = ()) -> None:
        """Collect what a name stands for, used in a module with imports of its own."""
        key = ("follow", module.name, *chain, "", *(str(import_) for import_ in imports if import_.bound == chain[0]))
        if not self._is_new(key):
            return
        targets = self._lookup.resolve(module, chain, imports)
        for target in targets:
            self._take(module, chain, target)
        if not targets and chain[0] in _SEES_ALL_NAMES:
            self.takes_whole(module)
        if not targets and chain[0] == "__import__":
            self._takes_package(module)

    def takes_all(self, module: Module) -> None:
        """Collect all of a module, in its order."""
        if self._is_new(("all", module.name)):
            self.loads(module)
            self.texts.add(f"{module.name}: {canonical_body(module.body)}")
            self._todo.append((module, None))

    def takes_whole(self, module: Module) -> None:
        """Collect all of a module and of the modules that it has imported: any of their names may be used."""
        if not self._is_new(("whole", module.name)):
            return
        self.takes_all(module)
        names = module.names()
        for import_ in (*module.imports, *names.imports):
            if import_.bound != "*":
                # A dotted import binds a package for one module in it, not for all.
                chain = (
                    (import_.bound,) if import_.name or import_.module == import_.loads else (import_.bound, "__name__")
                )
                self.follow(module, chain, names.imports)
            if not import_.name and (imported := self._lookup.find(import_.loads)):
                self.takes_whole(imported)

    def loads(self, module: Module) -> None:
        """Record that a module is imported, with its packages and imports."""
        if not self._is_new(("loads", module.name)):
            return
        for above in packages(module.name):
            if package := self._lookup.find(above):
                self.loads(package)
        self._loaded[module.name] = module
        for import_ in module.imports:
            self._imports(module, import_)

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
            if any(_overlap(target.name, name) for name in IMPORTS_BY_NAME):
                self._takes_package(module)
        elif not target.name:
            self.takes_whole(target.module)
            if target.module.is_package and target.attribute in ("", "__dict__"):
                self._takes_modules_in(target.module)
        elif target.module.has_order:
            self.takes_all(target.module)
        elif self._is_new(("name", target.module.name, target.name)):
            self.loads(target.module)
            for statement in target.module.bound[target.name]:
                self.texts.add(f"{target.module.name}.{target.name}: {canonical(statement)}")
                self._todo.append((target.module, statement))

    def _imports(self, module: Module, import_: Import) -> None:
        """Include the effects of an import, whether or not its names are used."""
        for name in (*packages(import_.loads), import_.loads, f"{import_.loads}.{import_.name}"):
            if imported := self._lookup.find(name):
                self.loads(imported)
        if import_.bound == "*":
            self.texts.add(f"{module.name} has all of {import_.module}")
            if imported := self._lookup.find(import_.module):
                self.takes_whole(imported)

    def _takes_package(self, module: Module) -> None:
        """Collect the whole package of a module that imports by a computed name."""
        self.takes_whole(module)
        for name in self._below(module.name):
            if beside := self._lookup.find(name):
                self.takes_whole(beside)

    def _takes_modules_in(self, package: Module) -> None:
        """Collect all modules of a package: a computed name may import any of them."""
        for name in self._below(package.name):
            if name.startswith(f"{package.name}.") and (module := self._lookup.find(name)):
                self.takes_whole(module)


def _overlap(name: str, other: str) -> bool:
    """Return whether one dotted name equals or contains the other."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")
