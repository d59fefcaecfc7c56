"""Sensitive values where people look: recognisable as the same value, not readable."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from platform_assets.contracts import Contract

_HEX_DIGITS = 8


def masked(value: object) -> str:
    """A stand-in that equal values share, in every run and on every machine; a null stays visible as such.

    It keeps values out of logs and screens. It is no anonymisation: who can list all possible values can hash them too.
    """
    if value is None:
        return "null"
    return "#" + hashlib.sha256(str(value).encode()).hexdigest()[:_HEX_DIGITS]


def shown_key(contract: Contract, names: Sequence[str], key: Sequence[object]) -> str:
    """A key of a table as `store_id 5, department MEAT`, sensitive values masked."""
    sensitive = {column.name for column in contract.columns if column.sensitive}
    return ", ".join(
        f"{name} {masked(value) if name in sensitive or value is None else value}"
        for name, value in zip(names, key, strict=True)
    )
