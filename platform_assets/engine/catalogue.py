"""The tables of all domains that the settings name."""

from __future__ import annotations

from importlib import import_module

from platform_assets.contracts import Catalogue, ContractError, Domain
from platform_assets.settings import Settings


def load_catalogue(settings: Settings) -> Catalogue:
    """The tables of all domains named in the settings.

    Raises:
        ContractError: a domain cannot be imported or contradicts itself.
    """
    domains: list[Domain] = []
    for package in settings.domains:
        try:
            domain = import_module(package).DOMAIN
        except (ImportError, AttributeError) as error:
            raise ContractError(
                f"The domain {package!r} cannot be loaded: {error}.",
                "Name an importable package that exports DOMAIN in PLATFORM_DOMAINS.",
            ) from error
        domains.append(domain)
    return Catalogue.of(domains)
