"""Replays: refused rows, and files refused whole, read from their files once more by the contract as it is now.

What can be taken enters raw as an arrival of its own, with the arrival date and the place among the versions that it
had: the result is what it would be, had the contract been right when the file came. The rest stays among the refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.ingest.again import Again, Row, refuse_files
from platform_assets.engine.ingest.aside import QuarantineError, aside, chosen
from platform_assets.engine.ingest.batch import Taken, ingest_batch
from platform_assets.engine.ingest.listing import landed_files
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.raw.turn import ingest_turn
from platform_assets.planning.quarantine import AsideRow, AsideSelection
from platform_assets.planning.steps import batches
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.sources.landing import at_hand
from platform_assets.spark.session.on_demand import SparkOnDemand


def replay(
    platform: Platform,
    spark: SparkOnDemand,
    selection: AsideSelection,
    author: Author,
    progress: OnProgress = no_progress,
) -> tuple[Taken, ...]:
    """Read what a raw table refused once more.

    Args:
        selection: what, of one raw table. What a person discarded is meant where its arrival is named.

    Raises:
        QuarantineError: nothing of it is set aside, or a file cannot be read once more; nothing of that was changed.
        ContractError: the table cannot take rows of its contract.
        CircuitOpenError: a person stopped the table.
    """
    contract, settings = platform.catalogue[selection.table or ""], platform.settings
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
        for again in (Again(whole), Again(rows=parts)):
            mine = [file for path, file in files.items() if path in again.whole or path in again.rows]
            sizes = Counter[date]()
            for file in mine:
                sizes[file.arrival_date] += file.size
            for batch in batches(sizes, settings.batch_days, (), sizes, settings.batch_bytes):
                listed = [file for file in mine if file.arrival_date in batch]
                progress(Progress("taking", contract.name, 0, len(files), "file", batch=len(listed)))
                with at_hand(listed, settings.state / "fetched" / contract.name) as (here, problems):
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
                f"{row.arrival} was taken before refused rows were numbered, so they cannot be told from the others.",
                f"Deliver them again in order under another name, or `platform-assets reload {contract.name}`.",
            )
        by_file[row.arrival].append((row.number, row.place, row.attempts))
    return by_file
