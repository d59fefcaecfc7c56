"""Copies of delivered files, where Spark cannot read these themselves, or should not.

Of some text it can only read lines. Who computes elsewhere, on a cluster or behind Spark Connect, does not see the
landing folder of this machine, but the lake. And Spark opens files by their names, behind which a deliverer can put
others meanwhile: what is read of a copy is what was looked into here, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.line_copies import ENDING
from platform_assets.sources.inspect import Inspection
from platform_assets.sources.landing import ChangedError, LandedFile
from platform_assets.sources.limits import Limits
from platform_assets.sources.text import lines_of

_CHUNK = 1 << 20

_AT_ONCE = 8
"""Copies written at a time: a store takes longer over each than a small file needs (90 of them: 6.9 s, so 1.4 s)."""


@contextmanager
def copies_for_spark(
    seen: Mapping[LandedFile, Inspection],
    refused: Collection[LandedFile],
    folder: Location,
    limits: Limits,
    *,
    of_all: bool,
) -> Iterator[dict[LandedFile, Location]]:
    """What Spark reads instead of some files, in a folder that is empty again afterwards.

    Args:
        seen: files that were looked into.
        refused: those of them that need no copy.
        folder: of the lake, where nothing else lies.
        limits: of what is in a file.
        of_all: whether Spark is to read none of the files where they lie.

    Raises:
        CompressionError, LimitError, ChangedError, LinkError: a file is not what was looked into.
        OSError: it cannot be read, or there is no room for its copy.
    """
    copied = [file for file in seen if file not in refused and (of_all or seen[file].is_read_as_lines)]
    copies = {
        file: folder / f"{number}/{file.path}{ENDING if seen[file].is_read_as_lines else ''}"
        for number, file in enumerate(copied)
    }

    def copy(file: LandedFile) -> None:
        copies[file].write_pieces(lines_of(file, limits) if seen[file].is_read_as_lines else _content(file))

    try:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            deque(threads.map(copy, copied), maxlen=0)
        yield copies
    finally:
        if copies:
            folder.remove(durable=False)


def _content(file: LandedFile) -> Iterator[bytes]:
    digest = hashlib.sha256()
    with file.open() as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            yield chunk
    if digest.hexdigest() != file.sha256:
        raise ChangedError
