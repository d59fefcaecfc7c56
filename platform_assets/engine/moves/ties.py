"""Which days of a silver table cannot be published without another one, because records have moved between them.

Only moves count that the published content does not know of yet: those whose tombstones came to raw since, and those
whose tombstones have been withdrawn since, which sends records home. They are read from the few raw files that are new,
and where these withdraw something from those with tombstones, without Spark. Where other rules, another order or key
decide by now which version of a record counts, any of a day's tombstones may be such a move. A day of which nothing was
published knows of no move; it must not show a record beside the day that shows it still.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import Files, files_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.readiness import Readiness, readiness
from platform_assets.lakehouse.delta.statistics import may_hold
from platform_assets.lakehouse.releases import made_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.planning.configuration import Parts, settling
from platform_assets.planning.steps import Tie, held_together
from platform_assets.planning.windows import within_reach
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile
from platform_assets.records.raw_rows import TOMBSTONE, WITHDRAWAL

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Tied:
    """Staged days that stay unpublished though no check found anything wrong with them.

    Args:
        held: each with the day that failed a gate, now or before.
        blocked: each with the day that is stale and was not computed with it.
        put_off: each with a day of a later batch, with which it has to be computed: raw has told of the move since the
            step began, or they would be in the same one.
        moves: whether records have moved between staged days and any others.
        beyond: days that readers see and that cannot be computed here: with another calendar or clock they could.
    """

    held: dict[date, date] = field(default_factory=dict)
    blocked: dict[date, date] = field(default_factory=dict)
    put_off: dict[date, date] = field(default_factory=dict)
    moves: bool = False
    beyond: frozenset[date] = frozenset()

    def reason(self, contract: Contract, day: date) -> str:
        """Return why a day is blocked, and what to do."""
        root = self.blocked[day]
        if root in self.beyond:
            return (
                f"records moved between this day and {root}, which readers see and which is no day of the calendar "
                "here, or not due by this machine's clock; published alone, they would be counted twice or not at all. "
                f"Refresh {contract.name} where both days can be computed."
            )
        return (
            f"records moved between this day and {root}, which is stale; published alone, they would be counted twice "
            f"or not at all. Materialize {contract.name} for both days in one run, or leave it to the next refresh."
        )


def ties_among(contract: Contract, state: Readiness, snapshot: LakeSnapshot) -> tuple[Tie, ...]:
    """Return the ties of days that are to be computed, so that they can be computed together."""
    return (
        tuple(_new_ties(contract, state.ready, state.before, snapshot)) if has_ties(snapshot.platform, contract) else ()
    )


def partners(contract: Contract, days: Collection[date], staged: Collection[date], snapshot: LakeSnapshot) -> set[date]:
    """Return the staged days that are tied to some days, and so have to be computed again with them."""
    if not has_ties(snapshot.platform, contract):
        return set()
    ties = _new_ties(contract, {*days, *staged}, snapshot.days(contract.name), snapshot)
    return held_together(days, ties).keys() & set(staged)


def published_together(contract: Contract, day: date, snapshot: LakeSnapshot) -> tuple[date, ...]:
    """Return a day with those held or stale that only pass together with it, because records moved between them."""
    platform = snapshot.platform
    together, before = {day}, set[date]()
    while together != before and has_ties(platform, contract):
        before = together
        near = within_reach(together, moves_within_days(platform, contract))
        others = readiness(contract, sorted(near & snapshot.digests(contract.inputs[0].table).keys()), snapshot)
        waiting = {*others.ready, *others.held}
        ties = _new_ties(contract, sorted(together | waiting), snapshot.days(contract.name), snapshot)
        together = together | (held_together(together, tuple(ties)).keys() & waiting)
    return tuple(sorted(together))


def tied_days(
    contract: Contract,
    state: Readiness,
    failing: Collection[date],
    snapshot: LakeSnapshot,
    *,
    to_come: Collection[date],
) -> Tied:
    """Return the staged days that are tied to one that is not published with them.

    Args:
        contract: of a table; only silver tables whose records can move have ties.
        state: its staged days, `ready`, and what is there of it.
        to_come: days that later batches of the same step compute.
    """
    platform = snapshot.platform
    if not has_ties(platform, contract):
        return Tied()
    near = within_reach(state.ready, moves_within_days(platform, contract)) - set(state.ready)
    # A record that lies on a day that is not loaded yet, or not in the calendar, is nowhere until that day comes,
    # unless somebody whose clock or calendar is another one has published it.
    around = sorted(near & snapshot.digests(contract.inputs[0].table).keys())
    beyond = frozenset(near & state.before.keys()) - frozenset(around)
    others = readiness(contract, around, snapshot)
    behind = {*others.ready, *others.blocked, *others.held, *beyond}
    # What was never published and is not to be is nowhere, whatever moves to it.
    looked_at = (*state.ready, *sorted(behind & state.before.keys()))
    ties = list(_new_ties(contract, looked_at, state.before, snapshot))
    by_gate = {*failing, *(behind & state.holds.keys())}
    tied = held_together(by_gate | behind, ties)
    free = {day: tied[day] for day in state.ready if day in tied and day not in failing}
    put_off = {day: root for day, root in free.items() if root in to_come}
    left = {day: root for day, root in free.items() if day not in put_off}
    return Tied(
        held={day: root for day, root in left.items() if root in by_gate},
        blocked={day: root for day, root in left.items() if root not in by_gate},
        put_off=put_off,
        moves=any(day in tie for day in state.ready for tie in ties),
        beyond=beyond,
    )


def _new_ties(
    contract: Contract,
    days: Iterable[date],
    before: Mapping[date, DayRecord],
    snapshot: LakeSnapshot,
) -> Iterable[Tie]:
    platform = snapshot.platform
    raw, within_days = contract.inputs[0].table, moves_within_days(platform, contract)
    path, now = platform.lake.table_path(raw), snapshot.files(raw)
    settled_by = SettledBy(platform, contract)
    versions: dict[int | None, Files] = {}

    def then(version: int | None, day: date) -> Collection[DataFile]:
        if version not in versions:
            versions[version] = files_at(platform.lake, raw, version)
        return versions[version].get(day, ())

    def shown_elsewhere(day: date, files: Collection[DataFile]) -> set[date]:
        """Return published days that may show records they should not: of other rules, or withdrawn."""
        near = within_reach([day], within_days) & before.keys()
        otherwise = {there for there in near if not settled_by.same_for(before[there])}
        showing = otherwise & moved(path, (), files) if otherwise else set()
        alike: defaultdict[int | None, set[date]] = defaultdict(set)
        for there in near - otherwise:
            alike[version_read(before[there], raw)].add(there)
        for version, published in alike.items():
            showing |= published & sent_home(path, then(version, day), files)
        return showing

    for day in days:
        files = now.get(day, ())
        if (record := before.get(day)) is None:
            others = shown_elsewhere(day, files)
        else:
            had = then(version_read(record, raw), day) if settled_by.same_for(record) else ()
            others = moved(path, had, files) & within_reach([day], within_days)
        yield from ((day, there) for there in others)


_BATCH_ROWS = 65_536
_FILES_KEPT = 4_096


def moved(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """Return the days to or from which records of a day moved between the time it had some files and then others.

    Args:
        before: files of the day; none where nothing of it is known.

    Raises:
        DamagedTableError: a file is not as it was written.
    """
    new = _new(before, after)
    went = {day for file in _holding(table, new, TOMBSTONE) for day in _told(file, TOMBSTONE, "_order_day")}
    return went | _sent_home(table, new, after)


def sent_home(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """Return the days from which records come back because what was delivered there was withdrawn in the meantime."""
    return _sent_home(table, _new(before, after), after)


def _new(before: Collection[DataFile], after: Collection[DataFile]) -> list[DataFile]:
    known = {file.path for file in before}
    return [file for file in after if file.path not in known]


def _sent_home(table: Location, new: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    withdrawn = {path for file in _holding(table, new, WITHDRAWAL) for path in _told(file, WITHDRAWAL, "_arrival")}
    if not withdrawn:
        return set()
    return {
        row["_order_day"]
        for file in _holding(table, after, TOMBSTONE)
        for rows in _of_kind(file, TOMBSTONE, ("_arrival", "_order_day"))
        for row in rows.to_pylist()
        if row["_arrival"] in withdrawn
    }


def _holding(table: Location, files: Iterable[DataFile], kind: str) -> Iterator[Location]:
    """Return those of some files that can hold rows of a kind and are there."""
    return (there for file in files if may_hold(file, "_kind", kind) and (there := table / file.path).exists())


@lru_cache(maxsize=_FILES_KEPT)
def _told(file: Location, kind: str, column: str) -> frozenset[Any]:
    """Return the values that rows of a kind have in a column of a file; cached, since a file never changes."""
    return frozenset(
        value for rows in _of_kind(file, kind, (column,)) for value in rows.column(column).unique().to_pylist()
    )


def _of_kind(file: Location, kind: str, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.compute as pc  # which most commands do without

    for rows in row_batches(file, _BATCH_ROWS, ("_kind", *columns)):
        kinds = rows.column("_kind")
        # As the rows have it: Arrow makes a value of one of Python's only once it has imported pandas, half a second.
        wanted = next((value for value in kinds.unique() if value.as_py() == kind), None)
        if wanted is not None:
            yield rows.filter(pc.equal(kinds, wanted))


def has_ties(platform: Platform, contract: Contract) -> bool:
    """Return whether records can move between days of a table."""
    return contract.layer == "silver" and moves_within_days(platform, contract) > 0


def moves_within_days(platform: Platform, contract: Contract) -> int:
    """Return how far records of a table can move."""
    return platform.catalogue[contract.inputs[0].table].moves_within_days


class SettledBy:
    """By which rules, order and key it was settled which version of a record counts, when days were computed."""

    def __init__(self, platform: Platform, contract: Contract) -> None:
        self._lake = platform.lake
        self._now = platform.configurations[contract.name]
        self._known = {self._now.hash: settling(self._now.parts)}

    def same_for(self, record: DayRecord, other: DayRecord | None = None) -> bool:
        """Return whether it was for one day as it was for another, or is today; so it is where nobody recorded it."""
        now = self._now.hash if other is None else other.configuration
        if not record.configuration or not now or record.configuration == now:
            return True
        return self._of(record) == (self._known[now] if other is None else self._of(other))

    def _of(self, record: DayRecord) -> Parts:
        if record.configuration not in self._known:
            parts = made_by(self._lake, record.publication, record.table, record.day).configuration
            self._known[record.configuration] = settling(parts)
        return self._known[record.configuration]


def version_read(record: DayRecord, raw: str) -> int | None:
    """Return the version of raw that a day was made from; None where it read nothing of it."""
    version = record.reads.get(raw, -1)
    return version if version >= 0 else None


_Span = tuple[int | None, int | None]
"""Two versions of raw, the older one first; None where nothing of raw is known."""


class _Told:
    """The moves that raw tells of between two of its versions."""

    def __init__(self, platform: Platform, contract: Contract) -> None:
        self._lake, self._raw = platform.lake, contract.inputs[0].table
        self._settled_by = SettledBy(platform, contract)
        self.within_days = moves_within_days(platform, contract)
        self._files = cache(partial(files_at, self._lake, self._raw))

    def span(self, record: DayRecord, other: DayRecord) -> _Span:
        """Return what one of two contents of days was made from and the other one was not."""
        versions = (version_read(record, self._raw), version_read(other, self._raw))
        return _span(*versions, alike=self._settled_by.same_for(record, other))

    def span_to(self, version: int | None, other: DayRecord) -> _Span:
        """Return the same where one of them is made today, from a version of raw."""
        return _span(version, version_read(other, self._raw), alike=self._settled_by.same_for(other))

    def between(self, days: Iterable[date], span: _Span) -> set[Tie]:
        """Return moves of records of some days, each with the day that it went to or came from."""
        if span[0] == span[1]:
            return set()
        had, has = (self._files(version) for version in span)
        path = self._lake.table_path(self._raw)
        return {(day, there) for day in days for there in moved(path, had.get(day, ()), has.get(day, ()))}


def _span(first: int | None, second: int | None, *, alike: bool) -> _Span:
    older, newer = sorted((first, second), key=lambda version: -1 if version is None else version)
    return (older if alike else None), newer


def moves_undone(
    contract: Contract,
    days: Mapping[date, tuple[DayRecord, DayRecord | None]],
    snapshot: LakeSnapshot,
) -> set[Tie]:
    """Return the moves that days know of and will not know of any more, or will and do not yet.

    Args:
        days: what each is and what it becomes; a day that becomes as if never computed is left out, since what is
            missing is not wrong.
    """
    platform = snapshot.platform
    if not has_ties(platform, contract):
        return set()
    raw = contract.inputs[0].table
    told = _Told(platform, contract)
    spans: defaultdict[_Span, set[date]] = defaultdict(set)
    for day, (now, then) in days.items():
        if then is not None and now.digest:
            spans[told.span(now, then)].add(day)
    ties: set[Tie] = set()
    for span, alike in spans.items():  # days around tell of moves of these, and of others that are not undone
        ties |= {tie for tie in told.between(within_reach(alike, told.within_days), span) if not alike.isdisjoint(tie)}
    appearing = {day: then for day, (now, then) in days.items() if then is not None and not now.digest}
    if appearing:
        near = within_reach(appearing, told.within_days) - days.keys()
        state = readiness(contract, sorted(near & snapshot.digests(raw).keys()), snapshot)
        for there in near & state.before.keys():
            shown = state.before[there]
            if there in state.up_to_date:  # it would come out the same of what raw is today
                shown = replace(shown, reads={raw: snapshot.reads([raw])[raw]})
            for day in within_reach([there], told.within_days) & appearing.keys():
                pair = {day, there}
                ties |= {tie for tie in told.between(pair, told.span(shown, appearing[day])) if set(tie) == pair}
    return ties


def moved_meanwhile(contract: Contract, days: Collection[date], snapshot: LakeSnapshot, now: LakeSnapshot) -> set[Tie]:
    """Return moves between days that were computed over one snapshot and those that others have published since.

    Whoever publishes some days shows them beside all that is there at that moment, which may tell of a move that these
    do not know of, or not know of one that these tell of.

    Args:
        days: that were computed and judged over `snapshot`, and are to be published over `now`.
    """
    platform = snapshot.platform
    if not has_ties(platform, contract):
        return set()
    told, version = _Told(platform, contract), snapshot.version(contract.inputs[0].table)
    before, after = snapshot.days(contract.name), now.days(contract.name)
    spans: defaultdict[_Span, set[date]] = defaultdict(set)
    for there in (within_reach(days, told.within_days) - set(days)) & after.keys():
        shown = after[there]
        if there not in before or before[there].publication != shown.publication:
            spans[told.span_to(version, shown)].add(there)
    return {
        (day, other)
        for span, since in spans.items()
        for day, other in told.between({*days, *since}, span)
        if (day in days and other in since) or (day in since and other in days)
    }
