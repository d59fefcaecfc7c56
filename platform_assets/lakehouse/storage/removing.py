"""Objects removed from a store, also where others remove them at the same time, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import NotFoundError

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.storage.answers import told

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

_TRIES = 5
"""How often it is tried to remove what a store lists, and says is not there."""


def remove_objects(client: Client, address: str, itself: str, listed: Callable[[], set[str]]) -> None:
    """Remove an object and all whose names go on after it.

    Args:
        client: of the bucket.
        address: of the object, for messages.
        itself: its name; it need not be there.
        listed: the names of the others, as the store lists them when it is asked.

    Raises:
        LakeError: the store lists what it says is not there, or lets nobody remove it.
    """
    left = listed()
    paths, in_vain = {itself, *left}, 0
    while paths:
        with told(address):
            try:
                obstore.delete(client, sorted(paths))
                return
            except (NotFoundError, FileNotFoundError):
                # Not every store forgives that there was nothing, or nothing any more; what it was asked besides may be
                # undone
                before, left = left, listed()
        paths, in_vain = left, in_vain + 1 if left and left >= before else 0
        if in_vain > _TRIES:
            raise LakeError(
                f"The object store lists {min(left)} below {address} and says that it is not there.",
                "Look for what stands between here and the store, or is wrong with it, and run the same again; nothing "
                "that is needed was removed.",
            )
        time.sleep(0.1 * in_vain)
