"""One batch of arrivals on its way into raw: parse, stage, find moved keys, count, publish.

Spark reads copies of some files: of some text it can only read lines; a cluster sees the lake, not the landing folder
of this machine; and behind a name a deliverer can put another file meanwhile.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import Contract
from platform_assets.contracts.landing import Format
from platform_assets.contracts.rules import refused_table
from platform_assets.engine.day_contents import appended_change
from platform_assets.engine.ingest.again import FIRST_TIME, Again, refuse_files
from platform_assets.engine.ingest.unreadable import described_by, untakeable
from platform_assets.engine.publishing import new_stage
from platform_assets.engine.raw.tombstones import stage_tombstones, stage_undated
from platform_assets.engine.raw.turn import IngestTurn
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.staging_folders import drop_rows_without_day, has_rows_without_day
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.late_queue import late_table
from platform_assets.planning.replays import Delivery, replay_notes, replays, waiting_note
from platform_assets.planning.steps import parts_of
from platform_assets.quality.deliveries import FAULT
from platform_assets.records.manifest import Arrival, DayContent
from platform_assets.records.raw_rows import ENDING
from platform_assets.sources.inspect import Inspection, inspect
from platform_assets.sources.landing import (
    NOT_AS_LISTED,
    ChangedError,
    LandedFile,
    Problem,
    changed_since,
    not_as_listed,
    replaced_since,
)
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.text import CompressionError, lines_of
from platform_assets.spark.compare.profiles import RawProfile, profile_raw
from platform_assets.spark.raw.dead_letters import (
    commonest_faults,
    erased_rows,
    is_refused,
    late_rows,
    refused_rows,
    without_erased,
)
from platform_assets.spark.raw.parsing import Layout, parse
from platform_assets.spark.raw.versions import MOST_BROADCAST
from platform_assets.spark.session.on_demand import computes_here
from platform_assets.spark.tables.failures import full_disk_explained
from platform_assets.spark.tables.lost import lies_elsewhere
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.schemas import REFUSED, raw_schema
from platform_assets.spark.tables.staging import stage, tasks_for
from platform_assets.words import counted

_Look = tuple[Format, str, tuple[str, ...], bool, tuple[tuple[str, str], ...]]
"""What files have in common that are read together."""

_MOST_LAYOUTS = 16
"""Files that look different and are staged at once: of hundreds Spark makes a plan that it cannot hold."""


@dataclass(frozen=True)
class Taken:
    """What became of a batch.

    Args:
        arrivals: what became of each file that was taken or refused.
        days: new content of every raw day touched.
        left: why others are left for the next time.
    """

    arrivals: tuple[Arrival, ...]
    days: Mapping[date, DayContent]
    left: tuple[Problem, ...]


class _ChangedError(Exception):
    """Files that are not what they were when they were listed."""

    def __init__(self, problems: dict[LandedFile, Problem]) -> None:
        super().__init__(*problems)
        self.problems = problems


class _UnaccountedError(Exception):
    """Files of which fewer or more rows came out than lie in them."""

    def __init__(self, reasons: dict[LandedFile, str]) -> None:
        super().__init__(*reasons.values())
        self.reasons = reasons


def ingest_batch(
    turn: IngestTurn, spark: SparkSession, files: Sequence[LandedFile], again: Again = FIRST_TIME
) -> Taken:
    """Take some files whole, in one publication of raw, of the rows refused and of those that wait in the late queue.

    A file that cannot be read, or whose rows do not add up, is refused whole and keeps no other from being taken; nor
    does one that changes meanwhile, or cannot be opened, of which nothing is recorded.

    Args:
        again: what is taken once more of files that were refused before, whole or in part.
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
    while seen:
        try:
            with full_disk_explained(turn.contract.name):
                return Taken(*_take_large(turn, spark, seen, refused, again), tuple(left.values()))
        except _UnaccountedError as error:
            refused |= error.reasons
        except _ChangedError as error:
            left |= error.problems
            seen = {file: inspection for file, inspection in seen.items() if file not in left}
            refused = {file: reason for file, reason in refused.items() if file not in left}
    return Taken((), {}, tuple(left.values()))


def _take_large(
    turn: IngestTurn,
    spark: SparkSession,
    seen: Mapping[LandedFile, Inspection],
    refused: dict[LandedFile, str],
    again: Again,
) -> tuple[tuple[Arrival, ...], dict[date, DayContent]]:
    """Return the same, with as many tasks as what came on a day may need, whatever days it is of."""
    sizes: Counter[date] = Counter()
    for file in seen:
        sizes[file.arrival_date] += file.size
    part_bytes = turn.platform.settings.part_bytes
    with tasks_for(lambda: spark, parts_of(sizes, part_bytes), part_bytes) as given:
        return _take(turn, given(), seen, refused, again)


def _take(
    turn: IngestTurn,
    spark: SparkSession,
    seen: Mapping[LandedFile, Inspection],
    refused: dict[LandedFile, str],
    again: Again,
) -> tuple[tuple[Arrival, ...], dict[date, DayContent]]:
    platform, contract, snapshot = turn.platform, turn.contract, turn.snapshot
    letters, queue = refused_table(contract.name), late_table(contract.name)
    with new_stage(platform, (contract.name, letters, queue)) as (publication, folders):
        limits = Limits.of(platform.settings)
        of_all = platform.settings.copy_deliveries or not computes_here(platform.settings)
        replayed = _replayed(turn, [file for file in seen if file not in refused])
        before = again.before(turn, publication)
        try:
            with copies_for_spark(seen, refused, folders[letters], limits, of_all=of_all) as copies:
                chosen = partial(again.taken, before=before)
                _stage_rows(spark, turn, seen, refused, folders[contract.name], copies, replayed, chosen)
        except (CompressionError, LimitError, *NOT_AS_LISTED):
            _raise_if_changed(file for file in seen if file not in refused)
            raise
        failpoint("ingest.staged")
        if again.rows:
            refuse_files({file.path: reason for file, reason in refused.items()})
        good = [file for file in seen if file not in refused]
        taken = rejected = waiting = RawProfile()
        erased: Mapping[str, int] = {}
        broken: Mapping[str, int] = {}
        undated: Mapping[str, int] = {}
        if good and again:
            staged = read_staged(spark, folders[contract.name])
            broken = _by_arrival(staged.where(is_refused()))
            rejected = _set_aside(again.left(staged, turn, before, good), folders[letters])
        if good and has_rows_without_day(platform.lake, contract.name, publication):
            staged = read_staged(spark, folders[contract.name])
            if not again:
                rejected = _set_aside(refused_rows(staged), folders[letters])
                broken = rejected.taken
            _refuse_mostly_broken(contract, seen, broken, staged)
            waiting = _set_aside(late_rows(staged), folders[queue])
            erased = erased_rows(staged) if turn.erased else {}
            drop_rows_without_day(platform.lake, contract.name, publication)
            failpoint("ingest.set_aside")
        if good:
            few = sum(seen[file].landed for file in good) <= MOST_BROADCAST
            stage_tombstones(spark, contract, publication, folders[contract.name], snapshot, few=few)
            undated = stage_undated(spark, contract, publication, folders[contract.name], snapshot)
            failpoint("ingest.compared")
            taken = profile_raw(read_staged(spark, folders[contract.name]))
        counts = (taken, broken, waiting, erased, replayed, undated)
        tried = {file: (before, len(rows)) for file in seen if (rows := again.rows.get(file.path))}
        arrivals = tuple(
            _arrival(contract, file, seen[file], refused.get(file), tried.get(file), *counts) for file in seen
        )
        # What is recorded is what was read only if it is still there: size and time prove nothing of the content.
        _raise_if_changed(seen, {file for file, inspection in seen.items() if inspection.reason is not None})
        _check(dict(zip(seen, arrivals, strict=True)))
        changes = [
            appended_change(platform, snapshot.release, contract.name, publication, raw_schema(contract).json(), taken),
            appended_change(platform, snapshot.release, letters, publication, REFUSED.json(), rejected)
            if not again
            else again.change(turn, publication, good, rejected),
            appended_change(platform, snapshot.release, queue, publication, raw_schema(contract).json(), waiting),
        ]
        failpoint("ingest.counted")
        turn.publish(publication, "ingest", changes, arrivals)
        failpoint("ingest.taken")
    return arrivals, dict(changes[0].days)


def _stage_rows(
    spark: SparkSession,
    turn: IngestTurn,
    seen: Mapping[LandedFile, Inspection],
    refused: dict[LandedFile, str],
    folder: Location,
    copies: Mapping[LandedFile, Location],
    replayed: Mapping[str, Delivery],
    chosen: Callable[[DataFrame], DataFrame],
) -> None:
    """Stage the rows of all files not refused; those refused by themselves, too late or too far ahead, without a day.

    A file that turns out corrupt, or that Spark cannot take though it takes the others, joins the refused.
    """
    contract = turn.contract
    came = {file.path: replayed[file.path].arrival_date for file in seen if file.path in replayed}

    def parsed(files: Sequence[LandedFile]) -> DataFrame:
        return chosen(without_erased(parse(spark, _layouts(files, seen, copies), contract, came), turn.erased))

    def described(file: LandedFile) -> DataFrame:
        assert contract.source is not None
        like = folder / f"described/{contract.source.folder}/2000-01-01/described.{file.format}"
        like.write_in_place([described_by(contract, file.format)])
        return parse(spark, [Layout(file.format, contract.column_names, (str(like),))], contract)

    while parts := _parts([file for file in seen if file not in refused], seen):
        try:
            for part in parts:
                stage(parsed(part), folder)
            return
        except (PySparkException, Py4JError) as error:
            if elsewhere := lies_elsewhere(error, turn.platform.settings):  # no delivered file is to blame
                raise elsewhere from error
            good = [file for part in parts for file in part]
            _raise_if_changed(good)
            culprits: dict[LandedFile, str] = {}
            for part in parts:
                culprits |= untakeable(parsed, described, part)
            if not culprits:
                raise
            refused |= culprits
            folder.remove(durable=False)


def _replayed(turn: IngestTurn, files: Sequence[LandedFile]) -> dict[str, Delivery]:
    """Return the first file of the same content, for each whose content came before, once these files are taken."""
    assert turn.contract.source is not None
    if turn.contract.source.resent == "anew":
        return {}
    before = turn.platform.ledger.deliveries(turn.contract.name, at=turn.snapshot.number, alike_only=False)
    now = [Delivery(file.path, None, file.arrival_date, file.modified_ns, file.sha256) for file in files if file.size]
    hashes = {file.sha256 for file in now}
    alike = [delivery for delivery in before if delivery.sha256 in hashes]
    return replays([*alike, *now], turn.contract.source.order)


def _parts(files: Sequence[LandedFile], seen: Mapping[LandedFile, Inspection]) -> list[list[LandedFile]]:
    """Group files so that few in a part look different: what Spark plans does not grow with their number."""
    alike: defaultdict[_Look, list[LandedFile]] = defaultdict(list)
    for file in files:
        alike[_look(file, seen[file])].append(file)
    looks = iter(alike.values())
    return [[file for look in part for file in look] for part in iter(lambda: [*islice(looks, _MOST_LAYOUTS)], [])]


def _layouts(
    files: Collection[LandedFile], seen: Mapping[LandedFile, Inspection], copies: Mapping[LandedFile, Location]
) -> list[Layout]:
    alike: defaultdict[_Look, list[str]] = defaultdict(list)
    for file in files:
        alike[_look(file, seen[file])].append(str(copies.get(file, file.file)))
    return [
        Layout(kind, columns, tuple(paths), copied, nanoseconds)
        for (kind, _, columns, copied, nanoseconds), paths in alike.items()
    ]


def _look(file: LandedFile, inspection: Inspection) -> _Look:
    return file.format, inspection.schema, inspection.columns, inspection.is_read_as_lines, inspection.nanoseconds


def _arrival(
    contract: Contract,
    file: LandedFile,
    inspection: Inspection,
    reason: str | None,
    tried: tuple[str, int] | None,
    taken: RawProfile,
    broken: Mapping[str, int],
    waiting: RawProfile,
    erased: Mapping[str, int],
    replayed: Mapping[str, Delivery],
    undated: Mapping[str, int],
) -> Arrival:
    before, landed = tried or ("", inspection.landed)
    path = before + file.path
    refused = broken.get(path, 0)
    if landed and refused == landed and not tried:  # such an arrival has delivered nothing
        reason = reason or (
            f"has no row that can be taken: all {refused:,} are refused; `platform-assets read "
            f"{refused_table(contract.name)}` says why; repair the file under its name, or correct the contract and "
            f"`platform-assets quarantine replay {contract.name}`"
        )
    notes = [*inspection.notes, *(replay_notes(replayed, path) if reason is None and landed else ())]
    if lacks_record := undated.get(path, 0):
        notes.append(waiting_note(contract, lacks_record))
    return Arrival(
        table=contract.name,
        path=path,
        arrival_date=file.arrival_date,
        size=file.size,
        sha256=file.sha256,
        modified_ns=file.modified_ns,
        landed=landed,
        taken=taken.taken.get(path, 0),
        refused=refused,
        late=waiting.taken.get(path, 0),
        erased=erased.get(path, 0),
        reason=reason,
        notes=tuple(notes),
        kind="replay" if tried else "delivery",
        origin=file.path if tried else None,
    )


def _refuse_mostly_broken(
    contract: Contract, seen: Mapping[LandedFile, Inspection], broken: Mapping[str, int], staged: DataFrame
) -> None:
    """Refuse files whole that have more broken rows than their contract takes; of one with no others, rows are kept."""
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


def _by_arrival(rows: DataFrame) -> dict[str, int]:
    return {row["_arrival"]: row["count"] for row in rows.groupBy("_arrival").count().collect()}


def _check(arrivals: Mapping[LandedFile, Arrival]) -> None:
    lost = {
        file: f"holds {counted(arrival.landed, 'row')}; {arrival.taken + arrival.late + arrival.erased:,} were read as "
        f"rows and {arrival.refused:,} refused"
        for file, arrival in arrivals.items()
        if arrival.reason is None and arrival.landed != arrival.taken + arrival.refused + arrival.late + arrival.erased
    }
    if lost:
        raise _UnaccountedError(lost)


def _raise_if_changed(files: Iterable[LandedFile], unread: Collection[LandedFile] = ()) -> None:
    """Raise if the content of a file is another one, or one of those that Spark never read is another file."""
    if changed := changed_since(file for file in files if file not in unread) | replaced_since(unread):
        raise _ChangedError(changed)


def _set_aside(rows: DataFrame, folder: Location) -> RawProfile:
    """Stage rows that do not enter raw, if there are any."""
    if rows.isEmpty():
        return RawProfile()
    stage(rows, folder)
    return profile_raw(read_staged(rows.sparkSession, folder))


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
    """Copy what Spark reads instead of some files, in a folder that is empty again afterwards.

    Args:
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
        copies[file].write_in_place(lines_of(file, limits) if seen[file].is_read_as_lines else _content(file))

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
