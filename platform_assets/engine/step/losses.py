"""Staged days that have lost most of the rows which readers see of them, where no history can judge their volume."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from platform_assets.contracts import AsOf, Contract, Input
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import ReleaseIndex
from platform_assets.engine.state.readiness import Readiness
from platform_assets.engine.step.staging import Staged
from platform_assets.planning.windows import days_read
from platform_assets.quality.baseline import Interval, Undecided, is_loss, loss_finding, not_missed, rows_before
from platform_assets.quality.findings import Finding
from platform_assets.records.history import DayRecord


def losses(
    snapshot: LakeSnapshot,
    contract: Contract,
    state: Readiness,
    staged: Staged,
    usual: Mapping[date, Interval | Undecided],
) -> dict[date, Finding]:
    """A warning of each day that lost more than half of its rows, and not with those that it was made from.

    What people withdrew is missed by nobody: of silver those rows are counted. What a table further down lost with its
    inputs is told there, if it is to be told; it is taken to lose the same share as they did, which need not be so.

    Args:
        snapshot: that the days were computed over.
        contract: of the table.
        state: of the staged days, and what readers have of them.
        staged: as they lie in the stage.
        usual: what is usual for each staged day, or why nobody can say.
    """
    result: dict[date, Finding] = {}
    shown_by = ReleaseIndex(snapshot.platform)
    for day in state.ready:
        there, unjudged, rows = state.before.get(day), usual[day], staged.digest(day).rows
        if there is None or isinstance(unjudged, Interval) or not unjudged.lacks_history:
            continue
        if not is_loss(rows, before := rows_before(there)):
            continue
        if contract.layer == "silver":
            now, then = staged.row_balance(day), there.figures
            gone = not_missed(now.withdrawn - then.get("withdrawn", 0), now.raw - then.get("raw", now.raw))
        else:
            gone = before - round(before * _share_left(snapshot, shown_by, contract, day, there))
        if finding := loss_finding(contract, day, rows, before, unjudged, gone=gone):
            result[day] = finding
    return result


def _share_left(
    snapshot: LakeSnapshot, shown_by: ReleaseIndex, contract: Contract, day: date, there: DayRecord
) -> float:
    """Of the rows that a day was made from, how many of its inputs are left: the least share of any of them, at most 1.

    Reference data has no part in how many rows a day has.
    """
    shares = [1.0]
    for read in contract.inputs:
        at = shown_by(read.table, there.reads.get(read.table, -1))
        if at >= 0 and not isinstance(read.window, AsOf):
            then, now = _rows_read(snapshot, read, day, at)
            shares += [now / then] if then else []
    return min(shares)


def _rows_read(snapshot: LakeSnapshot, read: Input, day: date, at: int) -> tuple[int, int]:
    """Rows of an input that a day reads: at a release, and now."""
    days = set(days_read(read.window, day, snapshot.platform.calendar))
    then = snapshot.platform.ledger.current_days(read.table, at=at, among=days)
    now = snapshot.days(read.table, days)
    return sum(record.rows for record in then.values()), sum(record.rows for record in now.values())
