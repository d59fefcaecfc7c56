"""What was decided since a backfill began and it would overrule: tables and days dropped, protected, put back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.operations.stages.inspect import undeclared_days
from platform_assets.planning.backfill.backfill import Obstacle
from platform_assets.planning.protected_days import protected_in
from platform_assets.planning.windows import which
from platform_assets.records.history import ROLL_BACK
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.backfill.sitting import Sitting  # which brings Spark


def refuse_overruled(sitting: Sitting) -> None:
    """Stand still where a backfill would overrule a decision of which nobody knew who explained or approved it.

    Raises:
        StoppedError: there is one.
    """
    sitting.platform.sync()
    if found := list(overruled(sitting.platform, sitting.record)):
        raise sitting.stop(found[0].what, found[0].todo, [one.what for one in found[1:]])


def overruled(platform: Platform, record: BackfillRecord) -> Iterator[Obstacle]:
    """The decisions since a backfill began that it would overrule, each as a phrase, and what to do."""
    planned: dict[str, set[date]] = {}
    for step in record.steps:
        for table, days in step.days.items():
            planned.setdefault(table, set()).update(days)
    yield from _dropped(platform, record)
    yield from _outside(platform, record, planned)
    yield from _protected(platform, record, planned)
    yield from _put_back(platform, record, planned)


def _dropped(platform: Platform, record: BackfillRecord) -> Iterator[Obstacle]:
    stage = stage_of(platform, record.name)
    for table, days in (undeclared_days(platform, stage) if stage else {}).items():
        yield Obstacle(
            f"its stage holds {counted(len(days), 'day')} of {table}, which no domain here declares any more",
            f"`platform-assets plan cancel {record.name}`, and apply it again, without that table; or declare it.",
        )


def _outside(platform: Platform, record: BackfillRecord, planned: dict[str, set[date]]) -> Iterator[Obstacle]:
    calendar = platform.calendar
    for table, days in planned.items():
        if outside := sorted(day for day in days if day not in calendar):
            lie = "lies" if len(outside) == 1 else "lie"
            yield Obstacle(
                f"{counted(len(outside), 'day')} of {table} {lie} outside the calendar by now ({which(outside)}), from "
                f"{calendar.first} to {calendar.last}",
                "Leave them out in the file and apply it again, or set `calendar_first` and `calendar_last` as they "
                f"were; or `platform-assets plan cancel {record.name}`.",
            )


def _protected(platform: Platform, record: BackfillRecord, planned: dict[str, set[date]]) -> Iterator[Obstacle]:
    override = record.file.override_protected
    allowed = override.named() if override else frozenset()
    marks = LakeSnapshot.now(platform).marks([table for table in planned if table in platform.catalogue.names])
    ours = {table: planned[table] - allowed for table in marks}
    for table, days in protected_in(platform.catalogue, ours, marks).items():
        closed = sorted(days)
        yield Obstacle(
            f"{counted(len(closed), 'day')} of {table} {'is' if len(closed) == 1 else 'are'} protected by now "
            f"({which(closed)}): {days[closed[0]]}",
            f"Leave them out with `days.without` in the file, or write override_protected: {{days: {closed[0]}.."
            f"{closed[-1]}, reason: …}}, and apply it again; or `platform-assets plan cancel {record.name}`.",
        )


def _put_back(platform: Platform, record: BackfillRecord, planned: dict[str, set[date]]) -> Iterator[Obstacle]:
    if record.looked_at is None:
        return
    since = {head.run: head for head in platform.ledger.heads(ROLL_BACK) if head.release > record.looked_at}
    by_whom: dict[tuple[str, str], list[date]] = {}
    for hold in platform.ledger.holds():
        if hold.is_of_good_content and hold.run in since and hold.day in planned.get(hold.table, ()):
            by_whom.setdefault((hold.table, hold.run), []).append(hold.day)
    for (table, run), days in by_whom.items():
        yield Obstacle(
            f"{since[run].who} put {counted(len(days), 'day')} of {table} back since it began ({which(sorted(days))}), "
            f"because: {since[run].why}",
            f"`platform-assets plan cancel {record.name}`; apply it again if it is right all the same, or leave them "
            "out with `days.without`.",
        )
