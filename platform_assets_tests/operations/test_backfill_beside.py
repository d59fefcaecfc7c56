"""What people decide while a plan stands still: late rows, held days, pins, a backup put back. Nothing is lost."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.engine.late.approvals import approve as approve_late
from platform_assets.engine.late.queue import late_queue
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import recompute_step, refresh
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.afterwards import prove
from platform_assets.operations.backfill.explain import approve, explain
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.operations.plan_record import BackfillRecord, backfill_names, read_record, unpause
from platform_assets.operations.quarantine import acceptance
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.rows_aside import LateSelection
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.orchestration.daemon import enter_world
from platform_assets_tests.support.own_domain import importable, write_domain
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.tills import DAYS, WRONG, Shop, eight_days, expected, nth, paused_at, plan

__all__ = ["run", "state"]
"""Fixtures of the command line."""

GOLD, SILVER = "gold.tills", "silver.sales"
LATE, LATE_DATE = "sales/2017-05-02/late.jsonl", "2017-05-02"
THIRD = nth(3)
BOB = Author("bobs", "the till was offline", "bob")
MUCH = [{"table": GOLD, "metric": "sum", "column": "paid", "tolerance_percent": 1000}]

pytestmark = pytest.mark.proof


@pytest.fixture
def shop(lakes: Lakes) -> Shop:
    """Long after its days, with a late row that waits for a decision."""
    shop = eight_days(lakes, today=date(2017, 7, 1))
    late = {"till": 1, "at": f"{THIRD}T11:00:00Z", "paid": "1000"}
    shop.world.deliver_rows("sales", LATE_DATE, "late.jsonl", [late])
    with importable(shop.home):
        shop.world.refresh()
    return shop


def paused(shop: Shop, platform: Platform, file: PlanFile, share: int = 100) -> BackfillRecord:
    """A plan that has staged a share of its days and stands still, though nobody has to let it go on."""
    with pytest.raises(StoppedError, match="paused"):
        shop.apply(platform, file, report=paused_at(platform, share))
    unpause(platform.lake, "discount")
    return read_record(platform.lake, "discount")


def take_late_rows(shop: Shop, platform: Platform) -> None:
    [waiting] = [rows for rows in late_queue(platform) if rows.state == "waiting"]
    assert (waiting.arrival, waiting.day, waiting.rows) == (LATE, THIRD, 1)
    approve_late(platform, lambda: shop.world.spark, LateSelection(arrival=LATE), BOB)
    assert not [rows for rows in late_queue(platform) if rows.state == "waiting"]


def seen(shop: Shop, platform: Platform) -> list[dict[int, Decimal]]:
    return [shop.seen(platform, number) for number in range(1, DAYS + 1)]


def right(*, with_late: bool) -> list[dict[int, Decimal]]:
    """Computed without the engine."""
    days = [expected(number) for number in range(1, DAYS + 1)]
    if with_late:
        days[2][1] += 1000
    return days


def overtaken(platform: Platform) -> list[str]:
    return [event.what for event in read_record(platform.lake, "discount").events if "overtaken" in event.what]


def test_late_rows_that_are_approved_beside_a_plan_of_their_silver_are_in_what_it_publishes(shop: Shop) -> None:
    file = plan(tables=[SILVER, GOLD], gates=MUCH)
    with shop.on() as platform:
        paused(shop, platform, file)
        before = shop.world.digests()[GOLD]
        take_late_rows(shop, platform)
        assert shop.world.digests()[GOLD] == before, "readers see nothing of the plan"
        record = shop.apply(platform, file)
        [told] = overtaken(platform)
        assert f"{SILVER} {THIRD}" in told
        assert f"{GOLD} {THIRD}" in told
        assert seen(shop, platform) == right(with_late=True)
        assert not any(table.of("different") for table in prove(platform, lambda: shop.world.spark, record))
        assert shop.world.refresh().steps == (), "nothing is left to do"


def test_late_rows_that_are_approved_beside_a_plan_of_gold_are_taken_by_it_or_by_the_next_refresh(shop: Shop) -> None:
    file = plan(gates=MUCH)
    with shop.on() as platform:
        paused(shop, platform, file)
        take_late_rows(shop, platform)
        shop.apply(platform, file)
        assert overtaken(platform) == [], "nobody has computed the silver that it reads"
        assert seen(shop, platform) == right(with_late=False)
        refresh(platform, lambda: shop.world.spark, Author("a run", "a refresh", "zoe"))
        assert seen(shop, platform) == right(with_late=True)


def test_a_held_day_that_is_accepted_beside_a_plan_is_what_the_plan_makes_of_it_in_the_end(shop: Shop) -> None:
    """The wrong code breaks a reconciliation, so its days are held; a person accepts one of them meanwhile."""
    with shop.on() as platform:
        shop.apply(platform, plan(name="before"))
    write_domain(shop.home, gold=(WRONG,))
    with importable(shop.home), shop.world.open() as platform:
        days = [nth(2), nth(3)]
        result = shop.world.recompute([GOLD], days)
        assert [*result.steps[0].held] == days
    write_domain(shop.home)
    file = plan(days={"list": [str(nth(number)) for number in (2, 3, 4)]}, rollout=[100], gates=MUCH)
    with importable(shop.home), shop.world.open() as platform:
        paused(shop, platform, file)
        with pytest.raises(PlatformError, match=f"{GOLD} {nth(4)} is not held"):
            acceptance(platform, GOLD, [nth(4)])
    write_domain(shop.home, gold=(WRONG,))
    with importable(shop.home), shop.world.open() as platform:
        found = acceptance(platform, GOLD, [nth(2)])
        author = Author("accept", "looked at", "bob")
        done = recompute_step(
            platform, lambda: shop.world.spark, found.step, author, accept=found.checks, looked_at=found.made_from
        )
        assert [*done.published] == [nth(2)]
        assert shop.seen(platform, 2) == {till: 2 * paid for till, paid in expected(2).items()}
    write_domain(shop.home)
    with importable(shop.home), shop.world.open() as platform:
        assert shop.apply(platform, file).state == "published"
        [told] = overtaken(platform)
        assert f"{GOLD} {nth(2)}" in told
        assert seen(shop, platform) == right(with_late=False)
        assert not [hold for hold in platform.ledger.holds() if hold.table == GOLD]


def test_a_backup_that_is_put_back_beside_a_plan_has_none_of_it_and_the_plan_begins_anew(
    shop: Shop, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_world(shop.world, monkeypatch)
    file, folder = plan(approvals={"above_days": 1}), str(tmp_path / "backup")
    with shop.on() as platform:
        approve(platform, file, explain(platform, file).hash, BOB)
        paused(shop, platform, file, 25)
        assert run("admin", "backup", folder).code == 0
    shop.world.settings.state.rename(tmp_path / "aside")
    with importable(shop.home):
        assert run("admin", "restore", folder).code == 0
        assert run("admin", "audit", "--all").code == 0
        assert "No backfill was applied yet" in run("status", "backfills").out
    with shop.on() as platform:
        assert (backfill_names(platform.lake), stage_names(platform.lake)) == ((), ())
        assert shop.apply(platform, file).state == "published", "the approval is in the ledger that was put back"
        assert seen(shop, platform) == right(with_late=False)
