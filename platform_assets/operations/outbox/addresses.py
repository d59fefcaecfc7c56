"""Where messages go: an address for each exposure and for announcements, as far as the environment knows it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from platform_assets.addresses import nobody_can_listen
from platform_assets.contracts import Catalogue
from platform_assets.contracts.exposures import ANNOUNCEMENTS
from platform_assets.settings import Settings

_WEBHOOK = "PLATFORM_WEBHOOK_URL"


@dataclass(frozen=True)
class Address:
    """Where messages to a target go.

    Args:
        target: an exposure's name, or `announcements`.
        variable: of the environment, that holds it.
        url: which is a secret; None where nothing can be sent.
        problem: why nothing can; empty where there is a URL.
    """

    target: str
    variable: str
    url: SecretStr | None = None
    problem: str = ""


def addresses(
    catalogue: Catalogue, settings: Settings, environment: Mapping[str, str] = os.environ
) -> dict[str, Address]:
    """The address of every target, by its name."""
    known = [_of_variable(each.name, each.url_env, environment) for each in catalogue.exposures]
    url = settings.webhook_url
    problem = "" if url else f"{_WEBHOOK} is not set"
    return {address.target: address for address in (*known, Address(ANNOUNCEMENTS, _WEBHOOK, url, problem))}


def _of_variable(target: str, variable: str, environment: Mapping[str, str]) -> Address:
    url = environment.get(variable, "")
    if not url:
        return Address(target, variable, problem=f"{variable} is not set")
    if not nobody_can_listen(url):
        return Address(target, variable, problem=f"{variable} is no https:// address, and no http:// of this machine")
    return Address(target, variable, SecretStr(url))
