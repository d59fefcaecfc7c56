"""Holds: written when days are published, lifted when nothing is refused any more, and explained.

A failure without a gate's verdict holds nothing, and is recorded as a verdict, like refusals of gates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from platform_assets.engine.circuits import in_order, record_verdict
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.proofs import NotRepeatableError, UndeclaredReadError
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.planning.circuit import TableVerdict
from platform_assets.quality.findings import Check, Finding
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.spark.tables.failures import TransformError
from platform_assets.words import counted

_QUOTED = re.compile("'[^']*'")
_ON_A_VALUE = re.compile(
    r"(\[(?!UNRESOLVED|AMBIGUOUS|DATATYPE_MISMATCH|MISSING_|PARSE_|WRONG_NUM_ARGS)[A-Z][A-Z0-9_.]+\]).*"
)
"""What Spark says of a value, behind the error's name. The errors named here say columns instead, and stay whole."""
BY_CODE = (TransformError, NotRepeatableError, UndeclaredReadError)
"""Errors of the user's code."""
_BY_MACHINE = ("OSError", "MemoryError", "Py4J", "Connection")


def write_holds(
    snapshot: LakeSnapshot, holds: Collection[Hold], good: Mapping[str, Collection[date]], over: Iterable[Hold]
) -> tuple[Hold, ...]:
    """Hold days that gates refused, and lift holds that are over.

    A published day has passed its gates, or a person accepted it. So a publisher lifts the gates' holds of its days,
    and a process that writes a hold checks afterwards whether others have published the day since. One of the two
    always finds the other, in any order.

    Args:
        over: holds that were known when days turned out good, including overruled rollbacks.

    Returns:
        The holds that do not stay, since others published their days in between.
    """
    ledger = snapshot.platform.ledger
    failpoint("gate.before_holds")
    with in_order(snapshot.platform) if holds else nullcontext():
        ledger.hold(holds, snapshot.platform.announced)
    failpoint("gate.held")
    overtaken = _overtaken(snapshot, holds)
    past = [hold for hold in ledger.holds() if hold.day in good.get(hold.table, ()) and not hold.is_of_good_content]
    ledger.drop({*overtaken, *past, *over})
    failpoint("gate.lifted")
    return overtaken


@contextmanager
def announced_settled(platform: Platform, refused: Callable[[], Iterable[Hold]] = tuple) -> Iterator[None]:
    """Settle announced verdicts at the end, also after an error, unless this process is being killed: that counts.

    Args:
        refused: refusals of gates by then. They count, although the error keeps the days from being held.
    """
    try:
        yield
    except Exception:
        with in_order(platform) if (holds := tuple(refused())) else nullcontext():
            platform.ledger.verdicts.refuse(holds)
            platform.ledger.verdicts.settle(platform.announced)
        raise
    platform.ledger.verdicts.settle(platform.announced)


@contextmanager
def failures_recorded(
    snapshot: LakeSnapshot, table: str, run: str, days: Mapping[date, str], *, is_final: bool = True
) -> Iterator[None]:
    """Announce the verdict about a batch, and record a failure to compute or judge it; the error is raised again.

    The verdict about a judged batch is settled with its holds, once its good days are published. For a try of an open
    circuit, the trying process writes the verdict.

    Args:
        days: each with its fingerprint; at least one.
        is_final: whether an error says something about the table: no other engine computes the days after it.
    """
    platform, newest = snapshot.platform, max(days)
    verdicts, attempt = platform.ledger.verdicts, Attempt(days[newest], platform.version(table))
    pending = TableVerdict(table=table, at=datetime.now(UTC), run=run, day=newest, attempt=attempt, is_pending=True)
    limit = None if snapshot.is_private else platform.catalogue[table].circuit.verdict_within_minutes
    its = [verdicts.add(pending)] if limit else []
    platform.announced.extend(its)
    try:
        yield
    except Exception as error:
        if is_final and not snapshot.is_private:
            record_verdict(platform, replace(pending, failed=failed_by(error) | _late(pending.at, limit)), its)
        verdicts.settle(its)
        raise
    if late := _late(pending.at, limit):
        record_verdict(platform, replace(pending, failed=late), its, once=True)
    elif its:
        verdicts.judged(its[0], platform.lives_by)


def _late(began: datetime, limit: int | None) -> dict[str, str]:
    minutes = int((datetime.now(UTC) - began).total_seconds() // 60)
    late = f"the verdict came after {counted(minutes, 'minute')}, not within {limit}"
    return {"missing": late} if limit is not None and minutes >= limit else {}


def failed_by(error: Exception) -> dict[str, str]:
    """Return the class of failure of an error, with its reason: `code` for the user's code or a crashed check."""
    what = error.what if isinstance(error, PlatformError) else f"{type(error).__name__}: {error}"
    names = [of.__name__ for of in type(error).__mro__]
    by_machine = isinstance(error, PlatformError) or any(name.startswith(_BY_MACHINE) for name in names)
    is_code = isinstance(error, BY_CODE) or not by_machine
    # A verdict is kept for good, so it has no value that Spark could not cast or compute with.
    reason = _ON_A_VALUE.sub(r"\1", _QUOTED.sub("'…'", what.partition("\n")[0]))
    return {"code" if is_code else "missing": reason}


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
    """Return why a day stays held without another try."""
    retry = "since neither its inputs nor its code have changed: correct one of them, or recompute it by force"
    if hold.lasts:
        retry = f"also with new input or code: {hold.overruled_by} lifts it"
    return Finding(
        check=cast("Check", hold.gate),
        day=hold.day,
        severity="block",
        message=f"{hold.reason}; refused before and not tried again, {retry}",
        expected="other input, other code, or a recomputation by force",
        actual="the input and the code of what was refused",
    )


class DeletedMeanwhileError(PlatformError):
    """Files that were being read were deleted; no result of them is published."""


@contextmanager
def deletion_explained(snapshot: LakeSnapshot, table: str) -> Iterator[None]:
    """Explain Spark's error about a missing file if history was cut beyond the release that is read.

    Raises:
        DeletedMeanwhileError: files of the snapshot's release were deleted.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        horizon = horizon_of(snapshot.platform.lake)
        if horizon.has(snapshot.number):
            raise
        is_erasure = horizon.cut.before == horizon.before
        by = f", by the erasure in publication {horizon.cut.publication}" if is_erasure else ""
        raise DeletedMeanwhileError(
            f"Inputs of days of {table} were deleted while these were computed{by}: files that only releases before "
            f"{horizon.before} need, and release {snapshot.number} was read.",
            "Nothing was published. Run the same command again: it reads the current release.",
        ) from error
