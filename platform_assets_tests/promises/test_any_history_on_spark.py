"""Any history of arrivals, for real: confluence, the least work, and one row for one key."""

from __future__ import annotations

from datetime import date
from random import Random

import pytest

from platform_assets.engine.refresh import RefreshResult
from platform_assets.planning.windows import Calendar, days_read
from platform_assets_tests.support.domains.windows import TABLES
from platform_assets_tests.support.history import CALENDAR_DAYS, WINDOWS, History, Version, history
from platform_assets_tests.support.world import MakeWorld

BASKETS = 6
Digests = dict[str, dict[date, str]]
Files = list[tuple[str, tuple[Version, ...]]]


def some_files(random: Random) -> Files:
    """Few baskets, so that they are corrected, well or badly, moved, voided and delivered twice all the time.

    Some versions lie on a day after the calendar.
    """
    found: Files = []
    for _ in range(random.randint(1, 3)):
        versions = []
        for _ in range(random.randint(1, 5)):
            basket, day, written = (
                random.randint(1, BASKETS),
                random.randint(1, CALENDAR_DAYS + 1),
                random.randrange(24),
            )
            voided, keeps_rules = random.random() < 0.2, random.random() < 0.8
            versions.append(Version(basket, day, written, f"{basket}.{written:02}", voided, keeps_rules))
        found.append((f"2017-01-{random.randint(8, 20):02}", tuple(versions)))
    return found


def newest_is_never_in_doubt(files: Files) -> Files:
    """Without the versions of a basket that were written in the same hour as another one."""
    seen: set[tuple[int, int]] = set()
    kept: Files = []
    for arrival, versions in files:
        fresh = []
        for version in versions:
            if (version.basket, version.written) not in seen:
                seen.add((version.basket, version.written))
                fresh.append(version)
        kept.append((arrival, tuple(fresh)))
    return kept


def least(before: Digests, after: Digests) -> dict[str, set[int]]:
    """The days of which an input has another content than before, whatever the planner says."""
    calendar = Calendar(date(2017, 1, 1), date(2017, 1, CALENDAR_DAYS))
    found: dict[str, set[int]] = {}
    for contract in TABLES:
        for day in calendar.days() if contract.inputs else ():
            for read in contract.inputs:
                window = set(days_read(read.window, day, calendar))
                then, now = before.get(read.table, {}), after[read.table]
                if any(then.get(one) != now[one] for one in now if one in window):
                    found.setdefault(contract.name, set()).add(day.day)
    return found


def computed(result: RefreshResult) -> dict[str, set[int]]:
    """The days of January that were recomputed, by table."""
    return {step.table: {day.day for day in step.published} for step in result.steps if step.published}


def derived(story: History) -> Digests:
    """Raw keeps duplicates and tombstones on purpose."""
    return {table: days for table, days in story.world.digests().items() if not table.startswith("raw.")}


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20))
def test_any_history_ends_where_one_load_of_everything_does(make_world: MakeWorld, seed: int) -> None:
    """Every history is delivered in several refreshes, and once more at once."""
    random = Random(seed)
    story = history(make_world, WINDOWS)
    turns = [some_files(random) for _ in range(3)]
    unique = newest_is_never_in_doubt([file for turn in turns for file in turn])
    delivered: Files = []
    for turn in turns:
        before = story.world.digests()
        batch, unique = unique[: len(turn)], unique[len(turn) :]
        batch += [random.choice(delivered)] if delivered and random.random() < 0.5 else []
        for arrival, versions in batch:
            story.deliver(arrival, f"{len(delivered)}.jsonl", *versions)
            delivered.append((arrival, versions))
        result = story.world.refresh()
        assert computed(result) == least(before, story.world.digests())
        assert story.kept() == story.expected()
        if random.random() < 0.5:
            day = date(2017, 1, random.randint(1, CALENDAR_DAYS))
            story.world.recompute([random.choice(TABLES[1:]).name], [day])
        assert not story.world.refresh().steps
    other = history(make_world, WINDOWS)
    random.shuffle(delivered)
    for number, (arrival, versions) in enumerate(delivered):
        other.deliver(arrival, f"{number}.jsonl", *versions)
    other.world.refresh()
    assert other.kept() == story.kept()
    assert derived(other) == derived(story)
