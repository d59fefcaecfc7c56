"""Holds: written down once days are published, lifted where nothing is refused any more, and told to whoever asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import cast

from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.failpoints import failpoint
from platform_assets.quality.findings import Check, Finding
from platform_assets.records.history import Hold


def write_holds(
    snapshot: LakeSnapshot, holds: Collection[Hold], good: Mapping[str, Collection[date]], over: Iterable[Hold]
) -> tuple[Hold, ...]:
    """Hold what gates refused, and lift what is over.

    What readers see of a day has passed its gates, or a person accepted it: so whoever publishes a day lifts whatever
    gates hold of it by then, and whoever holds one looks afterwards whether others have published it since. Of the two
    one always finds the other, in whatever order they come.

    Args:
        snapshot: on which the holds are right.
        holds: of days that failed a gate.
        good: days that were published, by table.
        over: holds that were known when days turned out good, rollbacks that somebody overruled among them.

    Returns:
        Those of the holds that do not stay, since others published their days meanwhile.
    """
    ledger = snapshot.platform.ledger
    failpoint("gate.before_holds")
    ledger.hold(holds)
    failpoint("gate.held")
    overtaken = _overtaken(snapshot, holds)
    past = [hold for hold in ledger.holds() if hold.day in good.get(hold.table, ()) and not hold.is_of_good_content]
    ledger.drop({*overtaken, *past, *over})
    failpoint("gate.lifted")
    return overtaken


def _overtaken(snapshot: LakeSnapshot, holds: Iterable[Hold]) -> tuple[Hold, ...]:
    by_table: dict[str, dict[date, Hold]] = {}
    for hold in holds:
        by_table.setdefault(hold.table, {})[hold.day] = hold
    overtaken: list[Hold] = []
    for table, by_day in by_table.items():
        before, now = snapshot.days(table, by_day), snapshot.platform.ledger.current_days(table, among=by_day)
        overtaken += [hold for day, hold in by_day.items() if before.get(day) != now.get(day)]
    return tuple(overtaken)


def refused_before(hold: Hold) -> Finding:
    """Why a day stays held that is not tried again."""
    retry = "since neither what it reads nor its code has changed: correct one of them, or recompute it by force"
    if hold.lasts:
        retry = f"whatever comes: {hold.overruled_by} lifts it"
    return Finding(
        check=cast("Check", hold.gate),
        day=hold.day,
        severity="block",
        message=f"{hold.reason}; refused before and not tried again, {retry}",
        expected="other input, other code, or a recomputation by force",
        actual="the input and the code of what was refused",
    )
