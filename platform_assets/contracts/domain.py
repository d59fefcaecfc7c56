"""A domain: contracts that belong together, their transforms, and consumers downstream of its tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from keyword import iskeyword

from platform_assets.contracts.calendar import Protected
from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.contracts.errors import ContractError, check_declaration, refuse, unknown_table
from platform_assets.contracts.rules import rule_problems
from platform_assets.contracts.table import Contract, code_version_problems
from platform_assets.contracts.windows import AsOf
from platform_assets.errors import did_you_mean
from platform_assets.places import origin_of

ANNOUNCEMENTS = "announcements"
"""Where the platform's own announcements go; no exposure has that name."""
ROUTE = f"{ANNOUNCEMENTS}: "
"""Before the name of a route, what a message to it is for."""
OPENLINEAGE = "openlineage"
"""Where lineage events go; no exposure has that name either."""
_TAKEN = (ANNOUNCEMENTS, OPENLINEAGE)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class Exposure:
    """Declare something downstream, such as a dashboard, that gets messages about the tables it reads.

    Args:
        name: for people; no two exposures share one.
        url_env: the environment variable that holds its address, which is a secret.
        reads: `<layer>.<table>` of each table that it reads directly.
        owner: who answers for it, such as an email address; shown in Dagster.
        page: where people look at it, as `https://…`; a public link in Dagster.
    """

    name: str
    url_env: str
    reads: tuple[str, ...]
    owner: str = ""
    page: str = ""

    def __post_init__(self) -> None:
        check_declaration(self, f"The exposure {self.name!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        whose = f"The exposure {self.name!r}"
        if not self.name.strip() or not self.name.isprintable() or self.name in _TAKEN:
            yield ContractError(
                f"{whose} has no usable name.",
                f"Give it a name of one line; {' and '.join(_TAKEN)} are taken by the platform itself.",
                field="name",
            )
        if not _VARIABLE.fullmatch(self.url_env):
            # Not shown: it may be the address itself.
            yield ContractError(
                f"{whose} has a url_env that is no name of an environment variable.",
                "Write the variable's name, such as SALES_REFRESH_URL, and keep the address out of the code: it is a "
                "secret.",
                field="url_env",
            )
        if not self.owner.isprintable():
            yield ContractError(f"{whose} has no owner of one line.", "Write a name or an address.", field="owner")
        if self.page and origin_of(self.page) is None:
            # Not shown: a malformed address may hold a password.
            yield ContractError(
                f"{whose} has a page that is no address of the web.",
                "Write https://, a host and a path, without a user or a password: it is shown to everybody.",
                field="page",
            )
        if not self.reads:
            yield ContractError(f"{whose} reads nothing.", "Name the tables that it reads in `reads`.", field="reads")


def exposure_problems(exposures: Iterable[Exposure], tables: Collection[str]) -> Iterator[ContractError]:
    """Yield problems between exposures, and between them and the declared tables."""
    names: set[str] = set()
    for exposure in exposures:
        if exposure.name in names:
            yield ContractError(f"Two exposures have the name {exposure.name!r}.", "Rename one of them.", field="name")
        names.add(exposure.name)
        for table in exposure.reads:
            if table not in tables:
                yield ContractError(
                    f"The exposure {exposure.name!r} reads {table}, which no domain declares.",
                    f"{did_you_mean(table, tables)}Name one of {', '.join(sorted(tables))}.",
                    field="reads",
                )


@dataclass(frozen=True)
class Domain:
    """Group tables that belong together.

    Args:
        name: identifier.
        tables: the contracts.
        transforms: import path of the package with the modules `silver` and `gold`; each holds one function `<table>`
            per contract. A table in SQL has a file `<layer>/<table>.sql` instead. It is imported only where Spark runs.
        code_version: set by hand for all tables of the domain, in place of a hash of the code that each reaches.
        exposures: consumers downstream of tables, of this domain or others, which get messages about them.
    """

    name: str
    tables: tuple[Contract, ...]
    transforms: str
    code_version: str | None = None
    exposures: tuple[Exposure, ...] = ()

    def __post_init__(self) -> None:
        check_declaration(self, f"The domain {self.name!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not IDENTIFIER.fullmatch(self.name):
            yield ContractError(
                f"The domain {self.name!r} has no identifier as its name.",
                "Use lower-case letters, digits and underscores.",
                field="name",
            )
        if not self.tables:
            yield ContractError(
                f"The domain {self.name!r} has no tables.",
                "Name its contracts in `tables`, as Domain(name, tables=TABLES, …).",
                field="tables",
            )
        if not all(part.isidentifier() and not iskeyword(part) for part in self.transforms.split(".")):
            yield ContractError(
                f"The domain {self.name!r} has transforms={self.transforms!r}, which is no import path.",
                "Name the package that holds the modules `silver` and `gold`, as shop.transforms.",
                field="transforms",
            )
        yield from code_version_problems(f"The domain {self.name!r}", self.code_version)
        for contract in self.tables if self.code_version is not None else ():
            if contract.code_version is not None:
                yield ContractError(
                    f"The code version of {contract.name} is set twice: {contract.code_version!r} in its contract and "
                    f"{self.code_version!r} in the domain {self.name!r}.",
                    "Remove one of them.",
                    table=contract.name,
                    field="code_version",
                )


@dataclass(frozen=True)
class Catalogue:
    """All tables of the platform, each after the tables it reads."""

    domains: tuple[Domain, ...]
    tables: tuple[Contract, ...]

    @classmethod
    def of(cls, domains: Iterable[Domain]) -> Catalogue:
        """Check the domains against each other and order their tables.

        Raises:
            ContractError: a table is declared twice, reads an undeclared table, reads itself through others, or
                names a column of another table that is not there.
        """
        domains = tuple(domains)
        by_name = {contract.name: contract for domain in domains for contract in domain.tables}
        refuse(_problems(domains, by_name))
        order = TopologicalSorter(_graph(by_name)).static_order()
        # Where problems are only gathered, an input may be declared nowhere.
        return cls(domains, tuple(by_name[name] for name in order if name in by_name))

    def __iter__(self) -> Iterator[Contract]:
        return iter(self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        """Return every table's name, each after its inputs."""
        return tuple(contract.name for contract in self.tables)

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        """Return those of all domains."""
        return tuple(exposure for domain in self.domains for exposure in domain.exposures)

    def exposures_of(self, tables: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the exposures that read one of some tables, each with those that it reads."""
        read = {each.name: tuple(sorted(set(tables).intersection(each.reads))) for each in self.exposures}
        return {name: of_them for name, of_them in read.items() if of_them}

    def __getitem__(self, name: str) -> Contract:
        for contract in self.tables:
            if contract.name == name:
                return contract
        raise unknown_table(name, self.names)

    @cached_property
    def histories(self) -> frozenset[str]:
        """Return the raw tables whose silver rows are read as of a day."""
        as_of = {read.table for contract in self.tables for read in contract.inputs if isinstance(read.window, AsOf)}
        raw = [contract.inputs[:1] for contract in self.tables if contract.name in as_of]
        return frozenset(read.table for reads in raw for read in reads)

    def protecting(self, name: str) -> tuple[Protected, ...]:
        """Return the protections of a table's days: those of all its raw tables."""
        return tuple(period for table in self.with_inputs([name]) for period in self[table].protected)

    def with_inputs(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return some tables and everything upstream, inputs first."""
        above = set(names)
        for contract in reversed(self.tables):
            if contract.name in above:
                above.update(read.table for read in contract.inputs)
        return tuple(name for name in self.names if name in above)

    def with_dependants(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return some tables and everything downstream, inputs first."""
        below = set(names)
        for contract in self.tables:
            if any(read.table in below for read in contract.inputs):
                below.add(contract.name)
        return tuple(name for name in self.names if name in below)

    def domain_of(self, name: str) -> Domain:
        """Return the domain that declares a table."""
        contract = self[name]
        return next(domain for domain in self.domains if contract in domain.tables)


def _graph(by_name: Mapping[str, Contract]) -> dict[str, list[str]]:
    return {name: [read.table for read in contract.inputs] for name, contract in by_name.items()}


def _problems(domains: Sequence[Domain], by_name: Mapping[str, Contract]) -> Iterator[ContractError]:
    for name in _repeated(contract.name for domain in domains for contract in domain.tables):
        yield ContractError(f"{name} is declared twice.", "Rename or remove one of the contracts.", table=name)
    for name in _repeated(domain.name for domain in domains):
        yield ContractError(f"Two domains have the name {name!r}.", "Rename one of them.", field="name")
    types_of = {name: {column.name: column.type for column in each.columns} for name, each in by_name.items()}
    for contract in by_name.values():
        unknown = [read.table for read in contract.inputs if read.table not in by_name]
        for name in unknown:
            yield ContractError(
                f"{contract.name} reads {name}, which no domain declares.",
                f"{did_you_mean(name, by_name)}Declare it or read one of {', '.join(sorted(by_name))}.",
                table=contract.name,
                field=name,
            )
        if not unknown:
            if contract.inputs:
                yield from rule_problems(contract.name, contract.rules, contract.inputs[0].table, types_of)
            yield from _reconciliation_problems(contract, by_name)
            yield from _comparison_problems(contract, by_name)
            yield from _lineage_problems(contract, by_name)
            yield from _separable_problems(contract, by_name)
    yield from exposure_problems((exposure for domain in domains for exposure in domain.exposures), by_name)
    try:
        TopologicalSorter(_graph(by_name)).prepare()
    except CycleError as error:
        first, *others = reversed(error.args[1])  # each is read by the one before it
        circle = ContractError(
            f"{first} is made from itself: it reads {', which reads '.join(others)}.",
            "Remove one of these inputs: of tables in a circle none can be computed first.",
            table=first,
            field="inputs",
        )
        circle.__cause__ = error
        yield circle


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _lineage_problems(contract: Contract, by_name: Mapping[str, Contract]) -> Iterator[ContractError]:
    inputs = {read.table for read in contract.inputs}
    for column in contract.columns:
        for source in column.made_from:
            table, _, name = source.rpartition(".")
            if table not in inputs or name not in by_name[table].column_names:
                yield ContractError(
                    f"{contract.name} has {column.name!r} made from {source!r}, which is no column of an input.",
                    f"Name columns of {', '.join(sorted(inputs)) or 'its inputs'} as <layer>.<table>.<column>.",
                    table=contract.name,
                    field=column.name,
                )


def _separable_problems(contract: Contract, by_name: Mapping[str, Contract]) -> Iterator[ContractError]:
    windowed = [by_name[read.table] for read in contract.inputs if not isinstance(read.window, AsOf)]
    for name in contract.separable_by:
        theirs = {source.name: source.column(name).type for source in windowed if name in source.column_names}
        other = next((table for table, type_ in theirs.items() if type_ != contract.column(name).type), None)
        if not theirs or other:
            what = f"is of another type in {other}" if other else "no input has, but for those read as of a day"
            yield ContractError(
                f"{contract.name} is separable by {name!r}, which {what}: so every row would have to be read.",
                "Leave it out of `separable_by`.",
                table=contract.name,
                field="separable_by",
            )


def _reconciliation_problems(contract: Contract, by_name: Mapping[str, Contract]) -> Iterator[ContractError]:
    for declared in contract.reconciles:
        theirs = {column.name: column.type for column in by_name[declared.upstream].columns}
        for name in declared.by:
            ours = contract.column(name).type
            if theirs.get(name) != ours:
                yield ContractError(
                    f"{contract.name} reconciles with {declared.upstream} by {name!r}, which is {ours} here and "
                    f"{theirs.get(name, 'no column')} there.",
                    "Name columns in `by` that both tables have, of one type.",
                    table=contract.name,
                    field=name,
                )


def _comparison_problems(contract: Contract, by_name: Mapping[str, Contract]) -> Iterator[ContractError]:
    for declared in contract.comparisons:
        other = by_name.get(declared.other_table or contract.name)
        if other is None:
            yield ContractError(
                f"{contract.name} is compared with {declared.other}, which no domain declares.",
                f"{did_you_mean(declared.other, by_name)}Name one of {', '.join(sorted(by_name))}, or a golden copy.",
                table=contract.name,
                field="other",
            )
        elif not declared.by and {*other.key} != {*contract.key}:
            yield ContractError(
                f"{contract.name} is compared with {declared.other}, and they have no common key: "
                f"({', '.join(contract.key)}) and ({', '.join(other.key)}).",
                "Name columns of both in `by`, or `event_date` for the sums of each day.",
                table=contract.name,
                field="by",
            )
