"""Records to fill a ledger with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from platform_assets.records.code_version import Attempt, Refused
from platform_assets.records.decisions import LateDecision, PinDecision
from platform_assets.records.history import ArrivalRecord, DayRecord, Hold, PublicationRecord

FIRST = date(2017, 1, 1)
NOON = datetime(2017, 1, 2, 12, 30, 15, 123456, tzinfo=UTC)
TABLE = "silver.transactions"
RAW = "raw.transactions"
_BAD = Attempt("e" * 32)


def nth(n: int) -> date:
    """A day of the calendar."""
    return FIRST + timedelta(days=n)


def day_record(publication: str, day: date, *, table: str = TABLE, digest: str = "3-a-b-c-d") -> DayRecord:
    """A day as a publication made it."""
    figures = {"superseded": 1, "quarantined": 2}
    reads = {"raw.transactions": 7, "silver.products": 3}
    return DayRecord(table, day, publication, digest, "f" * 32, 3, 2**40, 1, figures, reads, "0123456789abcdef", 0.25)


def arrival_record(
    publication: str, path: str, *, sha256: str = "a" * 64, refused: int = 0, reason: str | None = None
) -> ArrivalRecord:
    """A file as a publication took or refused it."""
    taken = 0 if reason else 100 - refused
    return ArrivalRecord(
        table=RAW,
        path=path,
        arrival_date=FIRST,
        size=2**33,
        sha256=sha256,
        modified_ns=1_700_000_000_123_456_789,
        landed=100,
        taken=taken,
        refused=refused,
        reason=reason,
        notes=("a note",),
        publication=publication,
    )


def publication_record(
    release: int,
    days: Sequence[DayRecord] = (),
    arrivals: Sequence[ArrivalRecord] = (),
    *,
    name: str | None = None,
) -> PublicationRecord:
    """A publication; its parts must have been made for `name_of(release)` or the name given."""
    return PublicationRecord(
        name or name_of(release),
        release,
        NOON,
        "recompute",
        "run",
        "Zoë",
        "because",
        None,
        tuple(days),
        tuple(arrivals),
    )


def name_of(release: int) -> str:
    """The publication that a release shows."""
    return f"publication-{release:04}"


def simple(release: int, *day_numbers: int, digest: str = "3-a-b-c-d") -> PublicationRecord:
    """A publication of some days of one table."""
    days = [day_record(name_of(release), nth(n), digest=digest) for n in day_numbers]
    return publication_record(release, days)


def year(release: int, *, tables: int = 9, files: int = 1_500) -> PublicationRecord:
    """The whole year of all tables in one publication."""
    name = name_of(release)
    days = [day_record(name, nth(n), table=f"gold.table_{t}") for t in range(tables) for n in range(366)]
    arrivals = [
        arrival_record(name, f"transactions/{nth(n % 366)}/{n:04}.csv", sha256=f"{n:064}") for n in range(files)
    ]
    return publication_record(release, days, arrivals)


def hold(day: date, *, refused: Refused = _BAD, gate: str = "contract", reason: str = "2 rows have no key") -> Hold:
    """A held day."""
    return Hold(TABLE, day, refused, gate, reason, "run", NOON)


def approval(arrival: str = "transactions/2017-01-09/late.csv") -> LateDecision:
    """That somebody approved late rows."""
    return LateDecision("approval", RAW, arrival, FIRST, reason="checked", who="Zoë", created_at=NOON)


def pinned(publication: str, kind: Literal["pin", "unpin"] = "pin", name: str = "") -> PinDecision:
    """That somebody pinned a release, or let it go."""
    return PinDecision(kind, publication, name, reason="closed books", who="Max", created_at=NOON)
