"""Any history of lines and any plans of some keys over it: what was named is true, all else as it was published."""

from __future__ import annotations

import random

import pytest

from platform_assets.engine.late.approvals import approve, withdraw
from platform_assets.operations.backfill.afterwards import cancel, roll_back
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.planning.rows_aside import LateSelection
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.registers import (
    DAYS,
    GOLDS,
    LATE,
    STORE_DAYS,
    STORE_SPANS,
    STORES,
    Line,
    Registers,
    applied,
    five_stores,
    golds,
    plan,
    take,
)
from platform_assets_tests.support.stores import author


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1, 7))
def test_any_history_and_any_plans_of_keys_are_as_on_paper(prepared: Prepared, seed: int) -> None:
    found, draw = prepared(five_stores), random.Random(seed)
    late: list[str] = []
    stopped = 0
    for turn in range(6):
        _happen(found, draw, late)
        tables = draw.sample(GOLDS, draw.randint(1, 3))
        stores = draw.sample(STORES, draw.randint(1, 3))
        with found.world.open() as platform:
            take(found, platform)
            before, content = golds(found), found.copied_paper()
            file = plan(stores, f"turn-{turn}", tables, rollout=draw.choice([[100], [40, 100]]))
            torn = [
                (table, day)
                for table in set(tables) & {STORE_DAYS, STORE_SPANS}
                for day in DAYS
                if found.contradicts(table, day, stores)
            ]
            if torn:
                with pytest.raises(StoppedError, match="did not pass the gates"):
                    applied(found, platform, file)
                cancel(platform, file.name, author())
                assert golds(found) == before
                stopped += 1
            else:
                applied(found, platform, file)
                found.check()
                if draw.random() < 0.3:
                    roll_back(platform, file.name, author())
                    found.content, found.counted = content
                    assert golds(found) == before
                    found.world.recompute(GOLDS, DAYS)
                    found.now_true(GOLDS, DAYS)
            found.check()
        if draw.random() < 0.2:
            found.refresh()
            found.check()
    found.refresh()
    found.check()
    by_plans = golds(found)
    found.world.recompute(GOLDS, DAYS)
    assert golds(found) == by_plans


def _happen(found: Registers, draw: random.Random, late: list[str]) -> None:
    """Corrections, moves, voids, bad rows, other categories; late rows, some approved later; withdrawals."""
    lines = [
        Line(
            number := 100 * draw.randint(1, len(DAYS)) + 10 * draw.randint(0, 5) + draw.randint(1, 4),
            draw.choice([number // 100] * 4 + [draw.randint(1, len(DAYS))]),
            _store(draw, number),
            good=draw.randint(1, 3),
            amount=draw.choice([None, -1, *range(1, 9)]),
            voided=draw.random() < 0.15,
        )
        for _ in range(draw.randint(1, 4))
    ]
    arrival = LATE if draw.random() < 0.2 else None
    path = found.deliver(*lines, **({"arrival": arrival} if arrival else {}))
    if arrival:
        late.append(path)
    elif late and draw.random() < 0.5:
        chosen = late.pop()
        with found.world.open() as platform:
            take(found, platform)
            approve(platform, lambda: found.world.spark, LateSelection(arrival=chosen), author())
        found.waiting.remove(chosen)
    if draw.random() < 0.2:
        found.categorise(draw.randint(1, 2), draw.randint(1, len(DAYS)), draw.choice(["c1", "c2", "c3"]))
    if draw.random() < 0.2:
        with found.world.open() as platform:
            take(found, platform)
            if path not in found.waiting:
                withdraw(platform, lambda: found.world.spark, [path], author())
                found.gone.add(path)


def _store(draw: random.Random, number: int) -> str | None:
    """Mostly where the line was."""
    at = number // 10 % 10
    stays = STORES[at] if at < len(STORES) else None
    return stays if draw.random() < 0.8 else draw.choice([*STORES, None])
