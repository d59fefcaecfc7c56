"""Decide whether a circuit is closed, open or half-open, from verdicts, policy, decisions and the time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import chain, islice
from typing import Literal

from platform_assets.contracts import Circuit
from platform_assets.records.code_version import UNTIL_LIFTED, Attempt
from platform_assets.records.decisions import CircuitDecision
from platform_assets.records.history import CIRCUIT, Hold
from platform_assets.words import counted

ROLLED_BACK = "rollback"
"""In place of a class of failure: a publication of the table was rolled back."""
OVERRIDE_ENDED = "end of an override"
"""In place of a class of failure: an override was seen to have ended, and stays so whatever the clock says later."""

ALL = "all"
DOMAIN = "domain:"
"""Scopes of a decision: every table; before a domain's name, the tables of that domain."""

Reasons = Mapping[str, str]
"""A reason for each class of failure or warning."""


@dataclass(frozen=True, kw_only=True)
class TableVerdict:
    """Verdict on one batch of a table: judged, or not judged because something failed.

    Args:
        table: `<layer>.<table>`.
        at: UTC.
        number: position in the ledger's order of verdicts, from 1.
        day: the newest failed day; None without one.
        attempt: fingerprint and code of that day.
        failed: blocking findings, by class; empty without any.
        warned: findings published with a warning, by check.
        publication: publication with days of it; empty without one.
        is_try: whether it was computed in a stage to try an open circuit, not for publication.
        is_pending: whether the verdict is still to come.
        tries: for a try, the number of the verdict that opened the circuit, or of the last try that counted. 0 in
            verdicts of earlier versions, which count for whatever is open.
        lives_by: for a pending verdict of judged and unpublished days, a lock that its process holds.
    """

    table: str
    at: datetime
    run: str
    number: int = 0
    day: date | None = None
    attempt: Attempt = field(default_factory=lambda: Attempt(""))
    failed: Reasons = field(default_factory=dict)
    warned: Reasons = field(default_factory=dict)
    publication: str = ""
    is_try: bool = False
    is_pending: bool = False
    tries: int = 0
    lives_by: str = ""


@dataclass(frozen=True)
class Change:
    """A change of a circuit.

    Args:
        at: UTC.
    """

    at: datetime
    state: str
    why: str


@dataclass(frozen=True)
class Try:
    """A due try of an open circuit.

    Args:
        day: day to compute without publishing it: the newest that failed.
        due: end of the wait before it, UTC. After a failed try it is another moment, and so another try.
        follows: value of `tries` in its verdict.
    """

    day: date
    due: datetime | None
    follows: int = 0


State = Literal["closed", "open", "half-open", "frozen", "overridden"]


@dataclass(frozen=True)
class CircuitState:
    """State of a table's circuit.

    Args:
        state: `frozen` is open until a person closes it; `overridden` is open, and a person lets publications pass.
        why: reason for a person; empty if closed.
        since: when it opened; None if closed.
        next_try: when the next try is due; None if closed or frozen.
        cause: verdict that opened it; None if a person did, or if closed.
        failing: verdicts of failed days, oldest day first; the newest that is still bad is tried.
        wait: pause between a failed try and the next.
        scope: scope that a person froze or overrode; empty without such a decision.
        follows: number of the verdict that opened it, or of the last try that counted.
        by_clock: missing verdicts, and the end of an override, which are recorded before anything else happens.
    """

    state: State = "closed"
    why: str = ""
    since: datetime | None = None
    next_try: datetime | None = None
    until: datetime | None = None
    cause: TableVerdict | None = None
    failing: tuple[TableVerdict, ...] = ()
    wait: timedelta = timedelta()
    changes: tuple[Change, ...] = ()
    scope: str = ""
    follows: int = 0
    by_clock: tuple[TableVerdict, ...] = ()

    @property
    def stops(self) -> bool:
        """Return whether nothing of the table may be published."""
        return self.state in ("open", "half-open", "frozen")

    def sentence(self, table: str) -> str:
        """Say why the table is not published, since when, and what comes next."""
        since = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        then = "; the next run tries it" if self.state == "half-open" else ""
        if self.state == "open":
            then = f"; next try at {self.next_try:%Y-%m-%d %H:%M} UTC, or when its input or code is new"
        # Tables that one decision stopped share one sentence, so that it is said once.
        wide = self.state == "frozen" and self.scope != table
        where = "all tables" if self.scope == ALL else self.scope
        what = f"every circuit of {where}" if wide else f"the circuit of {table}"
        return f"{what} is {self.state}{since}: {self.why}{then}"

    def hold(self, table: str) -> Hold:
        """Return the hold on days of the table and its readers; each day is filled in."""
        assert self.since is not None
        run = self.cause.run if self.cause else ""
        return Hold(table, date.min, UNTIL_LIFTED, CIRCUIT, self.sentence(table), run, self.since)


def circuit(
    verdicts: Collection[TableVerdict], policy: Circuit, decisions: Sequence[CircuitDecision], now: datetime
) -> CircuitState:
    """Return the state of one table's circuit.

    Args:
        now: UTC.
    """
    machine = _Machine(policy)
    left = list(decisions)
    for verdict in verdicts:
        if verdict.is_pending:
            continue
        while left and left[0].after < verdict.number:
            machine.decide(left.pop(0))
        machine.judge(verdict)
    for decision in left:
        machine.decide(decision)
    for verdict in (missing := _missing(verdicts, policy, now)):
        machine.judge(verdict)
    state = machine.state(now)
    over = machine.override_over(now)
    return replace(state, by_clock=(*missing, *over)) if missing or over else state


def applies_to(decision: CircuitDecision, table: str, domain: str) -> bool:
    """Return whether a decision concerns a table, by its own name or by its domain."""
    return decision.scope in (table, f"{DOMAIN}{domain}", ALL)


def _missing(verdicts: Collection[TableVerdict], policy: Circuit, now: datetime) -> tuple[TableVerdict, ...]:
    """Return overdue pending verdicts, as failures.

    They are newer than all written ones: the next verdict or decision is written after these.
    """
    if (minutes := policy.verdict_within_minutes) is None:
        return ()
    why = {"missing": f"no verdict came within {counted(minutes, 'minute')}"}
    late = [each for each in verdicts if each.is_pending and now - each.at > timedelta(minutes=minutes)]
    return tuple(replace(each, failed=why, is_pending=False) for each in late)


class _Machine:
    """State machine of a circuit, fed with its history, oldest first."""

    def __init__(self, policy: Circuit) -> None:
        self._policy = policy
        self._open = CircuitState()
        self._successes = 0
        self._rollbacks: list[TableVerdict] = []
        self._units: dict[object, list[TableVerdict]] = {}
        """What failed in each run or on each date since the circuit was closed, the latest last."""
        self._frozen: dict[str, CircuitDecision] = {}
        self._override: CircuitDecision | None = None
        self._passed: tuple[frozenset[str], datetime | None] = frozenset(), None
        """What the override lets pass: scopes that were frozen, and since when the circuit was open."""
        self._changes: list[Change] = []

    def decide(self, decision: CircuitDecision) -> None:
        """Apply a person's decision. It ends an earlier override, unless it closes another scope."""
        self._expire(decision.created_at)
        if decision.kind != "close" or (self._override and self._override.scope == decision.scope):
            self._override = decision if decision.kind == "override" else None
        if decision.kind == "freeze":
            self._frozen[decision.scope] = decision
        if decision.kind == "close":
            self._frozen.pop(decision.scope, None)
            if decision.scope != ALL and not decision.scope.startswith(DOMAIN):
                self._close()
        if decision.kind == "override":
            self._passed = frozenset(self._frozen), self._open.since
        self._end_override()
        now = self.state(decision.created_at).state  # what another scope or a failure keeps open stays so
        self._changes.append(Change(decision.created_at, now, _signed(decision)))

    def judge(self, verdict: TableVerdict) -> None:
        """Apply a verdict: it may open a closed circuit; of an open one only tries count, each after the one before."""
        self._expire(verdict.at)
        if why := verdict.failed.get(OVERRIDE_ENDED):
            self._changes.append(Change(verdict.at, self.state(verdict.at).state, f"the end of what was {why}"))
            return
        if self._open.since is None:
            if not verdict.is_try:  # a try that ends after another one has closed the circuit says nothing new
                self._count(verdict)
                if opens := self._why_opens(verdict):
                    self._trip(verdict, *opens)
            return
        if verdict.failed and ROLLED_BACK not in verdict.failed:
            self._open = replace(self._open, failing=_with(self._open.failing, verdict))
        if verdict.is_try and verdict.tries in (0, self._open.follows):
            self._tried(verdict)
        self._end_override()

    def state(self, now: datetime) -> CircuitState:
        """Return its state at a moment."""
        changes = tuple(self._changes)
        until = self._override.until if self._override else None
        if self._override and until and now < until:
            why, scope = _signed(self._override), self._override.scope
            since = self._open.since or list(self._frozen.values())[-1].created_at
            overridden = replace(self._open, state="overridden", since=since, until=until, scope=scope)
            return replace(overridden, why=why, changes=changes)
        if self._frozen:
            newest = list(self._frozen.values())[-1]
            frozen = replace(self._open, state="frozen", next_try=None, scope=newest.scope, changes=changes)
            return replace(frozen, why=_signed(newest), since=newest.created_at)
        if self._open.next_try is None:
            return CircuitState(changes=changes)
        is_due = now >= self._open.next_try
        return replace(self._open, state="half-open" if is_due else "open", changes=changes)

    def override_over(self, now: datetime) -> tuple[TableVerdict, ...]:
        """Return the verdict that ended an override, if only the clock shows it."""
        if self._override is None or self._override.until is None or now < self._override.until:
            return ()
        return (TableVerdict(table="", at=now, run="", failed={OVERRIDE_ENDED: _signed(self._override)}),)

    def _expire(self, at: datetime) -> None:
        """End an override for good once anything happened after its time."""
        if self._override and self._override.until and at >= self._override.until:
            self._override = None

    def _end_override(self) -> None:
        """End an override with what it lets pass: a circuit that opens later stops the table again."""
        scopes, since = self._passed
        if not scopes.intersection(self._frozen) and (since is None or self._open.since != since):
            self._override = None

    def _close(self) -> None:
        self._open, self._successes = CircuitState(), 0
        self._rollbacks, self._units = [], {}

    def _trip(self, verdict: TableVerdict, why: str, by: Sequence[TableVerdict]) -> None:
        wait = timedelta(minutes=self._policy.wait_minutes)
        failing: tuple[TableVerdict, ...] = ()
        for each in by:
            failing = _with(failing, each)
        opened = CircuitState("open", why, verdict.at, verdict.at + wait, None, verdict, failing, wait)
        self._open = replace(opened, follows=verdict.number)
        self._override = None  # which was decided about something else
        self._changes.append(Change(verdict.at, "open", why))

    def _tried(self, verdict: TableVerdict) -> None:
        if failed := self._failed(verdict):
            wait = min(self._open.wait * 2, timedelta(minutes=self._policy.longest_wait_minutes))
            why = f"{self._open.why.partition('; the try')[0]}; the try at {verdict.at:%Y-%m-%d %H:%M} UTC failed by "
            why += next(f"{name}: {reason}" for name, reason in failed.items())
            self._open = replace(self._open, why=why, next_try=verdict.at + wait, wait=wait, follows=verdict.number)
            self._successes = 0
            self._changes.append(Change(verdict.at, "open", why))
            return
        self._successes += 1
        if self._successes >= self._policy.successes:
            self._close()
            self._changes.append(Change(verdict.at, "closed", f"a try of {verdict.day} succeeded"))
        else:
            self._open = replace(self._open, next_try=verdict.at, follows=verdict.number)  # the next need not wait

    def _failed(self, verdict: TableVerdict) -> Reasons:
        return {**verdict.failed, **(verdict.warned if self._policy.warnings else {})}

    def _counted(self, verdict: TableVerdict) -> Reasons:
        return {name: why for name, why in self._failed(verdict).items() if name in self._policy.classes}

    def _count(self, verdict: TableVerdict) -> None:
        """Count a verdict towards opening the circuit, in constant time: a table may have thousands."""
        if ROLLED_BACK in verdict.failed:
            self._rollbacks.append(verdict)
            return
        unit = verdict.run if self._policy.per == "runs" else verdict.at.date()
        self._units[unit] = failed = self._units.pop(unit, [])
        if self._counted(verdict):
            failed.append(verdict)

    def _why_opens(self, newest: TableVerdict) -> tuple[str, Sequence[TableVerdict]] | None:
        """Return why the newest verdict opens the circuit, with all verdicts that do; None if it does not."""
        policy = self._policy
        if at_once := [name for name in policy.at_once if name in newest.failed]:
            return f"{at_once[0]}: {newest.failed[at_once[0]]}", [newest]
        if ROLLED_BACK in newest.failed and policy.rollbacks:
            times, days = policy.rollbacks
            back = [rolled for rolled in self._rollbacks if newest.at - rolled.at <= timedelta(days=days)]
            if len(back) >= times:
                return f"{len(back)} rollbacks within {days} days, the last: {newest.failed[ROLLED_BACK]}", back
        if counted := self._counted(newest):
            least, of = policy.failures
            failing = [failed for unit in islice(reversed(self._units), of) if (failed := self._units[unit])]
            if len(failing) >= least:
                name, why = next(iter(counted.items()))
                by = sorted(chain.from_iterable(reversed(failing)), key=lambda verdict: verdict.number)
                return f"{len(failing)} of the last {of} {policy.per} failed, the last by {name}: {why}", by
        return None


def _with(failing: tuple[TableVerdict, ...], verdict: TableVerdict) -> tuple[TableVerdict, ...]:
    """Return the newest verdict of each failed day, oldest day first."""
    of_days = {each.day: each for each in (*failing, verdict) if each.day}
    return tuple(of_days[day] for day in sorted(of_days))


def _signed(decision: CircuitDecision) -> str:
    until = f" until {decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else ""
    done = {"freeze": "opened", "close": "closed", "override": "overridden"}[decision.kind]
    of = "" if decision.scope.count(".") else f" for {decision.scope}"
    return f"{done}{of} by {decision.who}{until}: {decision.reason}"
