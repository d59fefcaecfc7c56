"""What a command that reads costs: processor time of whole processes, held against half a second.

    uv run python -m benchmarks.reading_commands [--state FOLDER] [--against CHECKOUT] [--rounds 5] [--quick]

Runs on a state folder that `platform-assets demo` left behind; without one, a demo is run first, of 30 days with
`--quick`. With `--against`, another checkout of the project reads the same state by turns, in the same Python, and the
ratio says what changed. Each side runs each command once before anything is measured, so that both find what Python
keeps of compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks import harness as bench

MOST_S = 0.5
DAY = "2017-01-15"
COMMANDS: Mapping[str, Sequence[str]] = {
    "--help": ("--help",),
    "status": ("status",),
    "status stale": ("status", "stale"),
    f"why gold.daily_sales {DAY}": ("why", "gold.daily_sales", DAY),
    "status releases": ("status", "releases"),
    "status late": ("status", "late"),
    f"read gold.daily_sales --day {DAY}": ("read", "gold.daily_sales", "--day", DAY),
}
_HERE = Path(__file__).parent.parent


def main(
    state: Annotated[Path | None, typer.Option(help="A state folder of the demo; one is made by default.")] = None,
    against: Annotated[Path | None, typer.Option(help="Another checkout, which takes turns.")] = None,
    rounds: bench.Rounds = 5,
    quick: bench.Quick = False,
    json_path: bench.JsonPath = None,
) -> None:
    """Measure every command; quickly on a demo of 30 days."""
    checkouts = {"here": _HERE} | ({"there": against.absolute()} if against else {})

    def measure(root: Path) -> list[bench.Outcome]:
        log, kept = root / "log", state or root / "state"
        if state is None:
            bench.run_command((*bench.COMMAND, "demo", "--days", 30 if quick else 366), env=_env(_HERE, kept), log=log)
        rows, outcomes = [], []
        for name, command in COMMANDS.items():
            runs = _measured(command, checkouts, kept.absolute(), rounds, log)
            seconds = {side: [run.cpu_s for run in done] for side, done in runs.items()}
            middles = [median(cpu) for cpu in seconds.values()]
            spread = f"{min(seconds['here']):.2f} to {max(seconds['here']):.2f}"
            rows.append((name, *(f"{middle:.2f}" for middle in middles), spread, f"{middles[0] / middles[-1]:.2f}"))
            outcomes.append(bench.Goal(f"{name}, processor seconds", "<=", MOST_S).judge(seconds["here"]))
        headings = ("command", *(f"{name} s" for name in checkouts), "least to most s", "ratio")
        bench.print_table("Processor time", headings, rows)
        return outcomes

    bench.measured("Goals", json_path, measure)


def _measured(
    command: Sequence[str], checkouts: Mapping[str, Path], state: Path, rounds: int, log: Path
) -> dict[str, list[bench.Run]]:
    def run(checkout: Path, number: int) -> bench.Run:
        return bench.run_command((*bench.COMMAND, *command), env=_env(checkout, state), log=log, done=(0, 1))

    for checkout in checkouts.values():
        run(checkout, -1)
    sides = {name: partial(run, checkout) for name, checkout in checkouts.items()}
    return bench.alternate(sides, rounds)


def _env(checkout: Path, state: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout), "PLATFORM_STATE": str(state)}


if __name__ == "__main__":
    typer.run(main)
