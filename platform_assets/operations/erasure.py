"""Erase rows: publish tables without a person's rows, recompute what depends on them, then delete all older files.

If the process ends, the rows are in all tables or in none with their key; calling it again continues.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.engine.day_contents import AHEAD, in_other_files, staged_at
from platform_assets.engine.erasures import made, newest, standing
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import new_stage, publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import Conflict, LockLostError
from platform_assets.lakehouse.horizon import Cut, horizon_of
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.releases import computed_by
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damage, damaged
from platform_assets.operations.deletion import delete_before
from platform_assets.operations.erasure_places import (
    Found,
    Hits,
    Place,
    Reach,
    Request,
    Unreached,
    reach,
    refuse_named_value,
    search,
    unreached,
)
from platform_assets.operations.lineage.day_history import EndedRollback, ended_rollbacks
from platform_assets.operations.pins import pinned_releases, unpin
from platform_assets.operations.plan_record import ends_of
from platform_assets.operations.stages.store import open_stages, stage_names
from platform_assets.planning.backfill.days import reached_days
from platform_assets.planning.selection import AUTOMATIC
from platform_assets.planning.steps import bytes_among, parts_of
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.quality.findings import FELL_FROM, LAG
from platform_assets.records.differences import Digest
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile, Erasure, TableChange, new_publication
from platform_assets.secret import installation_secret, name_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from platform_assets.spark.compare.profiles import RawProfile
    from platform_assets.spark.session.on_demand import SparkOnDemand


LOCK_WAIT_S = 60.0
"""Longest wait for a running ingest, in seconds."""
_TURNS = 5
"""How often to search again in days that other processes published."""


def is_remembered(platform: Platform, where: Reach, secret: bytes) -> bool:
    """Return whether a key was erased from one of some tables, and not lifted since."""
    return any(
        place.hashes(secret) == erasure.key for place in where.places for erasure in standing(platform, place.table)
    )


def is_remembered_everywhere(platform: Platform, where: Reach, secret: bytes) -> bool:
    """Return whether all given raw tables drop rows of a key; a table named later or declared since may not know it."""
    hashes = {place.table: place.hashes(secret) for place in where.places}
    return all(
        hashes[contract.name] in [erasure.key for erasure in standing(platform, contract.name)]
        for contract in where.raw
    )


def lift(platform: Platform, request: Request, author: Author) -> int:
    """Let rows of an erased key be ingested again when delivered; erased rows do not return by themselves.

    Returns:
        The release that says so.
    """
    where = reach(platform.catalogue, request.table, request.key, request.also)
    refuse_named_value(where, request, author)
    secret = installation_secret(platform.settings)
    with _nothing_taken(platform, where):
        platform.settle()
        if not is_remembered(platform, where, secret):
            raise PlatformError(
                f"Nothing with this key was erased from {', '.join(raw.name for raw in where.raw)}.",
                "Name the table and the fields as they were named when it was erased: `platform-assets status "
                "releases`.",
            )
        lifted = [
            Erasure(table=place.table, key=place.hashes(secret), secret=name_of(secret), lifts=True)
            for place in where.places
        ]
        return _publish_lifted(platform, author, lifted)


def lift_unreadable(platform: Platform, table: str, author: Author) -> int:
    """Lift all erasures of a raw table under a lost secret, because their keys can no longer be recognized.

    Returns:
        The release that says so.
    """
    name = platform.catalogue[table].name
    with ingest_lock(platform.lake, name, LOCK_WAIT_S):
        platform.settle()
        known = name_of(installation_secret(platform.settings))
        lost = [erasure for erasure in standing(platform, name) if erasure.secret != known]
        if not lost:
            raise PlatformError(
                f"Nothing is remembered of {name} under another secret than this installation has.",
                "Say whose erasure is lifted: add --key FIELD=VALUE.",
            )
        lifted = [Erasure(table=name, key=erasure.key, secret=erasure.secret, lifts=True) for erasure in lost]
        return _publish_lifted(platform, author, lifted)


def _publish_lifted(platform: Platform, author: Author, lifted: Sequence[Erasure]) -> int:
    """Publish a lift, which the chain of decisions distinguishes from an erasure."""
    author = replace(author, decides="erasure lifted")
    return publish_changes(platform, new_publication(), "erasure", [], author, erasures=lifted)


@dataclass(frozen=True)
class Erased:
    """Result of an erasure, done or planned.

    Args:
        namesakes: tables with the same fields but other sources, which were not searched.
        pins: pinned releases that cannot stay.
        remembered: whether the key had been erased before, so that this continues it.
        release: release without the rows; None if nothing was published.
        not_refreshed: days that could not be recomputed, by table, and why: their sums still include the rows.
        cut: release before which nothing can be read any more.
        left: rows still in files, by table: of stages that a process is working on.
    """

    tables: tuple[str, ...]
    namesakes: tuple[str, ...]
    found: Found
    before: int
    pins: tuple[int, ...] = ()
    remembered: bool = False
    release: int | None = None
    refreshed: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    not_refreshed: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    cut: int = 0
    files: int = 0
    left: Mapping[str, int] = field(default_factory=dict)
    ended: tuple[EndedRollback, ...] = ()
    unreached: Unreached = field(default_factory=Unreached)

    @property
    def is_whole(self) -> bool:
        """Return whether nothing in this installation holds the rows or counts them any more."""
        return not self.left and not self.not_refreshed


def planned_erasure(platform: Platform, request: Request, progress: OnProgress = no_progress) -> Erased:
    """Return what an erasure would do, without changing anything."""
    platform.settle()
    where = reach(platform.catalogue, request.table, request.key, request.also)
    _refuse_stages(platform)
    secret = installation_secret(platform.settings)
    planned = _planned(platform, where, search(LakeSnapshot.now(platform), where.places, secret, progress), secret)
    return replace(planned, unreached=unreached(platform, where, secret))


def erase(
    platform: Platform, spark: SparkOnDemand, request: Request, author: Author, progress: OnProgress = no_progress
) -> Erased:
    """Remove all rows of a key from this installation, and keep them out.

    One publication removes such rows from every table with the key, and remembers the key by hashes: later deliveries
    of it are dropped. Then history is cut there and its files are deleted, stale days are recomputed as on a schedule,
    and history is cut once more after these. Called again, it continues where it ended.

    Raises:
        PlatformError: there is nothing to erase, a stage is open, or a file holds other rows than were published;
            nothing was changed.
        DamagedTableError: a file cannot be read, so it is unknown whose rows it holds.
        LockTimeoutError: another process ingests into one of the raw tables; nothing was changed.
        Conflict, LockLostError: others kept publishing; nothing was changed.
    """
    where = reach(platform.catalogue, request.table, request.key, request.also)
    refuse_named_value(where, request, author)
    secret = installation_secret(platform.settings)
    work = _Work(platform, spark, where, author, secret, progress)
    with _nothing_taken(platform, where):
        done = work.taken_out()
    done = work.refreshed(work.cut(done))
    if done.refreshed:
        done = work.cut(done)
    with private_folder(platform.lake):
        pass  # what a killed `verify` left there
    left = search(LakeSnapshot.now(platform), where.places, secret, progress)
    return replace(
        done,
        left={table: sum(days.values()) for table, days in left.rows.items()} | dict(left.older),
        unreached=unreached(platform, where, secret),
    )


def _planned(platform: Platform, where: Reach, found: Found, secret: bytes) -> Erased:
    now = platform.current_release().number
    remembered = is_remembered(platform, where, secret)
    tables = tuple(place.table for place in where.places)
    if not found and not remembered:
        namesakes = f" These have the same fields and are fed by others: {', '.join(where.namesakes)}."
        raise PlatformError(
            f"No row has this key: searched every file of {', '.join(tables)}.",
            "Check the value; other fields with it can be named with --also TABLE.FIELD."
            + (namesakes if where.namesakes else ""),
        )
    pins = tuple(number for number in pinned_releases(platform.ledger) if number <= now)
    return Erased(tables, where.namesakes, found, now, pins if found else (), remembered)


def _refuse_stages(platform: Platform) -> None:
    if stages := stage_names(platform.lake):
        raise PlatformError(
            f"The stage {stages[0]} is open, and may hold the rows, too.",
            ends_of(platform.lake, stages[0]),
        )


def without_rows(
    spark: SparkSession, snapshot: LakeSnapshot, place: Place, hits: Hits, publication: str, secret: bytes
) -> tuple[TableChange, Erasure]:
    """Stage the days of a table that hold rows of a key without these rows.

    Counts the remaining rows again from the files: together with the removed rows they must equal the published number.
    """
    from pyspark.sql.types import StructType

    from platform_assets.spark.compare.profiles import digests_in_files
    from platform_assets.spark.tables.failures import full_disk_explained

    lake, table = snapshot.platform.lake, place.table
    path, folder = lake.table_path(table), lake.stage_path(table, publication)
    schema_string = snapshot.schema_string(table)
    schema = StructType.fromJson(json.loads(schema_string))
    records = snapshot.platform.ledger.current_days(table, at=snapshot.number, among=list(hits))
    live = snapshot.files(table)
    for file in (file for day in sorted(hits) for file in live[day]):
        if problem := damage(path / file.path, file.size):
            raise damaged(path / file.path, problem)
    with full_disk_explained(table):
        old = {day: [file for file in live[day] if file.path in hits[day]] for day in hits}
        out = _stage_the_rest(spark, place, old, schema, folder, secret, snapshot.platform.settings.part_bytes)
    staged = staged_at(lake, table, publication)
    files = {
        day: (*(file for file in live[day] if file.path not in hits[day]), *staged.get(day, ())) for day in sorted(hits)
    }
    left = digests_in_files(spark, path, [file.path for of_day in files.values() for file in of_day], schema)
    for day in hits:
        was = Digest.parse(records[day].digest) if day in records else None
        taken = out.digests.get(day, Digest())
        if left.get(day, Digest()) + taken != was or taken.rows != sum(hits[day].values()):
            raise PlatformError(
                f"The files of {table} {day} hold other rows than were published; nothing was erased.",
                "`platform-assets admin audit --digests` names what repairs the day; erase once it is whole.",
            )
    computed = computed_by(lake, table, {day: records[day].publication for day in hits})
    contents = {
        day: in_other_files(
            records[day],
            live[day],
            files[day],
            computed[day],
            digest=str(left.get(day, Digest())),
            rows=left.get(day, Digest()).rows,
            figures=_figures(records[day], out, day),
        )
        for day in sorted(hits)
    }
    erasure = Erasure(
        table=table,
        key=place.hashes(secret),
        secret=name_of(secret),
        rows={day: sum(hits[day].values()) for day in sorted(hits)},
        arrivals={arrival: rows for arrival, rows in sorted(out.taken.items()) if rows},
    )
    return TableChange(table=table, schema_string=schema_string, days=contents), erasure


def _stage_the_rest(
    spark: SparkSession,
    place: Place,
    files: Mapping[date, Collection[DataFile]],
    schema: StructType,
    folder: Location,
    secret: bytes,
    part_bytes: int,
) -> RawProfile:
    """Stage the remaining rows of some files; return the profile of the removed ones."""
    from platform_assets.spark.compare.profiles import RawProfile, by_columns, profile, profile_raw
    from platform_assets.spark.raw.dead_letters import is_erased
    from platform_assets.spark.tables.reading import read_files
    from platform_assets.spark.tables.staging import stage

    keys = place.keys(secret)
    out = RawProfile()
    names = [file.path for of_day in files.values() for file in of_day]
    for columns, alike in by_columns(folder.parent, names, schema):
        rows = read_files(spark, folder.parent, alike, columns)
        erased = is_erased(rows, keys)
        stage(rows.where(~erased), folder, parts=parts_of(bytes_among(files, alike), part_bytes))
        gone = rows.where(erased)
        if "_arrival" in columns.fieldNames():
            out.add(profile_raw(gone))
        else:
            digests = {day: found.digest for day, found in profile(gone, (), ()).items()}
            out.add(RawProfile(digests))
    return out


def _figures(record: DayRecord, out: RawProfile, day: date) -> dict[str, int]:
    """Return the counts of a day without the removed rows; those of a computed day stay until it is recomputed.

    Without the number from which its rows fell: how many of these may never come back is unknown.
    """
    less = {"tombstones": out.tombstones, "withdrawals": out.withdrawals, AHEAD: out.ahead, LAG: out.lags}
    return {
        name: number - less[name].get(day, 0) if name in less else number
        for name, number in record.figures.items()
        if name != FELL_FROM
    }


@contextmanager
def _nothing_taken(platform: Platform, where: Reach) -> Iterator[None]:
    with ExitStack() as turns:
        for contract in sorted(where.raw, key=lambda raw: raw.name):
            turns.enter_context(ingest_lock(platform.lake, contract.name, LOCK_WAIT_S))
        yield


@dataclass(frozen=True)
class _Work:
    """A running erasure."""

    platform: Platform
    spark: SparkOnDemand
    where: Reach
    author: Author
    secret: bytes
    progress: OnProgress

    def taken_out(self) -> Erased:
        """Publish all tables without the rows, based on exactly the searched state."""
        for turn in range(_TURNS):
            self.platform.settle()
            _refuse_stages(self.platform)
            snapshot = LakeSnapshot.now(self.platform)
            found = search(snapshot, self.where.places, self.secret, self.progress)
            planned = _planned(self.platform, self.where, found, self.secret)
            if not found.live and is_remembered_everywhere(self.platform, self.where, self.secret):
                return planned
            try:
                return replace(planned, release=self._publish(found, snapshot))
            except (Conflict, LockLostError):
                if turn == _TURNS - 1:
                    raise
        raise AssertionError

    def _publish(self, found: Found, snapshot: LakeSnapshot) -> int:
        tables = [place.table for place in self.where.places]
        with new_stage(self.platform, tables) as (publication, _):
            changes, erasures = [], []
            for place in self.where.places:
                if hits := found.live.get(place.table):
                    with meanwhile(self.progress, f"writing {place.table} without the rows"):
                        change, erasure = without_rows(self.spark(), snapshot, place, hits, publication, self.secret)
                    changes.append(change)
                else:
                    erasure = Erasure(table=place.table, key=place.hashes(self.secret), secret=name_of(self.secret))
                erasures.append(erasure)
            with meanwhile(self.progress, "publishing"):
                return publish_changes(
                    self.platform,
                    publication,
                    "erasure",
                    changes,
                    self.author,
                    erasures=erasures,
                    on_versions={table: -1 if (at := snapshot.version(table)) is None else at for table in tables},
                )

    def refreshed(self, done: Erased) -> Erased:
        """Recompute stale days as on a schedule, but ingest no file; report days that could not be recomputed."""
        from platform_assets.engine.refresh import refresh  # and Spark, without which a dry run answers at once

        stood = self.platform.ledger.holds()
        request = replace(AUTOMATIC, takes=False)
        result = refresh(self.platform, self.spark, self.author, self.progress, request=request)
        steps = [step for step in result.steps if step.table in self.where.derived]
        counting = self._counting()
        left: dict[str, dict[date, str]] = {table: _held(self.platform, table) for table in self.where.derived}
        for step in steps:
            left[step.table] |= step.not_published
        left = {table: {day: why for day, why in of.items() if day in counting[table]} for table, of in left.items()}
        for table in set(self.where.derived) & set(result.by_people):
            if counting[table]:
                left[table][max(counting[table])] = "it waits for a person, since its contract was changed"
        return replace(
            done,
            refreshed={step.table: tuple(sorted(step.published)) for step in steps if step.published},
            not_refreshed={table: days for table, days in left.items() if days},
            ended=(*done.ended, *ended_rollbacks(self.platform, stood)),
        )

    def _counting(self) -> dict[str, Collection[date]]:
        """Return days computed from the rows in tables without the key, by table."""
        keys = {place.table: place.hashes(self.secret) for place in self.where.places}
        erased: defaultdict[str, set[date]] = defaultdict(set)
        for _, erasures in made(self.platform):
            for erasure in erasures:
                if erasure.key == keys.get(erasure.table):
                    erased[erasure.table].update(erasure.rows)
        reached = reached_days(self.platform.catalogue, erased, self.platform.calendar)
        return {table: reached.get(table, frozenset()) for table in self.where.derived}

    def cut(self, done: Erased) -> Erased:
        """Make everything before unreadable, and delete its files."""
        erased = newest(self.platform)
        assert erased is not None
        was_cut = horizon_of(self.platform.lake).cut.before
        if done.release is None and not done.found and was_cut > erased.release and not done.refreshed:
            return replace(done, cut=was_cut)
        self.platform.settle()
        bases: Collection[int] = [stage.release for stage in open_stages(self.platform.lake)]
        before = max(erased.release, min([self.platform.current_release().number, *bases]))
        for number in [pin for pin in pinned_releases(self.platform.ledger) if pin < before]:
            unpin(self.platform, number, replace(self.author, why=f"erasure {erased.publication}: {self.author.why}"))
        tables = {place.table for place in self.where.places} | set(self.where.derived)
        with meanwhile(self.progress, "deleting older files"):
            gone = delete_before(self.platform, Cut(before=before, publication=erased.publication), tables)
        return replace(done, cut=before, files=done.files + sum(len(deletion.files) for deletion in gone))


def _held(platform: Platform, table: str) -> dict[date, str]:
    """Return days that stay as before the erasure because a gate or a person refused their new content."""
    erased = newest(platform)
    assert erased is not None
    holds = {hold.day: f"held: {hold.reason}" for hold in platform.ledger.holds(table)}
    there = platform.ledger.current_days(table, among=holds) if holds else {}
    made_by = platform.ledger.indexed() if there else {}
    return {day: holds[day] for day, record in there.items() if made_by[record.publication] <= erased.release}
