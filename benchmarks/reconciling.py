"""A year of till lines, a million and a half, reconciled with golden copies of it.

    uv run python benchmarks/reconciling.py [--quick] [--json PATH]

In turns, in one process with a warm session: level 2 of `reconcile` on the table and an equal copy in Parquet; a full
join of both on the key that compares all columns; `datacompy` on Spark, asked whether both match. Then copies with 1,
10 and 1,000 planted differences, a third each missing, added and changed by a cent: `reconcile --drill` has to name
exactly these.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.environments import packages_beside
from benchmarks.harness import BenchmarkError, Goal, Outcome, print_outcomes, write_json
from benchmarks.sample import landed, warm_up
from platform_assets.domains.retail.sample import Simulation

SIDE = "platform"
PINS = ("datacompy==1.1.0", "ordered-set==4.1.0")

console = Console(width=None if sys.stdout.isatty() else 120)


def judge(lines: list[dict[str, Any]]) -> list[Outcome]:
    """The goals."""
    took = [line for line in lines if "datacompy" in line]
    planted = {line["planted"]: line["exact"] for line in lines if "planted" in line}
    return [
        Goal("nothing different: level 2 / full join", "<=", 0.5).judge(
            [one["level 2"] / one["full join"] for one in took]
        ),
        Goal("nothing different: level 2 / datacompy", "<=", 0.2).judge(
            [one["level 2"] / one["datacompy"] for one in took]
        ),
        *(
            Goal(f"{count:,} planted differences, exactly these named", ">=", 1).judge([float(exact)])
            for count, exact in planted.items()
        ),
    ]


def show(lines: list[dict[str, Any]]) -> None:
    """Seconds of everything."""
    rows = next(line["rows"] for line in lines if "rows" in line)
    table = Table(title=f"{rows:,} rows", title_justify="left")
    table.add_column("what")
    for heading in ("median s", "min to max s"):
        table.add_column(heading, justify="right")
    rounds = [line for line in lines if "datacompy" in line]
    for name in rounds[0]:
        took = [one[name] for one in rounds]
        table.add_row(name, f"{median(took):.2f}", f"{min(took):.2f} to {max(took):.2f}")
    for line in lines:
        if "planted" in line:
            table.add_row(f"{line['planted']:,} planted differences named", f"{line['seconds']:.2f}", "one round")
    console.print(table)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
) -> None:
    """Measure. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    with tempfile.TemporaryDirectory(prefix="reconciling-", ignore_cleanup_errors=True) as folder:
        try:
            others = packages_beside(Path(folder) / "datacompy", PINS)
            warm_up(Path(folder))
            with landed(Path(folder), Simulation(days=366)) as sample:
                sample.cli(SIDE, "refresh", "silver.transactions")
                copies = Path(folder) / "copies"
                how = ("--rounds", 3 if quick else 5, "--beside", others)
                run = sample.module("benchmarks.reconciling_sides", SIDE, copies, *how)
        except BenchmarkError as error:
            console.print(str(error), markup=False)
            raise typer.Exit(3) from error
    lines = [json.loads(line) for line in run.printed.splitlines() if line.startswith("{")]
    show(lines)
    outcomes = judge(lines)
    print_outcomes(console, "Goals", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    if not all(outcome.held for outcome in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
