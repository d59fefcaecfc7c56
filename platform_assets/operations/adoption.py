"""Adoption: a Delta table of another tool becomes a raw, silver or gold table by copy, and each day is proved.

A raw table gets its rows as deliveries, a file for each day, so that all that holds for deliveries holds for them. Days
of a silver or gold table are staged in place of what the transform makes, pass the same gates, and are published at
once. They count as made from what their inputs are then, so that they become stale when one of these changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from platform_assets.contracts import DAY, AsOf, Contract
from platform_assets.engine.circuits import refuse_stopped
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discarded_on_error
from platform_assets.engine.raw import effective_raw_rows
from platform_assets.engine.readings import land_file, private_folder
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import refuse_protected_days
from platform_assets.engine.step.stage import Stage
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.staging_folders import staging
from platform_assets.planning.arrivals import comes_with
from platform_assets.planning.steps import Step
from platform_assets.planning.windows import day_range, days_read, ranges, which
from platform_assets.progress import OnProgress, Progress, meanwhile, no_progress
from platform_assets.records.differences import Digest
from platform_assets.spark.compare.row_diff import day_digests
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.originals import (
    AdoptionError,
    Original,
    delivered_by,
    of_arrivals,
    original,
    placed,
    readable_original,
    rows_of_days,
    with_day,
    written_by_day,
)
from platform_assets.spark.tables.reading import read_days
from platform_assets.spark.tables.schemas import column_problems, raw_schema
from platform_assets.words import counted


@dataclass(frozen=True)
class Wish:
    """Request for an adoption.

    Args:
        place: folder or URL of the Delta table.
        day: its column with the day of a row, of a silver or gold table; a raw contract has `event_time`.
        days: only these; all by default.
        leave_out: its columns that are not copied.
        replaces: whether days that are there already may be replaced.
    """

    table: str
    place: str
    day: str = DAY
    days: frozenset[date] | None = None
    leave_out: tuple[str, ...] = ()
    replaces: bool = False


@dataclass(frozen=True)
class Adoption:
    """Result of an adoption, or its preview.

    Args:
        source: the table, version and features that its rows are from.
        there: count and checksum of each adopted day in the original.
        here: the same in the platform; empty in a preview.
        without_rows: days between the first and the last of which the original has no row; they are not adopted.
        undo: what takes it back; empty before it is done.
    """

    table: str
    source: Original
    there: Mapping[date, Digest]
    without_rows: tuple[date, ...] = ()
    here: Mapping[date, Digest] = field(default_factory=dict)
    release: int | None = None
    undo: str = ""

    @property
    def differing(self) -> tuple[date, ...]:
        """Return the days whose count or checksum is not the original's, oldest first."""
        return tuple(day for day, digest in self.there.items() if self.here.get(day) != digest)


@dataclass(frozen=True)
class _Copy:
    """Rows to copy, with the checksums of their days in the original.

    Args:
        names: contract's names of the copied columns, by their names in the original.
    """

    contract: Contract
    table: Original
    rows: Any
    names: Mapping[str, str]
    there: Mapping[date, Digest]

    def adoption(
        self, here: Mapping[date, Digest] = MappingProxyType({}), release: int | None = None, undo: str = ""
    ) -> Adoption:
        """Return the result for people, by default the preview."""
        days = self.there.keys()
        between = day_range(min(days), max(days))
        lacks = tuple(day for day in between if day not in days and self.contract.expects(day))
        return Adoption(self.contract.name, self.table, self.there, lacks, here, release, undo)


def planned_adoption(
    platform: Platform, spark: SparkOnDemand, wish: Wish, progress: OnProgress = no_progress
) -> Adoption:
    """Return what would be adopted, with the count and checksum of each day; nothing is written.

    Raises:
        AdoptionError: the table cannot be read, has other columns than the contract, or days that cannot be taken.
    """
    platform.settle()
    return _copy(platform, spark, wish, progress).adoption()


def adopt(
    platform: Platform, spark: SparkOnDemand, wish: Wish, author: Author, progress: OnProgress = no_progress
) -> Adoption:
    """Copy a Delta table into a table of the platform, and compare each day with the original.

    If the process is killed, nothing of a silver or gold table is visible, and the same command begins anew; files of a
    raw table that lie in its landing folder are taken by the next ingest, and the same command adds the others.

    Raises:
        AdoptionError: as for `planned_adoption`; or days failed their gates, or a copied day differs from the original.
    """
    platform.settle()
    copy = _copy(platform, spark, wish, progress)
    why = f"{author.why} (adopted from {copy.table}, Delta table {copy.table.table_id})"
    author = replace(author, why=why, decides="adoption")
    refuse_stopped(platform, "recompute", [wish.table])
    if copy.contract.source is not None:
        return _deliver(platform, spark, copy, author, progress)
    return _publish(platform, spark, copy, author, progress)


def _copy(platform: Platform, spark: SparkOnDemand, wish: Wish, progress: OnProgress) -> _Copy:
    contract = platform.catalogue[wish.table]
    if f"{placed(wish.place)}/".startswith(f"{platform.lake.root}/"):
        raise AdoptionError(
            f"{wish.place} is part of this lake.", "Name the folder of the table that another tool writes."
        )
    _refuse_source(contract, wish)
    with meanwhile(progress, "reading the original"):
        table = original(spark, wish.place)
        rows, day = with_day(table, wish.day) if contract.source is None else table.rows, wish.day
        names = _names(contract, table, wish)
        if contract.source is not None:
            day = next(name for name, declared in names.items() if declared == contract.event_time)
            rows = with_day(table, day, contract.day_zone)
        with readable_original(wish.place):
            there: dict[Any, Digest] = day_digests(rows_of_days(rows, names, wish.days), list(names.values()))
    if without := there.pop(None, None):
        raise AdoptionError(
            f"{table} has {counted(without.rows, 'row')} without {day}, so they have no day.",
            "Give them one, or delete them there.",
        )
    if not there:
        raise AdoptionError(f"{table} has no row of these days.", "Name other --days, or another table.")
    there = dict(sorted(there.items()))
    copy = _Copy(contract, table, rows, names, there)
    _refuse_days(platform, spark, copy, wish)
    return copy


def _refuse_source(contract: Contract, wish: Wish) -> None:
    source = contract.source
    if source is None:
        return
    if source.replaces == "table":
        raise AdoptionError(
            f"Each delivery of {contract.name} is a snapshot of the whole table, and days that the newest one lacks "
            "become empty.",
            f"Deliver the table as one file into a folder of {source.folder}, by the date of that snapshot.",
        )
    if wish.day != DAY or wish.replaces:
        raise AdoptionError(
            f"{contract.name} has its day from {contract.event_time}, and its rows are added to those that are there.",
            "Leave out --on and --replace, which are about silver and gold tables.",
        )


def _names(contract: Contract, table: Original, wish: Wish) -> dict[str, str]:
    """Return the contract's name of each column of the original that is copied."""
    columns = {
        (c.source_name if contract.source and c.source_name in table.types else None) or c.name: c
        for c in contract.columns
    }
    beside = {*wish.leave_out, *(() if contract.source else (wish.day,))} - columns.keys()
    there = {name: type_ for name, type_ in table.types.items() if name not in beside}
    may_lack = [name for name, column in columns.items() if contract.source and column.may_be_absent]
    declared = {name: column.type for name, column in columns.items()}
    if problems := list(column_problems(declared, there, may_lack)):
        raise AdoptionError(
            f"{table} does not have the columns of {contract.name}: {'; '.join(problems)}.",
            "Correct the contract, leave columns out with --leave-out A,B, or copy the table with other columns first; "
            "a timestamp_ntz has no time zone, so cast it to a timestamp in the zone that it was written in.",
        )
    return {name: column.name for name, column in columns.items() if name in there}


def _refuse_days(platform: Platform, spark: SparkOnDemand, copy: _Copy, wish: Wish) -> None:
    """Refuse days that the calendar does not have, that are there already, or whose inputs have nothing."""
    contract, days, calendar = copy.contract, copy.there.keys(), platform.calendar
    is_history = contract.name in platform.catalogue.histories
    outside = [day for day in days if day not in calendar and not (is_history and day < calendar.first)]
    if outside:
        raise AdoptionError(
            f"{copy.table} has rows of {which(outside)}, and the calendar goes from {calendar.first} to "
            f"{calendar.last}.",
            "Name --days of the calendar, or move PLATFORM_CALENDAR_FIRST or PLATFORM_CALENDAR_LAST.",
        )
    snapshot = LakeSnapshot.now(platform)
    recorded = platform.ledger.current_days(contract.name, at=snapshot.number, among=days)
    have = {day for day, record in recorded.items() if record.rows}
    if have and contract.source is not None:  # but for what was withdrawn, or adopted from this version before
        ours = {*_paths(platform, copy, have).values()}
        of_days = delivered_by(effective_raw_rows(spark(), contract, have, snapshot))
        have = {day for day, arrivals in of_days.items() if arrivals - ours}
    if (already := sorted(have & days)) and not wish.replaces:
        raise AdoptionError(
            f"{contract.name} has rows of {which(already)} already.",
            "Name the days that it lacks with --days"
            + (", or add --replace." if contract.source is None else "; or withdraw what brought these rows."),
        )
    if already and contract.inputs:
        refuse_protected_days(snapshot, contract, already, forced=True)
    read = [each for each in contract.inputs if not isinstance(each.window, AsOf)]
    marks = snapshot.marks([each.table for each in read])
    rows = {table: {day for day, mark in of.items() if mark.rows} for table, of in marks.items()}
    lacking = [
        day
        for day in days
        if read and not any(d in rows[each.table] for each in read for d in days_read(each.window, day, calendar))
    ]
    if lacking:
        tables = " and ".join(dict.fromkeys(each.table for each in read))
        raise AdoptionError(
            f"{contract.name} would have rows of {which(lacking)}, and {tables} has none of the days that these read: "
            "the first late row would have such a day computed from that row alone.",
            f"Adopt or load {tables} first; or adopt this table into a raw one that {contract.name} reads, as "
            "docs/adopting.md shows.",
        )


def _publish(platform: Platform, spark: SparkOnDemand, copy: _Copy, author: Author, progress: OnProgress) -> Adoption:
    """Stage, judge, prove and publish days of a silver or gold table."""
    table, days = copy.contract.name, tuple(copy.there)

    def rows(session: Any, some: Collection[date]) -> Any:
        return rows_of_days(copy.rows, copy.names, some)

    with staging(platform.lake) as keep:
        stage = Stage(
            platform,
            author,
            keep=lambda stage, publishing: keep(stage.folders),
            is_private=True,
            adopted={table: rows},
        )
        with discarded_on_error(f"What was copied for {table}", stage.discard):
            with readable_original(copy.table.place):
                result = stage.step(spark, Step(table, days), progress)
            if result.not_published:
                day, why = next(iter(sorted(result.not_published.items())))
                raise AdoptionError(
                    f"{counted(len(result.not_published), 'day')} of {copy.table} cannot be {table}: {day}: {why}",
                    "Correct the original or the contract, or name other --days. Nothing was published.",
                )
            failpoint("adoption.staged")
            _require_equal(copy, _staged(stage, table))
            number = stage.publish(spark, progress)
            here = _staged(stage, table)
    return copy.adoption(here, number, author.run)


def _staged(stage: Stage, table: str) -> dict[date, Digest]:
    return {day: Digest.parse(content.digest) for day, content in stage.staged.of(table).items()}


def _require_equal(copy: _Copy, here: Mapping[date, Digest]) -> None:
    if differing := copy.adoption(here).differing:
        day = differing[0]
        rows = here[day].rows if day in here else 0
        raise AdoptionError(
            f"The copy of {which(differing)} of {copy.table} differs from it; {day} has {counted(rows, 'row')} of "
            f"{copy.there[day].rows:,}. Nothing was published.",
            "See that no other tool removes files of that version meanwhile, as VACUUM does, and run the same again.",
        )


def _paths(platform: Platform, copy: _Copy, days: Collection[date]) -> dict[date, str]:
    """Return the file of each day below the landing root: the same whenever it is asked for."""
    assert copy.contract.source is not None
    withdrawn, today = platform.ledger.withdrawn(copy.contract.name), platform.settings.current_day()
    paths: dict[date, str] = {}
    for day in days:
        name = f"{copy.contract.source.folder}/{min(comes_with(copy.contract, day), today)}/{_prefix(copy)}{day}"
        names = (f"{name}{f'-{n}' if n else ''}.parquet" for n in count())
        paths[day] = next(each for each in names if each not in withdrawn)  # which would not be taken again
    return paths


def _prefix(copy: _Copy) -> str:
    return f"adopted-{copy.table.table_id[:8]}-{copy.table.version}-"


def _deliver(platform: Platform, spark: SparkOnDemand, copy: _Copy, author: Author, progress: OnProgress) -> Adoption:
    """Put days of a raw table into its landing folder, take them, and prove what was taken."""
    contract = copy.contract
    assert contract.source is not None
    paths = _paths(platform, copy, copy.there)
    with ingest_lock(platform.lake, contract.name):
        _land(platform, copy, paths, progress)
    failpoint("adoption.landed")
    taken = ingest(platform, spark, contract, author, progress=progress)
    ours = {*paths.values()}
    refused = {one.path: one.what for one in (*taken.problems, *taken.growing) if one.path in ours}
    refused |= {one.path: one.reason for one in taken.arrivals if one.path in ours and one.reason is not None}
    if refused:
        path, reason = min(refused.items())
        raise AdoptionError(
            f"{counted(len(refused), 'file')} of {copy.table} were not taken into {contract.name}: {path}: {reason}.",
            "Correct the contract and run the same again, or remove these files from the landing folder.",
        )
    snapshot = LakeSnapshot.now(platform)
    with meanwhile(progress, "comparing with the original"):
        folder, files = platform.lake.table_path(contract.name), snapshot.files(contract.name)
        rows = read_days(spark(), folder, files, raw_schema(contract), ranges(paths))
        here = day_digests(of_arrivals(rows, ours), list(copy.names.values()))
    pattern = f"{contract.source.folder}/*/{_prefix(copy)}*.parquet"
    return copy.adoption(here, snapshot.number, pattern)


def _land(platform: Platform, copy: _Copy, paths: Mapping[date, str], progress: OnProgress) -> None:
    """Put the rows of each day that was not taken yet into the landing folder, with markers that its source has."""
    contract = copy.contract
    assert contract.source is not None
    known = {arrival.path for arrival in platform.ledger.arrivals(contract.name)}
    root, marker = platform.settings.landing_folder, contract.source.complete or ""
    targets = {day: root / path for day, path in paths.items() if path not in known}
    left = [day for day, target in targets.items() if not target.exists()]
    for folder in {targets[day].parent for day in left if marker and not contract.source.marks_files}:
        if folder.exists():
            raise AdoptionError(
                f"{folder} is there already, and {marker} would say that all of its delivery is.",
                "Have that delivery taken first, or name other --days.",
            )
    progress(Progress("copying", contract.name, 0, len(left)))
    with private_folder(platform, contract) as folder, readable_original(copy.table.place):
        rows = rows_of_days(copy.rows, {name: name for name in copy.names}, left)
        for day, file in written_by_day(rows, folder).items() if left else ():
            failpoint("adoption.landing")
            target, hidden = targets[day], targets[day].with_name(f".{targets[day].name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            land_file(file, hidden, platform.settings.settle_s)
            hidden.replace(target)
    for target in targets.values() if marker else ():
        (Path(f"{target}{marker}") if contract.source.marks_files else target.parent / marker).touch()
    progress(Progress("copying", contract.name, len(left), len(left), finished=True))
