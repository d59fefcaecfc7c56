"""A ledger that was behind the lake: what it lacked, and the holds of rollbacks that would else be undone.

The index comes back from the manifests. Holds and people's decisions are in the ledger alone; of these only what keeps
a rollback can be told from the lake: the day is what was put back, and its newest refused content is on record.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from platform_assets.engine.basis import Basis
from platform_assets.engine.platform import Platform
from platform_assets.engine.rollback import as_they_would_be
from platform_assets.lakehouse.index import SyncResult
from platform_assets.ledger.records import ROLL_BACK, DayRecord, Hold
from platform_assets.planning.rollback import refusals

CAUGHT_UP = "caught up"
"""The kind under which the ledger remembers that it had been behind."""

_MEANWHILE = timedelta(minutes=1)
"""What another process published since is indexed by that process, in less than that."""


def caught_up(platform: Platform, synced: SyncResult) -> tuple[str, ...]:
    """Hold again what was rolled back, and say what the ledger lacked.

    A single publication is what a process leaves that died before it could index it; a ledger without any, or without
    several, is a new one or was restored from a backup.

    Returns:
        What a person should know, one sentence each; nothing where the ledger lacked nothing but the index of it.
    """
    said = hold_again(platform, synced.added)
    heads = [head for name in synced.added if (head := platform.ledger.head(name))]
    missed = [head for head in heads if head.created_at < datetime.now(UTC) - _MEANWHILE]
    if said or len(missed) > 1 or not synced.known:
        first, last = heads[0], heads[-1]
        lacked = (
            f"The ledger lacked releases {first.release} to {last.release}, of {first.created_at:%Y-%m-%d %H:%M} to "
            f"{last.created_at:%Y-%m-%d %H:%M} UTC, and has indexed them. Holds and people's decisions from that time "
            "are not in it, unless it is a copy from after."
        )
        said = (lacked, *said)
        platform.ledger.decide(
            CAUGHT_UP,
            f"releases {first.release} to {last.release}",
            reason=" ".join(said),
            who="platform",
            created_at=datetime.now(UTC),
        )
    return said


def hold_again(platform: Platform, publications: Collection[str]) -> tuple[str, ...]:
    """Hold days that a rollback put back and whose hold the ledger has lost, so that no tick undoes the rollback.

    Args:
        platform: what to work with; its ledger has indexed the publications.
        publications: that were not indexed before.

    Returns:
        What was held, one sentence for each rollback.
    """
    said: list[str] = []
    for name in publications:
        head = platform.ledger.head(name)
        if head is None or head.kind != "roll back":
            continue
        found = platform.ledger.publication(name)
        holds = [hold for record in (found.days if found else ()) for hold in _holds(platform, record)]
        if holds:
            platform.ledger.hold(holds)
            tables = sorted({hold.table for hold in holds})
            days = {(hold.table, hold.day) for hold in holds}
            said.append(
                f"{len(days):,} days of {', '.join(tables)} are held again as {head.who} had rolled them back: "
                f"{head.why}."
            )
    return tuple(said)


def _holds(platform: Platform, record: DayRecord) -> list[Hold]:
    """What keeps a day as a rollback left it; nothing if something does already, or nothing has to."""
    table, day = record.table, record.day
    if table not in platform.catalogue.names or not platform.catalogue[table].inputs:
        return []
    newest, *older = platform.ledger.history(table, day)
    if newest.publication != record.publication or not older or not older[0].fingerprint:
        return []
    if any(hold.day == day and hold.is_of_good_content for hold in platform.ledger.holds(table)):
        return []
    if as_they_would_be(Basis.now(platform), platform.catalogue[table], {day: record.made_by}):
        return []
    head = platform.ledger.head(record.publication)
    assert head is not None
    reason = f"rolled back by {head.who}: {head.why}"
    refused = refusals([(older[0].fingerprint, older[0].made_by)], platform.version(table))
    return [Hold(table, day, one, ROLL_BACK, reason, head.run, head.created_at) for one in sorted(refused)]
