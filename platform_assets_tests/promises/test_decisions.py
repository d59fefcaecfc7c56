"""Whatever people approve and withdraw, and in whatever order it happens: silver is the newest of what counts."""

from __future__ import annotations

from random import Random

import pytest

from platform_assets.engine.late.approvals import approve, withdraw
from platform_assets.engine.late.queue import late_queue
from platform_assets.planning.rows_aside import LateSelection
from platform_assets_tests.support.history import CALENDAR_DAYS, History, Version, history, person
from platform_assets_tests.support.world import MakeWorld

BASKETS = 150
ARRIVALS = ("2017-01-08", "2017-01-09", "2017-04-05", "2017-04-06", "2017-04-20")
"""Of the later ones some days are late, of the last all."""


def deliveries(random: Random) -> list[tuple[str, tuple[Version, ...]]]:
    """Versions of every basket on any day, void or not, scattered over some files; some of them in two files."""
    files: list[list[Version]] = [[] for _ in ARRIVALS for _ in range(2)]
    for basket in range(BASKETS):
        for written in random.sample(range(24), random.randint(1, 5)):
            day = random.randint(1, CALENDAR_DAYS)
            version = Version(basket, day, written, f"{written + 1}.00", voided=random.random() < 0.15)
            for file in random.sample(files, 2 if random.random() < 0.2 else 1):
                file.append(version)
    return [(arrival, tuple(files.pop())) for arrival in ARRIVALS for _ in range(2)]


@pytest.mark.timeout(600)
@pytest.mark.proof
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_silver_is_the_newest_of_what_counts_after_every_round(make_world: MakeWorld, seed: int) -> None:
    random = Random(seed)
    story = history(make_world)
    story.refresh()
    left = deliveries(random)
    random.shuffle(left)
    taken: list[str] = []
    gone: set[str] = set()
    late: set[str] = set()
    for turn in range(4):
        for arrival, versions in [left.pop() for _ in range(len(left) // (4 - turn))]:
            path = story.deliver(arrival, f"turn-{turn}-{len(taken)}.jsonl", *versions)
            taken.append(path)
            if arrival >= "2017-04":
                late.add(path)
        check(story, gone, late)
        decide(story, random, taken, gone, late)
    check(story, gone, late)


def decide(story: History, random: Random, taken: list[str], gone: set[str], late: set[str]) -> None:
    """Approve one arrival that waits, and withdraw another one."""
    with story.world.open() as platform:
        if waiting := sorted({rows.arrival for rows in late_queue(platform) if rows.state == "waiting"}):
            chosen = random.choice(waiting)
            approve(platform, lambda: story.world.spark, LateSelection(arrival=chosen), person())
            late.discard(chosen)
        bad = random.choice([path for path in taken if path not in gone])
        withdraw(platform, lambda: story.world.spark, [bad], person())
        gone.add(bad)


def check(story: History, gone: set[str], late: set[str]) -> None:
    """Against the oracle; conservation is a check of every recomputed day, and of every file."""
    story.refresh()
    assert story.kept() == story.expected(but=gone, late=late)
    with story.world.open() as platform:
        for arrival in platform.ledger.arrivals("raw.transactions"):
            assert arrival.landed == arrival.taken + arrival.refused + arrival.late
        for day, found in platform.ledger.current_days("silver.transactions").items():
            parts = ("superseded", "voided", "quarantined", "withdrawn")
            assert found.figures["raw"] == found.rows + sum(found.figures[name] for name in parts), day
        standing = sum(rows.rows for rows in late_queue(platform))
        entered = [arrival for arrival in platform.ledger.arrivals("raw.transactions") if arrival.kind == "approval"]
        came = sum(arrival.late for arrival in platform.ledger.arrivals("raw.transactions"))
        assert came == standing + sum(arrival.taken for arrival in entered)
