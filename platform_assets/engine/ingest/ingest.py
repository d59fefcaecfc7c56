"""Ingest: whole arrivals appended to raw, exactly once, with everything refused accounted for."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import computed_with, loaded_empty, schema_to_replace
from platform_assets.engine.ingest.again import repaired
from platform_assets.engine.ingest.batch import ingest_batch
from platform_assets.engine.ingest.listing import list_arrivals, quiet_days
from platform_assets.engine.late.approvals import take_due
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.raw.tombstones import settle_moves
from platform_assets.engine.raw.turn import IngestTurn, ingest_turn
from platform_assets.engine.results import IngestResult
from platform_assets.failpoints import failpoint
from platform_assets.planning.steps import batches
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.manifest import (
    Arrival,
    DayContent,
    TableChange,
    new_publication,
)
from platform_assets.sources.inspect import inspect_soon
from platform_assets.sources.landing import LandedFile, Problem, at_hand
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.tables.schemas import raw_schema


def ingest(
    platform: Platform,
    spark: SparkOnDemand,
    contract: Contract,
    author: Author,
    days: Collection[date] = (),
    progress: OnProgress = no_progress,
    until: date | None = None,
) -> IngestResult:
    """Take everything pending for a raw table, one ingest at a time.

    That is every file, and then all rows whose day has come since they arrived too far ahead of it: so it makes no
    difference whether a file was taken before that day or after it.

    Args:
        spark: gives the session; not called where nothing is pending.
        days: days that are asked for; those that their source has not delivered come back as missing.
        until: newest arrival date to take; all by default.

    Raises:
        ContractError: the table cannot take rows of its contract; nothing was taken.
    """
    started = time.monotonic()
    progress(Progress("taking", contract.name))
    with ingest_turn(platform, contract, author) as turn:
        failpoint("ingest.locked")
        published: dict[date, DayContent] = settle_moves(turn, spark)
        listing = list_arrivals(platform, contract, until)
        failpoint("ingest.listed")
        inspect_soon(listing.pending)
        by_date: defaultdict[date, list[LandedFile]] = defaultdict(list)
        for file in listing.pending:
            by_date[file.arrival_date].append(file)
        arrivals: list[Arrival] = []
        changed: list[Problem] = []
        sizes = {day: sum(file.size for file in files) for day, files in by_date.items()}
        now = Progress("taking", contract.name, 0, len(listing.pending), "file")
        progress(now)
        fetched = platform.settings.state / "fetched"
        for batch in batches(sizes, platform.settings.batch_days, (), sizes, platform.settings.batch_bytes):
            listed = [file for day in batch for file in by_date[day]]
            with at_hand(listed, fetched / contract.name) as (files, problems):
                changed += problems
                progress(replace(now, done=len(arrivals), batch=len(files)))
                if files:
                    taken = ingest_batch(turn, spark(), files, repaired(turn, files))
                    arrivals += taken.arrivals
                    published |= taken.days
                    changed += taken.left
            progress(replace(now, done=len(arrivals)))
        due = take_due(turn, spark, progress)
        published |= due.published if due else {}
        to_come = {problem.path for problem in changed}
        broken = {file.arrival_date for file in listing.pending if file.path in to_come}
        broken |= {arrival.arrival_date for arrival in arrivals if arrival.reason is not None}
        published |= _load_quiet_days(turn, listing.delivered - broken, until)
        loaded = turn.snapshot.digests(contract.name)
        failpoint("ingest.done")
        if arrivals or published:
            rows = sum(arrival.taken for arrival in (*arrivals, *(due.arrivals if due else ())))
            progress(Progress("taking", contract.name, len(published), len(published), rows=rows, finished=True))
    return IngestResult(
        table=contract.name,
        arrivals=tuple(arrivals),
        published=published,
        due=due.arrivals if due else (),
        growing=(*listing.growing, *(problem for problem in changed if problem.is_growing)),
        problems=(*listing.problems, *(problem for problem in changed if not problem.is_growing)),
        missing=tuple(day for day in sorted(days) if day not in loaded),
        seconds=time.monotonic() - started,
    )


def _load_quiet_days(turn: IngestTurn, delivered: Collection[date], until: date | None) -> dict[date, DayContent]:
    contract = turn.contract
    contents = loaded_empty(quiet_days(turn.snapshot, contract, delivered, until))
    if contents:
        failpoint("ingest.quiet_days")
        schema = raw_schema(contract).json()
        before = schema_to_replace(turn.platform.lake, turn.snapshot.release, contract.name, schema)
        change = TableChange(
            table=contract.name,
            schema_string=schema,
            days=contents,
            replaces_schema=before,
            software=computed_with({}),
        )
        turn.publish(new_publication(), "ingest", [change])
    return contents
