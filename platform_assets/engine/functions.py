"""Whether every table has its function, with its inputs as parameters: told from the source, without running any of it.

What only a process that computes can tell, as of a function that is imported or made by another, it is left to.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from platform_assets.contracts import Catalogue, Contract, ContractError, Domain
from platform_assets.engine.mistake import Mistake, refuse_mistakes
from platform_assets.engine.user_code import (
    UserCode,
    missing_function,
    missing_module,
    parameters,
    table_version,
    transform_module,
)


def refuse_wrong_functions(catalogue: Catalogue) -> None:
    """Before any work.

    Raises:
        ContractError: a table has no function, or one with other parameters, or its source cannot be read.
        MistakesError: several have.
    """
    refuse_mistakes(list(function_mistakes(catalogue)))


def function_mistakes(catalogue: Catalogue, tables: Collection[str] | None = None) -> Iterator[Mistake]:
    """Yield what is wrong with the functions of tables, of all or of some."""
    for domain in catalogue.domains:
        wanted = [contract for contract in domain.tables if contract.inputs and _is_among(contract, tables)]
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
                _check(code, domain, contract)
            except ContractError as error:
                if error.table is not None:
                    yield Mistake.of(error, domain.transforms, _place(code, domain, contract))
                elif error.what not in whole_modules:
                    whole_modules.add(error.what)
                    yield Mistake.of(error, domain.transforms)


def _is_among(contract: Contract, tables: Collection[str] | None) -> bool:
    return tables is None or contract.name in tables


def _check(code: UserCode, domain: Domain, contract: Contract) -> None:
    """Refuse a table whose function is known to be another than its contract asks for.

    Raises:
        ContractError: naming what is there instead.
    """
    name = transform_module(domain, contract)
    by_hand = contract.code_version or domain.code_version
    try:
        module = code.find(name)
    except ContractError as error:
        if by_hand is None or isinstance(error.__cause__, SyntaxError):
            raise
        return  # without its source, as somebody has said by setting the version
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
    """Return the parameters, where each can be given by its name."""
    given = function.args
    if given.posonlyargs or given.vararg or given.kwarg:
        return None
    return [parameter.arg for parameter in (*given.args, *given.kwonlyargs)]


def _place(code: UserCode, domain: Domain, contract: Contract) -> str | None:
    """File of the function, and its line where it is there."""
    name = transform_module(domain, contract)
    file, module = code.file(name), code.find(name)
    bound = module.bound.get(contract.table) if module else None
    return f"{file}, line {bound[-1].lineno}" if bound else file
