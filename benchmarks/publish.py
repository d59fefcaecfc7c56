"""Publishing and undoing days of three tables, against what Delta itself offers for it.

    uv run python benchmarks/publish.py [--quick] [--json PATH]

On a loaded year, corrections of 30 and of 365 days are computed into a stage over `silver.transactions`,
`gold.daily_sales` and `gold.sales_month_to_date`; then by turns, in one process with a warm Spark session:

* publish: `publish`, all tables in one release; against `replaceWhere` of copies of the tables, one after the
  other, from Delta tables with the same days.
* rollback: of that publication; against `RESTORE` of each of the copies to its version before, and against computing
  the days.

Neither publish nor rollback uses the session. After each, both sides must hold the same rows. Besides, without a goal:
for how long someone who reads the tables by themselves, not at a release, could see some of them new and others old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import typer

from benchmarks.corrected import corrections
from benchmarks.harness import Goal, JsonPath, Outcome, Quick, measured, middle_and_spread, print_table, printed_json
from benchmarks.sample import Sample, landed, warm_up
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation
from platform_assets.planning.windows import day_range

SIDE = "platform"
CASES = ((date(2017, 4, 1), date(2017, 4, 30)), (date(2017, 1, 1), date(2017, 12, 31)))
GOALS = (
    ("publish", "replaceWhere", 0.1),
    ("rollback", "RESTORE", 0.05),
    ("rollback", "recompute", 0.05),
)

Round = Mapping[str, float]


def measure(sample: Sample, first: date, last: date, rounds: int) -> Sequence[Round]:
    """All operations on the days, round by round, the corrections of them ingested before."""
    lake = sample.lake(SIDE)
    raw, silver = (lake / contract.name.replace(".", "/") for contract in (RAW_TRANSACTIONS, SILVER_TRANSACTIONS))
    days = [day for day in day_range(first, last) if day not in RAW_TRANSACTIONS.closed_days]
    with corrections(f"{first}..{last}", days, raw, silver).landed(sample.landing):
        sample.platform(SIDE, "ingest")
    run = sample.module("benchmarks.publish_sides", SIDE, first, last, "--rounds", rounds)
    return printed_json(run)


def judge(days: int, found: Sequence[Round]) -> list[Outcome]:
    """The goals of one case."""

    return [
        Goal(f"{days} days: {ours} / {theirs}", "<=", most).judge([took[ours] / took[theirs] for took in found])
        for ours, theirs, most in GOALS
    ]


def show(days: int, found: Sequence[Round]) -> None:
    """Seconds of every operation."""
    rows = [(name, *middle_and_spread([one[name] for one in found], 3)) for name in found[0]]
    title = f"{days} days of three tables, {len(found)} rounds"
    print_table(title, ("operation", "median s", "min to max s"), rows)


def main(quick: Quick = False, json_path: JsonPath = None) -> None:
    """Measure publications and rollbacks; quickly in fewer rounds."""

    def measure_all(root: Path) -> list[Outcome]:
        warm_up(root)
        outcomes: list[Outcome] = []
        with landed(root, Simulation(days=366)) as sample:
            sample.cli(SIDE, "refresh")
            for first, last in CASES:
                days = (last - first).days + 1
                found = measure(sample, first, last, rounds=(3 if days < 100 else 1) if quick else 5)
                show(days, found)
                outcomes += judge(days, found)
        return outcomes

    measured("Goals", json_path, measure_all)


if __name__ == "__main__":
    typer.run(main)
