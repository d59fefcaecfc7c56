"""What becomes of each till line: the versions the source writes of it, and when they arrive.

Everything is drawn from a generator seeded by (seed, day, copy), so that a day's lines have the same fates however
much of the sample is simulated. Days are counted since 1970-01-01 here.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt
import polars as pl

from platform_assets.contracts import DAY
from platform_assets.domains.retail.contracts import CLOSED
from platform_assets.domains.retail.sample.simulation import LATEST_DAYS, Simulation

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
    """The day as a number."""
    return day.toordinal() - date(1970, 1, 1).toordinal()


_CLOSED = np.array(sorted(days_since_epoch(day) for day in CLOSED))


def versions(lines: pl.DataFrame, simulation: Simulation, copy: int) -> pl.DataFrame:
    """Every version of some whole days' lines.

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
    """Numbers from 0 to 1 per line; `lines` holds whole days, one after the other."""
    counts = lines.group_by(DAY, maintain_order=True).len()
    drawn = [
        np.random.default_rng([seed, day.toordinal(), copy]).random((len(_DRAWS), count))
        for day, count in counts.rows()
    ]
    table = np.concatenate(drawn, axis=1) if drawn else np.empty((len(_DRAWS), 0))
    return dict(zip(_DRAWS, table, strict=True))


def _whole(drawn: Floats, below: int) -> Ints:
    """A whole number from 0 up to `below`, which is left out."""
    return np.minimum((drawn * below).astype(np.int64), below - 1)


def _open(days: Ints) -> Ints:
    """The same dates, the next one where nobody delivers."""
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
    """The chosen lines as one more version; without a time it is written on its arrival date (also where it is -1)."""
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
    """One unit more or less, another price, and for some another discount."""
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
    """The lines as if sold on another day at the same time of the day."""
    by = pl.lit(pl.Series(target - day))
    return lines.with_columns(
        pl.col("transaction_timestamp") + pl.duration(days=by),
        _dates(DAY, target),
        (pl.col("week") + (by / 7).round().cast(pl.Int32)).clip(1, 53).cast(pl.Int32).alias("week"),
    )
