"""Publish staged days: the manifest, the publish lock, the ledger's index."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from platform_assets.contracts.domain import OPENLINEAGE
from platform_assets.engine.circuits import refuse_stopped
from platform_assets.engine.platform import Author, Platform
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.locks import stage_lock
from platform_assets.lakehouse.publish import Conflict, OvertakenError, publish
from platform_assets.lakehouse.staging_folders import discard
from platform_assets.lakehouse.storage.location import Location
from platform_assets.ledger.sync import record
from platform_assets.records.history import COMPACTION
from platform_assets.records.manifest import (
    Arrival,
    Erasure,
    Kind,
    Manifest,
    TableChange,
    new_publication,
    platform_version,
)

_TURNS = 20
"""How often what others overtook is put on the newest release before that is passed on."""

_T = TypeVar("_T")
Met = Conflict | OvertakenError
"""What a publication meets where others were faster; nothing of it was published then."""


class Rest(NamedTuple):
    """The days still to be published after others published some of them, on a later release."""

    left_out: Collection[date]
    on_release: int | None = None


def replaced(met: Met, changes: Sequence[TableChange] = ()) -> Rest:
    """Return all but the days that others replaced, on the current release."""
    return Rest(met.days if isinstance(met, Conflict) else ())


def in_turns(publish: Callable[[], _T], faster: Callable[[Met], object] = lambda met: None) -> _T:
    """Publish, and retry up to twenty times when others published first.

    Args:
        faster: called with the others' changes before the next try; raises to stop.

    Raises:
        Conflict: others kept replacing these days.
    """
    for _ in range(_TURNS - 1):
        try:
            return publish()
        except (Conflict, OvertakenError) as met:
            faster(met)
    return publish()


def publish_changes(
    platform: Platform,
    publication: str,
    kind: Kind,
    tables: Sequence[TableChange],
    author: Author,
    arrivals: Sequence[Arrival] = (),
    *,
    erasures: Sequence[Erasure] = (),
    on_release: int | None = None,
    on_versions: Mapping[str, int] = MappingProxyType({}),
    lifts: Mapping[str, tuple[date, ...]] = MappingProxyType({}),
    shows_new: Collection[str] = (),
) -> int:
    """Publish changes of some tables at once and index them.

    Args:
        shows_new: tables that their open circuits stop although the kind of publication passes.

    Returns:
        The number of the new release.

    Raises:
        Conflict: another publication replaced a day since it was read; nothing was published.
        OvertakenError: another release is current; nothing was published.
        LockLostError: another version of a table is current; nothing was published.
        CircuitOpenError: the circuit of a table is open; nothing was published.
    """
    changed = {table.table for table in tables if table.days} | {arrival.table for arrival in arrivals}
    manifest = Manifest(
        publication=publication,
        created_at=datetime.now(UTC),
        kind=kind,
        run=author.run,
        who=author.who,
        why=author.why,
        git_commit=", ".join(dict.fromkeys(table.git_commit for table in tables if table.git_commit)) or None,
        tables=tuple(table for table in tables if table.days),
        arrivals=tuple(arrivals),
        platform_version=platform_version(),
        erasures=tuple(erasures),
        on_release=on_release,
        on_versions=dict(on_versions),
        as_user=author.as_user,
        on_host=author.on_host,
        decides=author.decides,
        exposures=_exposures(platform, kind, tables),
        lifts=dict(lifts),
    )

    def permit() -> None:
        refuse_stopped(platform, kind, changed)
        refuse_stopped(platform, "recompute", shows_new)

    with gc_paused():
        release = publish(platform.lake, manifest, permit=permit)
        record(platform.lake, platform.ledger, manifest, release)
    return release


def _exposures(platform: Platform, kind: Kind, tables: Sequence[TableChange]) -> dict[str, tuple[str, ...]]:
    """Return exposures that read some tables, for the manifest; indexing it writes their messages.

    Lineage events, if configured, are such messages too, except for compactions.
    """
    changed = tuple(table.table for table in tables if table.days)
    lineage = {OPENLINEAGE: changed} if changed and kind != COMPACTION and platform.settings.sends_lineage else {}
    return platform.catalogue.exposures_of(changed) | lineage


def publish_rest(
    platform: Platform,
    publication: str,
    kind: Kind,
    tables: Sequence[TableChange],
    author: Author,
    rest: Callable[[Met, Sequence[TableChange]], Rest] = replaced,
    *,
    on_release: int | None = None,
) -> tuple[date, ...]:
    """Publish days without those that others replaced. Staged files are deleted if none is left.

    Args:
        rest: returns the still valid changes after others were faster; raises if there are none.

    Returns:
        The days that were left out, oldest first.
    """
    left, name = without(tables, ()), publication

    def publish_left() -> None:
        if left:
            publish_changes(platform, name, kind, left, author, on_release=on_release)
        else:
            discard_stage(platform, publication, [table.table for table in tables])

    def leave_out(met: Met) -> None:
        nonlocal left, name, on_release
        days, on_release = rest(met, left)
        left, name = without(left, days), new_publication()  # the manifest of the one before is written

    in_turns(publish_left, leave_out)
    return tuple(
        sorted({day for table in tables for day in table.days} - {day for table in left for day in table.days})
    )


@contextmanager
def new_stage(platform: Platform, tables: Sequence[str]) -> Iterator[tuple[str, dict[str, Location]]]:
    """Begin a publication with a private folder in each table; an error removes unpublished staged files.

    The folders appear with the first file that Spark writes.
    """
    publication = new_publication()
    folders = {table: platform.lake.stage_path(table, publication) for table in tables}
    with stage_lock(platform.lake, publication):
        failpoint("stage.opened")
        with discarded_on_error(f"The stage {publication}", lambda: discard_stage(platform, publication, tables)):
            yield publication, folders


@contextmanager
def discarded_on_error(what: str, discard: Callable[[], None]) -> Iterator[None]:
    """Remove staged files if anything fails; a failure to remove them is a note to the error."""
    try:
        yield
    except BaseException as error:
        try:
            discard()
        except (OSError, LakeError) as left:
            why = left.what.rstrip(".") if isinstance(left, LakeError) else left
            error.add_note(f"{what} could not be removed: {why}.")
        raise


def discard_stage(platform: Platform, publication: str, tables: Sequence[str]) -> None:
    """Remove staged files of some tables, unless they were published."""
    for table in tables:
        discard(platform.lake, table, publication)


def without(tables: Sequence[TableChange], days: Collection[date]) -> tuple[TableChange, ...]:
    """Return the changes of all tables without some days."""
    left = (
        table.model_copy(update={"days": {day: content for day, content in table.days.items() if day not in days}})
        for table in tables
    )
    return tuple(table for table in left if table.days)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while many objects are created.

    Work on the days of years takes seconds; searching all imported libraries repeatedly would take longer.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
