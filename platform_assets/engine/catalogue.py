"""The tables of all domains that the settings name."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from platform_assets.contracts import Catalogue, Contract, ContractError, Domain
from platform_assets.contracts.errors import Gathered, gathering
from platform_assets.engine.mistake import Mistake, refuse_mistakes
from platform_assets.errors import PlatformError, users_frames, users_line

if TYPE_CHECKING:
    from platform_assets.settings import Settings


def load_catalogue(settings: Settings) -> Catalogue:
    """Return the tables of all domains named in the settings.

    Raises:
        ContractError: a domain cannot be imported or contradicts itself.
        MistakesError: several things are wrong; it names them all.
    """
    mistakes: list[Mistake] = []
    domains: list[Domain] = []
    catalogue: Catalogue | None = None
    for package in settings.domains:
        with _told(package) as told:
            domains.append(_load_domain(package))
        mistakes += told
    if not mistakes:
        # What is wrong in one domain would be told once more as missing from another.
        with gathering() as gathered:
            try:
                catalogue = Catalogue.of(domains)
            except ValueError:  # of tables in a circle there is no order
                assert gathered
        mistakes += [_between(_package_of(settings, domains, found.error), found.error) for found in gathered]
    refuse_mistakes(mistakes)
    assert catalogue is not None
    return catalogue


@contextmanager
def _told(package: str) -> Iterator[list[Mistake]]:
    """Gathers what is wrong in a package while it is loaded; modules with a mistake are to be imported anew."""
    mistakes: list[Mistake] = []
    before = set(sys.modules)
    with gathering() as gathered:
        try:
            yield mistakes
        except ContractError as error:
            mistakes.append(Mistake.of(error, package))
    mistakes[:0] = [_mistake(package, found) for found in gathered]
    broken = {str(frame.f_globals.get("__name__")) for found in gathered for frame, _ in found.frames}
    for name in broken & (set(sys.modules) - before):
        del sys.modules[name]


def _mistake(package: str, found: Gathered) -> Mistake:
    users = users_frames(found.frames, package)
    place = f"{users[-1][0].f_code.co_filename}, line {users[-1][1]}" if users else None
    return Mistake.of(found.error, package, place)


def _between(package: str, error: ContractError) -> Mistake:
    """Return a mistake between tables; its place is the declaration of the table."""
    return Mistake.of(error, package, _declared_in(package, error.table) if error.table else None)


def _declared_in(package: str, table: str) -> str | None:
    """File and line of a contract of a package that is loaded; None where its name is not written out."""
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if f"{name}.".startswith(f"{package}.") and file and Path(file).is_file():
            calls = (node for node in ast.walk(ast.parse(Path(file).read_bytes())) if isinstance(node, ast.Call))
            if line := next((call.lineno for call in calls if _declares(call, table)), None):
                return f"{file}, line {line}"
    return None


def _declares(call: ast.Call, table: str) -> bool:
    called = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)
    named = [*call.args[:1], *(given.value for given in call.keywords if given.arg == "name")]
    return called == Contract.__name__ and any(isinstance(a, ast.Constant) and a.value == table for a in named)


def _package_of(settings: Settings, domains: list[Domain], error: ContractError) -> str:
    """Return the package that a table of several domains is declared in."""
    by_domain = zip(settings.domains, domains, strict=True)
    return next(
        (package for package, domain in by_domain if error.table in {contract.name for contract in domain.tables}),
        ", ".join(settings.domains),
    )


def _load_domain(package: str) -> Domain:
    domain = getattr(_load_module(package), "DOMAIN", None)
    if not isinstance(domain, Domain):
        problem = "exports no DOMAIN" if domain is None else f"exports a {type(domain).__name__} as DOMAIN"
        raise ContractError(
            f"The domain {package!r} cannot be loaded: it {problem}.",
            "Name an importable package that exports DOMAIN in PLATFORM_DOMAINS.",
        )
    return domain


def _load_module(package: str) -> ModuleType:
    """Import a package of a user, whose code may raise whatever Python has."""
    try:
        return import_module(package)
    except (Exception, SystemExit) as error:
        if _is_absent(package, error):
            raise ContractError(
                f"The domain {package!r} cannot be loaded: {error}.",
                "Name an importable package that exports DOMAIN in PLATFORM_DOMAINS, and the folder that it lies in, "
                "unless it is installed, in PYTHONPATH.",
            ) from error
        said = error.what if isinstance(error, PlatformError) else getattr(error, "msg", None) or str(error)
        raise ContractError(
            f"The domain {package!r} cannot be loaded: {type(error).__name__} in {users_line(error, package)}: "
            f"{str(said).rstrip('.')}.",
            "Correct that line; the domain's package has to be importable by itself.",
        ) from error


def _is_absent(package: str, error: BaseException) -> bool:
    """Return whether the setting names what is not there or is no name, and not an import inside of it."""
    if isinstance(error, ModuleNotFoundError):
        return f"{package}.".startswith(f"{error.name}.")
    return not all(part.isidentifier() for part in package.split("."))
