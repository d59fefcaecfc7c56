"""A shop with two tills whose days wrong code has computed, and plans that put it right."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.plan_record import BackfillRecord, pause
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets_tests.support.own_domain import PACKAGE, WITHOUT_WEEK, importable, write_domain
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World

DAYS = 8
NO_RECONCILIATION = ('("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)', '("till",), (Amount("n", "0", "0"),)')
WRONG = ('F.sum("paid")', 'F.sum(F.col("paid") * 2)')
"""The discount was taken twice, so to say."""


def paid(day: int, till: int) -> Decimal:
    return Decimal(10 * day + till)


def expected(day: int) -> dict[int, Decimal]:
    """What a till took on a day, in plain Python."""
    return {till: paid(day, till) for till in (1, 2)}


def nth(number: int) -> date:
    return date(2017, 1, 1) + timedelta(number - 1)


def plan(**fields: Any) -> PlanFile:
    said = {
        "name": "discount",
        "reason": "taken twice",
        "owner": "ada",
        "tables": ["gold.tills"],
        "days": {"range": f"{nth(1)}..{nth(DAYS)}"},
        "rollout": [25, 100],
        "gates": [
            {"table": "gold.tills", "metric": "rows", "tolerance_percent": 0},
            {"table": "gold.tills", "metric": "sum", "column": "paid", "tolerance_percent": 60},
        ],
        "afterwards": {"verify": 1},
    }
    return PlanFile.model_validate(said | fields)


@dataclass
class Shop:
    """Eight days that the wrong code has computed."""

    world: World
    home: Path

    def copied_to(self, state: Path) -> Self:
        """The same with an installation and code of its own."""
        home = shutil.copytree(self.home, state.with_name(f"{state.name}-code"))
        return replace(self, world=self.world.copied_to(state), home=home)

    @contextmanager
    def on(self, *changes: tuple[str, str]) -> Iterator[Platform]:
        """The platform with code in which some text is replaced."""
        with (
            importable(write_domain(self.home, contracts=(NO_RECONCILIATION, WITHOUT_WEEK), gold=changes)),
            self.world.open() as platform,
        ):
            yield platform

    def apply(self, platform: Platform, file: PlanFile, **more: Any) -> BackfillRecord:
        return apply(platform, lambda: self.world.spark, file, Author("apply", "a plan", "zoe"), **more)

    def seen(self, platform: Platform, number: int) -> dict[int, Decimal]:
        rows = self.world.rows("gold.tills", str(nth(number)))
        return {row["till"]: row["paid"] for row in rows}


def paused_at(platform: Platform, share: int) -> Callable[[str], None]:
    """Has a plan stand still once the gates have passed at a share of the days."""

    def report(sentence: str) -> None:
        if sentence.startswith(f"{share} %"):
            pause(platform.lake, "discount", "lunch")

    return report


def eight_days(lakes: Lakes, today: date | None = None) -> Shop:
    """A shop of two tills whose days the wrong code has computed."""
    world = lakes.new(days=DAYS, domains=PACKAGE, **({"today": today} if today else {}))
    home = write_domain(
        world.settings.state.with_name("code"), contracts=(NO_RECONCILIATION, WITHOUT_WEEK), gold=(WRONG,)
    )
    with importable(home):
        for number in range(1, DAYS + 1):
            rows = [
                {"till": till, "at": f"{nth(number)}T10:00:00Z", "paid": str(paid(number, till))} for till in (1, 2)
            ]
            world.deliver_rows("sales", str(nth(number)), "a.jsonl", rows)
        world.refresh()
    return Shop(world, home)
