"""A year of till lines, a million and a half, reconciled with golden copies of it.

    uv run python benchmarks/reconciling.py [--quick] [--json PATH]

In turns, in one process with a warm session: level 2 of `reconcile` on the table and an equal copy in Parquet; a full
join of both on the key that compares all columns; `datacompy` on Spark, asked whether both match. Then copies with 1,
10 and 1,000 planted differences, a third each missing, added and changed by a cent: `reconcile --drill` has to name
exactly these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from benchmarks.environments import packages_beside
from benchmarks.harness import Goal, JsonPath, Outcome, Quick, measured, middle_and_spread, print_table, printed_json
from benchmarks.sample import landed, warm_up
from platform_assets.domains.retail.sample import Simulation

SIDE = "platform"
MOST = {"full join": 0.5, "datacompy": 0.2}
PINS = ("datacompy==1.1.0", "ordered-set==4.1.0")


def judge(lines: list[dict[str, Any]]) -> list[Outcome]:
    """The goals."""
    took = [line for line in lines if "datacompy" in line]
    planted = {line["planted"]: line["exact"] for line in lines if "planted" in line}
    goals = {other: Goal(f"nothing different: level 2 / {other}", "<=", most) for other, most in MOST.items()}
    return [
        *(goal.judge([one["level 2"] / one[other] for one in took]) for other, goal in goals.items()),
        *(
            Goal(f"{count:,} planted differences, exactly these named", ">=", 1).judge([float(exact)])
            for count, exact in planted.items()
        ),
    ]


def show(lines: list[dict[str, Any]]) -> None:
    """Seconds of everything."""
    rows = next(line["rows"] for line in lines if "rows" in line)
    rounds = [line for line in lines if "datacompy" in line]
    shown = [(name, *middle_and_spread([one[name] for one in rounds], 2)) for name in rounds[0]]
    shown += [
        (f"{line['planted']:,} planted differences named", f"{line['seconds']:.2f}", "one round")
        for line in lines
        if "planted" in line
    ]
    print_table(f"{rows:,} rows", ("what", "median s", "min to max s"), shown)


def main(quick: Quick = False, json_path: JsonPath = None) -> None:
    """Measure; quickly in fewer rounds."""

    def measure(root: Path) -> list[Outcome]:
        others = packages_beside(root / "datacompy", PINS)
        warm_up(root)
        with landed(root, Simulation(days=366)) as sample:
            sample.cli(SIDE, "refresh", "silver.transactions")
            how = ("--rounds", 3 if quick else 5, "--beside", others)
            lines = printed_json(sample.module("benchmarks.reconciling_sides", SIDE, root / "copies", *how))
        show(lines)
        return judge(lines)

    measured("Goals", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
