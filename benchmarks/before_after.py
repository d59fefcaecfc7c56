"""This checkout and another one by turns: the first load, corrections, a late file, and many small days.

    uv run python -m benchmarks.before_after --before FOLDER [--quick] [--days 366] [--weeks 230] [--rounds 3]
        [--case "small days"] [--json PATH]

Both sides run with this environment's packages, each on a state folder that it has loaded itself: a ledger is of one
version. Every run is a whole process that starts Spark. The late file is taken by an `up` with Spark kept ready, one
side after the other. After every round gold and silver of both sides must have the same digests.

Many small days: a delivery has a row on each of many weeks (`benchmarks.weekly`). Sums of four weeks on seven times as
many days follow, each of eight rows, so that days cost and rows do not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks import harness as bench
from benchmarks.corrected import Corrections, corrections, replace_by_copy, scattered
from benchmarks.warm import digests, env_of, late_files, measure, print_taken, table_folder
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.planning.windows import Calendar
from platform_assets.settings import project_root

MOST = {"first load": 0.8, "corrections": 0.55, "late file": 0.5, "small days": 0.35}
"""Of what the other checkout takes, by case."""
CORRECTED_DAYS = (2, 10)
FIRST = date(2013, 1, 7)
STORES = range(1, 9)
_SCHEMA = pa.schema(
    [
        ("store", pa.int64()),
        ("week", pa.date32()),
        ("sales", pa.decimal128(12, 2)),
        ("updated_at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True)
class Sides:
    """Checkouts by name, and the folder of what they make: `<side>/<state>` each."""

    checkouts: Mapping[str, Path]
    root: Path

    def refreshed(self, side: str, state: str) -> bench.Run:
        """Run `refresh` of a side on one of its state folders."""
        env = env_of(self.root / side / state)
        env["PYTHONPATH"] = os.pathsep.join(map(str, (self.checkouts[side], self.root)))
        if state.startswith("weeks"):
            env["PLATFORM_DOMAINS"] = "weekly"
        # 1: done, and something needs a look, here the rows that the sample has for it
        log = self.root / f"{side}.log"
        return bench.run_command((*bench.COMMAND, "refresh"), env=env, log=log, done=(0, 1))

    def by_turns(self, what: str, run: Callable[[str], bench.Run], state: str, rounds: int) -> list[bench.Outcome]:
        """Measure both sides, which must hold the same afterwards."""

        def side(name: str, _: int) -> bench.Run:
            return run(name)

        sides: dict[str, Callable[[int], bench.Run]] = {name: partial(side, name) for name in self.checkouts}
        runs = bench.alternate(sides, rounds, check=lambda: self.check(state))
        bench.print_runs(what, runs)
        return list(self.judged(what, runs))

    def judged(self, what: str, runs: Mapping[str, list[bench.Run]]) -> Iterator[bench.Outcome]:
        """Hold wall and processor time of this side against the other one's."""
        before, after = (runs[side] for side in self.checkouts)
        most = next(most for case, most in MOST.items() if what.startswith(case))
        for kind, of in (("wall", lambda run: run.seconds), ("processors", lambda run: run.cpu_s)):
            shares = [of(now) / of(then) for then, now in zip(before, after, strict=True)]
            yield bench.Goal(f"{what}: after / before, {kind}", "<=", most).judge(shares)

    def check(self, state: str) -> None:
        """Compare silver and gold of both sides."""
        first, second = (digests(self.root / side / state) for side in self.checkouts)
        if wrong := [name for name in first if name.startswith(("silver.", "gold.")) and first[name] != second[name]]:
            raise bench.BenchmarkError(f"{wrong[0]} of the two lakes holds something else.")


def empty(sides: Sides, landing: Path, simulation: Simulation, side: str) -> Path:
    """Make a state folder that has the sample's landing area and calendar, and nothing loaded."""
    state = sides.root / side / "sample"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    said = {"calendar_first": simulation.first, "calendar_last": simulation.last, "today": simulation.last_arrival}
    lines = [f'landing = "{landing}"', *(f"{name} = {value}" for name, value in said.items())]
    (state / "settings.toml").write_text("\n".join(lines) + "\n")
    return state


def of_sample(sides: Sides, cases: list[str], days: int, rounds: int) -> Iterator[bench.Outcome]:
    """Measure the first load, corrections of it, and late files."""
    simulation, landing = Simulation(days=days), sides.root / "landing"
    land(simulation, landing, simulation.last_arrival)

    def load(side: str) -> bench.Run:
        empty(sides, landing, simulation, side)
        return sides.refreshed(side, "sample")

    if "first load" in cases:
        yield from sides.by_turns(f"first load of {days} days", load, "sample", rounds)
    else:
        for side in sides.checkouts:
            load(side)
    for side in sides.checkouts:
        replace_by_copy(sides.root / side / "kept", sides.root / side / "sample")
    kept = sides.root / next(iter(sides.checkouts)) / "kept"
    raw, silver = (table_folder(kept, contract) for contract in (RAW_TRANSACTIONS, SILVER_TRANSACTIONS))
    calendar = Calendar(simulation.first, simulation.last)

    def corrected(case: Corrections | None, side: str) -> bench.Run:
        replace_by_copy(sides.root / side / "sample", sides.root / side / "kept")
        with case.landed(landing) if case else nullcontext():
            return sides.refreshed(side, "sample")

    for count in CORRECTED_DAYS if "corrections" in cases else ():
        case = corrections(f"{count} days", scattered(calendar, count), raw, silver)
        yield from sides.by_turns(f"corrections of {count} days", partial(corrected, case), "sample", rounds)
    if "late file" in cases:
        late, found = late_files(kept, rounds), {}
        for side, checkout in sides.checkouts.items():
            replace_by_copy(sides.root / side / "sample", sides.root / side / "kept")
            log = sides.root / f"{side}-up.log"
            found[side] = measure(sides.root / side / "sample", late, warm=True, log=log, checkout=checkout)
        sides.check("sample")
        print_taken(found)
        before, after = found.values()
        shares = [now.seconds / then.seconds for then, now in zip(before, after, strict=True)]
        yield bench.Goal("late file: after / before, tick to published", "<=", MOST["late file"]).judge(shares)


def deliver(state: Path, weeks: int, number: int) -> None:
    """Land all figures of the weeks, or the later a store's of each, dearer and under a newer version."""
    last = FIRST + timedelta(days=7 * weeks - 1)
    state.mkdir(parents=True, exist_ok=True)
    said = {"calendar_first": FIRST, "calendar_last": last, "today": last + timedelta(days=9 + number)}
    (state / "settings.toml").write_text("".join(f"{name} = {value}\n" for name, value in said.items()))
    written = datetime(2022, 1, 1, number, tzinfo=UTC)
    rows = [
        (store, FIRST + timedelta(days=7 * week), Decimal(100 * store + week % 50 + number), written)
        for week in range(weeks)
        for store in ([STORES[week % 8]] if number else STORES)
    ]
    columns = dict(zip(_SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True))
    file = state / f"landing/figures/{last + timedelta(days=1 + number)}/figures-{number}.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns, schema=_SCHEMA), file)
    os.utime(file, (0, 0))  # it rests: nobody is writing it any more


def of_small_days(sides: Sides, weeks: int, rounds: int) -> list[bench.Outcome]:
    """Measure a delivery that many nearly empty days follow."""
    shutil.copytree(Path(__file__).with_name("weekly"), sides.root / "weekly")
    for side in sides.checkouts:
        loaded = sides.root / side / "weeks-loaded"
        deliver(loaded, weeks, 0)
        sides.refreshed(side, loaded.name)
        deliver(loaded, weeks, 1)

    def run(side: str) -> bench.Run:
        replace_by_copy(sides.root / side / "weeks", sides.root / side / "weeks-loaded")
        return sides.refreshed(side, "weeks")

    return sides.by_turns(f"small days, {7 * weeks:,} of {len(STORES)} rows", run, "weeks", rounds)


def main(
    before: Annotated[Path, typer.Option(help="The other checkout, from before a change.")],
    quick: bench.Quick = False,
    days: Annotated[int, typer.Option(min=31, max=366, help="Days of sales.")] = 366,
    weeks: Annotated[int, typer.Option(min=5, help="Weeks with figures.")] = 230,
    rounds: bench.Rounds = 3,
    case: Annotated[list[str] | None, typer.Option(help=f"Only {', '.join(MOST)}; repeat for several.")] = None,
    json_path: bench.JsonPath = None,
) -> None:
    """Measure this checkout and another one by turns."""
    cases = case or list(MOST)
    if unknown := set(cases) - MOST.keys():
        raise typer.BadParameter(f"there is no case {min(unknown)!r}")
    if quick:
        days, weeks, rounds = 31, 20, 1

    def measure_all(root: Path) -> list[bench.Outcome]:
        sides = Sides({"before": before.absolute(), "after": project_root()}, root)
        of_days = [*of_sample(sides, cases, days, rounds)] if set(cases) - {"small days"} else []
        return of_days + (of_small_days(sides, weeks, rounds) if "small days" in cases else [])

    bench.measured("Before and after", json_path, measure_all)


if __name__ == "__main__":
    typer.run(main)
