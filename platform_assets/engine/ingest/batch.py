"""Ingest one batch of arrivals into raw: staged, counted, published; for the first time, or again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import Contract
from platform_assets.contracts.rules import refused_table
from platform_assets.engine.day_contents import appended_change, replaced, staged_at, table_change
from platform_assets.engine.ingest.aside import QuarantineError
from platform_assets.engine.ingest.file_rows import FilesChangedError, raise_if_changed, stage_rows
from platform_assets.engine.publishing import new_stage
from platform_assets.engine.raw import IngestTurn, stage_tombstones
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.staging_folders import drop_rows_without_day, has_rows_without_day
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.arrivals import Delivery, replay_notes, replays, waiting_note
from platform_assets.planning.rows_aside import late_table
from platform_assets.planning.steps import parts_of
from platform_assets.planning.windows import ranges
from platform_assets.quality.deliveries import FAULT
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import Arrival, DayContent, TableChange
from platform_assets.sources.inspect import Inspection, inspect
from platform_assets.sources.landing import (
    NOT_AS_LISTED,
    LandedFile,
    Problem,
    not_as_listed,
)
from platform_assets.sources.limits import Limits
from platform_assets.spark.compare.profiles import RawProfile, fates_without_day, profile_staged
from platform_assets.spark.raw.dead_letters import (
    commonest_faults,
    late_rows,
    refused_again,
    refused_rows,
    replayed_rows,
)
from platform_assets.spark.raw.versions import MOST_BROADCAST
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.reading import read_days, read_staged
from platform_assets.spark.tables.schemas import REFUSED, raw_schema
from platform_assets.spark.tables.staging import stage, tasks_for
from platform_assets.words import counted

_NAMED = 3
"""Files that an error names."""

Row = tuple[int, int, int]
"""A refused row: its number in the file, its place among the versions, and how often it was refused."""


@dataclass(frozen=True)
class Again:
    """Rows ingested again from files that were refused before. A batch has files of one kind.

    Args:
        is_other: whether the files changed, so that earlier refused rows are kept, as tried 0 times.
        rows: refused rows of partly ingested files, by path; those of each file become a separate arrival.
    """

    whole: frozenset[str] = frozenset()
    is_other: bool = False
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.whole or self.rows)

    def before(self, turn: IngestTurn, publication: str) -> str:
        """Return the prefix of the arrival name under which rows of a file enter."""
        return f"replayed/{turn.contract.table}/{publication}/" if self.rows else ""

    def rows_to_take(self, parsed: DataFrame, before: str) -> DataFrame:
        """Return the rows to ingest from parsed files."""
        return replayed_rows(parsed, self._tried(parsed.sparkSession), before) if self.rows else parsed

    def left(self, staged: DataFrame, turn: IngestTurn, publication: str, files: Collection[LandedFile]) -> DataFrame:
        """Return the refused rows that remain, on the days of files with staged rows."""
        table, paths = refused_table(turn.contract.name), [file.path for file in files]
        path, days = turn.platform.lake.table_path(table), ranges({file.arrival_date for file in files})
        there = read_days(staged.sparkSession, path, turn.snapshot.files(table), REFUSED, days)
        if not self.rows:
            is_mine = F.col("_arrival").isin(paths)
            attempts = F.when(is_mine, F.lit(0)).otherwise(F.col("_attempts"))
            kept = there.withColumn("_attempts", attempts) if self.is_other else there.where(~is_mine)
            return kept.unionByName(refused_rows(staged))
        tried = self._tried(staged.sparkSession).where(F.col("_arrival").isin(paths))
        others = there.join(F.broadcast(tried), ["_arrival", "_row"], "left_anti")
        return others.unionByName(refused_again(staged, tried, self.before(turn, publication)))

    def change(
        self, turn: IngestTurn, publication: str, files: Collection[LandedFile], left: RawProfile
    ) -> TableChange:
        """Return the change of the refused rows on these days, once the remaining ones are staged."""
        table, lake = refused_table(turn.contract.name), turn.platform.lake
        there, staged = turn.snapshot.files(table), staged_at(lake, table, publication)
        days = {file.arrival_date for file in files} & (there.keys() | staged.keys())
        digests = {day: left.digests.get(day, Digest()) for day in days}
        contents = replaced(there, staged, digests, dict.fromkeys(days, ""), {})
        return table_change(lake, turn.snapshot.release, table, REFUSED.json(), contents, left.software)

    def _tried(self, spark: SparkSession) -> DataFrame:
        rows = [(path, *row) for path, of_it in self.rows.items() for row in of_it]
        return spark.createDataFrame(rows, "_arrival string, _row long, _place long, _attempts int")


FIRST_TIME = Again()
"""Nothing of files that were never taken."""


def refuse_files(wrong: Mapping[str, str]) -> None:
    """Raise if files cannot be read again."""
    if wrong:
        names = "; ".join(f"{path} {what}" for path, what in sorted(wrong.items())[:_NAMED])
        more = f"; and {len(wrong) - _NAMED:,} more files" if len(wrong) > _NAMED else ""
        raise QuarantineError(
            f"These files cannot be read once more: {names}{more}.",
            "Put them back into the landing area as they were, correct the contract, name others with --arrival, or "
            "have the rows delivered again under another name.",
        )


def other_records(recorded: Mapping[str, int], seen: Mapping[str, Inspection]) -> dict[str, str]:
    """Return files that today's contract splits into other records, so that numbers of refused rows mean nothing.

    Args:
        recorded: how many rows each file had when it was ingested, by path.
    """
    return {
        path: f"had {counted(recorded[path], 'row')} and has {inspection.landed:,} by today's contract, so that its "
        "refused rows cannot be identified; `platform-assets admin reload` reads all of them"
        for path, inspection in seen.items()
        if inspection.landed != recorded[path]
    }


def repaired(turn: IngestTurn, files: Collection[LandedFile]) -> Again:
    """Return files that came again under their names after some of their rows had been refused."""
    refused = turn.platform.ledger.arrivals(turn.contract.name, refused_only=True)
    before = frozenset(arrival.path for arrival in refused if arrival.refused)
    return Again(before & {file.path for file in files}, is_other=True)


@dataclass(frozen=True)
class Taken:
    """Result of a batch."""

    arrivals: tuple[Arrival, ...]
    days: Mapping[date, DayContent]
    left: tuple[Problem, ...]


class _UnaccountedError(Exception):
    """Files produced fewer or more rows than they have."""

    def __init__(self, reasons: dict[LandedFile, str]) -> None:
        super().__init__(*reasons.values())
        self.reasons = reasons


def ingest_batch(
    turn: IngestTurn, spark: SparkSession, files: Sequence[LandedFile], again: Again = FIRST_TIME
) -> Taken:
    """Ingest some files whole, in one publication of raw, of refused rows and of the late queue.

    A file that cannot be read, or whose rows do not add up, is refused whole, without stopping others. A file that
    changes during ingestion, or cannot be opened, is left out and not recorded.
    """
    limits = Limits.of(turn.platform.settings)
    seen: dict[LandedFile, Inspection] = {}
    left: dict[LandedFile, Problem] = {}
    for file in files:
        try:
            seen[file] = inspect(file, turn.contract, limits)
        except NOT_AS_LISTED as error:
            left[file] = not_as_listed(file.path, error)
    refused = {file: inspection.reason for file, inspection in seen.items() if inspection.reason is not None}
    if again.rows:
        recorded = {arrival.path: arrival.landed for arrival in turn.platform.ledger.arrivals(turn.contract.name)}
        refuse_files(other_records(recorded, {file.path: one for file, one in seen.items() if file not in refused}))
    while seen:
        try:
            with full_disk_explained(turn.contract.name):
                return Taken(*_take(turn, spark, seen, refused, again), tuple(left.values()))
        except _UnaccountedError as error:
            refused |= error.reasons
        except FilesChangedError as error:
            left |= error.problems
            seen = {file: inspection for file, inspection in seen.items() if file not in left}
            refused = {file: reason for file, reason in refused.items() if file not in left}
    return Taken((), {}, tuple(left.values()))


@dataclass(frozen=True)
class _Counts:
    """Counts for the rows of good files: profiles of staged days, and numbers of rows by arrival.

    Args:
        undated: number of keys of deletes without event time that match no record yet.
    """

    taken: RawProfile = field(default_factory=RawProfile)
    refused: RawProfile = field(default_factory=RawProfile)
    waiting: RawProfile = field(default_factory=RawProfile)
    broken: Mapping[str, int] = field(default_factory=dict)
    erased: Mapping[str, int] = field(default_factory=dict)
    undated: Mapping[str, int] = field(default_factory=dict)


def _take(
    turn: IngestTurn,
    spark: SparkSession,
    seen: Mapping[LandedFile, Inspection],
    refused: dict[LandedFile, str],
    again: Again,
) -> tuple[tuple[Arrival, ...], dict[date, DayContent]]:
    platform, contract, release = turn.platform, turn.contract, turn.snapshot.release
    letters, queue = refused_table(contract.name), late_table(contract.name)
    sizes: Counter[date] = Counter()
    for file in seen:
        sizes[file.arrival_date] += file.size
    part_bytes = platform.settings.part_bytes
    with (
        tasks_for(lambda: spark, parts_of(sizes, part_bytes), part_bytes) as given,  # enough for the bytes of any day
        new_stage(platform, (contract.name, letters, queue)) as (publication, folders),
    ):
        spark = given()
        before = again.before(turn, publication)
        replayed = _replayed(turn, [file for file in seen if file not in refused])
        chosen = partial(again.rows_to_take, before=before)
        stage_rows(spark, turn, seen, refused, folders[contract.name], folders[letters], replayed, chosen)
        failpoint("ingest.staged")
        if again.rows:
            refuse_files({file.path: reason for file, reason in refused.items()})
        good = {file: inspection for file, inspection in seen.items() if file not in refused}
        counts = _counted(turn, spark, publication, folders, good, again) if good else _Counts()
        tried = {file: (before, len(rows)) for file in seen if (rows := again.rows.get(file.path))}
        arrivals = tuple(
            _arrival(contract, file, seen[file], refused.get(file), tried.get(file), counts, replayed) for file in seen
        )
        # The record is right only if the file is unchanged: size and time prove nothing about the content.
        raise_if_changed(seen, {file for file, inspection in seen.items() if inspection.reason is not None})
        _check(dict(zip(seen, arrivals, strict=True)))
        schema = raw_schema(contract).json()
        changes = [
            appended_change(platform, release, contract.name, publication, schema, counts.taken),
            again.change(turn, publication, good, counts.refused)
            if again
            else appended_change(platform, release, letters, publication, REFUSED.json(), counts.refused),
            appended_change(platform, release, queue, publication, schema, counts.waiting),
        ]
        failpoint("ingest.counted")
        turn.publish(publication, "ingest", changes, arrivals)
        failpoint("ingest.taken")
    return arrivals, dict(changes[0].days)


def _counted(
    turn: IngestTurn,
    spark: SparkSession,
    publication: str,
    folders: Mapping[str, Location],
    good: Mapping[LandedFile, Inspection],
    again: Again,
) -> _Counts:
    """Set aside the staged rows that do not enter raw, stage tombstones, and count everything."""
    lake, contract, folder = turn.platform.lake, turn.contract, folders[turn.contract.name]
    letters, queue = folders[refused_table(contract.name)], folders[late_table(contract.name)]
    refused = waiting = RawProfile()
    broken: Mapping[str, int] = {}
    erased: Mapping[str, int] = {}
    has_others = has_rows_without_day(lake, contract.name, publication)
    fates = fates_without_day(spark, folder) if has_others else {}
    if again:
        broken = fates.get("refused", {})
        left = again.left(read_staged(spark, folder), turn, publication, good)
        refused = RawProfile() if left.isEmpty() else _set_aside(left, letters)
    if has_others:
        staged = read_staged(spark, folder)
        if not again and "refused" in fates:
            refused = _set_aside(refused_rows(staged), letters)
            broken = refused.taken
        _refuse_mostly_broken(contract, good, broken, staged)
        if "late" in fates:
            waiting = _set_aside(late_rows(staged), queue)
        erased = fates.get("erased", {})
        drop_rows_without_day(lake, contract.name, publication)
        failpoint("ingest.set_aside")
    few = sum(inspection.landed for inspection in good.values()) <= MOST_BROADCAST
    undated = stage_tombstones(spark, contract, publication, turn.snapshot, few=few)
    failpoint("ingest.compared")
    return _Counts(profile_staged(spark, folder), refused, waiting, broken, erased, undated)


def _replayed(turn: IngestTurn, files: Sequence[LandedFile]) -> dict[str, Delivery]:
    """Return, for each file whose content came before, the first file with that content."""
    assert turn.contract.source is not None
    if turn.contract.source.resent == "anew":
        return {}
    before = turn.platform.ledger.deliveries(turn.contract.name, at=turn.snapshot.number, alike_only=False)
    now = [Delivery(file.path, None, file.arrival_date, file.modified_ns, file.sha256) for file in files if file.size]
    hashes = {file.sha256 for file in now}
    alike = [delivery for delivery in before if delivery.sha256 in hashes]
    return replays([*alike, *now], turn.contract.source.order)


def _arrival(
    contract: Contract,
    file: LandedFile,
    inspection: Inspection,
    reason: str | None,
    tried: tuple[str, int] | None,
    counts: _Counts,
    replayed: Mapping[str, Delivery],
) -> Arrival:
    before, landed = tried or ("", inspection.landed)
    path = before + file.path
    refused = counts.broken.get(path, 0)
    if landed and refused == landed and not tried:  # such an arrival has delivered nothing
        reason = reason or (
            f"has no row that can be taken: all {refused:,} are refused; `platform-assets read "
            f"{refused_table(contract.name)}` says why; repair the file under its name, or correct the contract and "
            f"`platform-assets quarantine replay {contract.name}`"
        )
    notes = [*inspection.notes, *(replay_notes(replayed, path) if reason is None and landed else ())]
    if lacks_record := counts.undated.get(path, 0):
        notes.append(waiting_note(contract, lacks_record))
    return Arrival(
        table=contract.name,
        path=path,
        arrival_date=file.arrival_date,
        size=file.size,
        sha256=file.sha256,
        modified_ns=file.modified_ns,
        landed=landed,
        taken=counts.taken.taken.get(path, 0),
        refused=refused,
        late=counts.waiting.taken.get(path, 0),
        erased=counts.erased.get(path, 0),
        reason=reason,
        notes=tuple(notes),
        kind="replay" if tried else "delivery",
        origin=file.path if tried else None,
    )


def _refuse_mostly_broken(
    contract: Contract, seen: Mapping[LandedFile, Inspection], broken: Mapping[str, int], staged: DataFrame
) -> None:
    """Refuse files whole that have more broken rows than allowed; keep the rows if a file has no others."""
    most = contract.checks.most_aside_percent
    landed = {file: inspection.landed for file, inspection in seen.items()}
    beyond = [file for file in seen if most * landed[file] < 100 * broken.get(file.path, 0) < 100 * landed[file]]
    if beyond:
        faults = commonest_faults(staged, [file.path for file in beyond], FAULT.pattern)
        raise _UnaccountedError(
            {
                file: f"has {broken[file.path]:,} broken rows of {landed[file]:,}, more than the {most} % that its "
                f"contract takes, most often {faults[file.path]}; repair it under its name, or correct the contract "
                f"and `platform-assets quarantine replay {contract.name}`"
                for file in beyond
            }
        )


def _check(arrivals: Mapping[LandedFile, Arrival]) -> None:
    lost = {
        file: f"holds {counted(arrival.landed, 'row')}; {arrival.taken + arrival.late + arrival.erased:,} were read as "
        f"rows and {arrival.refused:,} refused"
        for file, arrival in arrivals.items()
        if arrival.reason is None and arrival.landed != arrival.taken + arrival.refused + arrival.late + arrival.erased
    }
    if lost:
        raise _UnaccountedError(lost)


def _set_aside(rows: DataFrame, folder: Location) -> RawProfile:
    """Stage rows that do not enter raw."""
    stage(rows, folder)
    return profile_staged(rows.sparkSession, folder)
