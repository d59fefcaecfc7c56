"""A progress bar that watches what is published, from outside the process or thread that does the work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from platform_assets.cli.console import errors, reading
from platform_assets.lakehouse.manifest import new_publication

_EVERY_S = 1.0


@contextmanager
def watch_published(label: str, total: int | None) -> Iterator[None]:
    """Show how many days of all tables were published since the start.

    Args:
        label: in front of the bar.
        total: days of all tables to expect; None where nobody knows yet.
    """
    since = new_publication()
    done = threading.Event()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("days"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=errors, transient=True) as progress:
        task = progress.add_task(label, total=total)

        def poll() -> None:
            with reading() as platform:
                while not done.wait(_EVERY_S):
                    progress.update(task, completed=platform.ledger.days_since(since, platform.catalogue.names))

        watcher = threading.Thread(target=poll, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


@contextmanager
def counting(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for work that reports (what, done, total) itself."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=errors, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda what, done, total: progress.update(
            task, description=f"{label} {what}", completed=done, total=total
        )
