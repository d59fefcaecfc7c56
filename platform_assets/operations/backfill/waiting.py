"""Where a backfill stands, and what it waits for: a process, a person, its hours, a budget, a lock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.locks import plan_holder, publish_holder
from platform_assets.operations.backfill.explain import cores_of, explain
from platform_assets.operations.backfill.overruled import overruled
from platform_assets.operations.backfill.pausing import is_paused
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import OVER, BackfillRecord
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.pace import may_compute, seconds_left, spent
from platform_assets.planning.backfill.standing import Standing
from platform_assets.words import counted


def is_at_work(platform: Platform, record: BackfillRecord) -> bool:
    """Whether a process applies it now."""
    return record.state not in OVER and bool(plan_holder(platform.lake, record.name))


def waits_for(platform: Platform, record: BackfillRecord) -> tuple[str, ...]:
    """What has to happen before a backfill goes on, as sentences; nothing of one that is over or at work.

    What is published and not proved yet, as its file asks for, is not quite over.
    """
    if record.wants_proof:
        return (_waits_for_proof(record),)
    return () if record.state in OVER else tuple(_waits(platform, record))


def waits_to_begin(backfill: Backfill) -> tuple[str, ...]:
    """What has to happen before a plan that was never applied can be."""
    waits = [f"{obstacle.told} {obstacle.todo}" for obstacle in backfill.blocking]
    consent = backfill.consent
    if not consent.is_there:
        missing = counted(consent.needed - len(consent.given), "approval")
        waits.append(f"It waits for {missing} of {backfill.hash}, because {' and '.join(consent.because)}.")
    return tuple(waits)


def standing_of(platform: Platform, record: BackfillRecord) -> Standing:
    """How far it is, by its record and what lies in its stage."""
    stage = stage_of(platform, record.name)
    staged = stage.staged.days if stage else {}
    current = record.steps[record.done].days if record.done < len(record.steps) else {}
    of_steps = {
        (table, day) for step in record.steps[: record.done] for table, days in step.days.items() for day in days
    }
    lying = {(table, day) for table, days in staged.items() for day in days}
    done = of_steps | (lying & {(table, day) for table, days in current.items() for day in days})
    # Once it is published its stage is gone, and its record says how many it left as they were.
    left_alone = len(done - lying) if stage else record.left_alone
    hourly, cores = record.file.budget.price_per_core_hour, cores_of(platform)
    money = None if hourly is None or cores is None else Decimal(record.seconds) * cores * hourly / 3600
    return Standing(len(done), record.days, record.seconds, record.explained_seconds, record.bytes, left_alone, money)


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
