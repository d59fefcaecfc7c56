"""What waits to be done: arrivals not taken, days out of date. Reads listings and the ledger, never rows."""

from __future__ import annotations

from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.releases import current_release
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.steps import Step, out_of_date
from platform_assets.sources.landing import Known, Listing, list_landing


def list_arrivals(platform: Platform, contract: Contract) -> Listing:
    """What was delivered for a raw table and not taken yet, up to today."""
    assert contract.source is not None
    known = {
        arrival.path: Known(
            arrival.size,
            arrival.modified_ns,
            arrival.sha256,
            arrival.reason is not None,
        )
        for arrival in platform.ledger.arrivals(contract.name)
    }
    settings = platform.settings
    return list_landing(
        settings.landing,
        contract.source.folder,
        known,
        until=settings.current_day(),
        settle_s=settings.settle_s,
    )


def has_arrivals(platform: Platform) -> bool:
    """Whether anything was delivered that a refresh would take."""
    return any(list_arrivals(platform, c).pending for c in platform.catalogue if c.source is not None)


def steps_to_refresh(platform: Platform) -> tuple[Step, ...]:
    """The days of every table that are not what they would be now."""
    release = current_release(platform.lake)
    contents = {name: platform.ledger.current_days(name, at=release.number) for name in platform.catalogue.names}
    digests = {name: {day: found.digest for day, found in days.items()} for name, days in contents.items()}
    recorded = {name: {day: found.fingerprint for day, found in days.items()} for name, days in contents.items()}
    return out_of_date(platform.catalogue, digests, recorded, platform.calendar)


def still_out_of_date(platform: Platform, step: Step) -> tuple[date, ...]:
    """The days of a planned step that still need work: their inputs may have come out as they were.

    Days whose content was refused are left alone while they would be made from the same fingerprint again.
    """
    contract = platform.catalogue[step.table]
    release = current_release(platform.lake)
    digests = {read.table: platform.digests(read.table, release) for read in contract.inputs}
    now = fingerprints(contract, step.days, digests, platform.calendar)
    recorded = platform.ledger.current_days(contract.name, at=release.number)
    held = {(hold.day, hold.refused) for hold in platform.ledger.holds(contract.name)}
    return tuple(
        day
        for day in step.days
        if day in now and (day, now[day]) not in held and (day not in recorded or recorded[day].fingerprint != now[day])
    )
