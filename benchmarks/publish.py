"""Publishing and undoing days of three tables, against what Delta itself offers for it.

    uv run python benchmarks/publish.py [--quick] [--json PATH]

On a loaded year, corrections of 30 and of 365 days are computed into a stage over `silver.transactions`,
`gold.daily_sales` and `gold.sales_month_to_date`; then by turns, in one process with a warm Spark session:

* publish: `stage publish`, all tables in one release; against `replaceWhere` of copies of the tables, one after the
  other, from Delta tables with the same days.
* rollback: of that publication; against `RESTORE` of each of the copies to its version before, and against computing
  the days.

Neither publish nor rollback uses the session. After each, both sides must hold the same rows. Besides, without a goal:
for how long someone who reads the tables by themselves, not at a release, could see some of them new and others old.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.corrected import corrections
from benchmarks.harness import BenchmarkError, Goal, Outcome, print_outcomes, write_json
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation
from platform_assets.planning.windows import day_range

SIDE = "platform"
CASES = ((date(2017, 4, 1), date(2017, 4, 30)), (date(2017, 1, 1), date(2017, 12, 31)))

Round = Mapping[str, float]

console = Console(width=None if sys.stdout.isatty() else 120)


def measure(sample: Sample, first: date, last: date, rounds: int) -> list[Round]:
    """All operations on the days, round by round, the corrections of them ingested before."""
    lake = sample.lake(SIDE)
    raw, silver = (lake / contract.name.replace(".", "/") for contract in (RAW_TRANSACTIONS, SILVER_TRANSACTIONS))
    days = [day for day in day_range(first, last) if day not in RAW_TRANSACTIONS.closed_days]
    with corrections(f"{first}..{last}", days, raw, silver).landed(sample.landing):
        sample.module("benchmarks.ingest_only", SIDE)
    run = sample.module("benchmarks.publish_sides", SIDE, first, last, "--rounds", rounds)
    return [json.loads(line) for line in run.printed.splitlines() if line.startswith("{")]


def judge(days: int, found: Sequence[Round]) -> list[Outcome]:
    """The goals of one case."""

    def ratios(one: str, other: str) -> list[float]:
        return [took[one] / took[other] for took in found]

    return [
        Goal(f"{days} days: publish / replaceWhere", "<=", 0.1).judge(ratios("publish", "replaceWhere")),
        Goal(f"{days} days: rollback / RESTORE", "<=", 0.05).judge(ratios("rollback", "RESTORE")),
        Goal(f"{days} days: rollback / recomputing", "<=", 0.05).judge(ratios("rollback", "recompute")),
    ]


def show(days: int, found: Sequence[Round]) -> None:
    """Seconds of every operation."""
    table = Table(title=f"{days} days of three tables, {len(found)} rounds", title_justify="left")
    table.add_column("operation")
    for heading in ("median s", "min to max s"):
        table.add_column(heading, justify="right")
    for name in found[0]:
        took = [one[name] for one in found]
        table.add_row(name, f"{median(took):.3f}", f"{min(took):.3f} to {max(took):.3f}")
    console.print(table)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="At most a quarter of an hour: fewer rounds.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
) -> None:
    """Measure publications and rollbacks. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="publish-", ignore_cleanup_errors=True) as folder:
        try:
            warm_up(Path(folder))
            with landed(Path(folder), Simulation(days=366)) as sample:
                sample.cli(SIDE, "refresh")
                for first, last in CASES:
                    days = (last - first).days + 1
                    found = measure(sample, first, last, rounds=(3 if days < 100 else 1) if quick else 5)
                    show(days, found)
                    outcomes += judge(days, found)
        except BenchmarkError as error:
            console.print(str(error), markup=False)
            raise typer.Exit(3) from error
    print_outcomes(console, "Goals", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    if not all(outcome.held for outcome in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
