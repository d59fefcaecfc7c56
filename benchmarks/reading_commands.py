"""What a command that reads costs: processor time of whole processes, held against half a second.

    uv run python -m benchmarks.reading_commands [--state FOLDER] [--against CHECKOUT] [--rounds 5] [--quick]

Runs on a state folder that `platform-assets demo` left behind; without one, a demo is run first, of 30 days with
`--quick`. With `--against`, another checkout of the project reads the same state by turns, in the same Python, and the
ratio says what changed. Each side runs each command once before anything is measured, so that both find what Python
keeps of compiled code.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.harness import Goal, Outcome, Run, alternate, print_outcomes, run_command, write_json

MOST_S = 0.5
DAY = "2017-01-15"
COMMANDS: Mapping[str, Sequence[str]] = {
    "--help": ("--help",),
    "status": ("status",),
    "stale": ("stale",),
    f"why gold.daily_sales {DAY}": ("why", "gold.daily_sales", DAY),
    "releases": ("releases",),
    "late list": ("late", "list"),
    f"read gold.daily_sales --day {DAY}": ("read", "gold.daily_sales", "--day", DAY),
}
_HERE = Path(__file__).parent.parent
_MAIN = "from platform_assets.cli import main; main()"

console = Console(width=None if sys.stdout.isatty() else 120)


def main(
    state: Annotated[Path | None, typer.Option(help="A state folder of the demo; one is made by default.")] = None,
    against: Annotated[Path | None, typer.Option(help="Another checkout, which takes turns.")] = None,
    rounds: Annotated[int, typer.Option(min=1)] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="A demo of 30 days instead of a year.")] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the goals there.")] = None,
) -> None:
    """Measure every command; exit code 1 if a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="platform-bench-") as folder:
        log = Path(folder) / "log"
        if state is None:
            state = Path(folder) / "state"
            days = "30" if quick else "366"
            run_command((sys.executable, "-P", "-c", _MAIN, "demo", "--days", days), env=_env(_HERE, state), log=log)
        checkouts = {"here": _HERE} | ({"there": against.absolute()} if against else {})
        outcomes: list[Outcome] = []
        table = Table(title="Processor time", title_justify="left")
        for heading in (
            "command",
            *(f"{name} s" for name in checkouts),
            "least to most s",
            *(("ratio",) * bool(against)),
        ):
            table.add_column(heading, justify="left" if heading == "command" else "right")
        for name, command in COMMANDS.items():
            runs = _measured(command, checkouts, state.absolute(), rounds, log)
            seconds = {side: [run.cpu_s for run in done] for side, done in runs.items()}
            middles = {side: median(cpu) for side, cpu in seconds.items()}
            spread = f"{min(seconds['here']):.2f} to {max(seconds['here']):.2f}"
            ratio = (f"{middles['here'] / middles['there']:.2f}",) if against else ()
            table.add_row(name, *(f"{middle:.2f}" for middle in middles.values()), spread, *ratio)
            outcomes.append(Goal(f"{name}, processor seconds", "<=", MOST_S).judge(seconds["here"]))
    console.print(table)
    print_outcomes(console, "Goals", outcomes)
    if json_path:
        write_json(json_path, outcomes)
    if not all(outcome.held for outcome in outcomes):
        raise typer.Exit(1)


def _measured(
    command: Sequence[str], checkouts: Mapping[str, Path], state: Path, rounds: int, log: Path
) -> dict[str, list[Run]]:
    def run(checkout: Path, number: int) -> Run:
        words = (sys.executable, "-P", "-c", _MAIN, *command)
        return run_command(words, env=_env(checkout, state), log=log, done=(0, 1))

    for checkout in checkouts.values():
        run(checkout, -1)
    sides = {name: partial(run, checkout) for name, checkout in checkouts.items()}
    return alternate(sides, rounds, float("inf"), lambda: None)


def _env(checkout: Path, state: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout), "PLATFORM_STATE": str(state)}


if __name__ == "__main__":
    typer.run(main)
