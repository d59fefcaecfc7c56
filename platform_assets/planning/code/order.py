"""The order in which reached code runs when it is imported, where another one may give something else.

Statements that change something count in their order over all modules, as Python would run them. So do those that use
or change one variable, if they change it or the variable is bound more than once. All else may change places: of
definitions, and of imports that do nothing, the order does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from platform_assets.planning.code.bindings import Import, bound_in, held_in, packages
from platform_assets.planning.code.canonical import canonical
from platform_assets.planning.code.lookup import Lookup, Variable
from platform_assets.planning.code.on_import import OnImport
from platform_assets.planning.code.source import Module, Statement


class Reached(NamedTuple):
    """What of the user's code counts.

    Args:
        modules: that are imported.
        whole: names of those of which everything counts.
        taken: statements that count, as text.
        doing: those that count because of what they do when they are imported.
    """

    modules: Sequence[Module]
    whole: Set[str]
    taken: Mapping[Statement, str]
    doing: Set[Statement]


class _Step(NamedTuple):
    module: Module
    statement: Statement
    imports: tuple[Import, ...]


class Order:
    """Finds what the order of reached code can change.

    Args:
        lookup: of names.
        on_import: finds what statements change.
        reached: what counts.
    """

    def __init__(self, lookup: Lookup, on_import: OnImport, reached: Reached) -> None:
        self._lookup, self._on_import, self._reached = lookup, on_import, reached
        self._begun: set[str] = set()
        self._stars: dict[str, frozenset[str]] = {}
        self._watched = {Variable(module.name, name) for module in reached.modules for name in self._rebound(module)}
        self._changed: dict[Statement, set[Variable]] = {}
        for module in reached.modules:
            for statement, _ in module.executed:
                if statement in reached.doing:
                    self._changed[statement] = set(on_import.changed_by(module, statement))
        self._watched.update(*self._changed.values())
        while more := {name for module in reached.modules for name in self._named(module)} - self._watched:
            self._watched |= more

    def texts(self, module: str) -> Iterator[str]:
        """Every order that counts, with what is in it.

        Args:
            module: that is imported first. Of those that only functions import, each is taken for itself.
        """
        for name in (module, *sorted(reached.name for reached in self._reached.modules)):
            steps: list[_Step] = []
            self._run(name, steps)
            doing = [self._text(step) for step in steps if step.statement in self._reached.doing]
            if len(doing) > 1:
                yield f"on import: {' '.join(doing)}"
            yield from self._by_variable(steps)

    def _run(self, name: str, steps: list[_Step]) -> None:
        """Note what is executed when a module is imported, in order."""
        for dotted in (*packages(name), name):
            module = None if dotted in self._begun else self._lookup.find(dotted)
            if module is None:
                continue
            self._begun.add(dotted)
            for statement, imports in module.executed:
                for loaded in imports:
                    self._run(loaded.loads, steps)
                    if loaded.name:
                        self._run(f"{loaded.loads}.{loaded.name}", steps)
                steps.append(_Step(module, statement, imports))

    def _by_variable(self, steps: Iterable[_Step]) -> Iterator[str]:
        if not self._watched:
            return
        by_variable: dict[Variable, list[str]] = {}
        for step in steps:
            for key, text in self._parts(step):
                by_variable.setdefault(key, []).append(text)
        for key, texts in by_variable.items():
            if len(texts) > 1:
                yield f"{key} on import: {' '.join(texts)}"

    def _parts(self, step: _Step) -> Iterator[tuple[Variable, str]]:
        """The watched variables that a step binds, uses or changes, each with what of the step counts for it."""
        imported = [
            (key, f"{name} is {import_.name} of {import_.module}")
            for import_ in step.imports
            for name in ((import_.bound,) if import_.bound != "*" else self._given_by_star(import_.module))
            if (key := Variable(step.module.name, name)) in self._watched
        ]
        if step.statement in self._reached.taken or step.module.name in self._reached.whole:
            touched = self._watched.intersection(self._touched(step.module, step.statement))
            for key in touched.union(key for key, _ in imported):
                yield key, self._text(step)
        else:
            yield from imported

    def _touched(self, module: Module, statement: Statement) -> Iterator[Variable]:
        """What a statement changes, binds or uses when it runs."""
        yield from self._changed.get(statement, ())
        for name in bound_in([statement]):
            yield Variable(module.name, name)
        for node in _at_once(statement):
            for chain in module.names(node, at_once=True).used:
                yield Variable(module.name, chain[0])
                # By a call, a property or an operator, or because it is that by another name.
                yield from self._on_import.called(module, chain).touched

    def _named(self, module: Module) -> Iterator[Variable]:
        """What watched variables of a module are other names for, or have within."""
        for name, statements in module.bound.items():
            if Variable(module.name, name) in self._watched:
                values = (
                    statement.value
                    for statement in statements
                    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value
                )
                for chain in (chain for value in values for chain in held_in(value)):
                    yield from self._lookup.variables(module, chain)

    def _rebound(self, module: Module) -> Iterator[str]:
        """Names that a module binds more than once, its imports of everything included."""
        yield from module.rebound
        seen = {*module.bound, *(import_.bound for import_ in module.imports)}
        for star in dict.fromkeys(import_.module for import_ in module.imports if import_.bound == "*"):
            given = self._given_by_star(star)
            yield from given & seen
            seen |= given

    def _given_by_star(self, name: str) -> frozenset[str]:
        """The names that an import of everything in a module binds."""
        if name not in self._stars:
            self._stars[name] = frozenset()  # for modules that import each other
            if module := self._lookup.find(name):
                imported = {import_.bound for import_ in module.imports}
                further = (self._given_by_star(import_.module) for import_ in module.imports if import_.bound == "*")
                self._stars[name] = frozenset({*module.bound, *imported}.union(*further)) - {"*"}
        return self._stars[name]

    def _text(self, step: _Step) -> str:
        return f"{step.module.name}: {self._reached.taken.get(step.statement) or canonical(step.statement)}"


def _at_once(statement: Statement) -> Iterable[ast.AST]:
    """The parts of a statement that are computed where it stands; of a function, annotations are not of interest."""
    match statement:
        case (
            ast.FunctionDef(decorator_list=decorators, args=args)
            | ast.AsyncFunctionDef(decorator_list=decorators, args=args)
        ):
            return [*decorators, *args.defaults, *(default for default in args.kw_defaults if default is not None)]
        case _:
            return [statement]
