"""What Java keeps for Python after Python has forgotten it: told in bulk, not for each object as soon as it is.

Py4J tells it by a call for each column, list and frame, nearly half of all calls, from a thread of its own that the one
at work has to wait for. Of a JVM that is given back, its keeper has all forgotten that is left.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from py4j.java_gateway import JavaGateway

_MOST = 1_000
"""Objects: few of them are frames, of which each holds on to its plan."""


def keep_forgotten(gateway: JavaGateway) -> None:
    """Have Java forget what Python has only where that is much.

    Args:
        gateway: to the JVM.
    """
    client = cast("Any", gateway)._gateway_client
    if not hasattr(client, "finalizer_deque"):  # it tells at once, in the thread at work
        return
    tell, forgotten = client.garbage_collect_object, list[str]()

    def garbage_collect_object(target_id: str, enqueue: bool = True) -> None:
        if not enqueue:  # by the thread that tells
            tell(target_id, False)
            return
        forgotten.append(target_id)
        if len(forgotten) > _MOST:
            with suppress(IndexError):  # another thread did it
                while True:
                    tell(forgotten.pop())

    client.garbage_collect_object = garbage_collect_object
