"""Python's lists handed to Java in few calls: Py4J makes one for each item, a third of all calls of a small refresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from py4j.java_gateway import GatewayClient, JavaClass, JavaGateway

_AT_ONCE = 10
"""`java.util.List.of` has a form for each number of items up to so many."""


def hand_lists_over(gateway: JavaGateway) -> None:
    """Have the lists of a gateway made by Java's own function for some items at once.

    Args:
        gateway: to the JVM.
    """
    client = cast("Any", gateway)._gateway_client
    if client.converters:
        client.converters = [_Lists(client), *client.converters]


class _Lists:
    """Makes an `ArrayList` of a list without nulls, as Py4J's own converter does of every one."""

    def __init__(self, client: GatewayClient) -> None:
        self._of = cast("Any", JavaClass("java.util.List", client)).of
        self._array_list = cast("Any", JavaClass("java.util.ArrayList", client))

    def can_convert(self, items: object) -> bool:
        """Whether it is such a list; Py4J goes on to the next converter otherwise."""
        return isinstance(items, list | tuple) and len(items) > 1 and all(item is not None for item in items)

    def convert(self, items: Sequence[Any], client: GatewayClient) -> Any:
        """The list in Java."""
        first, *more = (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))
        made = self._array_list(self._of(*first))
        for some in more:
            made.addAll(self._of(*some))
        return made
