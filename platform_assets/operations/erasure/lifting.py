"""Whether a key is remembered as erased, and having it forgotten, so that rows with it are taken again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from platform_assets.engine.erasures import standing
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.operations.erasure.places import ErasureError, Reach, Request, reach, refuse_named_value
from platform_assets.records.manifest import Erasure, new_publication
from platform_assets.secret import installation_secret, name_of

LOCK_WAIT_S = 60.0
"""How long whoever takes deliveries is waited for."""


def is_remembered(platform: Platform, where: Reach, secret: bytes) -> bool:
    """Whether a key was erased from one of some tables, and not lifted since."""
    return any(
        place.hashes(secret) == erasure.key for place in where.places for erasure in standing(platform, place.table)
    )


def is_remembered_everywhere(platform: Platform, where: Reach, secret: bytes) -> bool:
    """Whether no raw table of some takes rows of a key: one that was named later, or is new, may not know it."""
    hashes = {place.table: place.hashes(secret) for place in where.places}
    return all(
        hashes[contract.name] in [erasure.key for erasure in standing(platform, contract.name)]
        for contract in where.raw
    )


def lift(platform: Platform, request: Request, author: Author) -> int:
    """Have rows of an erased key taken again when they are delivered; what was erased does not come back by itself.

    Returns:
        The release that says so.

    Raises:
        UnknownTableError: there is no such table.
        ErasureError: the key is not remembered as erased, or the reason names its value.
    """
    where = reach(platform.catalogue, request.table, request.key, request.also)
    refuse_named_value(where, request, author)
    secret = installation_secret(platform.settings)
    with ExitStack() as turns:
        for contract in sorted(where.raw, key=lambda raw: raw.name):
            turns.enter_context(ingest_lock(platform.lake, contract.name, LOCK_WAIT_S))
        platform.settle()
        if not is_remembered(platform, where, secret):
            raise ErasureError(
                f"Nothing with this key was erased from {', '.join(raw.name for raw in where.raw)}.",
                "Name the table and the fields as they were named when it was erased: `platform-assets releases`.",
            )
        lifted = [
            Erasure(table=place.table, key=place.hashes(secret), secret=name_of(secret), lifts=True)
            for place in where.places
        ]
        return _publish(platform, author, lifted)


def lift_unreadable(platform: Platform, table: str, author: Author) -> int:
    """Forget all that was erased from a raw table under a secret that the installation has no more: nobody can tell it.

    Returns:
        The release that says so.

    Raises:
        UnknownTableError: there is no such table.
        ErasureError: nothing was erased from it under another secret.
    """
    name = platform.catalogue[table].name
    with ingest_lock(platform.lake, name, LOCK_WAIT_S):
        platform.settle()
        known = name_of(installation_secret(platform.settings))
        lost = [erasure for erasure in standing(platform, name) if erasure.secret != known]
        if not lost:
            raise ErasureError(
                f"Nothing is remembered of {name} under another secret than this installation has.",
                "Say whose erasure is lifted: add --key FIELD=VALUE.",
            )
        lifted = [Erasure(table=name, key=erasure.key, secret=erasure.secret, lifts=True) for erasure in lost]
        return _publish(platform, author, lifted)


def _publish(platform: Platform, author: Author, lifted: Sequence[Erasure]) -> int:
    """In the chain of decisions it is told from an erasure, which is the opposite."""
    author = replace(author, decides="erasure lifted")
    return publish_changes(platform, new_publication(), "erasure", [], author, erasures=lifted)
