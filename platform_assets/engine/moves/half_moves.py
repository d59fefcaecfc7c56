"""Half of a move: of two days between which a record has moved, one shown as it is after the move, one as before.

Whoever puts days back, or publishes them on a release that others have gone beyond, asks here first. Days that are
computed over the release that they are published on have ties instead (`engine.moves.ties`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache, partial

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import files_at
from platform_assets.engine.moves.told_moves import SettledBy, has_ties, moved, moves_within_days, version_read
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.readiness import readiness
from platform_assets.planning.ties import Tie
from platform_assets.planning.windows import within_reach
from platform_assets.records.history import DayRecord

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
        """What one of two contents of days was made from and the other one was not."""
        versions = (version_read(record, self._raw), version_read(other, self._raw))
        return _span(*versions, alike=self._settled_by.same_for(record, other))

    def span_to(self, version: int | None, other: DayRecord) -> _Span:
        """The same where one of them is made today, from a version of raw."""
        return _span(version, version_read(other, self._raw), alike=self._settled_by.same_for(other))

    def between(self, days: Iterable[date], span: _Span) -> set[Tie]:
        """Moves of records of some days, each with the day that it went to or came from."""
        if span[0] == span[1]:
            return set()
        had, has = (self._files(version) for version in span)
        path = self._lake.table_path(self._raw)
        return {(day, there) for day in days for there in moved(path, had.get(day, ()), has.get(day, ()))}


def _span(first: int | None, second: int | None, *, alike: bool) -> _Span:
    older, newer = sorted((first, second), key=lambda version: -1 if version is None else version)
    return (older if alike else None), newer


def moves_undone(
    platform: Platform,
    contract: Contract,
    days: Mapping[date, tuple[DayRecord, DayRecord | None]],
    snapshot: LakeSnapshot,
) -> set[Tie]:
    """The moves that days know of and will not know of any more, or will and do not yet.

    Args:
        platform: what to look at.
        days: what each is and what it becomes; a day that becomes as if never computed is left out, since what is
            missing is not wrong.
        snapshot: what is there now.
    """
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
        state = readiness(platform, contract, sorted(near & snapshot.digests(raw).keys()), snapshot)
        for there in near & state.before.keys():
            shown = state.before[there]
            if there in state.up_to_date:  # it would come out the same of what raw is today
                shown = replace(shown, reads={raw: snapshot.reads([raw])[raw]})
            for day in within_reach([there], told.within_days) & appearing.keys():
                pair = {day, there}
                ties |= {tie for tie in told.between(pair, told.span(shown, appearing[day])) if set(tie) == pair}
    return ties


def moved_meanwhile(
    platform: Platform, contract: Contract, days: Collection[date], snapshot: LakeSnapshot, now: LakeSnapshot
) -> set[Tie]:
    """Moves between days that were computed over one snapshot and those that others have published since.

    Whoever publishes some days shows them beside all that is there at that moment, which may tell of a move that these
    do not know of, or not know of one that these tell of.

    Args:
        platform: what to look at.
        days: that were computed and judged over `snapshot`, and are to be published over `now`.
        snapshot: that was read.
        now: what is there by now.
    """
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
