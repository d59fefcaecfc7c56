"""Plans held against what they said they would cost: varied, one after the other, on one installation."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import COMMAND, Goal, Outcome, Run, print_table, run_command
from benchmarks.sample import Sample
from platform_assets.settings import project_root

WARM_UPS = 3
SECONDS, BYTES, SHARE = 0.3, 0.1, 0.8
_LATER = "gold.household_28d", "gold.sales_month_to_date"
_TABLES: Sequence[tuple[str, ...]] = (
    ("gold.daily_sales",),
    ("silver.transactions",),
    ("gold.household_28d",),
    ("gold.sales_month_to_date",),
    _LATER,
    ("gold.daily_sales", *_LATER),
    ("silver.transactions", "gold.daily_sales"),
    ("silver.transactions", "gold.daily_sales", *_LATER),
)
_ROLLOUTS = (100,), (10, 100), (25, 50, 100)


@dataclass(frozen=True)
class Installation:
    """A state folder on which plans are applied, which changes it; with the settings of its sample, or those around."""

    state: Path
    folder: Path
    sample: Sample | None = None

    def command(self, *arguments: object) -> Run:
        """One process of the platform's command line."""
        if self.sample is not None:
            return self.sample.cli(self.state.name, *arguments)
        env = os.environ | {"PYTHONPATH": str(project_root()), "PLATFORM_STATE": str(self.state)}
        return run_command((*COMMAND, *arguments), env=env, log=self.folder / "log", done=(0, 1))

    def asked(self, *arguments: object) -> Any:
        """What a command prints as JSON, whatever it says besides."""
        printed = self.command(*arguments, "--json").printed
        return json.JSONDecoder().raw_decode(printed[printed.index("{") if "{" in printed else 0 :])[0]


@dataclass(frozen=True)
class Estimated:
    """A plan that was applied: what was said and taken, what was said of four in five cases, and how busy it was."""

    name: str
    seconds: tuple[float, float]
    bytes: tuple[int, int]
    between: tuple[float, float] | None
    load: float

    @property
    def seconds_ratio(self) -> float:
        return self.seconds[1] / self.seconds[0]

    @property
    def bytes_ratio(self) -> float:
        return self.bytes[1] / self.bytes[0]


def estimates(installation: Installation, count: int) -> list[Outcome]:
    """Apply plans, and hold all but the first against what they said."""
    days = _computed_days(installation)
    chance = random.Random(20170101)
    done = [_applied(installation, f"e{number:02}", days, chance) for number in range(WARM_UPS + count)]
    _print(done)
    counted = done[WARM_UPS:]
    near = sum(abs(one.seconds_ratio - 1) <= SECONDS for one in counted) / len(counted)
    close = sum(abs(one.bytes_ratio - 1) <= BYTES for one in counted) / len(counted)
    inside = sum(bool(one.between and one.between[0] <= one.seconds[1] <= one.between[1]) for one in counted)
    return [
        Goal(f"share of {count} plans within {SECONDS:.0%} of their seconds", ">=", SHARE).judge([near]),
        Goal(f"share of {count} plans within {BYTES:.0%} of their bytes", ">=", SHARE).judge([close]),
        Goal(f"share of {count} plans within their interval of seconds", ">=", SHARE).judge([inside / count]),
    ]


def plan_text(name: str, tables: Sequence[str], days: tuple[date, date], rollout: Sequence[int] = (100,)) -> str:
    """A plan file without gates of its own and without a proof afterwards; JSON is YAML."""
    said = {
        "name": name,
        "reason": "A benchmark.",
        "owner": "benchmark",
        "tables": list(tables),
        "days": {"range": f"{days[0]}..{days[1]}"},
        "downstream": False,
        "rollout": list(rollout),
        "afterwards": {"verify": 0},
    }
    return json.dumps(said)


def _applied(installation: Installation, name: str, days: Sequence[date], chance: random.Random) -> Estimated:
    length = chance.choice((1, 3, 8, len(days) // 2, len(days)))
    start = chance.randrange(len(days) - min(length, len(days)) + 1)
    chosen = days[start : start + length]
    file = installation.folder / f"{name}.yaml"
    tables, rollout = chance.choice(_TABLES), chance.choice(_ROLLOUTS)
    file.write_text(plan_text(name, tables, (chosen[0], chosen[-1]), rollout), encoding="utf-8")
    said = installation.asked("backfill", "explain", file)["price"]
    record = installation.asked("backfill", "apply", file)
    between = said["between"]
    return Estimated(
        f"{name}: {len(chosen)} days of {', '.join(tables)} in {len(rollout)}",
        (said["seconds"], record["seconds"]),
        (said["bytes"], record["bytes"]),
        (between[0], between[1]) if between else None,
        os.getloadavg()[0],
    )


def _computed_days(installation: Installation) -> list[date]:
    """The days that all tables have."""
    printed = installation.command("read", "gold.daily_sales", "--format", "csv").printed
    lines = [line.split(",") for line in printed.splitlines() if line.count(",") > 2]
    at = lines[0].index("event_date")
    return sorted({date.fromisoformat(line[at]) for line in lines[1:]})


def _print(done: Sequence[Estimated]) -> None:
    headings = ("plan", "said s", "took s", "ratio", "between s", "said kB", "wrote kB", "ratio", "load")
    rows = [
        (
            one.name,
            *(f"{seconds:.1f}" for seconds in one.seconds),
            f"{one.seconds_ratio:.2f}",
            f"{one.between[0]:.1f} to {one.between[1]:.1f}" if one.between else "",
            *(f"{size / 1000:,.0f}" for size in one.bytes),
            f"{one.bytes_ratio:.2f}",
            f"{one.load:.1f}",
        )
        for one in done
    ]
    rows.append(("median", "", "", f"{median(one.seconds_ratio for one in done[WARM_UPS:]):.2f}"))
    print_table(f"Plans, the first {WARM_UPS} to warm up", headings, rows)
