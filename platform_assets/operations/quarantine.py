"""Quarantine as a workbench: what was set aside shown with masked values and its line, replayed, or discarded."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from platform_assets.engine.ingest.aside import QuarantineError, chosen
from platform_assets.engine.ingest.listing import landed_files
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps
from platform_assets.planning.quarantine import AsideRow, AsideSelection
from platform_assets.planning.selection import Request
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.decisions import QuarantineDecision
from platform_assets.sources.landing import NOT_AS_LISTED
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.text import CompressionError, line_numbers

if TYPE_CHECKING:
    from platform_assets.engine.refresh import RefreshResult
    from platform_assets.spark.session.on_demand import SparkOnDemand


def shown(platform: Platform, row: AsideRow) -> tuple[str, Mapping[str, str]]:
    """Return why a row was set aside and its values as delivered, as people may see them.

    Where its raw table has sensitive columns, their values are masked, with all that the contract does not declare; and
    of the reason there is only the class of error.
    """
    contract = platform.catalogue[row.table]
    source = contract if contract.source else platform.catalogue[contract.inputs[0].table]
    plain = {column.name for column in source.columns if not column.sensitive}
    try:
        fields = json.loads(row.payload, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):  # a line that could not be read
        fields = {"_line": row.payload} if row.payload else {}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    if len(plain) == len(source.columns):
        return row.reason, texts
    masked = {name: text if name in plain else platform.masking.masked(text) for name, text in texts.items()}
    return row.error if row.payload else row.reason, masked


def lines(platform: Platform, rows: Iterable[AsideRow]) -> dict[AsideRow, int]:
    """Return the line of its file in which each refused row begins, of text files that still lie as they were taken."""
    by_file: defaultdict[tuple[str, str], dict[int, AsideRow]] = defaultdict(dict)
    for row in rows:
        if row.number is not None:
            by_file[row.table, row.arrival][row.number] = row
    found: dict[AsideRow, int] = {}
    for (table, path), numbers in by_file.items():
        record = platform.ledger.arrival(table, path)
        file = landed_files(platform, platform.catalogue[table], [path])[0].get(path)
        is_same = record and file and (file.size, file.modified_ns) == (record.size, record.modified_ns)
        if file and is_same and file.format != "parquet" and file.stored is None:
            with suppress(*NOT_AS_LISTED, CompressionError, LimitError):
                found |= {numbers[n]: line for n, line in line_numbers(file, numbers, Limits.of(platform.settings))}
    return found


def replay_quarantined(
    platform: Platform,
    spark: SparkOnDemand,
    selection: AsideSelection,
    author: Author,
    progress: OnProgress = no_progress,
) -> RefreshResult:
    """Compute the days of quarantined rows of a silver table once more, and before them what they read and is stale.

    Raw has these rows already: files that wait stay for the next refresh.

    Raises:
        QuarantineError: nothing of the selection is set aside, or all of it would come out as it is, or a circuit
            stops the table.
    """
    from platform_assets.engine.refresh import refresh  # and Spark, without which the others answer at once

    days = frozenset(row.day for row in chosen(platform, selection, everything=selection.arrival is not None))
    if stops := LakeSnapshot.now(platform).stopped.get(selection.table or ""):
        raise QuarantineError(
            f"Nothing was replayed: {stops.reason}.", f"{stops.overruled_by} says how to close it; replay then."
        )
    request = Request(tables=frozenset({selection.table or ""}), days=days, by_person=True, takes=False)
    plan = plan_steps(platform, request)
    if not any(step.table == selection.table for step in plan.steps):
        raise QuarantineError(
            f"There is nothing to replay of {selection}: neither the rows nor the rules, the code or the reference "
            f"data that {selection.table} is made from have changed since.",
            "Correct a rule or the rows first; `platform-assets quarantine show` says which rules they break.",
        )
    return refresh(platform, spark, author, progress, request=request, plan=plan)


def discard(platform: Platform, selection: AsideSelection, author: Author) -> tuple[AsideRow, ...]:
    """Decide that nobody needs rows any more; they are kept, and shown with `quarantine list --all`."""
    rows = chosen(platform, selection)
    signature = author.signature(datetime.now(UTC))
    for table, arrival, day, error in sorted({(row.table, row.arrival, row.day, row.error) for row in rows}):
        platform.ledger.decide(QuarantineDecision("discard", table, arrival, day, error, **signature))
    return rows
