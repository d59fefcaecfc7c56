"""Where a backfill stands, what it waits for, and what was decided since it began that it would overrule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.locks import plan_holder, publish_holder
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.staged import cores_of, stage_of
from platform_assets.operations.plan_record import OVER, BackfillRecord, is_paused
from platform_assets.operations.stages.store import undeclared_days
from platform_assets.planning.backfill.backfill import Backfill, Obstacle
from platform_assets.planning.backfill.pace import may_compute, seconds_left, spent
from platform_assets.planning.selection import protected_in
from platform_assets.planning.windows import which
from platform_assets.records.history import ROLL_BACK
from platform_assets.words import counted


def is_at_work(platform: Platform, record: BackfillRecord) -> bool:
    """Return whether a process applies it now."""
    return record.state not in OVER and bool(plan_holder(platform.lake, record.name))


def waits_for(platform: Platform, record: BackfillRecord) -> tuple[str, ...]:
    """Return what has to happen before a backfill goes on, as sentences; nothing of one that is over or at work.

    What is published and not proved yet, as its file asks for, is not quite over.
    """
    if record.wants_proof:
        return (_waits_for_proof(record),)
    return () if record.state in OVER else tuple(_waits(platform, record))


def waits_to_begin(backfill: Backfill) -> tuple[str, ...]:
    """Return what has to happen before a plan that was never applied can be."""
    waits = [f"{obstacle.told} {obstacle.todo}" for obstacle in backfill.blocking]
    consent = backfill.consent
    if not consent.is_there:
        missing = counted(consent.needed - len(consent.given), "approval")
        waits.append(f"It waits for {missing} of {backfill.hash}, because {' and '.join(consent.because)}.")
    return tuple(waits)


def _waits_for_proof(record: BackfillRecord) -> str:
    service = record.file.service
    if not may_compute(service, datetime.now(UTC)):
        return f"Its proof waits for its hours, {service.hours} UTC: `platform-assets plan apply FILE` then."
    return "Its proof is still to come: by whoever applies it now, or by `platform-assets plan apply FILE`."


def _waits(platform: Platform, record: BackfillRecord) -> Iterator[str]:
    lake, file = platform.lake, record.file
    if worker := plan_holder(lake, record.name):
        publisher = publish_holder(lake) if record.state == "publishing" else ""
        if publisher not in ("", worker):
            yield f"It waits for the publish lock, which {publisher} holds."
        return
    if is_paused(lake, record.name):
        yield f"Somebody paused it: `platform-assets plan resume {record.name}`."
    computes = record.done < len(record.steps)
    if computes and not may_compute(file.service, datetime.now(UTC)):
        yield f"It waits for its hours, {file.service.hours} UTC."
    if computes and seconds_left(file.service, datetime.now(UTC)) == 0:
        yield f"It had to be staged until {file.service.until} UTC: it waits for a later service.until in its file."
    if computes and (used := spent(file.budget, record.seconds, record.bytes, cores_of(platform))):
        yield f"It waits for more of a budget: {used}."
    if record.state != "publishing" and not record.versions_hold(platform.versions):
        yield "Code or a contract is another one than when it began: it is explained anew."
        yield from waits_to_begin(explain(platform, file))
    for decided in overruled(platform, record):
        yield f"It would overrule what was decided since: {decided.what}. {decided.todo}"
    yield "Nobody applies it now: `platform-assets plan apply FILE` goes on."


def overruled(platform: Platform, record: BackfillRecord) -> Iterator[Obstacle]:
    """Yield the decisions since a backfill began that it would overrule, each as a phrase, and what to do."""
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
