"""A module as its source has it: what it binds, what it imports, and what it does when it is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from platform_assets.planning.code.bindings import Import, bound_in, imports_within
from platform_assets.planning.code.names import CALLED, Names, names_in

Statement = ast.stmt

_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign

_CONTAINERS = frozenset({"Counter", "OrderedDict", "defaultdict", "deque", "dict", "list", "set"})

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Module:
    """One module of Python code.

    Args:
        name: absolute.
        is_package: whether modules may lie in it.
        bound: the statements at its top that bind a name, by name, in order.
        executed: those at its top that are executed with it, in order, each with the imports in it.
        effects: what it does when it is imported, besides binding names.
        body: all its statements.
    """

    name: str
    is_package: bool
    bound: dict[str, list[Statement]]
    executed: tuple[tuple[Statement, tuple[Import, ...]], ...]
    effects: tuple[Statement, ...]
    body: tuple[Statement, ...]
    _names: dict[tuple[ast.AST | None, bool], Names] = field(default_factory=dict)
    _makers: dict[Statement, tuple[ast.expr, ...]] = field(default_factory=dict)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """What is imported with it, in order."""
        return tuple(import_ for _, imports in self.executed for import_ in imports)

    @cached_property
    def rebound(self) -> frozenset[str]:
        """Names that it binds more than once, to other things, so that it matters when."""
        several = {name for name, statements in self.bound.items() if len(statements) > 1}
        sources: dict[str, set[tuple[str, str]]] = {}
        for import_ in self.imports:
            sources.setdefault(import_.bound, set()).add((import_.module, import_.name))
        return frozenset(several | {name for name, of in sources.items() if len(of) > 1 or name in self.bound})

    @property
    def package(self) -> str:
        """What relative imports start from."""
        return _package(self.name, is_package=self.is_package)

    def names(self, node: ast.AST | None = None, *, at_once: bool = False) -> Names:
        """The names that a part of the module uses, or only what of it runs at once; by default, all of it."""
        if (key := (node, at_once)) not in self._names:
            nodes = self.body if node is None else [node]
            self._names[key] = names_in(nodes, self.package, at_once=at_once)
        return self._names[key]

    def makers(self, statement: Statement) -> tuple[ast.expr, ...]:
        """What is called when a statement is executed, the bodies of functions left out.

        A decorator is given as a whole; of other calls, what is called.
        """
        if statement not in self._makers:
            self._makers[statement] = tuple(_makers_in(statement))
        return self._makers[statement]

    def is_variable(self, name: str) -> bool:
        """Whether a name is bound to a value, which may be changed later on."""
        return any(not isinstance(statement, DEFINITIONS) for statement in self.bound.get(name, ()))

    def may_be_changed(self, name: str, attribute: str) -> bool:
        """Whether a name is bound to what keeps something that changes: a value, or attributes of a definition.

        Args:
            name: bound here.
            attribute: of what it is bound to, whose content changes; empty where it is that itself, by a method.
        """
        if self.is_variable(name) or attribute == CALLED:
            return self.is_variable(name)
        # What a function has methods for is up to its decorator, as with `singledispatch`; those of a class are read.
        return bool(attribute) or any(not isinstance(statement, ast.ClassDef) for statement in self.bound.get(name, ()))

    def may_hold(self, name: str) -> bool:
        """Whether a name is bound to what somebody may change who is given it: not to texts and numbers alone."""
        return not all(
            isinstance(statement, ast.Assign | ast.AnnAssign) and _is_constant(statement.value)
            for statement in self.bound.get(name, ())
        )

    def is_filled_later(self, name: str) -> bool:
        """Whether a name is bound to something empty, which nobody would need who never put anything in."""
        values = (
            statement.value
            for statement in self.bound.get(name, ())
            if isinstance(statement, ast.Assign | ast.AnnAssign)
        )
        return any(map(_is_empty, values))

    def is_empty_container(self, name: str) -> bool:
        """Whether a name is bound to a list, or the like, of Python's own that is filled later."""
        values = (
            statement.value
            for statement in self.bound.get(name, ())
            if isinstance(statement, ast.Assign | ast.AnnAssign)
        )
        return any(
            _is_empty(value) and (not isinstance(value, ast.Call) or _makes_container(value.func)) for value in values
        )


@lru_cache(maxsize=1024)
def parse_module(name: str, source: str, *, is_package: bool = False) -> Module:
    """A module from its source.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it has NUL in it.
    """
    body = tuple(ast.parse(source).body)
    executed = tuple(_executed(body))
    bound: dict[str, list[Statement]] = {}
    for statement in executed:
        # Opening the platform waits for this: expressions are looked through only where one of them binds a name.
        for bound_name in sorted(bound_in([statement] if ":=" in source else _binding(statement))):
            bound.setdefault(bound_name, []).append(statement)
    package = _package(name, is_package=is_package)
    steps = tuple(
        (statement, () if isinstance(statement, ast.Expr | _Assignment) else tuple(imports_within(statement, package)))
        for statement in executed
    )
    imported = frozenset(import_.bound for _, imports in steps for import_ in imports)
    effects = (statement for statement in executed if not _only_binds(statement, imported))
    return Module(name, is_package, bound, steps, tuple(effects), body)


def _package(name: str, *, is_package: bool) -> str:
    return name if is_package else name.rpartition(".")[0]


def _makers_in(node: ast.AST) -> Iterator[ast.expr]:
    inner: Iterable[ast.AST | None] = ast.iter_child_nodes(node)
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from node.decorator_list
            inner = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
        case ast.ClassDef(decorator_list=decorators, bases=bases, keywords=keywords):
            yield from [*decorators, *bases, *(keyword.value for keyword in keywords)]
        case ast.Lambda(args=args):
            inner = [*args.defaults, *args.kw_defaults]
        case ast.Call(func=ast.Name(id="map" | "filter"), args=[function, *_]):
            yield function
        case ast.Call(func=function):
            yield function
    for part in inner:
        if part is not None:
            yield from _makers_in(part)


def _executed(body: Iterable[Statement]) -> Iterable[Statement]:
    """Top-level statements, without what only a type checker, or who runs the module as a program, gets to see."""
    for statement in body:
        match statement:
            case ast.If(
                test=ast.Name(id="TYPE_CHECKING")
                | ast.Attribute(attr="TYPE_CHECKING")
                | ast.Compare(
                    left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
                ),
                orelse=instead,
            ):
                yield from _executed(instead)
            case _:
                yield statement


def _binding(statement: Statement) -> Sequence[ast.AST]:
    """The parts of a statement that bind names."""
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
        case ast.Expr():
            return ()
        case _:
            return [statement]


def _only_binds(statement: Statement, imported: frozenset[str]) -> bool:
    """Whether a statement does nothing but bind names, so that it counts only for who uses them.

    Args:
        statement: of the top of a module.
        imported: names that the module has from others, whose lists `+=` would make longer.
    """
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=targets):
            return all(map(_is_name, targets))
        case ast.AugAssign(target=ast.Name(id=name)):
            return name not in imported
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return _is_name(target)
        case _:
            return isinstance(statement, DEFINITIONS) or type(statement).__name__ == "TypeAlias"


def _is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Call(args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Name(id="defaultdict") | ast.Attribute(attr="defaultdict"), args=[_]):
            return True
        case _:
            return False


def _is_constant(value: ast.expr | None) -> bool:
    match value:
        case None | ast.Constant() | ast.JoinedStr():
            return True
        case ast.Tuple(elts=parts):
            return all(map(_is_constant, parts))
        case ast.UnaryOp(operand=inner):
            return _is_constant(inner)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case _:
            return False


def _makes_container(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _CONTAINERS
        case _:
            return False


def _is_name(target: ast.expr) -> bool:
    match target:
        case ast.Name():
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_name, parts))
        case ast.Starred(value=inner):
            return _is_name(inner)
        case _:
            return False
