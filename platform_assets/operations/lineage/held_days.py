"""Held days as people are told of them: since when, what readers see instead, and which arrivals came since."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import ReleaseIndex, all_states, table_states
from platform_assets.operations.lineage.provenance import arrivals_named
from platform_assets.planning.day_states import in_force
from platform_assets.planning.new_arrivals import RawDay, new_arrivals
from platform_assets.planning.windows import day_range, days_read
from platform_assets.records.history import ArrivalRecord, DayMark, DayRecord, Hold, PublicationRecord, hold_of_each_day
from platform_assets.records.refused import TiedTo
from platform_assets.visible import visible
from platform_assets.words import counted

_SHOWN = 5
"""Arrivals that are named; somebody who has more of them begins with `why`."""

_MANY = 3
"""Days that are told as one."""


@dataclass(frozen=True)
class HeldDay:
    """A day that is held.

    Args:
        hold: that says why.
        since: when it was first held, UTC.
        shown: what readers have of it; None where they have nothing.
        shown_by: the publication that made this.
        arrivals: that are new since then, in whatever the day is made from, newest first.
    """

    hold: Hold
    since: datetime
    shown: DayRecord | None
    shown_by: PublicationRecord | None
    arrivals: tuple[ArrivalRecord, ...]

    @property
    def instead(self) -> str:
        """What readers see, in a few words."""
        if self.shown is None or self.shown_by is None:
            return "readers see nothing of it"
        made = f"release {self.shown_by.release} of {self.shown_by.created_at:%Y-%m-%d %H:%M} UTC"
        kind = "what was put back" if self.hold.is_of_good_content else "its last good content"
        return f"readers see {kind}, {counted(self.shown.delivered, 'row')} of {made}"

    @property
    def reason(self) -> str:
        """Why it is held, without its table and day."""
        return self.hold.reason.removeprefix(f"{self.hold.table} on {self.hold.day}: ")

    @property
    def sentence(self) -> str:
        """All of it but the arrivals."""
        return f"since {self.since:%Y-%m-%d %H:%M} UTC: {self.reason}; {self.instead}"

    @property
    def is_tied(self) -> bool:
        """Whether nothing is wrong with the day itself."""
        return isinstance(self.hold.refused, TiedTo)

    @property
    def withdrawals(self) -> tuple[str, ...]:
        """The commands that take out what is new, the newest first; of more than a few how many there are."""
        return withdrawals([self])


def withdrawals(held: Iterable[HeldDay]) -> tuple[str, ...]:
    """The commands that take out what is new on some held days, each arrival once; of more than a few how many."""
    lines: dict[str, str] = {}
    for day in held:
        why = f"{day.hold.gate} holds {day.hold.table} {day.hold.day}"
        for arrival in day.arrivals:
            lines.setdefault(arrival.path, withdraw_command(arrival.path, why))
    more = (f"and {len(lines) - _SHOWN:,} more",) if len(lines) > _SHOWN else ()
    return (*list(lines.values())[:_SHOWN], *more)


def together(held: Iterable[HeldDay]) -> tuple[tuple[HeldDay, ...], ...]:
    """Held days about which there is the same to say, as one: many that a gate holds with the same arrivals new.

    Days that are tied to another are as one, too: what is new on them is not what holds them. A few stay by themselves.

    Args:
        held: by table and day.
    """
    groups: dict[tuple[str, ...], list[HeldDay]] = {}
    for day in held:
        tied = day.hold.refused.day if isinstance(day.hold.refused, TiedTo) else None
        new = () if tied else tuple(arrival.path for arrival in day.arrivals)
        groups.setdefault((day.hold.table, day.hold.gate, str(tied), *new), []).append(day)
    parts = [part for group in groups.values() for part in ([group] if len(group) >= _MANY else [[d] for d in group])]
    return tuple(sorted(map(tuple, parts), key=lambda part: (part[0].hold.table, part[0].hold.day)))


def withdraw_command(path: str, why: str) -> str:
    """The command that takes an arrival out again, ready for a shell."""
    return f"platform-assets withdraw {_quoted(path)} --reason {_quoted(why)}"


def _quoted(text: str) -> str:
    """Text for a shell, also where it would act on a terminal: then as the escapes that shells read as well."""
    plain = text.replace("\\", "\\\\").replace("'", "\\'")
    return shlex.quote(text) if visible(text) == text else f"$'{visible(plain)}'"


def held_days(platform: Platform, holds: Iterable[Hold], *, with_arrivals: bool = True) -> tuple[HeldDay, ...]:
    """What is to be said of held days, by table and day; of holds that keep nothing from readers now, nothing.

    Nor of those of a table that no domain declares any more: nobody computes it, so nothing is kept back, and nothing
    that a person could do would lift them. They stay for the day on which it is declared again.

    Args:
        holds: all of those days, oldest first.
        with_arrivals: whether to look for new ones, which opens files of raw days.
    """
    lineage = _Lineage(platform)
    if holds := tuple(hold for hold in holds if hold.table in platform.catalogue.names):
        holds = in_force(holds, all_states(platform, table_states(lineage.snapshot)))
    since: dict[tuple[str, date], datetime] = {}
    for hold in holds:
        key = hold.table, hold.day
        since[key] = min(since.get(key, hold.created_at), hold.created_at)
    held: list[HeldDay] = []
    for key, hold in sorted(hold_of_each_day(holds).items()):
        shown = lineage.snapshot.days(hold.table, [hold.day]).get(hold.day)
        shown = shown if shown and shown.digest else None
        by = platform.ledger.head(shown.publication) if shown else None
        arrivals = lineage.new_arrivals(hold.table, hold.day) if with_arrivals else ()
        held.append(HeldDay(hold, since[key], shown, by, arrivals))
    return tuple(held)


class _Lineage:
    """What days would be made from now, against what they were made from."""

    def __init__(self, platform: Platform) -> None:
        self.snapshot = LakeSnapshot.now(platform)
        self._platform = platform
        self._shown_by = ReleaseIndex(platform)

    @cached_property
    def _marks(self) -> Mapping[str, Mapping[date, DayMark]]:
        return self.snapshot.marks(self._platform.catalogue.names)

    @cached_property
    def _arrivals(self) -> tuple[ArrivalRecord, ...]:
        return self._platform.ledger.arrivals()

    @cached_property
    def _released(self) -> Mapping[str, int]:
        return self._platform.ledger.indexed()

    def new_arrivals(self, table: str, day: date) -> tuple[ArrivalRecord, ...]:
        """Those that are new in what a day would be made from, since it was made."""
        contract = self._platform.catalogue[table]
        record = self.snapshot.days(table, [day]).get(day)
        days = tuple(self._raw_days(contract, day, record, set()))
        return new_arrivals(days, self._arrivals, self._released)

    def _raw_days(
        self, contract: Contract, day: date, record: DayRecord | None, seen: set[tuple[str, date]]
    ) -> Iterator[RawDay]:
        """The raw days behind a day that are not as they were read; of one never computed, those of the same day."""
        for read in contract.inputs:
            source, marks = self._platform.catalogue[read.table], self._marks[read.table]
            made = record is not None and bool(record.digest)
            at = self._shown_by(read.table, record.reads.get(read.table, -1)) if record and made else -1
            window = day_range(*days_read(read.window, day, self._platform.calendar)) if made else [day]
            later = [each for each in window if each in marks and marks[each].release > at]
            then = self._then(read.table, later, at)
            for each in later:
                if (each in then and then[each].digest == marks[each].digest) or (read.table, each) in seen:
                    continue
                seen.add((read.table, each))
                if source.source is None:
                    yield from self._raw_days(source, each, then.get(each), seen)
                else:
                    path, version = self._platform.lake.table_path(read.table), self._shown_by.version(read.table)
                    names = arrivals_named(path, version, [each])
                    yield RawDay(read.table, each, at, names or ())

    def _then(self, table: str, days: Collection[date], at: int) -> Mapping[date, DayRecord]:
        return self._platform.ledger.current_days(table, at=at, among=days) if at >= 0 and days else {}
