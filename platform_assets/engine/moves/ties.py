"""Which days of a silver table cannot be published without another one, because records have moved between them.

Only moves count that the published content does not know of yet: those whose tombstones came to raw since, and those
whose tombstones have been withdrawn since, which sends records home. They are read from the few raw files that are new,
and where these withdraw something from those with tombstones, without Spark. Where other rules, another order or key
decide by now which version of a record counts, any of a day's tombstones may be such a move. A day of which nothing was
published knows of no move; it must not show a record beside the day that shows it still.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import Files, files_at
from platform_assets.engine.moves.told_moves import (
    SettledBy,
    has_ties,
    moved,
    moves_within_days,
    sent_home,
    version_read,
)
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.readiness import Readiness, readiness
from platform_assets.planning.ties import Tie, held_together
from platform_assets.planning.windows import within_reach
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile


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
        """Why a day is blocked, and what to do."""
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


def ties_among(platform: Platform, contract: Contract, state: Readiness, snapshot: LakeSnapshot) -> tuple[Tie, ...]:
    """The ties of days that are to be computed, so that they can be computed together."""
    return (
        tuple(_new_ties(platform, contract, state.ready, state.before, snapshot))
        if has_ties(platform, contract)
        else ()
    )


def partners(
    platform: Platform, contract: Contract, days: Collection[date], staged: Collection[date], snapshot: LakeSnapshot
) -> set[date]:
    """The staged days that are tied to some days, and so have to be computed again with them.

    Args:
        platform: what to look at.
        days: to compute, or to compute again.
        staged: days of the table in the stage.
        snapshot: that the stage lies over, without it.
    """
    if not has_ties(platform, contract):
        return set()
    ties = _new_ties(platform, contract, {*days, *staged}, snapshot.days(contract.name), snapshot)
    return held_together(days, ties).keys() & set(staged)


def published_together(platform: Platform, contract: Contract, day: date, snapshot: LakeSnapshot) -> tuple[date, ...]:
    """Return a day with those held or stale that only pass together with it, because records moved between them."""
    together, before = {day}, set[date]()
    while together != before and has_ties(platform, contract):
        before = together
        near = within_reach(together, moves_within_days(platform, contract))
        others = readiness(
            platform, contract, sorted(near & snapshot.digests(contract.inputs[0].table).keys()), snapshot
        )
        waiting = {*others.ready, *others.held}
        ties = _new_ties(platform, contract, sorted(together | waiting), snapshot.days(contract.name), snapshot)
        together = together | (held_together(together, tuple(ties)).keys() & waiting)
    return tuple(sorted(together))


def tied_days(
    platform: Platform,
    contract: Contract,
    state: Readiness,
    failing: Collection[date],
    snapshot: LakeSnapshot,
    *,
    to_come: Collection[date],
) -> Tied:
    """The staged days that are tied to one that is not published with them.

    Args:
        contract: of a table; only silver tables whose records can move have ties.
        state: its staged days, `ready`, and what is there of it.
        failing: those that a check blocks.
        snapshot: that was read.
        to_come: days that later batches of the same step compute.
    """
    if not has_ties(platform, contract):
        return Tied()
    near = within_reach(state.ready, moves_within_days(platform, contract)) - set(state.ready)
    # A record that lies on a day that is not loaded yet, or not in the calendar, is nowhere until that day comes,
    # unless somebody whose clock or calendar is another one has published it.
    around = sorted(near & snapshot.digests(contract.inputs[0].table).keys())
    beyond = frozenset(near & state.before.keys()) - frozenset(around)
    others = readiness(platform, contract, around, snapshot)
    behind = {*others.ready, *others.blocked, *others.held, *beyond}
    # What was never published and is not to be is nowhere, whatever moves to it.
    looked_at = (*state.ready, *sorted(behind & state.before.keys()))
    ties = list(_new_ties(platform, contract, looked_at, state.before, snapshot))
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
    platform: Platform,
    contract: Contract,
    days: Iterable[date],
    before: Mapping[date, DayRecord],
    snapshot: LakeSnapshot,
) -> Iterable[Tie]:
    raw, within_days = contract.inputs[0].table, moves_within_days(platform, contract)
    path, now = platform.lake.table_path(raw), snapshot.files(raw)
    settled_by = SettledBy(platform, contract)
    versions: dict[int | None, Files] = {}

    def then(version: int | None, day: date) -> Collection[DataFile]:
        if version not in versions:
            versions[version] = files_at(platform.lake, raw, version)
        return versions[version].get(day, ())

    def shown_elsewhere(day: date, files: Collection[DataFile]) -> set[date]:
        """The published days that may show records of a day that never was: by other rules, or what was withdrawn."""
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
