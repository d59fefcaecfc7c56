"""Plans of some keys of the registers, applied and noted on paper."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

from platform_assets.engine.platform import Platform
from platform_assets.engine.refresh import refresh
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.selection import Request
from platform_assets_tests.support.registers import DAYS, GOLDS, Registers
from platform_assets_tests.support.stores import author


def plan(stores: Collection[str], name: str = "some", tables: Collection[str] = GOLDS, **fields: Any) -> PlanFile:
    said = {
        "name": name,
        "reason": "their tills were set up wrong",
        "owner": "ada",
        "tables": list(tables),
        "days": {"range": f"{DAYS[0]}..{DAYS[-1]}"},
        "downstream": False,
        "only": {"store": list(stores)},
        "rollout": [100],
    }
    return PlanFile.model_validate(said | fields)


def applied(found: Registers, platform: Platform, file: PlanFile, **more: Any) -> BackfillRecord:
    record = apply(platform, lambda: found.world.spark, file, author(), **more)
    assert record.state == "published"
    assert file.only is not None
    found.now_true(file.tables, sorted(file.days.named() or ()), file.only["store"])
    return record


def take(found: Registers, platform: Platform) -> None:
    """What was delivered, up to silver: gold is stale."""
    request = Request(frozenset(["silver.lines", "silver.goods"]), by_person=True)
    refresh(platform, lambda: found.world.spark, author(), request=request)


def golds(found: Registers) -> dict[str, dict[date, str]]:
    digests = found.world.digests()
    return {table: digests[table] for table in GOLDS}
