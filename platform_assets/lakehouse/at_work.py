"""What a process has staged and not published yet: kept for as long as the process lives, however long that takes.

While a batch of days is computed, a lock says so. Batches that are done wait until all can be published; a file beside
a lock of their stage names them. That lock is held by the operating system or a database session: it ends with the
process, and so does what it keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import BATCHES, is_staging, stage_file, stage_lock
from platform_assets.records.manifest import new_publication

Keep = Callable[[Collection[str]], None]
"""Told which publications' folders are needed from now on."""


@contextmanager
def staging(lake: Lake) -> Iterator[Keep]:
    """Keep what is staged until it is published or given up; nothing is locked before there is something to keep."""
    stage = new_publication()
    with ExitStack() as held:
        locked = False

        def keep(publications: Collection[str]) -> None:
            nonlocal locked
            if not locked:
                held.enter_context(stage_lock(lake, stage))
                locked = True
            stage_file(lake, stage, BATCHES).replace(json.dumps(sorted(publications)).encode())

        yield keep


def kept_by_processes(lake: Lake) -> frozenset[str]:
    """The publications whose folders processes that are alive are going to publish."""
    kept: set[str] = set()
    for name in lake.locks_path.names():
        stage = name.removeprefix("stage-").removesuffix(f".{BATCHES}")
        if name == f"stage-{stage}.{BATCHES}" and is_staging(lake, stage):
            kept.update(json.loads((lake.locks_path / name).read() or b"[]"))
    return frozenset(kept)
