"""Find silver days that cannot be published without another one, because records have moved between them.

Only moves count that the published content does not have yet: those whose tombstones came to raw since, and those whose
tombstones were withdrawn since, which returns records. They are read from the few new raw files without Spark. If other
rules, another order or key now decide which version of a record counts, any of a day's tombstones may be such a move.
An unpublished day has no known moves; it must not show a record while another day still shows it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.catalogue import may_move
from platform_assets.engine.day_contents import Files, files_at, staged_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import Readiness, readiness
from platform_assets.lakehouse.delta.statistics import bounded_key, may_hold, may_share_keys
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.lakehouse.releases import made_by
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.planning.configuration import Parts, settling
from platform_assets.planning.steps import Tie, held_together
from platform_assets.planning.windows import within_reach
from platform_assets.quality.findings import Finding
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile
from platform_assets.records.raw_rows import TOMBSTONE, WITHDRAWAL
from platform_assets.words import counted

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Tied:
    """Staged days that stay unpublished although no check found a fault in them.

    Args:
        held: each with the day that failed a gate, now or before.
        blocked: each with the stale day that was not computed with it.
        put_off: each with a day of a later batch, with which it has to be computed: raw got the move's tombstone after
            the step began.
        beyond: published days that cannot be computed here: with another calendar or clock they could.
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
    moves = _moves_of(snapshot.platform, contract)
    return tuple(moves.new_ties(state.ready, state.before, snapshot)) if moves else ()


def partners(contract: Contract, days: Collection[date], staged: Collection[date], snapshot: LakeSnapshot) -> set[date]:
    """Return the staged days that are tied to some days, and so must be computed again with them."""
    if (moves := _moves_of(snapshot.platform, contract)) is None:
        return set()
    ties = moves.new_ties({*days, *staged}, snapshot.days(contract.name), snapshot)
    return held_together(days, ties).keys() & set(staged)


def published_together(contract: Contract, day: date, snapshot: LakeSnapshot) -> tuple[date, ...]:
    """Return a day with the held or stale days that only pass together with it, because records moved between them."""
    moves = _moves_of(snapshot.platform, contract)
    together, before = {day}, set[date]()
    while moves and together != before:
        before = together
        near = within_reach(together, moves.within_days)
        others = readiness(contract, sorted(near & snapshot.digests(moves.raw).keys()), snapshot)
        waiting = {*others.ready, *others.held}
        ties = moves.new_ties(sorted(together | waiting), snapshot.days(contract.name), snapshot)
        together = together | (held_together(together, ties).keys() & waiting)
    return tuple(sorted(together))


def tied_days(
    contract: Contract,
    state: Readiness,
    failing: Collection[date],
    snapshot: LakeSnapshot,
    *,
    to_come: Collection[date],
) -> Tied:
    """Return the staged days tied to a day that is not published with them.

    Args:
        state: the staged days, `ready`, and the table's published days.
        to_come: days of later batches of the same step.
    """
    if (moves := _moves_of(snapshot.platform, contract)) is None:
        return Tied()
    near = within_reach(state.ready, moves.within_days) - set(state.ready)
    # A record on a day that is not loaded yet, or not in the calendar, is nowhere until that day comes, unless a
    # process with another clock or calendar has published it.
    around = sorted(near & snapshot.digests(moves.raw).keys())
    beyond = frozenset(near & state.before.keys()) - frozenset(around)
    others = readiness(contract, around, snapshot)
    behind = {*others.ready, *others.blocked, *others.held, *beyond}
    # A day that was never published and will not be shows nothing, even if records move to it.
    looked_at = (*state.ready, *sorted(behind & state.before.keys()))
    ties = list(moves.new_ties(looked_at, state.before, snapshot))
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


_BATCH_ROWS = 65_536
_FILES_KEPT = 4_096


def moved(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """Return the days to or from which records of a day moved between two sets of its files.

    Raises:
        DamagedTableError: a file is not as it was written.
    """
    new = _holding(table, _new(before, after), TOMBSTONE)
    return {day for file in new for day in _told(file, TOMBSTONE, "_order_day")} | sent_home(table, before, after)


def sent_home(table: Location, before: Collection[DataFile], after: Collection[DataFile]) -> set[date]:
    """Return the days from which records return because their deliveries were withdrawn meanwhile."""
    new = _holding(table, _new(before, after), WITHDRAWAL)
    withdrawn = {path for file in new for path in _told(file, WITHDRAWAL, "_arrival")}
    if not withdrawn:
        return set()
    return {
        row["_order_day"]
        for file in _holding(table, after, TOMBSTONE)
        for rows in _of_kind(file, TOMBSTONE, ("_arrival", "_order_day"))
        for row in rows.to_pylist()
        if row["_arrival"] in withdrawn
    }


def _new(before: Collection[DataFile], after: Collection[DataFile]) -> list[DataFile]:
    known = {file.path for file in before}
    return [file for file in after if file.path not in known]


def _holding(table: Location, files: Iterable[DataFile], kind: str) -> Iterator[Location]:
    """Return the existing files that can hold rows of a kind."""
    return (there for file in files if may_hold(file, "_kind", kind) and (there := table / file.path).exists())


@lru_cache(maxsize=_FILES_KEPT)
def _told(file: Location, kind: str, column: str) -> frozenset[Any]:
    """Return the values of a column in rows of a kind in a file; cached, since a file never changes."""
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


_Span = tuple[int | None, int | None]
"""Two versions of raw, the older one first; None where nothing of raw is known."""


def _moves_of(platform: Platform, contract: Contract) -> _Moves | None:
    """Return the moves between days of a table; None if its records cannot move."""
    if contract.layer != "silver":
        return None
    moves = _Moves(platform, contract)
    return moves if moves.within_days > 0 else None


class _Moves:
    """Moves of a silver table's records, from raw's tombstones.

    Rules, order and key decided which version of a record counts when a day was computed. If these changed, the day's
    inputs say nothing about its records.
    """

    def __init__(self, platform: Platform, contract: Contract) -> None:
        self.raw = contract.inputs[0].table
        self.within_days = platform.catalogue[self.raw].moves_within_days
        self._lake, self._path = platform.lake, platform.lake.table_path(self.raw)
        self._files = cache(partial(files_at, self._lake, self.raw))
        self._now = platform.configurations[contract.name]
        self._settled_by = {self._now.hash: settling(self._now.parts)}

    def span(self, record: DayRecord, other: DayRecord) -> _Span:
        """Return the inputs of one of two contents of a day that the other does not have."""
        versions = (self._version_read(record), self._version_read(other))
        return _span(*versions, alike=self._is_alike(record, other))

    def span_to(self, version: int | None, other: DayRecord) -> _Span:
        """Return the inputs that a day computed from a present version of raw has in addition, or lacks."""
        return _span(version, self._version_read(other), alike=self._is_alike(other))

    def between(self, days: Iterable[date], span: _Span) -> set[Tie]:
        """Return moves of records of some days, each with the other day."""
        if span[0] == span[1]:
            return set()
        had, has = (self._files(version) for version in span)
        return {(day, there) for day in days for there in moved(self._path, had.get(day, ()), has.get(day, ()))}

    def new_ties(self, days: Iterable[date], before: Mapping[date, DayRecord], snapshot: LakeSnapshot) -> Iterator[Tie]:
        """Yield moves of records of some days that are not in their published content, or not in that of others."""
        now = snapshot.files(self.raw)
        for day in days:
            files = now.get(day, ())
            if (record := before.get(day)) is None:
                others = self._shown_elsewhere(day, files, before)
            else:
                had = self._files(self._version_read(record)).get(day, ()) if self._is_alike(record) else ()
                others = moved(self._path, had, files) & within_reach([day], self.within_days)
            yield from ((day, there) for there in others)

    def _shown_elsewhere(self, day: date, files: Collection[DataFile], before: Mapping[date, DayRecord]) -> set[date]:
        """Return published days that may show records they should not: by other rules, or withdrawn."""
        near = within_reach([day], self.within_days) & before.keys()
        otherwise = {there for there in near if not self._is_alike(before[there])}
        showing = otherwise & moved(self._path, (), files) if otherwise else set()
        by_version: defaultdict[int | None, set[date]] = defaultdict(set)
        for there in near - otherwise:
            by_version[self._version_read(before[there])].add(there)
        for version, published in by_version.items():
            showing |= published & sent_home(self._path, self._files(version).get(day, ()), files)
        return showing

    def _version_read(self, record: DayRecord) -> int | None:
        """Return the version of raw that a day read; None if it read none."""
        version = record.reads.get(self.raw, -1)
        return version if version >= 0 else None

    def _is_alike(self, record: DayRecord, other: DayRecord | None = None) -> bool:
        """Return whether a day was computed with the configuration of another day, or of today; yes if not recorded."""
        now = self._now.hash if other is None else other.configuration
        if not record.configuration or not now or record.configuration == now:
            return True
        return self._settling(record) == (self._settled_by[now] if other is None else self._settling(other))

    def _settling(self, record: DayRecord) -> Parts:
        if record.configuration not in self._settled_by:
            parts = made_by(self._lake, record.publication, record.table, record.day).configuration
            self._settled_by[record.configuration] = settling(parts)
        return self._settled_by[record.configuration]


def _span(first: int | None, second: int | None, *, alike: bool) -> _Span:
    older, newer = sorted((first, second), key=lambda version: -1 if version is None else version)
    return (older if alike else None), newer


def moves_undone(
    contract: Contract,
    days: Mapping[date, tuple[DayRecord, DayRecord | None]],
    snapshot: LakeSnapshot,
) -> set[Tie]:
    """Return moves that days contain now and will not afterwards, or the other way round.

    Args:
        days: each before and after; a day that becomes as if never computed is left out, since missing records are not
            wrong.
    """
    if (moves := _moves_of(snapshot.platform, contract)) is None:
        return set()
    spans: defaultdict[_Span, set[date]] = defaultdict(set)
    for day, (now, then) in days.items():
        if then is not None and now.digest:
            spans[moves.span(now, then)].add(day)
    ties: set[Tie] = set()
    for span, alike in spans.items():  # days around know moves of these, and of others that are not undone
        around = within_reach(alike, moves.within_days)
        ties |= {tie for tie in moves.between(around, span) if not alike.isdisjoint(tie)}
    appearing = {day: then for day, (now, then) in days.items() if then is not None and not now.digest}
    if appearing:
        near = within_reach(appearing, moves.within_days) - days.keys()
        state = readiness(contract, sorted(near & snapshot.digests(moves.raw).keys()), snapshot)
        for there in near & state.before.keys():
            shown = state.before[there]
            if there in state.up_to_date:  # it would come out the same of what raw is today
                shown = replace(shown, reads=snapshot.reads([moves.raw]))
            for day in within_reach([there], moves.within_days) & appearing.keys():
                pair = {day, there}
                ties |= {tie for tie in moves.between(pair, moves.span(shown, appearing[day])) if set(tie) == pair}
    return ties


def moved_meanwhile(contract: Contract, days: Collection[date], snapshot: LakeSnapshot, now: LakeSnapshot) -> set[Tie]:
    """Return moves between days computed over one snapshot and days that others have published since.

    Published days appear together with all other current days, which may contain a move that these do not, or the other
    way round.

    Args:
        days: days that were computed and judged over `snapshot`, and are to be published over `now`.
    """
    if (moves := _moves_of(snapshot.platform, contract)) is None:
        return set()
    version = snapshot.version(moves.raw)
    before, after = snapshot.days(contract.name), now.days(contract.name)
    spans: defaultdict[_Span, set[date]] = defaultdict(set)
    for there in (within_reach(days, moves.within_days) - set(days)) & after.keys():
        shown = after[there]
        if there not in before or before[there].publication != shown.publication:
            spans[moves.span_to(version, shown)].add(there)
    return {
        (day, other)
        for span, since in spans.items()
        for day, other in moves.between({*days, *since}, span)
        if (day in days and other in since) or (day in since and other in days)
    }


_MOST_BYTES = 16 * 1024 * 1024
"""Of files that a step looks into; in larger ones the scheduled job `keys` looks."""


class Repeated(NamedTuple):
    """Number of keys on the same two days, the oldest and the newest, with one example."""

    first: date
    last: date
    keys: int
    example: str

    def __str__(self) -> str:
        return f"{counted(self.keys, 'key')} on {self.first} and {self.last}, first {self.example}"


def keys_on_two_days(platform: Platform, tables: Collection[str]) -> dict[str, list[Repeated]]:
    """Search whole silver tables whose records can move for keys on two days, at the current release."""
    snapshot = LakeSnapshot.now(platform)
    some = [platform.catalogue[name] for name in tables if may_move(platform.catalogue[name], platform.catalogue)]
    return {one.name: _repeated(platform, one, snapshot.files(one.name), 0) for one in some}


def repeated_keys(
    snapshot: LakeSnapshot, contract: Contract, publication: str, days: Collection[date], to_come: Collection[date]
) -> dict[date, Finding]:
    """Return a warning for each staged day with keys that are also on days farther away than keys are compared.

    Most tables have new keys on every day: the bounds in the log show that, and no file is opened.
    """
    if not may_move(contract, snapshot.platform.catalogue):
        return {}
    source = snapshot.platform.catalogue[contract.inputs[0].table]
    files = {day: of_day for day, of_day in snapshot.files(contract.name).items() if day not in {*days, *to_come}}
    staged = staged_at(snapshot.platform.lake, contract.name, publication)
    files |= staged
    shared: set[date] = set()
    for day, of_day in staged.items():
        far = {one: files[one] for one in files if abs((one - day).days) > source.moves_within_days}
        if meeting := may_share_keys(far, {day: of_day}, bounded_key(contract)):
            shared |= {day, *meeting}
    if not shared or sum(file.size for day in shared for file in files[day]) > _MOST_BYTES:
        return {}
    found = _repeated(snapshot.platform, contract, {day: files[day] for day in shared}, source.moves_within_days)
    by_day = {day: [one for one in found if day in (one.first, one.last)] for day in staged}
    return {day: _finding(contract, source, day, repeated) for day, repeated in by_day.items() if repeated}


def _repeated(platform: Platform, contract: Contract, files: Files, apart: int) -> list[Repeated]:
    """Return the keys on two days more than `apart` days from each other, the oldest days first."""
    import duckdb  # which most steps do without

    if len(files) < 2:
        return []
    rows_of_days = rows_of_files(platform.lake.table_path(contract.name), files)
    if not set(contract.key) <= set(rows_of_days.schema.names):
        return []  # until the table follows its contract
    names, texts = (", ".join(f'"{name}"{cast}' for name in contract.key) for cast in ("", "::VARCHAR"))
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        by_key = database.from_arrow(rows_of_days).aggregate(
            f'{names}, min({DAY}) AS "_first", max({DAY}) AS "_last"', names
        )
        pairs = by_key.filter(f'"_last" - "_first" > {apart}').aggregate(
            f'"_first", "_last", count(*), min([{texts}])', '"_first", "_last"'
        )
        shown = platform.masking.shown_key
        return sorted(
            Repeated(first, last, keys, shown(contract, contract.key, key))
            for first, last, keys, key in pairs.fetchall()
        )


def _finding(contract: Contract, source: Contract, day: date, repeated: list[Repeated]) -> Finding:
    first, keys = repeated[0], sum(one.keys for one in repeated)
    more = " and other days" if len(repeated) > 1 else ""
    actual = (
        f"{counted(keys, 'key')} also on {first.last if day == first.first else first.first}{more}, further away than "
        f"{source.name} compares keys (moves_within_days={source.moves_within_days})"
    )
    return Finding(
        check="contract",
        day=day,
        severity="warn",
        message=f"{contract.name} on {day}: {actual}, and counted twice: {first}",
        expected=f"each key on one day; `platform-assets admin verify {contract.name} --keys` names those on two",
        actual=actual,
        examples=tuple(one.example for one in repeated),
        numbers={"keys_on_two_days": keys},
    )
