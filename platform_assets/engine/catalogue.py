"""The tables of all domains that the settings name."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from platform_assets.contracts import Catalogue, ContractError, Domain
from platform_assets.errors import PlatformError, users_line
from platform_assets.settings import Settings


def load_catalogue(settings: Settings) -> Catalogue:
    """The tables of all domains named in the settings.

    Raises:
        ContractError: a domain cannot be imported or contradicts itself.
    """
    return Catalogue.of([_load_domain(package) for package in settings.domains])


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
    except ContractError as error:
        raise ContractError(f"{error.what} It is declared in {users_line(error, package)}.", error.todo) from error
    except (Exception, SystemExit) as error:
        if _is_absent(package, error):
            raise ContractError(
                f"The domain {package!r} cannot be loaded: {error}.",
                "Name an importable package that exports DOMAIN in PLATFORM_DOMAINS.",
            ) from error
        said = error.what if isinstance(error, PlatformError) else getattr(error, "msg", None) or str(error)
        raise ContractError(
            f"The domain {package!r} cannot be loaded: {type(error).__name__} in {users_line(error, package)}: "
            f"{str(said).rstrip('.')}.",
            "Correct that line; the domain's package has to be importable by itself.",
        ) from error


def _is_absent(package: str, error: BaseException) -> bool:
    """Whether the setting names what is not there, or is no name at all, in contrast to an import inside of it."""
    if isinstance(error, ModuleNotFoundError):
        return f"{package}.".startswith(f"{error.name}.")
    return not all(part.isidentifier() for part in package.split("."))
