"""Held days and days with warnings, for display: since when, what readers see, and what arrived since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import takewhile
from typing import NamedTuple

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import look_at_all
from platform_assets.operations.lineage.provenance import Changes, NewSince
from platform_assets.planning.arrivals import comes_with
from platform_assets.planning.day_states import in_force
from platform_assets.quality.findings import ACCEPTABLE
from platform_assets.quality.gates import drift_of
from platform_assets.records.code_version import TiedTo
from platform_assets.records.history import ArrivalRecord, DayRecord, Hold, PublicationRecord
from platform_assets.words import counted, for_shell

_SHOWN = 5
"""Arrivals that are named; `why` shows more."""

_MANY = 3
"""Days from which on they are shown as one group."""


class OlderHold(NamedTuple):
    """An older hold of a day, still in force after a newer one.

    Args:
        hold: a gate's, if a person rolled the day back since; a person's, if a gate refused it since.
        since: when it was first held so, UTC.
    """

    hold: Hold
    since: datetime


@dataclass(frozen=True)
class HeldDay:
    """A held day.

    Args:
        since: when it was first held so, UTC.
        shown: what readers see; None if nothing.
        arrivals: arrivals in its inputs since then, newest first.
        undelivered: raw table without a delivery for the day, so that nothing can be accepted yet.
        changed: code and configurations that changed since then and affect the day.
        is_stopped: whether an open circuit keeps the table from being published, so that nothing can be accepted.
    """

    hold: Hold
    since: datetime
    shown: DayRecord | None
    shown_by: PublicationRecord | None
    arrivals: tuple[ArrivalRecord, ...]
    older: OlderHold | None = None
    undelivered: str | None = None
    changed: tuple[str, ...] = ()
    is_stopped: bool = False

    @property
    def holds(self) -> tuple[Hold, ...]:
        """Return all holds of the day, the newest first."""
        return (self.hold, self.older.hold) if self.older else (self.hold,)

    @property
    def is_put_back(self) -> bool:
        """Return whether a person rolled the day back: then readers see that content, whatever gates refuse."""
        return any(hold.is_of_good_content for hold in self.holds)

    @property
    def instead(self) -> str:
        """Return what readers see, in a few words."""
        if self.shown is None or self.shown_by is None:
            return "readers see nothing of it"
        made = f"release {self.shown_by.release} of {self.shown_by.created_at:%Y-%m-%d %H:%M} UTC"
        kind = "what was put back" if self.is_put_back else "its last good content"
        return f"readers see {kind}, {counted(self.shown.delivered, 'row')} of {made}"

    @property
    def by_version(self) -> str:
        """Return which code and configurations may be the cause, to be added to a sentence."""
        return f"; changed since: {', '.join(self.changed)}" if self.changed else ""

    @property
    def reason(self) -> str:
        """Return why it is held, the newest first, without its table and day."""
        before = f"; and since {_moment(self.older.since)}: {_without_day(self.older.hold)}" if self.older else ""
        return f"{_without_day(self.hold)}{self.by_version}{before}"

    @property
    def sentence(self) -> str:
        """Return the whole sentence without the arrivals."""
        waits = counted(len(self.arrivals), "newer file", "wait")
        more = f"; {waits} until it is lifted" if self.arrivals and any(hold.lasts for hold in self.holds) else ""
        return f"since {_moment(self.since)}: {self.reason}; {self.instead}{more}"

    @property
    def complaint(self) -> str:
        """Return the reason for withdrawing an arrival because of this day."""
        by_gates = [hold.gate for hold in self.holds if not hold.is_of_good_content]
        name = f"{self.hold.table} {self.hold.day}"
        return f"{by_gates[0]} holds {name}" if by_gates else f"{name} was rolled back"

    @property
    def is_tied(self) -> bool:
        """Return whether the day is held only because of another day."""
        return isinstance(self.hold.refused, TiedTo)


def withdrawals(days: Iterable[HeldDay | WarnedDay]) -> tuple[str, ...]:
    """Return the commands that withdraw new arrivals of some days, each once; if there are many, their number."""
    lines: dict[str, str] = {}
    for day in days:
        for arrival in day.arrivals:
            lines.setdefault(arrival.path, withdraw_command(arrival.path, day.complaint))
    more = (f"and {len(lines) - _SHOWN:,} more",) if len(lines) > _SHOWN else ()
    return (*list(lines.values())[:_SHOWN], *more)


def together(held: Iterable[HeldDay]) -> tuple[tuple[HeldDay, ...], ...]:
    """Group held days with the same message: many that a gate holds with the same new arrivals.

    Days tied to another day are grouped, too: their own new arrivals are not the cause. A few days stay ungrouped.
    """
    groups: dict[tuple[str, ...], list[HeldDay]] = {}
    for day in held:
        tied = day.hold.refused.day if isinstance(day.hold.refused, TiedTo) else None
        new = () if tied else tuple(arrival.path for arrival in day.arrivals)
        groups.setdefault((day.hold.table, day.hold.gate, str(tied), *day.changed, *new), []).append(day)
    parts = [part for group in groups.values() for part in ([group] if len(group) >= _MANY else [[d] for d in group])]
    return tuple(sorted(map(tuple, parts), key=lambda part: (part[0].hold.table, part[0].hold.day)))


def withdraw_command(path: str, why: str) -> str:
    """Return the command that withdraws an arrival, ready for a shell."""
    return f"platform-assets undo {for_shell(path)} --reason {for_shell(why)}"


def held_days(platform: Platform, holds: Iterable[Hold], *, with_arrivals: bool = True) -> tuple[HeldDay, ...]:
    """Return held days for display, by table and day. Leaves out holds that no longer affect readers.

    Leaves out tables that no domain declares: they are not computed, and a person could not lift the hold. The holds
    stay in case the table is declared again.
    """
    new = NewSince(platform)
    if holds := tuple(hold for hold in holds if hold.table in platform.catalogue.names):
        holds = in_force(holds, look_at_all(new.snapshot)[1])
    by_day: dict[tuple[str, date], list[Hold]] = {}
    for hold in holds:
        by_day.setdefault((hold.table, hold.day), []).append(hold)
    held: list[HeldDay] = []
    came: dict[str, set[date]] = {}
    for (table, day), standing in sorted(by_day.items()):
        (hold, since), *others = _by_whom(standing)
        record = new.snapshot.days(table, [day]).get(day)
        shown = record if record and record.digest else None
        by = platform.ledger.head(shown.publication) if shown else None
        since_then = _as_settled(platform, record) if hold.gate == "settled" and record else record
        changes = new.changes(table, day, since_then) if with_arrivals else Changes()
        versions = () if hold.is_of_good_content else changes.versions
        waits = _undelivered(new.snapshot, hold, came)
        older, is_stopped = others[0] if others else None, table in new.snapshot.stopped
        held.append(HeldDay(hold, since, shown, by, changes.arrivals, older, waits, versions, is_stopped))
    return tuple(held)


def _as_settled(platform: Platform, shown: DayRecord) -> DayRecord:
    """Return a day's record when it settled or was last accepted: earlier small corrections count, too."""
    history = platform.ledger.history(shown.table, shown.day) if drift_of(shown.figures) else ()
    return next((record for record in history if record.digest and not drift_of(record.figures)), shown)


def _undelivered(snapshot: LakeSnapshot, hold: Hold, came: dict[str, set[date]]) -> str | None:
    """Return the only raw table that a held day reads, if the day counts as empty because nothing was delivered."""
    if hold.gate not in ACCEPTABLE:
        return None
    catalogue = snapshot.platform.catalogue
    source = catalogue[catalogue[hold.table].inputs[0].table]
    if source.delivers != "on change":
        return None
    there = snapshot.days(source.name, [hold.day]).get(hold.day)
    if there is None or there.rows:
        return None
    if source.name not in came:
        came[source.name] = {arrival.arrival_date for arrival in snapshot.platform.ledger.arrivals(source.name)}
    return None if comes_with(source, hold.day) in came[source.name] else source.name


def _by_whom(holds: Sequence[Hold]) -> list[OlderHold]:
    """Return the newest hold of gates and of people, the newer first; a gate may have refused a day more than once."""
    kinds = ([hold for hold in holds if hold.is_of_good_content is of_people] for of_people in (False, True))
    newest = [OlderHold(kind[-1], min(hold.created_at for hold in kind)) for kind in kinds if kind]
    return sorted(newest, key=lambda each: each.hold.created_at, reverse=True)


def _without_day(hold: Hold) -> str:
    return hold.reason.removeprefix(f"{hold.table} on {hold.day}: ")


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class WarnedDay:
    """A day that readers see although gates found something.

    Args:
        since: publication since which the same gates warn.
        arrivals: arrivals in its inputs that were new then and still count, newest first.
    """

    record: DayRecord
    since: PublicationRecord | None
    arrivals: tuple[ArrivalRecord, ...]

    @property
    def complaint(self) -> str:
        """Return the reason for withdrawing an arrival because of this day."""
        gates = dict.fromkeys(warned.gate for warned in self.record.warnings)
        return f"{' and '.join(gates)} warned of {self.record.table} {self.record.day}"


def warned_day(platform: Platform, record: DayRecord) -> WarnedDay | None:
    """Return the warned day for its last publication; None if no gate warned of it."""
    gates = {warned.gate for warned in record.warnings}
    if not gates:
        return None
    history = platform.ledger.history(record.table, record.day)
    alike = list(takewhile(lambda each: gates & {warned.gate for warned in each.warnings}, history))
    before = history[len(alike)] if len(alike) < len(history) else None
    new = NewSince(platform)
    at = new.released(record.publication)
    arrivals = new.changes(record.table, record.day, before).arrivals
    came_with_it = tuple(arrival for arrival in arrivals if new.released(arrival.publication) <= at)
    return WarnedDay(record, platform.ledger.head(alike[-1].publication), came_with_it)
