"""What publishing and rolling back take of the processor, by turns with another checkout; no Spark.

    uv run python -m benchmarks.undoing --state FOLDER [--against CHECKOUT] [--first DAY] [--last DAY] [--rounds 5]

On copies of a state that `platform-assets demo` left behind. Corrections of the days are put into raw and what follows
of them is staged for `silver.transactions`, `gold.daily_sales` and `gold.sales_month_to_date`, files and all, as if it
had been computed. Then each side, in a process of its own that has imported what computing imports, publishes the
stage and rolls that back. Against what Delta offers for it, `benchmarks/publish.py` measures.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.harness import run_command

console = Console(width=None if sys.stdout.isatty() else 120)
_HERE = Path(__file__).parent.parent
_SIDE = Path(__file__).with_name("undoing_side.py")
_STATE = ("lake", "ledger.db", "settings.toml", "secret", "analysed.json")


def main(
    state: Annotated[Path, typer.Option(help="A state folder of the demo; it stays as it is.")],
    against: Annotated[Path | None, typer.Option(help="Another checkout, which takes turns.")] = None,
    first: Annotated[str, typer.Option(help="First day.")] = "2017-01-01",
    last: Annotated[str, typer.Option(help="Last day.")] = "2017-12-31",
    rounds: Annotated[int, typer.Option(min=1)] = 5,
) -> None:
    """Measure publishing and rolling back, round by round."""
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    checkouts = {"here": _HERE} | ({"there": against.absolute()} if against else {})
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="undoing-", ignore_cleanup_errors=True) as folder:
        prepared, work, log = (Path(folder) / name for name in ("prepared", "work", "log"))
        prepared.mkdir()
        for name in _STATE:
            _copy(state / name, prepared / name)
        words = (sys.executable, "-P", _SIDE)
        run_command((*words, "prepare", first, last), env=_env(_HERE, prepared), log=log)
        for number in range(rounds + 1):  # in the first, Python compiles
            for name in list(checkouts)[:: 1 if number % 2 else -1]:
                shutil.rmtree(work, ignore_errors=True)
                work.mkdir()
                for part in _STATE:  # files of a lake are never written again, but for those of locks
                    _copy(prepared / part, work / part, link=True)
                ran = run_command((*words, "measure"), env=_env(checkouts[name], work), log=log)
                for operation, took in json.loads(ran.printed.splitlines()[-1]).items() if number else ():
                    found.setdefault((operation, name), []).append(tuple(took))
    console.print(_shown(found, days))


def _shown(found: Mapping[tuple[str, str], list[tuple[float, float]]], days: int) -> Table:
    table = Table(title=f"{days} days of three tables: processor seconds", title_justify="left")
    for heading in ("operation", "side", "median", "least to most", "(seconds, median)"):
        table.add_column(heading, justify="left" if heading in ("operation", "side") else "right")
    for (operation, name), took in found.items():
        cpu, wall = zip(*took, strict=True)
        spread = f"{min(cpu):.3f} to {max(cpu):.3f}"
        table.add_row(operation, name, f"{median(cpu):.3f}", spread, f"({median(wall):.3f})")
    return table


def _copy(source: Path, target: Path, *, link: bool = False) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("_locks")
        shutil.copytree(source, target, ignore=ignored, copy_function=os.link if link else shutil.copy2)
    elif source.exists():
        shutil.copy2(source, target)


def _env(checkout: Path, state: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout), "PLATFORM_STATE": str(state)}


if __name__ == "__main__":
    typer.run(main)
