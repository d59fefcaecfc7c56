"""Any interleaving of publishers, with locks that are lost and processes that die: nobody's work is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from random import Random

import pytest

from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.errors import (
    Conflict,
    DamagedTableError,
    InterruptedPublicationError,
    LockLostError,
    OvertakenError,
)
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import current_release, published, release
from platform_assets.lakehouse.revert import undo_unreleased
from platform_assets.records.manifest import Manifest, TableChange, new_publication
from platform_assets_tests.support.models.interleaving import Turns, taking_turns
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    change,
    content,
    contents,
    day,
    manifest,
    stage,
    staged_manifest,
)

TABLES = (SALES, STORES)
DAYS = tuple(day(n) for n in range(3))
ACTORS, WORKS = 3, 2
A_PROOF = 500
"""Sequences of one proof."""

Rows = list[tuple[str, int]]
Place = tuple[str, date]


@dataclass
class Work:
    """One publication.

    Args:
        wrote: what the days are after it.
        read: what they were when it began.
        versions: of tables that it must find unchanged.
        on_release: that it must find current.
        said: what came of it: the number of its release, or an error; None if its process died.
    """

    wrote: Mapping[Place, Rows]
    read: Mapping[Place, Rows]
    versions: Mapping[str, int] = field(default_factory=dict)
    on_release: int | None = None
    said: int | Exception | None = None


UNDONE = Work({}, {})
"""What a release shows that undid what none had shown: nothing new."""


class Lakeside:
    """A lake, and what its publishers did."""

    def __init__(self, lake: Lake, turns: Turns) -> None:
        self.lake = lake
        self.turns = turns
        self.works: dict[str, Work] = {}

    def actor(self, number: int, random: Random) -> None:
        """Works a few times."""
        for turn in range(WORKS):
            what, work = self._prepared(f"{number}.{turn}", random)
            self.works[what.publication] = work
            self.turns.pause()
            try:
                work.said = publish(self.lake, what)
            except (Conflict, OvertakenError, LockLostError, InterruptedPublicationError, DamagedTableError) as error:
                work.said = error

    def _prepared(self, name: str, random: Random) -> tuple[Manifest, Work]:
        """Computed from what is there now, or put back from what was there once."""
        now = current_release(self.lake)
        places = random.sample([(table, when) for table in TABLES for when in DAYS], random.randint(1, 3))
        then = release(self.lake, random.randint(0, now.number)) if random.random() < 0.3 else None
        seen = {table: contents(self.lake, table, now) for table in TABLES}
        read = {(table, when): seen[table].get(when, []) for table, when in places}
        self.turns.pause()
        publication = new_publication()
        changes: list[TableChange] = []
        wrote: dict[Place, Rows] = {}
        for table in sorted({table for table, _ in places}):
            base = live_files(self.lake.table_path(table), now.versions[table])
            days = [when for one, when in places if one == table]
            if then is None:
                rows = {when: [(name, random.randrange(100))] for when in days}
                stage(self.lake, table, rows, publication)
                changes.append(change(self.lake, table, publication, base=base))
            else:
                files = live_files(self.lake.table_path(table), then.versions[table])
                before = contents(self.lake, table, then)
                rows = {when: before.get(when, []) for when in days}
                put_back = {when: content(files.get(when, ()), base.get(when, ())) for when in days}
                any_change = change(self.lake, table, self.first, base=base)
                changes.append(any_change.model_copy(update={"days": put_back}))
            wrote |= {(table, when): rows[when] for when in days}
        alone, on_it = random.random() < 0.3, random.random() < 0.2
        versions = {table: now.versions[table] for table in {table for table, _ in places}} if alone else {}
        expects = {"on_release": now.number if on_it else None, "on_versions": versions}
        made = manifest(publication, *changes).model_copy(update=expects)
        return made, Work(wrote, read, versions, made.on_release)

    def begin(self) -> None:
        """Every day has one row."""
        what = staged_manifest(self.lake, {table: {when: [("first", 0)] for when in DAYS} for table in TABLES})
        self.first = what.publication
        publish(self.lake, what)

    def check(self) -> None:
        """Every release is the one before it and one publication, which found what it had read."""
        [(_, first), *later] = list(published(self.lake))
        assert first == self.first
        assert len({name for _, name in later}) == len(later), "no publication is released twice"
        there: dict[Place, Rows] = {(table, when): [("first", 0)] for table in TABLES for when in DAYS}
        for number, name in later:
            work, before = self.works.get(name, UNDONE), release(self.lake, number - 1)
            for place, rows in work.read.items():
                assert there[place] in (rows, work.wrote[place]), f"release {number} takes {place} back from others"
            assert all(before.versions[table] == version for table, version in work.versions.items())
            assert work.on_release in (None, number - 1)
            there |= work.wrote
            for table in TABLES:
                expected = {when: rows for (one, when), rows in there.items() if one == table and rows}
                assert contents(self.lake, table, number) == expected, f"{self.lake.root}: release {number} of {table}"
        numbers = {name: number for number, name in later}
        for name, work in self.works.items():
            if isinstance(work.said, int):
                assert numbers[name] == work.said, "who is told a number finds it there"
            elif isinstance(work.said, Conflict | OvertakenError | LockLostError | DamagedTableError):
                assert name not in numbers, "who is told that nothing was published finds nothing"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "seeds",
    [range(5), *(pytest.param(range(n, n + A_PROOF), marks=pytest.mark.proof) for n in range(5, 2005, A_PROOF))],
)
def test_nobodys_work_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    """Each sequence is six publications by three processes; all of their releases are read."""
    lost = died = 0
    for seed in seeds:
        random = Random(seed)
        turns = Turns(random)
        lakeside = Lakeside(Lake.at(tmp_path / str(seed)), turns)
        lakeside.begin()
        with taking_turns(turns, monkeypatch):
            turns.play([partial(lakeside.actor, n, Random(f"{seed} {n}")) for n in range(ACTORS)])
        assert not turns.failed, f"seed {seed}: {turns.failed}"
        try:
            recover(lakeside.lake)
        except DamagedTableError:  # halves of two publications, left by publishers who lost the lock and died
            assert turns.locks_lost
            assert undo_unreleased(lakeside.lake)
        lakeside.check()
        assert publish(lakeside.lake, staged_manifest(lakeside.lake, {SALES: {DAYS[0]: [("and on", 1)]}}))
        lost, died = lost + turns.locks_lost, died + turns.died
    assert lost, "or nothing was tried"
    assert died, "or nothing was tried"
