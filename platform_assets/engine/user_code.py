"""Find the source of the user's own code where Python would find it, without importing any of it.

A table is computed by a function, or by a query in a file `<transforms>/<layer>/<table>.sql`.

The user's own code is all code outside the standard library, installed packages and this one, whose domains belong to
it; and the whole package with a domain's transforms, wherever it is installed.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Collection, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from pkgutil import iter_modules

from platform_assets.contracts import Catalogue, Contract, ContractError, Domain
from platform_assets.engine.catalogue import Mistake, refuse_mistakes
from platform_assets.engine.sql_tables import Query, query_columns, query_mistakes, read_query
from platform_assets.errors import users_line
from platform_assets.planning.code.reach import Code, reached_code
from platform_assets.planning.code.source import Module, parse_module
from platform_assets.records.code_version import code_version

_ENGINE, _DOMAINS = "platform_assets", "platform_assets.domains"
_TOOLS = frozenset({"delta", "py4j", "pyspark"})
"""Where Spark was not installed by pip, they lie among the user's own."""

_LIBRARY = tuple(Path(path) for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name)))
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def table_version(code: UserCode, domain: Domain, contract: Contract) -> str:
    """Return the code version of a table: the hash of all code that its transform can reach.

    Raises:
        ContractError: the source of a reached module is missing, or cannot be read.
    """
    module, query = transform_module(domain, contract), code.query(contract)
    if query is None and code.find(module) is None:
        raise missing_module(domain, contract)
    try:
        statement = () if query is None else (f"SQL: {query.statement.text}",)
        return code_version((*statement, *_reached(code, module, contract, query).texts))
    except RecursionError as error:
        raise _unknowable(module, "an expression in it, or in what it uses, is nested too deeply") from error


def reached_files(code: UserCode, domain: Domain, contract: Contract) -> tuple[Path, ...]:
    """Return the files that a table's transform can reach; for a version set by hand, the known ones."""
    module, query = transform_module(domain, contract), code.query(contract)
    try:
        modules = _reached(code, module, contract, query).modules
    except (ContractError, RecursionError):  # some of it cannot be read, which only a version by hand allows
        modules = (module,)
    places = (query.file if query else None, *(code.file(name) for name in modules))
    return tuple(Path(place) for place in places if place is not None and Path(place).is_file())


def _reached(code: UserCode, module: str, contract: Contract, query: Query | None) -> Code:
    return reached_code(code.find, code.below, module, None if query else contract.table)


def column_sources(catalogue: Catalogue, contract: Contract) -> dict[str, tuple[str, ...]]:
    """Return the input columns of each column, as `<layer>.<table>.<column>`.

    The contract says so, else the query of the table, else the input columns with the same name.
    """
    query = UserCode(catalogue.domain_of(contract.name)).query(contract) if contract.inputs else None
    by_query = query_columns(query, contract, catalogue) if query else {}
    sources: dict[str, tuple[str, ...]] = {}
    for column in contract.columns:
        read = (read.table for read in contract.inputs if column.name in catalogue[read.table].column_names)
        alike = tuple(f"{table}.{column.name}" for table in read)
        sources[column.name] = column.made_from or by_query.get(column.name, alike)
    return sources


def transform_module(domain: Domain, contract: Contract) -> str:
    """Return the module and name of a table's function."""
    return f"{domain.transforms}.{contract.layer}"


def parameters(contract: Contract) -> list[str]:
    """Return the parameters of the function that computes a table."""
    return [read.parameter for read in contract.transform_inputs]


def missing_module(domain: Domain, contract: Contract) -> ContractError:
    """Return the error for a missing module of a table's function."""
    return ContractError(
        f"The domain {domain.name!r} has no module {transform_module(domain, contract)}, by which {contract.name} is "
        "computed.",
        f"Write it, with a function {contract.table}, or correct `transforms` of its Domain.",
        table=contract.name,
        field="transforms",
    )


def missing_function(contract: Contract, module: str, there: str | None = None) -> ContractError:
    """Return the error for a missing function of a table, or one with other parameters."""
    return ContractError(
        f"{contract.name} needs a function {contract.table}({', '.join(parameters(contract))}) in {module}"
        f"{f', where {there}' if there else ''}.",
        "Write it, with its inputs' names as parameters in the contract's order; or as a query, in "
        f"{contract.layer}/{contract.table}.sql beside the module.",
        table=contract.name,
        field="inputs" if there else None,
    )


class UserCode:
    """The user's own modules, as one domain sees them.

    Args:
        domain: domain whose package is the user's own wherever it is.

    Raises:
        ContractError: the package of its transforms is missing.
    """

    def __init__(self, domain: Domain) -> None:
        self._home = domain.transforms.partition(".")[0]
        self._specs: dict[str, ModuleSpec | None] = {}
        self._modules: dict[str, Module | None] = {}
        spec = self._spec(domain.transforms)
        if spec is None or spec.submodule_search_locations is None:
            raise ContractError(
                f"The domain {domain.name!r} has no package {domain.transforms!r}.",
                "Correct `transforms` of its Domain.",
            )
        self._folders = tuple(Path(folder) for folder in spec.submodule_search_locations)

    def query(self, contract: Contract) -> Query | None:
        """Return the query of a table in SQL; None without a file. An unreadable one is refused."""
        files = (folder / contract.layer / f"{contract.table}.sql" for folder in self._folders)
        return next((read_query(file, contract) for file in files if file.is_file()), None)

    def find(self, name: str) -> Module | None:
        """Return a user's module; None for other modules and unknown names."""
        if name not in self._modules:
            self._modules[name] = self._parsed(name) if self._may_be_own(name) else None
        return self._modules[name]

    def below(self, name: str) -> Iterator[str]:
        """Return all modules of the user's own in the same package as a module, at any depth."""
        top = _DOMAINS if _lies_in(name, _ENGINE) else name.partition(".")[0]
        return self._within(top)

    def _within(self, name: str) -> Iterator[str]:
        yield name
        spec = self._spec(name)
        for module in iter_modules(spec.submodule_search_locations if spec else (), f"{name}."):
            yield from self._within(module.name) if module.ispkg else [module.name]

    def _may_be_own(self, name: str) -> bool:
        top = name.partition(".")[0]
        if top == _ENGINE:
            return _lies_in(name, _DOMAINS)
        if top in _TOOLS or not all(name.split(".")):
            return False
        spec = self._spec(top)
        return spec is not None and (top == self._home or not _is_installed(spec))

    def _parsed(self, name: str) -> Module | None:
        spec = self._spec(name)
        by_name = _lies_in(name, self._home) or _lies_in(name, _DOMAINS)
        if spec is None or (not by_name and _is_installed(spec)):
            return None
        source = _source_of(name, spec)
        try:
            return parse_module(name, source, is_package=spec.submodule_search_locations is not None)
        except (SyntaxError, ValueError) as error:
            if not isinstance(error, SyntaxError):
                raise _unknowable(name, str(error)) from error
            error.filename = spec.origin
            raise _unknowable(name, f"{error.msg} in {users_line(error)}", is_python=False) from error

    def file(self, name: str) -> str | None:
        """Return the path of a module's source."""
        spec = self._spec(name)
        return spec.origin if spec else None

    def _spec(self, name: str) -> ModuleSpec | None:
        if name not in self._specs:
            self._specs[name] = self._located(name)
        return self._specs[name]

    def _located(self, name: str) -> ModuleSpec | None:
        """Return where a module would be loaded from, without importing packages around it."""
        loaded = getattr(sys.modules.get(name), "__spec__", None)
        if isinstance(loaded, ModuleSpec):
            return loaded
        path: list[str] | None = None
        if above := name.rpartition(".")[0]:
            package = self._spec(above)
            if package is None or package.submodule_search_locations is None:
                return None
            path = list(package.submodule_search_locations)
        finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
        specs = (find(name, path) for find in finders if find)
        try:
            return next((spec for spec in specs if spec is not None), None)
        except KeyError:  # a folder without __init__, as one of queries alone; Python asks the package above it
            folder = ModuleSpec(name, None, is_package=True)
            folder.submodule_search_locations = [str(Path(above, name.rpartition(".")[2])) for above in path or ()]
            return folder


def _source_of(name: str, spec: ModuleSpec) -> str:
    if spec.origin is None and spec.submodule_search_locations is not None:
        return ""  # a folder without __init__
    get = getattr(spec.loader, "get_source", None)
    try:
        source: str | None = get(name) if get else None
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        raise _unknowable(name, str(error)) from error
    if source is None:
        raise _unknowable(name, f"{spec.origin} has no source")
    return source


def _unknowable(name: str, why: str, *, is_python: bool = True) -> ContractError:
    return ContractError(
        f"The source of {name}, which transforms use, cannot be read, so it is not known when it changes: {why}.",
        "Set `code_version` by hand, in the contracts that use it or for their Domain."
        if is_python
        else "Correct that line.",
    )


def _is_installed(spec: ModuleSpec) -> bool:
    """Return whether a module belongs to the standard library or to an installed package."""
    if spec.has_location and spec.origin:
        return _lies_among_installed(Path(spec.origin))
    # Without folders either it is built into Python.
    return all(_lies_among_installed(Path(folder)) for folder in spec.submodule_search_locations or ())


def _lies_among_installed(place: Path) -> bool:
    return not _INSTALLED.isdisjoint(place.parts) or any(place.is_relative_to(library) for library in _LIBRARY)


def _lies_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def refuse_wrong_functions(catalogue: Catalogue) -> None:
    """Refuse tables without their function, all of them at once, before any work."""
    refuse_mistakes(list(function_mistakes(catalogue)))


def function_mistakes(catalogue: Catalogue, tables: Collection[str] | None = None) -> Iterator[Mistake]:
    """Yield mistakes of the functions of all or some tables."""
    for domain in catalogue.domains:
        wanted = [
            contract for contract in domain.tables if contract.inputs and (tables is None or contract.name in tables)
        ]
        if not wanted:
            continue
        try:
            code = UserCode(domain)
        except ContractError as error:
            yield Mistake.of(error, domain.transforms)
            continue
        whole_modules: set[str] = set()
        for contract in wanted:
            try:
                query = code.query(contract)
                _check(code, domain, contract, query)
                for wrong in query_mistakes(query, contract) if query else ():
                    yield Mistake.of(wrong, domain.transforms)
            except ContractError as error:
                if error.table is not None:
                    yield Mistake.of(error, domain.transforms, error.place or _place(code, domain, contract))
                elif error.what not in whole_modules:
                    whole_modules.add(error.what)
                    yield Mistake.of(error, domain.transforms)


def _check(code: UserCode, domain: Domain, contract: Contract, query: Query | None) -> None:
    """Refuse a table whose function does not fit its contract, or that also has a query."""
    name = transform_module(domain, contract)
    by_hand = contract.code_version or domain.code_version
    if query is not None:
        if by_hand is None:
            table_version(code, domain, contract)
        if (module := code.find(name)) is not None and contract.table in module.bound:
            raise ContractError(
                f"{contract.name} has a query in {query.file} and a function in {name}.",
                "Remove one of them.",
                table=contract.name,
            )
        return
    try:
        module = code.find(name)
    except ContractError as error:
        if by_hand is None or isinstance(error.__cause__, SyntaxError):
            raise
        return  # without source: the version was set by hand
    if module is None:
        raise missing_module(domain, contract)
    bound = module.bound.get(contract.table)
    if not bound and not any(taken.bound in (contract.table, "*") for taken in module.imports):
        raise missing_function(contract, name)
    match bound:
        case [*_, ast.FunctionDef(decorator_list=[]) as function] if _named(function) != parameters(contract):
            raise missing_function(contract, name, f"it is {function.name}({ast.unparse(function.args)})")
        case [*_, ast.AsyncFunctionDef() | ast.ClassDef() as other]:
            raise missing_function(contract, name, f"{other.name} is {_KINDS[type(other)]}")
    if by_hand is None:
        table_version(code, domain, contract)


_KINDS = {ast.AsyncFunctionDef: "an async function", ast.ClassDef: "a class"}


def _named(function: ast.FunctionDef) -> list[str] | None:
    """Return the parameters, if each can be given by name."""
    given = function.args
    if given.posonlyargs or given.vararg or given.kwarg:
        return None
    return [parameter.arg for parameter in (*given.args, *given.kwonlyargs)]


def _place(code: UserCode, domain: Domain, contract: Contract) -> str | None:
    """Return the file of the function, and its line if it exists."""
    name = transform_module(domain, contract)
    file, module = code.file(name), code.find(name)
    bound = module.bound.get(contract.table) if module else None
    return f"{file}, line {bound[-1].lineno}" if bound else file
