"""Sensitive values where people look: recognisable as the same value, not readable."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from platform_assets.contracts import Contract

_HEX_DIGITS = 8


@dataclass(frozen=True)
class Masking:
    """How an installation masks values: by a keyed hash, so that listing all possible values tells nobody which one.

    Args:
        secret: of the installation, as `secret.installation_secret` gives it; never shown.
    """

    secret: bytes = field(repr=False)

    def masked(self, value: object) -> str:
        """Return a stand-in that equal values share, in every run of an installation; a null stays visible as such.

        It is as secret as the key: who has that can hash all possible values, too.
        """
        if value is None:
            return "null"
        return "#" + hmac.digest(self.secret, str(value).encode(), "sha256").hex()[:_HEX_DIGITS]

    def shown_key(self, contract: Contract, names: Sequence[str], key: Sequence[object]) -> str:
        """Return a key of a table as `store_id 5, department MEAT`, sensitive values masked."""
        sensitive = {column.name for column in contract.columns if column.sensitive}
        return ", ".join(
            f"{name} {self.masked(value) if name in sensitive or value is None else value}"
            for name, value in zip(names, key, strict=True)
        )
