"""Which days of a silver table cannot be published without another one, because records have moved between them.

Only moves count that the published content does not know of yet: those whose tombstones came to raw since. They are
read from the few raw files that are new, without Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date

import pyarrow.parquet as pq

from platform_assets.compute.dedup import TOMBSTONE
from platform_assets.contracts import Contract
from platform_assets.engine.changes import Files, files_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.readiness import Readiness, readiness
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.ties import Tie, held_together
from platform_assets.planning.windows import within_reach


@dataclass(frozen=True)
class Tied:
    """Staged days that stay unpublished though no check found anything wrong with them.

    Args:
        held: each with the day that failed a gate, now or before.
        blocked: each with the day that is stale and was not computed with it.
    """

    held: dict[date, date] = field(default_factory=dict)
    blocked: dict[date, date] = field(default_factory=dict)

    def reason(self, contract: Contract, day: date) -> str:
        """Why a day is blocked, and what to do."""
        root = self.blocked[day]
        return (
            f"records moved between this day and {root}, which is stale; published alone, they would be counted twice "
            f"or not at all. Materialize {contract.name} for both days in one run, or leave it to the next refresh."
        )


def ties_among(platform: Platform, contract: Contract, state: Readiness, release: Release) -> tuple[Tie, ...]:
    """The ties of days that are to be computed, so that they can be computed together."""
    return tuple(_new_ties(platform, contract, state.ready, state, release)) if _has_ties(platform, contract) else ()


def tied_days(
    platform: Platform,
    contract: Contract,
    state: Readiness,
    failing: Collection[date],
    release: Release,
    *,
    to_come: Collection[date],
) -> Tied:
    """The staged days that are tied to one that is not published with them.

    Args:
        platform: what to work with.
        contract: of a table; only silver tables whose records can move have ties.
        state: its staged days, `ready`, and what is there of it.
        failing: those that a check blocks.
        release: that was read.
        to_come: days of later batches of the same step, which count as if they were to pass: those that were tied when
            the step began are in the same batch.
    """
    if not _has_ties(platform, contract):
        return Tied()
    near = within_reach(state.ready, _moves_within_days(platform, contract)) - set(state.ready)
    around = sorted(day for day in near if day in platform.calendar)
    others = readiness(platform, contract, around, release)
    behind = {*others.ready, *others.blocked, *others.held}.difference(to_come)
    ties = list(_new_ties(platform, contract, (*state.ready, *sorted(behind)), state, release))
    by_gate = {*failing, *(behind & state.holds.keys())}
    tied = held_together(by_gate | behind, ties)
    free = [day for day in state.ready if day in tied and day not in failing]
    return Tied(
        held={day: tied[day] for day in free if tied[day] in by_gate},
        blocked={day: tied[day] for day in free if tied[day] not in by_gate},
    )


def _has_ties(platform: Platform, contract: Contract) -> bool:
    return contract.layer == "silver" and _moves_within_days(platform, contract) > 0


def _moves_within_days(platform: Platform, contract: Contract) -> int:
    return platform.catalogue[contract.inputs[0].table].moves_within_days


def _new_ties(
    platform: Platform, contract: Contract, days: Iterable[date], state: Readiness, release: Release
) -> Iterable[Tie]:
    raw = contract.inputs[0].table
    path = platform.lake.table_path(raw)
    now = files_at(platform.lake, raw, release.versions.get(raw))
    known: dict[int, Files] = {}
    for day in days:
        if (record := state.before.get(day)) is None:
            continue
        version = record.reads.get(raw, -1)
        if version not in known:
            known[version] = files_at(platform.lake, raw, version if version >= 0 else None)
        for file in set(now.get(day, ())) - set(known[version].get(day, ())):
            rows = pq.read_table(
                path / file.path, columns=["_order_day"], filters=[("_kind", "=", TOMBSTONE)], partitioning=None
            )
            yield from ((day, there) for there in rows.column(0).unique().to_pylist())
