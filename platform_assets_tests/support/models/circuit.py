"""Circuits as a person would follow them by hand, and the events that they follow from."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from platform_assets.contracts import Circuit
from platform_assets.planning.circuit import OVERRIDE_ENDED, TableVerdict
from platform_assets.records.decisions import CircuitDecision

TABLE = "silver.lines"
START = datetime(2017, 1, 1, tzinfo=UTC)
DAY = date(2017, 1, 5)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def verdict(number: int, minutes: float, failed: str = "", **more: Any) -> TableVerdict:
    reasons = {failed: f"it failed by {failed}"} if failed else {}
    more = {"run": f"run-{number}", "day": DAY if failed else None, "failed": reasons} | more
    return TableVerdict(table=TABLE, number=number, at=at(minutes), **more)


def decision(
    kind: Any, after: int, minutes: float = 0, scope: str = TABLE, until: float | None = None
) -> CircuitDecision:
    end = None if until is None else at(until)
    signed: dict[str, Any] = {"reason": "a test", "who": "zoe", "created_at": at(minutes)}
    return CircuitDecision(kind=kind, scope=scope, after=after, until=end, **signed)


@dataclass
class Model:
    """The same rules, written down as a person would follow them by hand."""

    policy: Circuit
    opened: datetime | None = None
    next_try: datetime | None = None
    tries: int = 0
    successes: int = 0
    runs: list[tuple[str, bool]] = field(default_factory=list)
    frozen: bool = False
    until: datetime | None = None
    seen: int = 0
    tried: int = 0

    def close(self) -> None:
        self.opened, self.next_try, self.tries, self.successes, self.runs = None, None, 0, 0, []

    def see(self, event: TableVerdict | CircuitDecision) -> None:
        """Follow what happened."""
        if self.until and (event.at if isinstance(event, TableVerdict) else event.created_at) >= self.until:
            self.until = None
        if isinstance(event, TableVerdict):
            self.seen = event.number
        if isinstance(event, CircuitDecision):
            self.until = event.until
            if event.kind == "freeze":
                self.frozen = True
            elif event.kind == "close":
                self.frozen = False
                self.close()
        elif OVERRIDE_ENDED in event.failed:
            pass
        elif self.opened is None:
            if not event.is_try:
                self.runs.append((event.run, bool(event.failed)))
                if event.failed:
                    newest: list[str] = []
                    for run, _ in reversed(self.runs):
                        if run not in newest and len(newest) < self.policy.failures[1]:
                            newest.append(run)
                    bad = [run for run in newest if (run, True) in self.runs]
                    if len(bad) >= self.policy.failures[0] or event.failed.keys() & set(self.policy.at_once):
                        self.opened, self.next_try = event.at, event.at + timedelta(minutes=self.policy.wait_minutes)
                        self.until, self.tried = None, event.number
        elif not event.is_try or event.tries != self.tried:
            pass
        elif event.failed:
            self.tries, self.successes, self.tried = self.tries + 1, 0, event.number
            minutes = min(self.policy.wait_minutes * 2**self.tries, self.policy.longest_wait_minutes)
            self.next_try = event.at + timedelta(minutes=minutes)
        else:
            self.successes, self.tried = self.successes + 1, event.number
            self.next_try = event.at
            if self.successes == self.policy.successes:
                self.close()
        if not self.frozen and self.opened is None:
            self.until = None  # there is nothing left that an override would let pass

    def with_missing(self, verdicts: Sequence[TableVerdict], now: datetime) -> Model:
        """Return the model once it has seen batches that have not come in time as the newest failures."""
        model, minutes = deepcopy(self), self.policy.verdict_within_minutes
        for each in verdicts if minutes else ():
            if each.is_pending and now > each.at + timedelta(minutes=minutes or 0):
                model.see(replace(each, failed={"missing": "none came"}))
        return model

    def state(self, now: datetime) -> str:
        if (self.frozen or self.opened) and self.until and now < self.until:
            return "overridden"
        if self.frozen:
            return "frozen"
        if self.opened is None or self.next_try is None:
            return "closed"
        return "half-open" if now >= self.next_try else "open"
