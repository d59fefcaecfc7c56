"""What proof costs: the year with rules of every kind and all reconciliations, against the same without them.

    uv run python benchmarks/proof_cost.py [--quick] [--days 366] [--rounds 3] [--json PATH]

Both sides are whole processes that load the same landed files into an empty lake, in turns. Nothing in these breaks a
rule, so both hold the same rows, which is checked after every round. Contract, conservation and volume are checked on
both sides: nobody can leave them out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.harness import Goal, JsonPath, Outcome, Quick, Rounds, Run, alternate, measured, print_runs, ratios
from benchmarks.sample import landed, warm_up
from platform_assets.domains.retail.sample import Rates, Simulation

WITH, WITHOUT = "with rules", "without"
_DOMAINS = {WITH: "benchmarks.proved.with_rules", WITHOUT: "benchmarks.proved.without_rules"}


def main(
    quick: Quick = False,
    days: Annotated[int, typer.Option("--days", help="Of sales.", min=1, max=366)] = 366,
    rounds: Rounds = 3,
    json_path: JsonPath = None,
) -> None:
    """Measure; quickly a month, once."""
    days, rounds = (min(days, 30), 1) if quick else (days, rounds)

    def measure(root: Path) -> list[Outcome]:
        warm_up(root)
        with landed(root, Simulation(days=days, rates=Rates(malformed=0))) as sample:

            def load(name: str, _: int) -> Run:
                of_side = replace(sample, settings={"PLATFORM_DOMAINS": _DOMAINS[name]})
                of_side.empty(name)
                return of_side.platform(name, "engine")

            sides = {name: partial(load, name) for name in _DOMAINS}
            runs = alternate(sides, rounds, check=lambda: sample.check(WITH, WITHOUT))
        print_runs(f"{days} days", runs)
        what = f"all rules and reconciliations / none, {days} days"
        cpu = [proved.cpu_s / bare.cpu_s for proved, bare in zip(runs[WITH], runs[WITHOUT], strict=True)]
        return [
            Goal(what, "<=", 1.15).judge(ratios(runs, WITH, WITHOUT)),
            Goal(f"{what}, processor time", "<=", 1.15).judge(cpu),  # says as much on a machine with other work
        ]

    measured("Goals", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
