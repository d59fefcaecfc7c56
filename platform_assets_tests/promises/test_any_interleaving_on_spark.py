"""Any interleaving of commands of several processes, for real: in the end the tables are what was delivered.

Locks are lost, processes die, clocks run behind and contracts differ between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from random import Random

import pytest

from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import DamagedTableError, LockLostError
from platform_assets.operations.opening import recover_installation
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.selection import BY_PERSON
from platform_assets_tests.support.domains.windows import TABLES
from platform_assets_tests.support.history import CALENDAR_DAYS, WINDOWS, History, Version, history, person
from platform_assets_tests.support.models.interleaving import Died, Turns, taking_turns
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

ACTORS, WORKS = 3, 2
RARELY = 0.004
"""A command passes some hundred points, so that a third of them die."""
BASKETS = 6
NEAR = "platform_assets_tests.support.domains.near_windows"


def six_baskets(lakes: Lakes) -> History:
    """Eight loaded days, some lines on each."""
    story = history(lakes.new, WINDOWS)
    for turn, arrival in enumerate(("2017-01-08", "2017-01-09")):
        lines = (Version(basket, basket, turn, f"{basket}.{turn:02}") for basket in range(1, BASKETS + 1))
        story.deliver(arrival, f"first-{turn}.jsonl", *lines)
        story.refresh()
    return story


@dataclass
class Office:
    """An installation, and what people did with it at once."""

    story: History
    turns: Turns
    withdrawn: dict[str, bool | None] = field(default_factory=dict)
    """By path of an arrival that somebody withdrew, whether they were told so; None if they died over it."""
    hours: Iterator[int] = field(default_factory=lambda: iter(range(2, 24)))

    def actor(self, random: Random) -> None:
        """A process that runs some commands."""
        for _ in range(WORKS):
            self.turns.pause()
            command = random.choice((self.deliver, self.deliver, self.compute, self.roll_back, self.withdraw))
            try:
                command(self._seen_by(random), random)
            except (LockLostError, DamagedTableError):
                assert self.turns.locks_lost
            except PlatformError:  # told what stands in the way, as a person would be
                pass

    def _seen_by(self, random: Random) -> World:
        """The installation as a machine sees it, whose clock may be behind or whose contracts may be others."""
        world = self.story.world
        draw = random.random()
        if draw < 0.2:
            return world.on(f"2017-01-{random.randint(7, 15):02}")
        if draw < 0.3:
            return replace(world, settings=world.settings.model_copy(update={"domains": (NEAR,)}))
        return world

    def deliver(self, world: World, random: Random) -> None:
        """New, moved and voided lines, good and bad, and a refresh."""
        hour = next(self.hours)
        lines = [
            Version(basket, random.randint(1, CALENDAR_DAYS + 1), hour, f"{basket}.{hour:02}",
                    voided=random.random() < 0.2, keeps_rules=random.random() < 0.8)
            for basket in random.sample(range(1, BASKETS + 1), random.randint(1, 3))
        ]  # fmt: skip
        self.story.deliver(f"2017-01-{random.randint(8, 20):02}", f"{hour:02}.jsonl", *lines)
        self.turns.pause()
        world.refresh()

    def compute(self, world: World, random: Random) -> None:
        """A day once more, by force."""
        day = date(2017, 1, random.randint(1, CALENDAR_DAYS))
        world.recompute([random.choice(TABLES[1:]).name], [day])

    def roll_back(self, world: World, random: Random) -> None:
        """A publication, and what was made of it since."""
        with world.open() as platform:
            days = [day for table in TABLES[1:] for day in platform.ledger.current_days(table.name).values()]
            if not days:  # all was rolled back to before there was anything
                return
            chosen = random.choice(sorted({day.publication for day in days}))
            self.turns.pause()
            rollback(platform, chosen_publications(platform, chosen), person(), cascade=random.random() < 0.8)

    def withdraw(self, world: World, random: Random) -> None:
        """An arrival, as if it had never come."""
        path = random.choice(sorted(self.story.files))
        before = self.withdrawn.get(path, False)
        try:
            with world.open() as platform:
                withdraw(platform, lambda: world.spark, [path], person())
            self.withdrawn[path] = True
        except Died:
            self.withdrawn[path] = before or None
            raise
        except PlatformError:
            self.withdrawn.setdefault(path, False)
            raise

    def end(self) -> None:
        """What was begun is finished, what was held is free, and everything is computed."""
        settings = self.story.world.settings
        try:
            recover_installation(settings)
        except DamagedTableError:  # halves of two publications, left by publishers who lost the lock and died
            assert self.turns.locks_lost
            recover_installation(settings, undo=person())
        with self.story.world.open() as platform:
            platform.ledger.drop(platform.ledger.holds())
        self._refreshed()
        assert not self._refreshed().steps

    def _refreshed(self) -> RefreshResult:
        world = self.story.world
        with world.open() as platform:
            return refresh(platform, lambda: world.spark, person(), request=BY_PERSON)

    def check(self) -> None:
        """Every file was taken once, who was told something was told the truth, and silver is the newest of it."""
        with self.story.world.open() as platform:
            arrivals = platform.ledger.arrivals("raw.transactions")
        taken = Counter(arrival.path for arrival in arrivals if arrival.kind == "delivery")
        assert {path: taken[path] for path in self.story.files} == dict.fromkeys(self.story.files, 1)
        gone = {arrival.origin for arrival in arrivals if arrival.kind == "withdrawal"}
        for path, said in self.withdrawn.items():
            assert said in (None, path in gone), f"{path} is withdrawn: {path in gone}, its process said: {said}"
        assert self.story.kept() == self.story.expected(but={path for path in gone if path})


@pytest.mark.timeout(1800)
@pytest.mark.proof
@pytest.mark.parametrize("seeds", [range(n, n + 10) for n in range(0, 50, 10)])
def test_the_end_is_what_was_delivered(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """Each sequence is six commands by three processes."""
    begun = prepared(six_baskets)
    for seed in seeds:
        turns = Turns(Random(seed), dies=RARELY)
        office = Office(begun.copied_to(tmp_path / str(seed)), turns)
        with taking_turns(turns, monkeypatch):
            turns.play([partial(office.actor, Random(f"{seed} {n}")) for n in range(ACTORS)])
        assert not turns.failed, f"seed {seed}: {turns.failed}"
        office.end()
        office.check()
