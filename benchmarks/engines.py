"""Gold computed again, by Spark and by Sail: the same lake, the same commands, one setting.

    uv run python benchmarks/engines.py [--quick] [--json PATH] [--days 366] [--rounds 3]

The sample is landed and loaded by Spark once, and every table without rules is admitted to Sail (`engine verify`).
Then both sides in turn compute every day of these tables again (`refresh --force`): whole processes, with all gates,
digests and the publication. After every round each day must have the digest that it had.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.equality import UnequalError
from benchmarks.harness import (
    BenchmarkError,
    Goal,
    Outcome,
    Run,
    alternate,
    print_outcomes,
    print_runs,
    ratios,
    write_json,
)
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.domains.retail.sample import Simulation
from platform_assets_tests.support.published import digests_of

MONTH_DAYS, YEAR_DAYS = 30, 366
SIDE = "platform"
SPARK, SAIL = "Spark", "Sail"
COMPUTED = tuple(contract.name for contract in TABLES if contract.inputs and not contract.rules)
SHARE_OF_SPARK = 0.35

console = Console(width=None if sys.stdout.isatty() else 120)


def compared(root: Path, days: int, rounds: int) -> list[Outcome]:
    """Load once, admit every table, then compute all of it again by each side in turn."""
    with landed(root, Simulation(days=days)) as sample:
        sample.cli(SIDE, "refresh")
        admitted = [sample.cli(SIDE, "engine", "verify", table) for table in COMPUTED]
        if refused := [
            run.printed for run in admitted if "admitted" not in run.printed or "not admitted" in run.printed
        ]:
            raise BenchmarkError(f"A table is not admitted to Sail:\n{refused[0]}")
        expected = digests_of(str(sample.lake(SIDE)))

        def check() -> None:
            if digests_of(str(sample.lake(SIDE))) != expected:
                raise UnequalError("The digests of a round are not those of the load.")

        sides = {name: partial(_forced, _again(sample, name.lower())) for name in (SPARK, SAIL)}
        runs = alternate(sides, rounds, float("inf"), check)
    print_runs(console, f"Gold of {days} days, computed again", runs)
    cpu = [sail.cpu_s / spark.cpu_s for sail, spark in zip(runs[SAIL], runs[SPARK], strict=True)]
    return [
        Goal(f"Sail / Spark, {days} days", "<=", SHARE_OF_SPARK).judge(ratios(runs, SAIL, SPARK)),
        Goal(f"Sail / Spark, {days} days, processor time", "<=", SHARE_OF_SPARK).judge(cpu),
    ]


def _again(sample: Sample, engine: str) -> Sample:
    return replace(sample, settings={**sample.settings, "PLATFORM_ENGINE": engine})


def _forced(sample: Sample, number: int) -> Run:
    first, last = sample.simulation.first, sample.simulation.last
    return sample.cli(SIDE, "refresh", *COMPUTED, "--days", f"{first}..{last}", "--force")


def main(
    quick: Annotated[bool, typer.Option("--quick", help="30 days alone, one round.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there.")] = None,
    days: Annotated[int, typer.Option(min=2, max=YEAR_DAYS, help="Days of the longer comparison.")] = YEAR_DAYS,
    rounds: Annotated[int, typer.Option(min=1, help="Of each comparison.")] = 3,
) -> None:
    """Compare the two engines."""
    lengths = [MONTH_DAYS] if quick else sorted({MONTH_DAYS, days})
    with tempfile.TemporaryDirectory(prefix="engines-") as name:
        root = Path(name)
        try:
            warm_up(root)
            outcomes = [outcome for length in lengths for outcome in compared(root, length, 1 if quick else rounds)]
        except (BenchmarkError, UnequalError) as error:
            console.print(f"[red]{error}[/]")
            raise typer.Exit(2) from error
    print_outcomes(console, "Goals", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    if not all(outcome.held for outcome in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
