"""Backfills as code: whether what they say they cost is what they cost, and what they cost besides the work.

    uv run python benchmarks/plans.py [--quick] [--json PATH] [--part estimates|sides|sqlmesh] [--state FOLDER]

* estimates: three plans, then twenty varied ones, each explained and applied by commands, on a copy of an installation
  (`--state`, with its `PLATFORM_…` variables around), or on days of the sample loaded for it. Of each, the seconds that
  its record has over those that were explained, the bytes likewise, and whether the seconds lie in the interval that
  was given. Code is as it was, so what is only reached would need nothing: the plans leave it out, or name it.
* sides: a quarter of days of three gold tables, by a plan in one rollout step and by `refresh --force` of the same
  days, by turns, the state put back before each; and by plain Dagster, a run and a process for each day, of which ten
  are run and the rest is extrapolated.
* sqlmesh: the same quarter of silver and sales by store, by a plan and by SQLMesh restating the range, as
  `benchmarks.corrections` has them. Both hold the same rows before a time counts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Annotated, NamedTuple

import typer

from benchmarks.corrected import replace_by_copy
from benchmarks.estimates import Installation, estimates, plan_text
from benchmarks.harness import Goal, JsonPath, Outcome, Quick, Run, alternate, measured, print_runs, ratios
from benchmarks.loaded_sides import PLATFORM, SQLMESH, load
from benchmarks.sample import Sample, landed, warm_up
from benchmarks.store_sales import STORE_SALES
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation

GOLD = ("gold.daily_sales", "gold.household_28d", "gold.sales_month_to_date")
PLAN, REFRESH, DAGSTER = "plan", "refresh", "Dagster, a run a day"


class Part(StrEnum):
    """What is measured."""

    ESTIMATES = "estimates"
    SIDES = "sides"
    SQLMESH = "sqlmesh"


class Size(NamedTuple):
    """How much is measured: `single` days of the quarter are really run by Dagster."""

    loaded: int = 30
    plans: int = 20
    quarter: int = 91
    rounds: int = 3
    single: int = 10


def by_estimate(root: Path, size: Size, state: Path | None) -> list[Outcome]:
    """What plans said before and took in the end."""
    if state is not None:
        copy = root / "state"
        replace_by_copy(copy, state.absolute())
        return estimates(Installation(copy, root), size.plans)
    with landed(root, Simulation(days=size.loaded)) as sample:
        sample.cli(PLATFORM, "refresh")
        return estimates(Installation(sample.state(PLATFORM), root, sample), size.plans)


def by_sides(root: Path, size: Size) -> list[Outcome]:
    """A plan against a refresh of the same days, and against a run for each of them."""
    with landed(root, Simulation(days=size.quarter)) as sample:
        sample.cli(PLATFORM, "refresh")
        kept = root / "kept"
        replace_by_copy(kept, sample.state(PLATFORM))
        first, last = sample.simulation.first, sample.simulation.last
        file = root / "quarter.yaml"
        file.write_text(plan_text("quarter", GOLD, (first, last)), encoding="utf-8")

        def side(*command: object) -> Callable[[int], Run]:
            return lambda _: _on_copy(sample, kept, lambda: sample.cli(PLATFORM, *command))

        forced = side("refresh", *GOLD, "--force", "--days", f"{first}..{last}")
        runs = alternate({PLAN: side("backfill", "apply", file), REFRESH: forced}, size.rounds)

        def alone(day: date) -> Run:
            return sample.platform(PLATFORM, "plain", day, *GOLD)

        days = [first + timedelta(days=n) for n in range(size.single)]
        singly = [_on_copy(sample, kept, partial(alone, day)) for day in days]
    what = f"{size.quarter} days of {len(GOLD)} gold tables"
    print_runs(what, runs | {DAGSTER: singly})
    day_by_day = mean(run.seconds for run in singly) * size.quarter
    return [
        Goal(f"plan / refresh, {what}", "<=", 1.25).judge(ratios(runs, PLAN, REFRESH)),
        Goal(f"plan / Dagster's run a day, {what}, extrapolated from {size.single}", "<=", 0.05).judge(
            [run.seconds / day_by_day for run in runs[PLAN]]
        ),
    ]


def against_sqlmesh(root: Path, size: Size) -> list[Outcome]:
    """A plan against SQLMesh restating the same range of the same two models."""
    with load(root, size.quarter) as loaded:
        first, last = loaded.sample.simulation.first, loaded.sample.simulation.last
        file = root / "models.yaml"
        file.write_text(
            plan_text("models", (SILVER_TRANSACTIONS.name, STORE_SALES.name), (first, last)), encoding="utf-8"
        )
        sides: dict[str, Callable[[int], Run]] = {
            PLATFORM: lambda _: loaded.platform(PLATFORM, "plan", "apply", str(file)),
            SQLMESH: lambda _: loaded.sqlmesh(SQLMESH, lambda: loaded.project.restate(first, last)),
        }
        runs = alternate(sides, size.rounds, check=loaded.check)
    what = f"{size.quarter} days of silver and sales by store"
    print_runs(what, runs)
    return [Goal(f"plan / SQLMesh restating, {what}", "<=", 0.7).judge(ratios(runs, PLATFORM, SQLMESH))]


def _on_copy(sample: Sample, kept: Path, run: Callable[[], Run]) -> Run:
    replace_by_copy(sample.state(PLATFORM), kept)
    return run()


def main(
    quick: Quick = False,
    json_path: JsonPath = None,
    part: Annotated[Part | None, typer.Option("--part", help="Only this; all by default.")] = None,
    state: Annotated[Path | None, typer.Option("--state", help="Installation whose copy is estimated on.")] = None,
    plans: Annotated[int | None, typer.Option("--plans", min=1, help="Plans held against their estimates.")] = None,
) -> None:
    """Measure plans."""
    size = Size(10, 4, 10, 1, 2) if quick else Size()
    size = size._replace(plans=plans or size.plans)
    parts: dict[Part, Callable[[Path], list[Outcome]]] = {
        Part.ESTIMATES: lambda root: by_estimate(root, size, state),
        Part.SIDES: lambda root: by_sides(root, size),
        Part.SQLMESH: lambda root: against_sqlmesh(root, size),
    }

    def measure(root: Path) -> list[Outcome]:
        warm_up(root)
        outcomes: list[Outcome] = []
        for name in [name for name in parts if part in (None, name)]:
            (root / name.value).mkdir()
            outcomes += parts[name](root / name.value)
        return outcomes

    measured("Backfills as code", json_path, measure)


if __name__ == "__main__":
    typer.run(main)
