"""Roll back: exactly the days of some publications put back as they were before, as metadata, and held there.

No row is read or written: the files of before are still in the table's folder, and the log refers to them again. The
days are held by whoever indexes the publication, in the same moment: nobody decides on the one without the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import in_turns, publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.failpoints import failpoint
from platform_assets.garbage import unsearched
from platform_assets.lakehouse.delta.log import files_of_days, table_snapshot
from platform_assets.lakehouse.delta.schema import types_in
from platform_assets.lakehouse.errors import StagedFileError
from platform_assets.lakehouse.layout import DELIVERED
from platform_assets.lakehouse.releases import Release, manifest_of
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.operations.rollback.refusals import refuse_what_would_not_read, schema_before, with_refusals
from platform_assets.operations.rollback.selection import (
    RollbackError,
    built_upon,
    nothing_to_undo,
    refuse_half_a_move,
    refuse_irreversible,
    refuse_unknown_tables,
    refuse_what_is_deleted,
)
from platform_assets.planning.rollback import Restoration, TableDay, following, restoration
from platform_assets.planning.windows import union_reached, which
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.history import COMPACTION, DayRecord, Hold, PublicationRecord
from platform_assets.records.manifest import DayContent, Manifest, TableChange, change_of, new_publication


@dataclass(frozen=True)
class Rollback:
    """What a rollback does, or would do.

    Args:
        records: for every day that changes, what it is and what it becomes, None if as if never computed.
        raw: tables among the publications that hold deliveries, which stay as they are.
        stale: days of other tables that read these and will be stale, by table; each as a range.
    """

    publications: tuple[PublicationRecord, ...]
    records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]
    raw: tuple[str, ...]
    stale: Mapping[str, tuple[tuple[date, date], ...]]
    release: int | None = None

    @property
    def days(self) -> dict[str, tuple[date, ...]]:
        """The days that change, by table."""
        by_table: defaultdict[str, list[date]] = defaultdict(list)
        for table, day in sorted(self.records):
            by_table[table].append(day)
        return {table: tuple(days) for table, days in by_table.items()}


def rollback(
    platform: Platform,
    publications: tuple[PublicationRecord, ...],
    author: Author,
    *,
    days: Collection[date] | None = None,
    cascade: bool = False,
    dry_run: bool = False,
    progress: OnProgress = no_progress,
) -> Rollback:
    """Put the days of publications back as they were before, in one release, and hold them there.

    A day is held where its inputs would make of it what was rolled back; it is computed again as soon as its input or
    its code is another one, or by force. Days that read what changes are stale afterwards and taken up by the next
    refresh. Raw is append-only and stays: `withdraw` takes a bad delivery out. A compaction is no work on a day: it
    goes with what it compacted, and by itself it cannot be undone.

    Args:
        publications: of `chosen_publications`.
        cascade: also undo what later publications made of the same days.

    Raises:
        RollbackError: a later publication builds on it, or on the columns it brought; records moved between a day and
            another that would stay; a table has no contract here; or there is nothing to roll back.
        OvertakenError: others kept publishing; nothing was changed.
        BeyondWindowError: a day was last as it is to be before the rollback window, and its files were deleted.
        StagedFileError: a file of before is gone.
    """
    with unsearched():
        # In each turn decided anew: what others published may be half of a move, or build on it.
        return in_turns(
            lambda: _roll_back(platform, publications, author, days, progress, cascade=cascade, dry_run=dry_run)
        )


def _roll_back(
    platform: Platform,
    publications: tuple[PublicationRecord, ...],
    author: Author,
    days: Collection[date] | None,
    progress: OnProgress,
    *,
    cascade: bool,
    dry_run: bool,
) -> Rollback:
    platform.settle()
    snapshot = LakeSnapshot.now(platform)
    now = snapshot.release
    chosen = [publication for publication in publications if publication.kind != COMPACTION]
    made = {
        (record.table, record.day)
        for publication in chosen
        for record in publication.days
        if days is None or record.day in days
    }
    raw = tuple(sorted({table for table, _ in made if _was_delivered(table)}))
    aside = {(quarantine_table(table), day): (table, day) for table, day in made if table.startswith("silver.")}
    touched = sorted({*made, *aside} - {day for day in made if day[0] in raw})
    if not touched:
        raise nothing_to_undo(publications, raw, days)
    histories = _histories(platform, touched)
    by_name = {day: {record.publication: record for record in history} for day, history in histories.items()}
    names = {day: tuple(known) for day, known in by_name.items()}
    going = {publication.publication for publication in chosen}
    restored = restoration(
        going,
        {day: known for day, known in names.items() if day not in aside},
        _compactions(platform, {name for known in names.values() for name in known}),
        cascade=cascade,
    )
    restored = following(restored, aside, names)
    undone = {name for known in restored.undone.values() for name in known}
    refuse_irreversible(platform, going | undone | {*restored.in_the_way.values()})
    if restored.in_the_way:
        raise built_upon(platform, restored, going, names)
    records = {
        day: (histories[day][0], _loaded(by_name[day].get(back_to))) for day, back_to in restored.back_to.items()
    }
    refuse_unknown_tables(platform, {table for table, _ in records})
    refuse_half_a_move(snapshot, records)
    planned = Rollback(publications, records, raw, _reached(platform, records))
    manifests = {
        name: manifest_of(platform.lake, name) for name in {then.publication for _, then in records.values() if then}
    }
    changes: list[TableChange] = []
    for table, put_back in planned.days.items():
        progress(Progress("rolling back", table, 0, len(put_back)))
        changes.append(_change(platform, table, planned, now, _undone(restored, table), manifests))
    refuse_what_is_deleted(platform, changes)
    if dry_run:
        return planned
    with meanwhile(progress, "publishing"):
        gone = {
            day: [record for record in histories[day] if record.publication in restored.undone[day]] for day in records
        }
        becomes = {day: then for day, (_, then) in records.items()}
        number = _publish(platform, with_refusals(platform, now, changes, gone, becomes), author, now.number)
    for change in changes:
        days_done, rows = len(change.days), sum(content.rows for content in change.days.values())
        progress(Progress("rolling back", change.table, days_done, days_done, rows=rows, finished=True))
    return Rollback(planned.publications, planned.records, raw, planned.stale, number)


def _histories(platform: Platform, touched: Iterable[TableDay]) -> dict[TableDay, tuple[DayRecord, ...]]:
    by_table: defaultdict[str, list[date]] = defaultdict(list)
    for table, day in touched:
        by_table[table].append(day)
    return {
        (table, day): history
        for table, days in by_table.items()
        for day, history in platform.ledger.histories(table, days).items()
    }


def _loaded(record: DayRecord | None) -> DayRecord | None:
    """Return what a record says, unless that is that the day had never been computed."""
    return record if record and record.digest else None


def _publish(platform: Platform, changes: Sequence[TableChange], author: Author, on_release: int) -> int:
    failpoint("rollback.planned")
    try:
        number = publish_changes(platform, new_publication(), "roll back", changes, author, on_release=on_release)
    except StagedFileError:
        refuse_what_is_deleted(platform, changes)
        raise
    failpoint("rollback.published")
    return number


def _undone(restored: Restoration, table: str) -> set[str]:
    return {name for (of_table, _), names in restored.undone.items() if of_table == table for name in names}


def _change(
    platform: Platform,
    table: str,
    planned: Rollback,
    now: Release,
    undone: Collection[str],
    manifests: Mapping[str, Manifest],
) -> TableChange:
    there = table_snapshot(platform.lake.table_path(table), now.versions[table])
    live = files_of_days(there, table)
    became = {day: then for day in planned.days[table] if (then := planned.records[table, day][1])}
    before = {name: change_of(manifests[name], table) for name in {then.publication for then in became.values()}}
    base = {day: tuple(file.path for file in live.get(day, ())) for day in planned.days[table]}
    contents = {day: DayContent(files=(), base=paths, digest="", rows=0, bytes=0) for day, paths in base.items()}
    for day, then in became.items():
        content = before[then.publication].days[day]
        restores = content.restores or then.publication
        contents[day] = content.model_copy(update={"base": base[day], "restores": restores})
    schema = schema_before(platform, table, undone) or there.schema_string
    refuse_what_would_not_read(platform, table, schema, contents, there, before.values())
    replaced = there.schema_string if types_in(there.schema_string) != types_in(schema) else ""
    return TableChange(table=table, schema_string=schema, days=contents, replaces_schema=replaced)


def _compactions(platform: Platform, names: Collection[str]) -> set[str]:
    return {name for name in names if (head := platform.ledger.head(name)) and head.kind == COMPACTION}


def _reached(
    platform: Platform, records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]
) -> dict[str, tuple[tuple[date, date], ...]]:
    """Return days that read what becomes something else, without those that are rolled back themselves."""
    changed: defaultdict[str, set[date]] = defaultdict(set)
    for (table, day), (current, then) in records.items():
        if then is None or then.digest != current.digest:
            changed[table].add(day)
    stale: dict[str, tuple[tuple[date, date], ...]] = {}
    for contract in platform.catalogue:
        reached = [
            span
            for read in contract.inputs
            if changed.get(read.table)
            for span in union_reached(read.window, changed[read.table], platform.calendar)
        ]
        if reached and not any(table == contract.name for table, _ in records):
            stale[contract.name] = tuple(sorted(reached))
    return stale


def _was_delivered(table: str) -> bool:
    """Return whether a table holds deliveries, which stay; also where nobody here has its contract."""
    return table.partition(".")[0] in DELIVERED


def lift_rollbacks(
    platform: Platform, table: str, days: Collection[date] | None, author: Author, *, dry_run: bool = False
) -> tuple[Hold, ...]:
    """Lift rollbacks of a table, all or those of some days; the manifest of a publication without days says so.

    Raises:
        RollbackError: a day is not held by such a rollback; nothing was lifted.
    """
    platform.settle()
    held = {hold.day: hold for hold in platform.ledger.holds(table) if hold.lasts and (not days or hold.day in days)}
    if not held or len(held) < len(days or ()):
        named = f" of {which(sorted(set(days) - held.keys()))}" if days else ""
        raise RollbackError(
            f"No rollback{named} of {table} lasts until it is lifted; nothing was lifted.",
            "`platform-assets status` shows the days that are held, and what ends each.",
        )
    if not dry_run:
        publish_changes(platform, new_publication(), "roll back", [], author, lifts={table: tuple(sorted(held))})
    return tuple(hold for _, hold in sorted(held.items()))


def rolled_back_amounts(platform: Platform, done: Rollback) -> AmountChanges:
    """Return amounts before and after a rollback, whether it was done or would be.

    Each day is put back as the release showed it that its publication of before had made.
    """
    undone = platform.current_release().number if done.release is None else done.release - 1
    release_of = platform.ledger.indexed()
    return amount_changes(
        platform,
        {
            day: (Shown(undone, record.bytes), Shown(release_of[back.publication], back.bytes) if back else None)
            for day, (record, back) in done.records.items()
        },
    )
