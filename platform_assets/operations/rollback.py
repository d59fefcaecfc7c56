"""Roll back: return exactly the days of some publications to their earlier content, and hold them there.

No row is read or written: the earlier files are still in the table's folder, and the log refers to them again. The days
are held in the transaction that indexes the publication, so no decision sees one without the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.circuits import refuse_stopped
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import gc_paused, in_turns, publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import table_states
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import TableSnapshot, files_of_days, table_snapshot
from platform_assets.lakehouse.delta.schema import differing_columns, files_with, schema_at, types_in
from platform_assets.lakehouse.errors import StagedFileError
from platform_assets.lakehouse.layout import DELIVERED
from platform_assets.lakehouse.releases import Release, made_by, manifest_of, release
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.operations.rollback_choice import (
    built_upon,
    nothing_to_undo,
    refuse_half_a_move,
    refuse_irreversible,
    refuse_unknown_tables,
    refuse_what_is_deleted,
)
from platform_assets.planning.day_states import TableStates, same_input
from platform_assets.planning.rollback import Restoration, TableDay, following, refusals, restoration
from platform_assets.planning.selection import is_mixed
from platform_assets.planning.windows import union_reached, which
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.code_version import Attempt, Version
from platform_assets.records.history import COMPACTION, ROLL_BACK, DayRecord, Hold, PublicationRecord, StagedDays
from platform_assets.records.manifest import DayContent, TableChange, change_of, new_publication


@dataclass(frozen=True)
class Rollback:
    """Result of a rollback, done or planned.

    Args:
        records: for every changed day its record before and after; None if as if never computed.
        raw: raw tables among the publications, which stay unchanged.
        stale: days of other tables that read these and become stale, by table; each as a range.
    """

    publications: tuple[PublicationRecord, ...]
    records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]
    raw: tuple[str, ...]
    stale: Mapping[str, tuple[tuple[date, date], ...]]
    release: int | None = None

    @property
    def days(self) -> dict[str, tuple[date, ...]]:
        """Return the days that change, by table."""
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
    """Return the days of publications to their earlier content, in one release, and hold them there.

    A day is held if its inputs would produce the rolled-back content again; it is recomputed when its input or code
    changes, or by force. Days that read changed days become stale. Raw is append-only and stays: `undo` withdraws a bad
    delivery. A compaction is no work on a day: it goes with what it compacted, and cannot be undone by itself.

    Args:
        cascade: also undo later publications of the same days.

    Raises:
        PlatformError: a later publication builds on it, or on its columns; records moved between a day and another that
            would stay; a table has no contract here; or there is nothing to roll back.
        OvertakenError: others kept publishing; nothing was changed.
        BeyondWindowError: the earlier files of a day were deleted after the rollback window.
        StagedFileError: an earlier file is gone.
        CircuitOpenError: a rollback of a table whose circuit is open would be undone.
    """
    with gc_paused():
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
    # Deliveries stay, also of tables without a contract here.
    raw = tuple(sorted({table for table, _ in made if table.partition(".")[0] in DELIVERED}))
    aside = {(quarantine_table(table), day): (table, day) for table, day in made if table.startswith("silver.")}
    touched = sorted({*made, *aside} - {day for day in made if day[0] in raw})
    if not touched:
        raise nothing_to_undo(publications, raw, days)
    histories = _histories(platform, touched)
    restored = _restored(platform, {publication.publication for publication in chosen}, histories, aside, cascade)
    records = {day: (histories[day][0], _content(histories[day], name)) for day, name in restored.back_to.items()}
    refuse_unknown_tables(platform, {table for table, _ in records})
    refuse_half_a_move(snapshot, records)
    planned = Rollback(publications, records, raw, _reached(platform, records))
    changes = _changes(platform, planned, now, restored, progress)
    refuse_what_is_deleted(platform, changes)
    # What a rollback took back is shown again by rolling that back: an open circuit is there to stop just this.
    rolled_back = {publication.publication for publication in chosen if publication.kind == ROLL_BACK}
    shows_again = {table for (table, _), undone in restored.undone.items() if undone[-1] in rolled_back}
    refuse_stopped(platform, "recompute", shows_again)
    if dry_run:
        return planned
    with meanwhile(progress, "publishing"):
        gone = {
            day: [record for record in histories[day] if record.publication in restored.undone[day]] for day in records
        }
        becomes = {day: then for day, (_, then) in records.items()}
        refusing = with_refusals(platform, now, changes, gone, becomes)
        number = _publish(platform, refusing, author, now.number, shows_again)
    for change in changes:
        days_done, rows = len(change.days), sum(content.rows for content in change.days.values())
        progress(Progress("rolling back", change.table, days_done, days_done, rows=rows, finished=True))
    return replace(planned, release=number)


def _restored(
    platform: Platform,
    going: Collection[str],
    histories: Mapping[TableDay, Sequence[DayRecord]],
    aside: Mapping[TableDay, TableDay],
    cascade: bool,
) -> Restoration:
    """Return the content of days without some publications; refuse if later ones build on these.

    Args:
        aside: days of quarantines, each with the silver day that it follows.
    """
    names = {day: tuple(record.publication for record in history) for day, history in histories.items()}
    compactions = {
        name
        for name in {name for known in names.values() for name in known}
        if (head := platform.ledger.head(name)) and head.kind == COMPACTION
    }
    own = {day: known for day, known in names.items() if day not in aside}
    restored = following(restoration(going, own, compactions, cascade=cascade), aside, names)
    undone = {name for known in restored.undone.values() for name in known}
    refuse_irreversible(platform, {*going, *undone, *restored.in_the_way.values()})
    if restored.in_the_way:
        raise built_upon(platform, restored.in_the_way)
    return restored


def _content(history: Sequence[DayRecord], publication: str) -> DayRecord | None:
    """Return a day's content in a publication; None if it had never been computed."""
    return next((record for record in history if record.publication == publication and record.digest), None)


def _histories(platform: Platform, touched: Iterable[TableDay]) -> dict[TableDay, tuple[DayRecord, ...]]:
    by_table: defaultdict[str, list[date]] = defaultdict(list)
    for table, day in touched:
        by_table[table].append(day)
    return {
        (table, day): history
        for table, days in by_table.items()
        for day, history in platform.ledger.histories(table, days).items()
    }


def _publish(
    platform: Platform, changes: Sequence[TableChange], author: Author, on_release: int, shows_again: Collection[str]
) -> int:
    failpoint("rollback.planned")
    try:
        number = publish_changes(
            platform, new_publication(), "roll back", changes, author, on_release=on_release, shows_new=shows_again
        )
    except StagedFileError:
        refuse_what_is_deleted(platform, changes)
        raise
    failpoint("rollback.published")
    return number


def _changes(
    platform: Platform, planned: Rollback, now: Release, restored: Restoration, progress: OnProgress
) -> list[TableChange]:
    used = {then.publication for _, then in planned.records.values() if then}
    manifests = {name: manifest_of(platform.lake, name) for name in used}
    changes: list[TableChange] = []
    for table, put_back in planned.days.items():
        progress(Progress("rolling back", table, 0, len(put_back)))
        there = table_snapshot(platform.lake.table_path(table), now.versions[table])
        live = files_of_days(there, table)
        became = {day: then for day in put_back if (then := planned.records[table, day][1])}
        before = {name: change_of(manifests[name], table) for name in {then.publication for then in became.values()}}
        contents: dict[date, DayContent] = {}
        for day in put_back:
            base = tuple(file.path for file in live.get(day, ()))
            if then := became.get(day):
                content = before[then.publication].days[day]
                restores = content.restores or then.publication
                contents[day] = content.model_copy(update={"base": base, "restores": restores})
            else:
                contents[day] = DayContent(files=(), base=base, digest="", rows=0, bytes=0)
        undone = {name for (of_table, _), names in restored.undone.items() if of_table == table for name in names}
        schema = schema_before(platform, table, undone) or there.schema_string
        refuse_what_would_not_read(platform, table, schema, contents, there, before.values())
        replaced = there.schema_string if types_in(there.schema_string) != types_in(schema) else ""
        changes.append(TableChange(table=table, schema_string=schema, days=contents, replaces_schema=replaced))
    return changes


def _reached(
    platform: Platform, records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]
) -> dict[str, tuple[tuple[date, date], ...]]:
    """Return days that read changed days, without rolled-back ones."""
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


def lift_rollbacks(
    platform: Platform, table: str, days: Collection[date] | None, author: Author, *, dry_run: bool = False
) -> tuple[Hold, ...]:
    """Lift rollbacks of a table, of all or some days; a publication without days records it in its manifest."""
    platform.settle()
    held = {hold.day: hold for hold in platform.ledger.holds(table) if hold.lasts and (not days or hold.day in days)}
    if not held or len(held) < len(days or ()):
        named = f" of {which(sorted(set(days) - held.keys()))}" if days else ""
        raise PlatformError(
            f"No rollback{named} of {table} lasts until it is lifted; nothing was lifted.",
            "`platform-assets status` shows the days that are held, and what ends each.",
        )
    if not dry_run:
        publish_changes(platform, new_publication(), "roll back", [], author, lifts={table: tuple(sorted(held))})
    return tuple(hold for _, hold in sorted(held.items()))


def rolled_back_amounts(platform: Platform, done: Rollback) -> AmountChanges:
    """Return amounts before and after a rollback, done or planned.

    Each day gets the content that the release of its earlier publication showed.
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


def with_refusals(
    platform: Platform,
    now: Release,
    changes: Sequence[TableChange],
    undone: Mapping[TableDay, Sequence[DayRecord]],
    becomes: Mapping[TableDay, DayRecord | None],
) -> tuple[TableChange, ...]:
    """Return the changes of a rollback, each with the content that must not be computed again.

    Args:
        undone: every content of a day that is rolled back.
        becomes: record of every day afterwards, None if as if never computed.
    """
    then = LakeSnapshot(platform, now, StagedDays(tables={change.table: change for change in changes}))
    computed = [platform.catalogue[change.table] for change in changes if change.table in platform.catalogue.names]
    tables = table_states(then, {c.name for c in computed} | {read.table for c in computed for read in c.inputs})

    def refused(change: TableChange) -> dict[date, tuple[Attempt, ...]]:
        gone = {day: list(_made_from(platform, undone[change.table, day])) for day in change.days}
        if change.table not in platform.catalogue.names:  # what would be made of its days, its own domain knows
            return {day: tuple(sorted(refusals(gone[day], Version()))) for day in change.days}
        made = {day: record.made_by if (record := becomes[change.table, day]) else Version() for day in change.days}
        free = _as_they_would_be(tables, platform.catalogue[change.table], made, platform.version(change.table))
        today = platform.version(change.table)
        return {day: () if day in free else tuple(sorted(refusals(gone[day], today))) for day in change.days}

    return tuple(
        change if change.table.startswith("quarantine.") else change.model_copy(update={"refuses": refused(change)})
        for change in changes
    )


def _made_from(platform: Platform, undone: Iterable[DayRecord]) -> Iterator[tuple[str, Version]]:
    """Yield fingerprint and code of days; if only some keys were computed, also those of the whole day.

    Otherwise the next refresh would compute just these rows again, and the others with them.
    """
    for record in undone:
        yield record.fingerprint, record.made_by
        if is_mixed(record.fingerprint, record.code_version):
            change = made_by(platform.lake, record.publication, record.table, record.day)
            if scope := change.days[record.day].scope:
                yield scope.made_from, Version(change.code_version, record.configuration)


def _as_they_would_be(
    tables: TableStates, contract: Contract, made_by: Mapping[date, Version], now: Version
) -> tuple[date, ...]:
    """Return days whose inputs were rolled back with them, so that no hold is needed.

    Days that today's code or contract would compute differently are not included, because a refresh would produce the
    rolled-back content again; unless the table has to follow its contract with all days together.
    """
    other = {day for day, version in made_by.items() if any(version.differs(now))}
    return tuple(
        day for day in same_input(contract, made_by, tables) if day not in other or contract.name in tables.changing
    )


def schema_before(platform: Platform, table: str, undone: Collection[str]) -> str:
    """Return the Delta schema that a table had before some publications changed its columns; empty if none did."""
    path, indexed = platform.lake.table_path(table), platform.ledger.indexed()
    for name in sorted(undone, key=lambda name: indexed[name]):
        version = release(platform.lake, indexed[name]).versions[table]
        said = commits.actions(path, version)
        is_its_own = commits.made_by(version, said).publication == name
        if is_its_own and version > 0 and any("metaData" in action for action in said):
            return schema_at(path, version - 1)
    return ""


def refuse_what_would_not_read(
    platform: Platform,
    table: str,
    schema: str,
    contents: Mapping[date, DayContent],
    now: TableSnapshot,
    before: Iterable[TableChange],
) -> None:
    """Refuse columns for which remaining or restored files were not written."""
    path, wanted = platform.lake.table_path(table), types_in(schema)
    back = {file.path for content in contents.values() for file in content.files}
    staying = {name: day for name, day in now.days.items() if day is not None and day not in contents}
    sides = [("as it is", now.schema_string, staying)]
    for change in before:
        days = {file.path: day for day, content in change.days.items() for file in content.files if file.path in back}
        sides.append(("as it was", change.schema_string, days))
    for how, had, days in sides:
        differing = differing_columns(types_in(had), wanted)
        if wrong := files_with(path, days, differing) if differing else []:
            raise PlatformError(
                f"{table} {min(days[name] for name in wrong)} {how} has other columns than the table would have "
                f"({', '.join(sorted(differing))}); nothing was rolled back.",
                "Roll back the publication that brought the columns with all its days, or everything since a release.",
            )
