"""Ingest: append whole arrivals to raw, exactly once, and account for everything refused."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import loaded_empty, table_change
from platform_assets.engine.ingest.aside import QuarantineError, aside, chosen
from platform_assets.engine.ingest.batch import Again, Row, Taken, ingest_batch, refuse_files, repaired
from platform_assets.engine.late.approvals import take_due
from platform_assets.engine.pending import landed_files, list_arrivals, quiet_days
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.raw import IngestTurn, ingest_turn, settle_moves
from platform_assets.engine.readings import pull, pull_each
from platform_assets.engine.results import IngestResult
from platform_assets.failpoints import failpoint
from platform_assets.planning.rows_aside import AsideRow, AsideSelection
from platform_assets.planning.steps import batches
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.manifest import (
    DayContent,
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
    """Ingest everything pending for a raw table, one ingest at a time.

    A source is read first. Then come all files, and then all waiting rows whose day has come: so it makes no difference
    whether a file is ingested before or after its rows' day.

    Args:
        days: requested days; those that their source has not delivered are returned as missing.

    Raises:
        ContractError: the table cannot take rows of its contract; nothing was taken.
    """
    started = time.monotonic()
    progress(Progress("taking", contract.name))
    with ingest_turn(platform, contract, author) as turn:
        failpoint("ingest.locked")
        published: dict[date, DayContent] = settle_moves(turn, spark)
        not_read = pull_each(platform, [contract], pull)
        listing = list_arrivals(platform, contract, until)
        failpoint("ingest.listed")
        inspect_soon(listing.pending)
        taken = _take_files(turn, spark, listing.pending, progress)
        arrivals, changed = taken.arrivals, taken.left
        published |= taken.days
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
        arrivals=arrivals,
        published=published,
        due=due.arrivals if due else (),
        growing=(*listing.growing, *(problem for problem in changed if problem.is_growing)),
        problems=(*not_read, *listing.problems, *(problem for problem in changed if not problem.is_growing)),
        missing=tuple(day for day in sorted(days) if day not in loaded),
        seconds=time.monotonic() - started,
    )


def _take_files(turn: IngestTurn, spark: SparkOnDemand, listed: Sequence[LandedFile], progress: OnProgress) -> Taken:
    done = Taken((), {}, ())
    now = Progress("taking", turn.contract.name, 0, len(listed), "file")
    progress(now)
    with closing(_at_hand_in_batches(turn, listed)) as found:
        for files, problems in found:
            progress(replace(now, done=len(done.arrivals), batch=len(files)))
            taken = ingest_batch(turn, spark(), files, repaired(turn, files)) if files else Taken((), {}, ())
            left = (*done.left, *problems, *taken.left)
            done = Taken((*done.arrivals, *taken.arrivals), {**done.days, **taken.days}, left)
            progress(replace(now, done=len(done.arrivals)))
    return done


def _at_hand_in_batches(
    turn: IngestTurn, files: Iterable[LandedFile]
) -> Generator[tuple[list[LandedFile], list[Problem]], None, None]:
    """Yield listed files with their hashes, fetched from a bucket if needed, as many at once as a batch may have."""
    settings, by_date = turn.platform.settings, defaultdict[date, list[LandedFile]](list)
    for file in files:
        by_date[file.arrival_date].append(file)
    sizes = {day: sum(file.size for file in some) for day, some in by_date.items()}
    for batch in batches(sizes, settings.batch_days, (), sizes, settings.batch_bytes):
        listed = [file for day in batch for file in by_date[day]]
        with at_hand(listed, settings.state / "fetched" / turn.contract.name) as found:
            yield found


def _load_quiet_days(turn: IngestTurn, delivered: Collection[date], until: date | None) -> dict[date, DayContent]:
    contract = turn.contract
    contents = loaded_empty(quiet_days(turn.snapshot, contract, delivered, until))
    if contents:
        failpoint("ingest.quiet_days")
        lake, schema = turn.platform.lake, raw_schema(contract).json()
        change = table_change(lake, turn.snapshot.release, contract.name, schema, contents, {})
        turn.publish(new_publication(), "ingest", [change])
    return contents


def replay(
    platform: Platform,
    spark: SparkOnDemand,
    selection: AsideSelection,
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[Taken, ...]:
    """Read refused rows of a raw table again.

    Args:
        selection: rows of one raw table. Discarded rows are included only if their arrival is named.

    Raises:
        QuarantineError: nothing matches, or a file cannot be read again; nothing was changed.
    """
    contract = platform.catalogue[selection.table or ""]
    done: list[Taken] = []
    with ingest_turn(platform, contract, author) as turn:
        chosen_rows = chosen(platform, selection, everything=selection.arrival is not None)
        recorded = {arrival.path: arrival for arrival in platform.ledger.arrivals(contract.name)}
        parts = _rows(contract, [row for row in chosen_rows if recorded[row.arrival].reason is None])
        whole = frozenset(row.arrival for row in chosen_rows) - parts.keys()
        if any(recorded[path].refused for path in whole):
            _expect_all(whole, chosen_rows, aside(platform, AsideSelection(contract.name), everything=True))
        files, wrong = landed_files(platform, contract, [*whole, *parts])
        refuse_files(wrong)
        progress(Progress("taking", contract.name, 0, len(files), "file"))
        for again in (Again(whole), Again(rows=parts)):
            mine = [file for path, file in files.items() if path in again.whole or path in again.rows]
            with closing(_at_hand_in_batches(turn, mine)) as found:
                for here, problems in found:
                    progress(Progress("taking", contract.name, 0, len(files), "file", batch=len(here)))
                    other = {file.path for file in here if file.sha256 != recorded[file.path].sha256}
                    refuse_files(
                        dict.fromkeys(other, "was replaced since it came") | {p.path: p.message for p in problems}
                    )
                    # Put back as it was, a file counts from when it was changed first.
                    here = [replace(file, modified_ns=recorded[file.path].modified_ns) for file in here]
                    rows = {file.path: parts[file.path] for file in here if file.path in again.rows}
                    done.append(ingest_batch(turn, spark(), here, Again(again.whole, rows=rows)))
                    refuse_files({problem.path: problem.message for problem in done[-1].left})
    return tuple(done)


def _expect_all(whole: Collection[str], rows: Collection[AsideRow], every: Collection[AsideRow]) -> None:
    tried, there = (Counter(row.arrival for row in some) for some in (rows, every))
    for path in sorted(path for path in whole if tried[path] < there[path]):
        raise QuarantineError(
            f"{path} has no row that was taken, so all its {there[path]:,} refused rows are read once more, not "
            f"{tried[path]:,} of them.",
            f"Name it with `--arrival {path}` and neither --day nor --rule, which replays discarded rows as well; or "
            "name other files with --arrival.",
        )


def _rows(contract: Contract, rows: Collection[AsideRow]) -> Mapping[str, list[Row]]:
    by_file: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.number is None or row.place is None:
            raise QuarantineError(
                f"{row.arrival} was taken before refused rows were numbered, so they cannot be identified.",
                "Deliver them again in order under another name, or "
                f"`platform-assets admin reload {contract.name} --reason …`.",
            )
        by_file[row.arrival].append((row.number, row.place, row.attempts))
    return by_file
