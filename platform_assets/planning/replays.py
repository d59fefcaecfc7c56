"""Files whose content came before, and deletes without an event time: where each counts in the order of versions.

It follows from the arrivals alone, not from the order in which they were taken. A copy that is dated later and was
taken first gets the place of the first as soon as that is there, and its own back when the first is withdrawn.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import NamedTuple

from platform_assets.contracts import Contract
from platform_assets.words import counted

REPLAY = "has the same content as"
"""How a note of an arrival begins that says so."""

DIGITS = 20
"""So many digits of a number in a file's name are compared as a number."""
UNDATED = "brings deletes without "
"""How the note of an arrival begins that has deletes which have found no record yet."""


class Delivery(NamedTuple):
    """What of an arrival says where its rows stand in the order of versions: fields of `records.manifest.Arrival`."""

    path: str
    origin: str | None
    arrival_date: date
    modified_ns: int
    sha256: str

    @property
    def file(self) -> str:
        """The path of the file that brought the rows."""
        return self.origin or self.path


def file_order(path: str) -> str:
    """Return a file's name as it sorts, numbers by their value: `part-2` before `part-10`; then the name as it is."""
    name = path.rpartition("/")[2]
    return re.sub("[0-9]+", lambda number: number[0].lstrip("0").zfill(DIGITS), name) + "\t" + name


def order_number(delivery: Delivery, order: str | None) -> int:
    """Return the number by which a source orders its files, as `LandingFiles.order` has it; 0 where names do alone."""
    if order == "modified":
        return delivery.modified_ns
    if order in (None, "name"):
        return 0
    found = re.search(order, delivery.file.rpartition("/")[2])
    return int(found[1]) if found and found[1] and re.fullmatch("[0-9]{1,18}", found[1]) else -1


def replays(deliveries: Iterable[Delivery], order: str | None = None) -> dict[str, Delivery]:
    """Return the first file of the same content for every arrival whose rows came before, by path.

    Args:
        deliveries: arrivals of one table that count; those of waiting rows have the content of their file.
        order: how the source orders its files, as `LandingFiles` has it.
    """
    alike: defaultdict[str, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        alike[delivery.sha256].append(delivery)
    found: dict[str, Delivery] = {}
    for same in alike.values():
        files = [delivery for delivery in same if delivery.origin is None]
        if len(files) > 1:
            first = min(files, key=lambda f: (f.arrival_date, order_number(f, order), file_order(f.path)))
            found |= {delivery.path: first for delivery in same if delivery.file != first.path}
    return found


def replay_notes(replayed: Mapping[str, Delivery], path: str) -> Iterator[str]:
    """Say of a file that its content came before, or that others have its place.

    Args:
        replayed: as `replays` finds it, with the file.
    """
    if first := replayed.get(path):
        yield (
            f"{REPLAY} {first.path}, which arrived on {first.arrival_date}: its rows keep that place in the order of "
            f"versions; if they are meant anew, `platform-assets withdraw {first.path}`"
        )
    for copy in (copy for copy, first in replayed.items() if first.path == path):
        yield f"{REPLAY} {copy}, whose rows keep the place of this file in the order of versions"


def waiting_note(contract: Contract, keys: int) -> str:
    """Say of an arrival for a raw table how many keys of its deletes have no record yet."""
    lack = f"{UNDATED}{contract.event_time}: {counted(keys, 'key')} of them without a record"
    return f"{lack} within {counted(contract.restatement_window_days, 'day')}, for which they wait"
