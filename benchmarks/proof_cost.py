"""What proof costs: the year with rules of every kind and all reconciliations, against the same without them.

    uv run python benchmarks/proof_cost.py [--quick] [--days 366] [--rounds 3] [--json PATH]

Both sides are whole processes that load the same landed files into an empty lake, in turns. Nothing in these breaks a
rule, so both hold the same rows, which is checked after every round. Contract, conservation and volume are checked on
both sides: nobody can leave them out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.equality import UnequalError
from benchmarks.harness import (
    BenchmarkError,
    Goal,
    Run,
    alternate,
    print_outcomes,
    print_runs,
    ratios,
    write_json,
)
from benchmarks.sample import landed, warm_up
from platform_assets.domains.retail.sample import Rates, Simulation

WITH, WITHOUT = "with rules", "without"
_DOMAINS = {WITH: "benchmarks.proved.with_rules", WITHOUT: "benchmarks.proved.without_rules"}

console = Console(width=None if sys.stdout.isatty() else 120)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="A month, once.")] = False,
    days: Annotated[int, typer.Option("--days", help="Of sales.", min=1, max=366)] = 366,
    rounds: Annotated[int, typer.Option("--rounds", help="Of both sides.", min=1)] = 3,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")] = None,
) -> None:
    """Measure. Exits with 1 if a goal is missed, with 3 if nothing could be measured."""
    days, rounds = (min(days, 30), 1) if quick else (days, rounds)
    simulation = Simulation(days=days, rates=Rates(malformed=0))
    with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as folder:
        try:
            warm_up(Path(folder))
            with landed(Path(folder), simulation) as sample:

                def side(name: str) -> Callable[[int], Run]:
                    of_side = replace(sample, settings={"PLATFORM_DOMAINS": _DOMAINS[name]})

                    def load(_: int) -> Run:
                        of_side.empty(name)
                        return of_side.platform(name, "engine")

                    return load

                runs = alternate(
                    {name: side(name) for name in _DOMAINS}, rounds, float("inf"), lambda: sample.check(WITH, WITHOUT)
                )
        except (BenchmarkError, UnequalError) as error:
            console.print(str(error), markup=False)
            raise typer.Exit(3) from error
    print_runs(console, f"{days} days", runs)
    outcomes = [
        Goal(f"all rules and reconciliations / none, {days} days", "<=", 1.15).judge(ratios(runs, WITH, WITHOUT))
    ]
    print_outcomes(console, "Goals", outcomes)
    if json_path is not None:
        write_json(json_path, outcomes)
    if not all(outcome.held for outcome in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
