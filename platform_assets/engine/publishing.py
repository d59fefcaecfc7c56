"""From staged days to a publication: the manifest, the publish lock, the ledger's index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from types import MappingProxyType

from platform_assets.engine.platform import Author, Platform
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.locks import stage_lock
from platform_assets.lakehouse.publish import Conflict, publish
from platform_assets.lakehouse.staging_folders import discard
from platform_assets.lakehouse.storage.location import Location
from platform_assets.ledger.sync import record
from platform_assets.records.manifest import (
    Arrival,
    Kind,
    Manifest,
    TableChange,
    new_publication,
    platform_version,
)

TURNS = 20
"""How often what others overtook is put on the newest release before that is passed on."""


def publish_changes(
    platform: Platform,
    publication: str,
    kind: Kind,
    tables: Sequence[TableChange],
    author: Author,
    arrivals: Sequence[Arrival] = (),
    *,
    on_release: int | None = None,
    on_versions: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Publish changes of some tables at once and index them.

    Args:
        platform: what to work with.
        publication: its name.
        kind: what kind of work it is.
        tables: changes; those without days are left out.
        author: on whose behalf.
        arrivals: what was taken with it.
        on_release: the release that must still be current.
        on_versions: tables, each with the version that must still be current.

    Returns:
        The number of the new release.

    Raises:
        Conflict: a day was replaced by somebody else since it was read; nothing was published.
        OvertakenError: another release is current; nothing was published.
        LockLostError: another version of a table is current; nothing was published.
    """
    manifest = Manifest(
        publication=publication,
        created_at=datetime.now(UTC),
        kind=kind,
        run=author.run,
        who=author.who,
        why=author.why,
        git_commit=author.git_commit,
        tables=tuple(table for table in tables if table.days),
        arrivals=tuple(arrivals),
        platform_version=platform_version(),
        on_release=on_release,
        on_versions=dict(on_versions),
    )
    release = publish(platform.lake, manifest)
    record(platform.lake, platform.ledger, manifest, release)
    return release


def publish_unless_replaced(
    platform: Platform, publication: str, kind: Kind, tables: Sequence[TableChange], author: Author
) -> tuple[date, ...]:
    """Publish the days that nobody else replaced since they were read; returns those that somebody did."""
    try:
        publish_changes(platform, publication, kind, tables, author)
    except Conflict as conflict:
        if rest := without(tables, conflict.days):
            publish_changes(platform, new_publication(), kind, rest, author)
        return conflict.days
    return ()


@contextmanager
def new_stage(platform: Platform, tables: Sequence[str]) -> Iterator[tuple[str, dict[str, Location]]]:
    """A fresh publication and its private folder in each table; an error removes what was staged and not published.

    The folders appear with the first file that Spark writes.
    """
    publication = new_publication()
    folders = {table: platform.lake.stage_path(table, publication) for table in tables}
    with stage_lock(platform.lake, publication):
        failpoint("stage.opened")
        try:
            yield publication, folders
        except BaseException as error:
            try:
                discard_stage(platform, publication, tables)
            except OSError as left:
                error.add_note(f"The stage {publication} could not be removed: {left}.")
            raise


def discard_stage(platform: Platform, publication: str, tables: Sequence[str]) -> None:
    """Remove what was staged for some tables, unless it was published."""
    for table in tables:
        discard(platform.lake, table, publication)


def without(tables: Sequence[TableChange], days: Collection[date]) -> tuple[TableChange, ...]:
    """The changes with some days left out of every table."""
    left = (
        table.model_copy(update={"days": {day: content for day, content in table.days.items() if day not in days}})
        for table in tables
    )
    return tuple(table for table in left if table.days)
