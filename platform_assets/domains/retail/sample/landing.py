"""Landing a sample: its files up to an arrival date, each written once, whole, and always with the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from platform_assets.contracts import DAY, Contract
from platform_assets.domains.retail.contracts import CLOSED, RAW_PRODUCTS, RAW_TRANSACTIONS
from platform_assets.domains.retail.sample.files import (
    QUARANTINED,
    REFUSED,
    STATE,
    delivered_at,
    encode,
    file_of_line,
    with_malformation,
    with_spoiled_values,
    write,
)
from platform_assets.domains.retail.sample.simulation import (
    LATEST_DAYS,
    SampleError,
    Simulation,
    copy_of,
    product_versions,
    read_lines,
    with_money,
)
from platform_assets.domains.retail.sample.truth import Delivery, in_order, read_deliveries, truth_writer
from platform_assets.progress import OnProgress, Progress, no_progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOVE_DAYS = 30
_DRAWS = (
    "late", "delay", "correct", "correct_delay", "amount", "void", "void_delay", "move", "move_day", "move_delay",
    "malform", "malformation", "repair", "duplicate", "duplicate_delay", "second",
)  # fmt: skip
_HOUR_S = 3600
_DAY_S = 24 * _HOUR_S
# Versions written on the same date keep apart, so that the newest of a key is never in doubt.
_HOURS = {"repair": 0, "correction": 2, "move": 8, "void": 14}


def days_since_epoch(day: date) -> int:
    """Return the day as a number."""
    return day.toordinal() - date(1970, 1, 1).toordinal()


_CLOSED = np.array(sorted(days_since_epoch(day) for day in CLOSED))


def versions(lines: pl.DataFrame, simulation: Simulation, copy: int) -> pl.DataFrame:
    """Return every version of some whole days' lines.

    Returns:
        The lines' columns with `updated_at`, `voided`, `arrival_date`, `kind` (original, correction, void, move,
        repair), `_malformation` (a number from 0 to 1 where the version arrives broken) and `_again` (the arrival
        date of its duplicate), versions of a kind together.
    """
    draws = _draw(lines, simulation.seed, copy)
    rates = simulation.rates
    day = lines[DAY].to_physical().to_numpy().astype(np.int64)
    paid_s = lines["transaction_timestamp"].to_physical().to_numpy() // 1_000_000
    malformed = draws["malform"] < rates.malformed

    very_late = draws["late"] < rates.very_late
    late = (draws["late"] < rates.very_late + rates.late) & ~very_late
    delay = np.where(very_late, 61 + _whole(draws["delay"], 29), np.where(late, 1 + _whole(draws["delay"], 45), 0))
    written_s = np.minimum(paid_s + 30 + _whole(draws["second"], 870), (day + 1) * _DAY_S - 1)
    everything = np.ones(len(lines), dtype=np.bool_)
    made = [_version("original", lines, draws, everything, day, _open(day + delay), written_s, malformed)]

    corrected = draws["correct"] < rates.corrected
    arrives = _open(day + 1 + _whole(draws["correct_delay"], 45))
    changed = _other_amounts(lines, draws["amount"])
    made.append(_version("correction", changed, draws, corrected, day, arrives))

    moved = draws["move"] < rates.moved
    target, possible = _other_day(day, draws["move_day"], simulation)
    arrives = _open(np.maximum(day, target) + 1 + _whole(draws["move_delay"], 14))
    made.append(_version("move", _on_day(lines, day, target), draws, moved & possible, target, arrives))

    repaired = malformed & (draws["repair"] < 0.6)
    arrives = _open(day + 1 + _whole(draws["repair"] / 0.6, 20))
    made.append(_version("repair", lines, draws, repaired, day, arrives))

    voided = draws["void"] < rates.voided
    void_delay = _whole(draws["void_delay"], 31)
    # Late in the evening no hour is left to take a line back on the same day.
    void_delay = np.where((void_delay == 0) & (written_s % _DAY_S >= 23 * _HOUR_S), 1, void_delay)
    arrives = _open(day + void_delay)
    written_s = np.where(void_delay == 0, written_s + 60 + _whole(draws["second"], 3000), -1)
    made.append(_version("void", lines, draws, voided, day, arrives, written_s))

    rows = pl.concat(made)
    duplicated = pl.col("_duplicate") < rates.duplicated
    return rows.with_columns(
        pl.when(duplicated & pl.col("_malformation").is_null()).then("_again").alias("_again")
    ).drop("_duplicate")


def _draw(lines: pl.DataFrame, seed: int, copy: int) -> dict[str, Floats]:
    """Return numbers from 0 to 1 per line; `lines` holds whole days, one after the other.

    A day's lines have the same fates however much of the sample is simulated: the generator is seeded by (seed, day,
    copy).
    """
    counts = lines.group_by(DAY, maintain_order=True).len()
    drawn = [
        np.random.default_rng([seed, day.toordinal(), copy]).random((len(_DRAWS), count))
        for day, count in counts.rows()
    ]
    table = np.concatenate(drawn, axis=1) if drawn else np.empty((len(_DRAWS), 0))
    return dict(zip(_DRAWS, table, strict=True))


def _whole(drawn: Floats, below: int) -> Ints:
    """Return a whole number from 0 up to `below`, which is left out."""
    return np.minimum((drawn * below).astype(np.int64), below - 1)


def _open(days: Ints) -> Ints:
    """Return the same dates, or the next one if there is no delivery."""
    return np.where(np.isin(days, _CLOSED), days + 1, days)


def _version(
    kind: str,
    lines: pl.DataFrame,
    draws: dict[str, Floats],
    chosen: Mask,
    day: Ints,
    arrives: Ints,
    written_s: Ints | None = None,
    malformed: Mask | None = None,
) -> pl.DataFrame:
    """Return the chosen lines as one more version; without a time (or -1) it is written on its arrival date."""
    index = np.flatnonzero(chosen)
    arrives, day = arrives[index], day[index]
    on_arrival = arrives * _DAY_S + _HOURS.get(kind, 0) * _HOUR_S + _whole(draws["second"][index], 2 * _HOUR_S)
    written = on_arrival if written_s is None else np.where(written_s[index] < 0, on_arrival, written_s[index])
    again = arrives + np.maximum(0, _whole(draws["duplicate_delay"][index], 60) - 29)
    again = np.maximum(arrives, _open(np.minimum(again, day + LATEST_DAYS - 1)))
    broken = np.where(malformed[index], draws["malformation"][index], np.nan) if malformed is not None else None
    return lines[index].with_columns(
        pl.Series("updated_at", written * 1_000_000).cast(pl.Datetime("us", "UTC")),
        pl.lit(kind == "void").alias("voided"),
        _dates("arrival_date", arrives),
        pl.lit(kind).alias("kind"),
        pl.Series("_malformation", broken if broken is not None else [None] * len(index), pl.Float64).fill_nan(None),
        _dates("_again", again),
        pl.Series("_duplicate", draws["duplicate"][index]),
    )


def _dates(name: str, days: Ints) -> pl.Series:
    return pl.Series(name, days.astype(np.int32)).cast(pl.Date)


def _other_amounts(lines: pl.DataFrame, drawn: Floats) -> pl.DataFrame:
    """Return one unit more or less, another price, and for some another discount."""
    extra = pl.Series(_whole(drawn, 300) + 1)
    more = pl.Series(drawn < 0.5)
    fewer = ~more & (pl.col("quantity") > 1)
    return lines.with_columns(
        (pl.col("quantity") + pl.when(more).then(1).when(fewer).then(-1).otherwise(0)).cast(pl.Int32).alias("quantity"),
        pl.when(more | (pl.col("sales_value") < extra))
        .then(pl.col("sales_value") + extra)
        .otherwise(pl.col("sales_value") - extra)
        .alias("sales_value"),
        pl.when(pl.Series(drawn * 7 % 1 < 0.3))
        .then(pl.col("retail_disc") + 10)
        .otherwise("retail_disc")
        .alias("retail_disc"),
    )


def _other_day(day: Ints, drawn: Floats, simulation: Simulation) -> tuple[Ints, Mask]:
    """Another open day within reach and calendar, and where there is one."""
    first, last = days_since_epoch(simulation.first), days_since_epoch(simulation.last)
    low, high = np.maximum(day - MOVE_DAYS, first), np.minimum(day + MOVE_DAYS, last)
    target = low + (drawn * (high - low)).astype(np.int64)
    target = np.where(target >= day, target + 1, target)
    return target, (high > low) & (target <= high) & ~np.isin(target, _CLOSED)


def _on_day(lines: pl.DataFrame, day: Ints, target: Ints) -> pl.DataFrame:
    """Return the lines as if sold on another day at the same time of the day."""
    by = pl.lit(pl.Series(target - day))
    return lines.with_columns(
        pl.col("transaction_timestamp") + pl.duration(days=by),
        _dates(DAY, target),
        (pl.col("week") + (by / 7).round().cast(pl.Int32)).clip(1, 53).cast(pl.Int32).alias("week"),
    )


_SAMPLE = "the sample"
_GENERATOR = 1
"""Raised whenever the same parameters give other files than before."""

STRETCH_DAYS = 30
TRUTH_COLUMNS = (*RAW_TRANSACTIONS.column_names, DAY, "arrival_date", "kind", "malformation")
"""A true version of a till line, the day it belongs to, when it first arrives, what kind of version it is, and how it
arrives broken if it does."""


@dataclass(frozen=True)
class Landed:
    """What a landing did: files, rows in them (broken ones too), their arrival dates, and the newest lying there."""

    files: int
    rows: int
    dates: tuple[date, ...]
    newest: date | None


def land(simulation: Simulation, landing: Path, until: date, progress: OnProgress = no_progress) -> Landed:
    """Write every file of the sample that arrives until a date and does not lie in the landing area yet.

    Progress is reported after every due file of transactions.

    Raises:
        SampleError: the landing area holds a sample with other parameters, or cannot be written.
    """
    try:
        _remember(simulation, landing)
        written = _land(simulation, landing, until, progress)
        planned = read_deliveries(landing) or ()
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
        raise SampleError(
            f"{landing} holds another sample: {'; '.join(other)}.",
            "Land with the same parameters, or into another folder, or remove that folder to start over.",
        )


def _land(simulation: Simulation, landing: Path, until: date, progress: OnProgress) -> list[Delivery]:
    """Write the files that are due and not there: play the sample, at first whole, for its truth; then what they need.

    Those of a first landing that was interrupted are there already.
    """
    start, end, low = simulation.first, simulation.last, simulation.first
    known = read_deliveries(landing)
    lacking = {each for each in known or () if each.arrival_date <= until and not (landing / each.path).exists()}
    if known is not None:
        if not lacking:
            return []
        low, high = min(each.arrival_date for each in lacking), max(each.arrival_date for each in lacking)
        start, end = max(start, low - timedelta(days=LATEST_DAYS + 1)), min(end, high)
    planned: list[Delivery] = []
    written: list[Delivery] = []
    days = (min(until, simulation.last_arrival) - low).days + 1
    progress(Progress("landing", _SAMPLE, 0, days))
    with ExitStack() as stack:
        add = stack.enter_context(truth_writer(landing)) if known is None else None
        for contract, delivery, rows in _deliveries(simulation, start, end, add):
            planned.append(delivery)
            due = delivery.arrival_date <= until and not (landing / delivery.path).exists()
            if due if known is None else delivery in lacking:
                _deliver(landing, contract, delivery, rows)
                written.append(delivery)
            if contract is RAW_TRANSACTIONS and low <= delivery.arrival_date <= until:
                progress(Progress("landing", _SAMPLE, (delivery.arrival_date - low).days + 1, days))
        if add:
            add("deliveries", in_order(planned))
    rows_written = sum(delivery.rows for delivery in written)
    progress(Progress("landing", _SAMPLE, days, days, rows=rows_written, finished=True))
    return written


def _deliveries(
    simulation: Simulation, start: date, end: date, add: Callable[[str, pl.DataFrame], None] | None
) -> Iterator[tuple[Contract, Delivery, pl.DataFrame]]:
    """Yield the files that sales of some days fill, and all files of products."""
    lines = read_lines(simulation.first, simulation.last)
    sold = lines["product_id"].value_counts().sort(["count", "product_id"], descending=[True, False])["product_id"]
    products = product_versions(simulation, sold)
    if add:
        add("products", products)
    yield from _in_files(RAW_PRODUCTS, products)
    for stretch in play(simulation, lines, start, end):
        if add:
            add("transactions", stretch.truth)
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
    """Play the sales of some days, oldest first, holding only a stretch and the rows still on their way.

    Args:
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
        made = with_money(with_malformation(made))
        on_its_way.append(_with_duplicates(made, simulation))
        waiting = pl.concat(on_its_way)
        complete = pl.col("arrival_date") <= until if until < simulation.last else pl.lit(True)
        on_its_way = [waiting.filter(~complete)]
        yield Stretch(made.select(TRUTH_COLUMNS), _in_order(waiting.filter(complete)))
        start = until + timedelta(days=1)


def _with_duplicates(made: pl.DataFrame, simulation: Simulation) -> pl.DataFrame:
    """Return every version once, and the duplicates with their own arrival date and file."""
    again = made.filter(pl.col("_again").is_not_null()).with_columns(arrival_date=pl.col("_again"))
    return pl.concat([made, again.with_columns(file=file_of_line(simulation.last))]).drop("_again")


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    order = ("arrival_date", "file", "updated_at", "basket_id", "product_id")
    return with_spoiled_values(rows.sort(order)).drop(DAY)
