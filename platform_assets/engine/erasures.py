"""Erasures in force: hashes of erased keys, whose rows no longer enter any table."""

from __future__ import annotations

from collections import Counter

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.releases import erasures_by
from platform_assets.records.erased_keys import ErasedKeys, Written
from platform_assets.records.history import ERASURE, PublicationRecord
from platform_assets.records.manifest import Erasure
from platform_assets.secret import installation_secret, name_of


class OtherSecretError(PlatformError):
    """Erasures were remembered with another secret than the installation's present one."""


def made(platform: Platform) -> tuple[tuple[PublicationRecord, tuple[Erasure, ...]], ...]:
    """Return every publication that erased rows or lifted an erasure, oldest first, with its tables."""
    heads = platform.ledger.heads(ERASURE)
    return tuple((head, erasures_by(platform.lake, head.publication)) for head in heads)


def newest(platform: Platform) -> PublicationRecord | None:
    """Return the newest erasing publication; None without any."""
    erased = [head for head, erasures in made(platform) if not all(erasure.lifts for erasure in erasures)]
    return erased[-1] if erased else None


def standing(platform: Platform, table: str) -> tuple[Erasure, ...]:
    """Return the keys erased from a table and not lifted since, each once."""
    by_key: dict[tuple[tuple[str, str], ...], Erasure] = {}
    for _, erasures in made(platform):
        for erasure in erasures:
            if erasure.table == table:
                by_key[tuple(sorted(erasure.key.items()))] = erasure
    return tuple(erasure for erasure in by_key.values() if not erasure.lifts)


def erased_keys(platform: Platform, contract: Contract) -> ErasedKeys | None:
    """Return what recognizes rows that must not enter a raw table; None if nothing was ever erased from it.

    Raises:
        OtherSecretError: the installation has another secret than it had then.
    """
    erasures = standing(platform, contract.name)
    if not erasures:
        return None
    secret = installation_secret(platform.settings)
    if any(erasure.secret != name_of(secret) for erasure in erasures):
        raise OtherSecretError(
            f"Rows that were erased from {contract.name} are remembered by hashes with another secret than this "
            "installation has, so they cannot be recognised; nothing was taken.",
            "Put the secret back: `secret` of the state folder lies in every backup, or set PLATFORM_SECRET to what it "
            f"was. If it is lost, `platform-assets admin erase {contract.name} --lift --reason …` forgets them.",
        )
    # What a contract does not declare any more, raw keeps as a text.
    declared = {column.name: column.type for column in contract.columns}
    types = {field: declared.get(field, "string") for erasure in erasures for field in erasure.key}
    return ErasedKeys(secret, [erasure.key for erasure in erasures], types, written(contract))


def written(contract: Contract) -> Written:
    """Return how files write the rows of a raw table, as far as searching rows set aside needs it."""
    places = {c.name: c.path or (c.source_name or c.name,) for c in contract.columns if c.path or c.source_name}
    if contract.source is None or (csv := contract.source.csv) is None:
        return Written(places)
    return Written(places, csv.delimiter, csv.quote or '"', csv.widths)


def erased_of_arrivals(platform: Platform, table: str) -> Counter[str]:
    """Return how many delivered rows of each arrival were erased from a raw table, by path."""
    counts: Counter[str] = Counter()
    for _, erasures in made(platform):
        for erasure in erasures:
            if erasure.table == table:
                counts.update(erasure.arrivals)
    return counts
