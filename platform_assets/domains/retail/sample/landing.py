"""Landing a sample: its files up to an arrival date, each written once, whole, and always with the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from platform_assets.contracts import DAY, Contract
from platform_assets.domains.retail.contracts import RAW_PRODUCTS, RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.fates import versions
from platform_assets.domains.retail.sample.files import STATE, delivered_at, encode, file_of_line, write
from platform_assets.domains.retail.sample.malformations import QUARANTINED, REFUSED, named, with_spoiled_values
from platform_assets.domains.retail.sample.products import product_versions
from platform_assets.domains.retail.sample.simulation import LATEST_DAYS, OtherSampleError, SampleError, Simulation
from platform_assets.domains.retail.sample.source import copy_of, read_lines, with_money
from platform_assets.domains.retail.sample.truth import Delivery, TruthWriter, read_deliveries
from platform_assets.progress import OnProgress, Progress, no_progress

_SAMPLE = "the sample"
_GENERATOR = 1
"""Raised whenever the same parameters give other files than before."""

STRETCH_DAYS = 30
TRUTH_COLUMNS = (*RAW_TRANSACTIONS.column_names, DAY, "arrival_date", "kind", "malformation")
"""A true version of a till line, the day it belongs to, when it first arrives, what kind of version it is, and how it
arrives broken if it does."""


@dataclass(frozen=True)
class Landed:
    """What a landing did.

    Args:
        files: written now.
        rows: in them, broken lines included.
        dates: arrival dates they belong to, oldest first.
        newest: newest arrival date of the sample that lies in the landing area.
        present: files that were there already.
    """

    files: int
    rows: int
    dates: tuple[date, ...]
    newest: date | None
    present: int


def land(simulation: Simulation, landing: Path, until: date, progress: OnProgress = no_progress) -> Landed:
    """Write every file of the sample that arrives until a date and does not lie in the landing area yet.

    Args:
        progress: told how many arrival dates are done, after every file of transactions that is due.

    Raises:
        OtherSampleError: the landing area holds a sample with other parameters.
        SampleError: the landing area cannot be written.
    """
    try:
        _remember(simulation, landing)
        planned = read_deliveries(landing)
        if planned is None:
            written, present = _land_first(simulation, landing, until, progress)
        else:
            due = [delivery for delivery in planned if delivery.arrival_date <= until]
            missing = [delivery for delivery in due if not (landing / delivery.path).exists()]
            written, present = _land_missing(simulation, landing, missing, progress), len(due) - len(missing)
        planned = planned or read_deliveries(landing) or ()
    except OSError as error:
        raise SampleError(
            f"The sample cannot be landed in {landing}: {error.strerror or error} ({error.filename}).",
            "Make room or give this user the right to write there, then run again: complete files are kept.",
        ) from error
    return Landed(
        files=len(written),
        rows=sum(delivery.rows for delivery in written),
        dates=tuple(sorted({delivery.arrival_date for delivery in written})),
        newest=max((delivery.arrival_date for delivery in planned if delivery.arrival_date <= until), default=None),
        present=present,
    )


def _remember(simulation: Simulation, landing: Path) -> None:
    """Note which sample lies here, or make sure that it is this one."""
    wanted = {"generator": _GENERATOR, **simulation.parameters()}
    state = landing / STATE
    if not state.exists():
        landing.mkdir(parents=True, exist_ok=True)
        write(state, json.dumps(wanted, indent=2).encode())
        return
    try:
        noted = dict(json.loads(state.read_text(encoding="utf-8")))
    except ValueError as error:
        raise SampleError(
            f"{state} does not say which sample lies there: {error}.",
            f"Remove the folder {landing} and land again.",
        ) from error
    other = [
        f"{name} is {noted.get(name, 'not given')} there and {wanted.get(name, 'not given')} here"
        for name in {**wanted, **noted}
        if noted.get(name) != wanted.get(name)
    ]
    if other:
        raise OtherSampleError(
            f"{landing} holds another sample: {'; '.join(other)}.",
            "Land with the same parameters, or into another folder, or remove that folder to start over.",
        )


def _land_first(simulation: Simulation, landing: Path, until: date, progress: OnProgress) -> tuple[list[Delivery], int]:
    """Play the whole sample, write its truth and the files due; those of an interrupted landing are there already."""
    planned: list[Delivery] = []
    written: list[Delivery] = []
    open_days = (min(until, simulation.last_arrival) - simulation.first).days + 1
    progress(Progress("landing", _SAMPLE, 0, open_days))
    with ExitStack() as stack:
        truth = stack.enter_context(TruthWriter(landing))
        for contract, delivery, rows in _deliveries(simulation, simulation.first, simulation.last, truth):
            planned.append(delivery)
            if delivery.arrival_date > until:
                continue
            if not (landing / delivery.path).exists():
                _deliver(landing, contract, delivery, rows)
                written.append(delivery)
            if contract is RAW_TRANSACTIONS:
                played = (delivery.arrival_date - simulation.first).days + 1
                progress(Progress("landing", _SAMPLE, played, open_days))
        truth.add_deliveries(planned)
    progress(_landed(written, open_days))
    return written, sum(delivery.arrival_date <= until for delivery in planned) - len(written)


def _land_missing(
    simulation: Simulation, landing: Path, missing: list[Delivery], progress: OnProgress
) -> list[Delivery]:
    """Play only the days whose lines can be in the missing files, and write these."""
    if not missing:
        return []
    dates = sorted({delivery.arrival_date for delivery in missing})
    start = max(simulation.first, dates[0] - timedelta(days=LATEST_DAYS + 1))
    end = min(simulation.last, dates[-1])
    wanted = set(missing)
    progress(Progress("landing", _SAMPLE, 0, len(dates)))
    written: list[Delivery] = []
    for contract, delivery, rows in _deliveries(simulation, start, end):
        if delivery in wanted:
            _deliver(landing, contract, delivery, rows)
            written.append(delivery)
            if contract is RAW_TRANSACTIONS:
                progress(Progress("landing", _SAMPLE, dates.index(delivery.arrival_date) + 1, len(dates)))
    if lost := wanted - set(written):
        raise SampleError(
            f"The sample no longer gives {min(delivery.path for delivery in lost)}, which {landing} still expects.",
            f"Remove the folder {landing} and land again.",
        )
    progress(_landed(written, len(dates)))
    return written


def _landed(written: list[Delivery], days: int) -> Progress:
    return Progress("landing", _SAMPLE, days, days, rows=sum(delivery.rows for delivery in written), finished=True)


def _deliveries(
    simulation: Simulation, start: date, end: date, truth: TruthWriter | None = None
) -> Iterator[tuple[Contract, Delivery, pl.DataFrame]]:
    """The files that sales of some days fill, and all files of products."""
    lines = read_lines(simulation.first, simulation.last)
    sold = lines["product_id"].value_counts().sort(["count", "product_id"], descending=[True, False])["product_id"]
    products = product_versions(simulation, sold)
    if truth:
        truth.add("products", products)
    yield from _in_files(RAW_PRODUCTS, products)
    for stretch in play(simulation, lines, start, end):
        if truth:
            truth.add("transactions", stretch.truth)
        yield from _in_files(RAW_TRANSACTIONS, stretch.delivered)


def _in_files(contract: Contract, rows: pl.DataFrame) -> Iterator[tuple[Contract, Delivery, pl.DataFrame]]:
    folder = contract.source.folder if contract.source else contract.table
    by_file = rows.partition_by(["arrival_date", "file"], as_dict=True)
    for (arrival, name), part in sorted(by_file.items(), key=lambda item: (item[0][0], item[0][1])):
        refused, quarantined = (part.filter(kind=kind).height for kind in (REFUSED, QUARANTINED))
        yield contract, Delivery(folder, arrival, name, len(part), refused, quarantined), part


def _deliver(landing: Path, contract: Contract, delivery: Delivery, rows: pl.DataFrame) -> None:
    file = landing / delivery.path
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, encode(rows, contract, delivery.file), delivered_at(delivery.arrival_date))


@dataclass(frozen=True)
class Stretch:
    """Some days of the sample.

    Args:
        truth: every version of the lines sold on these days, in `TRUTH_COLUMNS`.
        delivered: rows as delivered, of all arrival dates that are complete now: the contract's columns,
            `arrival_date`, `file`, `kind` and `malformation`, in the order in which they lie in their files.
    """

    truth: pl.DataFrame
    delivered: pl.DataFrame


def play(simulation: Simulation, lines: pl.DataFrame, start: date, end: date) -> Iterator[Stretch]:
    """Play the sales of some days, oldest first, holding no more than a stretch and what is still on its way.

    Args:
        lines: the source's lines of at least these days.
        start: first day of sales to play; arrivals are whole from 91 days later on, or where it is the sample's first.
        end: last day of sales to play; where it is the sample's last, its latest arrivals come with the last stretch.
    """
    on_its_way: list[pl.DataFrame] = []
    while start <= end:
        until = min(start + timedelta(days=STRETCH_DAYS - 1), end)
        sold = lines.filter(pl.col(DAY).is_between(start, until))
        made = pl.concat(
            [versions(copy_of(sold, number), simulation, number) for number in range(simulation.scale)]
        ).with_columns(file=file_of_line(simulation.last))
        made = with_money(named(made))
        on_its_way.append(_with_duplicates(made, simulation))
        waiting = pl.concat(on_its_way)
        complete = pl.col("arrival_date") <= until if until < simulation.last else pl.lit(True)
        on_its_way = [waiting.filter(~complete)]
        yield Stretch(made.select(TRUTH_COLUMNS), _in_order(waiting.filter(complete)))
        start = until + timedelta(days=1)


def _with_duplicates(made: pl.DataFrame, simulation: Simulation) -> pl.DataFrame:
    """Every version once, and the duplicates with their own arrival date and file."""
    again = made.filter(pl.col("_again").is_not_null()).with_columns(arrival_date=pl.col("_again"))
    return pl.concat([made, again.with_columns(file=file_of_line(simulation.last))]).drop("_again")


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    order = ("arrival_date", "file", "updated_at", "basket_id", "product_id")
    return with_spoiled_values(rows.sort(order)).drop(DAY)
