"""A domain: contracts that belong together, and where their transforms are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from platform_assets.contracts.errors import ContractError, UnknownTableError
from platform_assets.contracts.fields import check_fields
from platform_assets.contracts.table import Contract
from platform_assets.contracts.versions import check_code_version


@dataclass(frozen=True)
class Domain:
    """A folder of tables.

    Args:
        name: identifier.
        tables: the contracts.
        transforms: import path of the package with the modules `silver` and `gold`; each holds one function
            `<table>` per contract. It is imported only where Spark runs.
        code_version: set by hand for all tables of the domain, in place of a hash of all code that each reaches.
    """

    name: str
    tables: tuple[Contract, ...]
    transforms: str
    code_version: str | None = None

    def __post_init__(self) -> None:
        check_fields(self, f"The domain {self.name!r}")
        if self.code_version is None:
            return
        check_code_version(f"The domain {self.name!r}", self.code_version)
        for contract in self.tables:
            if contract.code_version is not None:
                raise ContractError(
                    f"The code version of {contract.name} is set twice: {contract.code_version!r} in its contract and "
                    f"{self.code_version!r} in the domain {self.name!r}.",
                    "Remove one of them.",
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
        by_name: dict[str, Contract] = {}
        for contract in (contract for domain in domains for contract in domain.tables):
            if contract.name in by_name:
                raise ContractError(
                    f"{contract.name} is declared twice.",
                    "Rename or remove one of the contracts.",
                )
            by_name[contract.name] = contract
        for contract in by_name.values():
            for read in contract.inputs:
                if read.table not in by_name:
                    raise ContractError(
                        f"{contract.name} reads {read.table}, which no domain declares.",
                        f"Declare it or read one of {', '.join(sorted(by_name))}.",
                    )
            _check_reconciliations(contract, by_name)
            _check_lineage(contract, by_name)
        graph = {name: [read.table for read in contract.inputs] for name, contract in by_name.items()}
        try:
            order = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            path = " -> ".join(error.args[1])
            raise ContractError(f"Tables read each other in a circle: {path}.", "Break the circle.") from error
        return cls(domains, tuple(by_name[name] for name in order))

    def __iter__(self) -> Iterator[Contract]:
        return iter(self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        """Every table's name, each after the tables it reads."""
        return tuple(contract.name for contract in self.tables)

    def __getitem__(self, name: str) -> Contract:
        for contract in self.tables:
            if contract.name == name:
                return contract
        raise UnknownTableError(f"There is no table {name!r}.", f"Use one of {', '.join(self.names)}.")

    def domain_of(self, name: str) -> Domain:
        """The domain that declares a table."""
        contract = self[name]
        return next(domain for domain in self.domains if contract in domain.tables)


def _check_lineage(contract: Contract, by_name: Mapping[str, Contract]) -> None:
    inputs = {read.table for read in contract.inputs}
    for column in contract.columns:
        for source in column.made_from:
            table, _, name = source.rpartition(".")
            if table not in inputs or name not in by_name[table].column_names:
                raise ContractError(
                    f"{contract.name} has {column.name!r} made from {source!r}, which is no column of an input.",
                    f"Name columns of {', '.join(sorted(inputs)) or 'its inputs'} as <layer>.<table>.<column>.",
                )


def _check_reconciliations(contract: Contract, by_name: Mapping[str, Contract]) -> None:
    for declared in contract.reconciles:
        theirs = {column.name: column.type for column in by_name[declared.upstream].columns}
        for name in declared.by:
            ours = contract.column(name).type
            if theirs.get(name) != ours:
                raise ContractError(
                    f"{contract.name} reconciles with {declared.upstream} by {name!r}, which is {ours} here and "
                    f"{theirs.get(name, 'no column')} there.",
                    "Name columns in `by` that both tables have, of one type.",
                )
