"""What is wrong with a declaration."""

from __future__ import annotations

from platform_assets.errors import PlatformError


class ContractError(PlatformError):
    """A contract or a domain contradicts itself."""


class UnknownTableError(PlatformError):
    """A table was named that no domain declares."""

    is_misspelt = True
