"""What is stale, found from what happened since the last look, is what a look at every day finds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import begin_look, keep_look, look_at_all, past_of, states_of_all
from platform_assets.ledger.ledger import Ledger
from platform_assets.planning.day_states import Held, Stale, States, TableStates, not_up_to_date
from platform_assets.planning.plan import Plan, make_plan
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.history import RELOAD, ROLL_BACK, Hold
from platform_assets_tests.support.paper_lake import DOMAIN, FIRST, RAW, TAKEN, Made, PaperLake
from platform_assets_tests.support.postgres import PostgresServer

DAYS = 12
COMPUTED = tuple(contract.name for contract in DOMAIN.tables if contract.inputs)
REQUESTS = (
    AUTOMATIC,
    BY_PERSON,
    Request(by_person=True, force=True, tables=frozenset({"gold.month"})),
    Request(by_person=True, days=frozenset({FIRST + timedelta(days=3)})),
)
NOON = datetime(2017, 3, 1, 12, tzinfo=UTC)


def nth(number: int) -> date:
    return FIRST + timedelta(days=number)


def plans(snapshot: LakeSnapshot, tables: TableStates, states: States) -> list[Plan]:
    """What is planned for whoever asks."""
    past = past_of(snapshot, tables, states)
    return [make_plan(snapshot.platform.catalogue, tables, states, past, request) for request in REQUESTS]


def check(lake: PaperLake, *, look: bool) -> None:
    """By the last look, and at every day."""
    lake.keep_views()
    snapshot = LakeSnapshot.now(lake.platform)
    quick = look_at_all(snapshot) if look else states_of_all(snapshot)
    whole = states_of_all(replace(snapshot, looks_back=False))
    assert {t: not_up_to_date(s) for t, s in quick[1].items()} == {t: not_up_to_date(s) for t, s in whole[1].items()}
    assert plans(snapshot, *quick) == plans(snapshot, *whole)
    assert quick[0].changing == whole[0].changing
    assert quick[0].views == whole[0].views


class Random:
    """What may happen to an installation."""

    def __init__(self, lake: PaperLake, seed: int) -> None:
        self.lake, self.random = lake, random.Random(seed)

    def happen(self) -> None:
        """Any one thing."""
        things = (self.deliver, self.deliver, self.refresh, self.refresh, self.refresh, self.hold, self.lift)
        more = (self.grow, self.grow, self.other_code, self.reload, self.undo, self.index_anew, self.put)
        rest = (self.shrink, self.clock_behind, self.other_contract, self.compact, self.restore, self.slow_look)
        self.lake.keep_views()
        self.random.choice((*things, *more, *rest))()

    @property
    def computed(self) -> tuple[str, ...]:
        """The tables with a transform that are there."""
        return tuple(table for table in COMPUTED if table != self.lake.without)

    @property
    def day(self) -> date:
        """One of the calendar, or just outside of it."""
        return nth(self.random.randint(-1, (self.lake.last - FIRST).days + 1))

    def digest(self) -> str:
        """Of few, so that days often come out as they were."""
        return self.random.choice(("a1", "a2", "b1", "b2"))

    def deliver(self) -> None:
        """Rows, or none, for some raw days."""
        table = self.random.choice(RAW)
        some = {self.day for _ in range(self.random.randint(1, 4))}
        days = {day: Made(self.digest(), rows=self.random.randint(0, 1)) for day in sorted(some)}
        self.lake.publish({table: days}, (table, self.lake.last - timedelta(days=self.random.randint(0, 1)), TAKEN))

    def deliver_all(self) -> None:
        """Every day of every raw table."""
        days = [nth(number) for number in range((self.lake.last - FIRST).days + 1)]
        for table in RAW:
            self.lake.publish({table: {d: Made(self.digest()) for d in days}}, (table, self.lake.last, TAKEN))

    def refresh(self) -> None:
        """What is stale, or most of it, table by table."""
        for table in self.computed:
            _, states = states_of_all(
                LakeSnapshot(self.lake.platform, self.lake.platform.current_release(), looks_back=False)
            )
            stale = {day: s.fingerprint for day, s in states[table].items() if isinstance(s, Stale) and s.fingerprint}
            made = {day: Made(self.digest(), mark) for day, mark in stale.items() if self.random.random() < 0.9}
            if made:
                self.lake.publish({table: made})
                self.lake.keep_views()

    def hold(self) -> None:
        """A day as it would come out, or as something else, or for another day."""
        table, day = self.random.choice(self.computed), self.day
        _, states = states_of_all(replace(LakeSnapshot.now(self.lake.platform), looks_back=False))
        state = states[table].get(day)
        mark = state.fingerprint if isinstance(state, Stale) else self.random.choice(("other", *self._made_from(table)))
        version = self.random.choice((Version(), self.lake.platform.version(table), Version("old", "")))
        refused = self.random.choice((Attempt(mark, version), Attempt(mark, version), TiedTo(self.day)))
        gate = self.random.choice(("rows", ROLL_BACK))
        self.lake.ledger.hold([Hold(table, day, refused, gate, "a test", "r", NOON)])

    def _made_from(self, table: str) -> list[str]:
        return [mark.fingerprint for mark in self.lake.ledger.marks([table], at=len(self.lake.records))[table].values()]

    def lift(self) -> None:
        """Some holds."""
        self.lake.ledger.drop([hold for hold in self.lake.ledger.holds() if self.random.random() < 0.5])

    def grow(self) -> None:
        """Time goes on."""
        self.lake.last += timedelta(days=self.random.randint(1, 3))

    def shrink(self) -> None:
        """The calendar ends earlier, for somebody or for all."""
        self.lake.last = max(FIRST, self.lake.last - timedelta(days=self.random.randint(1, 3)))

    def clock_behind(self) -> None:
        """Today is another day than the calendar's last."""
        self.lake.behind = timedelta(days=self.random.randint(0, 3))

    def other_contract(self) -> None:
        """What a contract says of deliveries, or that a table is none any more."""
        self.lake.delivers = self.random.choice(("daily", "on change"))
        self.lake.closed = frozenset({self.day} if self.random.random() < 0.5 else ())
        self.lake.without = self.random.choice(("", "", "gold.month"))

    def compact(self) -> None:
        """Days as they are, in a publication of their own."""
        table = self.random.choice(self.computed)
        marks = self.lake.ledger.marks([table], at=len(self.lake.records) - 1)[table]
        some = self.random.sample(sorted(marks), min(3, len(marks)))
        made = {d: Made(m.digest, m.fingerprint, m.rows, m.code_version) for d in some for m in [marks[d]]}
        if made:
            self.lake.publish({table: made})

    def restore(self) -> None:
        """The ledger is again as it was before the newest publications, with its looks, and catches up."""
        newest = self.lake.records[-self.random.randint(1, 3) :]
        kept = self.lake.looks_at(newest[0].release - 1)
        self.lake.ledger.reindex([record.publication for record in newest], ())
        self.lake.put_looks(kept)
        self.lake.ledger.record(*newest)

    def slow_look(self) -> None:
        """Somebody looks while other things happen, and keeps what was found before."""
        snapshot = LakeSnapshot.now(self.lake.platform)
        mark = begin_look(snapshot)
        tables, states = states_of_all(snapshot)
        for _ in range(self.random.randint(1, 2)):
            self.happen()
        if self.random.random() < 0.5:
            check(self.lake, look=True)
        keep_look(snapshot, tables, states, mark)

    def other_code(self) -> None:
        """Another version of all transforms."""
        self.lake.code = self.random.choice("123")

    def reload(self) -> None:
        """All deliveries of a raw table count no more."""
        table = self.random.choice(RAW)
        self.lake.publish({table: {}}, (table, FIRST, RELOAD))

    def undo(self) -> None:
        """A day is put back to before it was ever computed."""
        self.lake.publish({self.random.choice(self.computed): {self.day: Made("", rows=0)}})

    def put(self) -> None:
        """Days of any content, by any code."""
        made = {d: Made(self.digest(), "other", code=self.random.choice(("", "old"))) for d in (self.day, self.day)}
        self.lake.publish({self.random.choice(self.computed): made})

    def index_anew(self) -> None:
        """The newest publications are forgotten and indexed otherwise."""
        newest = self.lake.records[-self.random.randint(1, 2) :]
        self.lake.ledger.reindex([record.publication for record in newest], newest, lift=self.random.random() < 0.3)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.proof)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.db'}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        yield server.new_database()


def test_a_look_at_what_the_ledger_said_before_it_was_mended_is_not_kept(tmp_path: Path, url: str) -> None:
    """An index that says of a stale day that it is not, a look, and only then the index made anew."""
    lake = PaperLake(tmp_path, url, nth(DAYS))
    try:
        history = Random(lake, 0)
        history.deliver_all()
        lake.keep_views()
        stale = look_at_all(LakeSnapshot.now(lake.platform))[1]["silver.sales"][nth(3)]
        assert isinstance(stale, Stale)
        made = lake.publish({"silver.sales": {nth(3): Made("a1", "another")}})
        for before in ("a look", "nothing", "marks are read"):
            with lake.ledger._database.writing() as connection:
                connection.execute(
                    text("UPDATE ledger_days SET fingerprint = :mark WHERE publication = :name"),
                    {"mark": stale.fingerprint, "name": made.publication},
                )
            snapshot = LakeSnapshot.now(lake.platform)
            if before == "a look":
                look_at_all(snapshot)
                snapshot = LakeSnapshot.now(lake.platform)
            if before == "marks are read":  # as a command does that compares contracts before it plans
                snapshot.marks(lake.platform.catalogue.names)
                lake.ledger.reindex([made.publication], [made])
                look_at_all(snapshot)
            else:
                mark = begin_look(snapshot)
                tables, states = states_of_all(snapshot)
                lake.ledger.reindex([made.publication], [made])
                keep_look(snapshot, tables, states, mark)
            check(lake, look=False)
    finally:
        lake.ledger.close()


def test_nothing_is_written_where_nothing_changed(tmp_path: Path, url: str) -> None:
    lake = PaperLake(tmp_path, url, nth(DAYS))
    try:
        history = Random(lake, 0)
        history.deliver_all()
        history.refresh()
        history.hold()
        check(lake, look=True)
        before = lake.looks_at(len(lake.records))
        check(lake, look=True)
        assert lake.looks_at(len(lake.records)) == before
    finally:
        lake.ledger.close()


def test_a_look_waits_for_nobody_who_writes_for_long(tmp_path: Path, url: str) -> None:
    lake = PaperLake(tmp_path, url, nth(DAYS))
    other = Ledger.open(url)
    try:
        Random(lake, 0).deliver_all()
        lake.keep_views()
        with other._database.writing():
            began = time.monotonic()
            _, states = look_at_all(LakeSnapshot.now(lake.platform))
            assert time.monotonic() - began < 5
        assert isinstance(states["silver.sales"][nth(3)], Stale)
        assert not lake.looks_at(len(lake.records))
        check(lake, look=True)
        assert lake.looks_at(len(lake.records))
    finally:
        other.close()
        lake.ledger.close()


def test_all_that_is_decided_on_a_snapshot_is_decided_on_one_moment(tmp_path: Path) -> None:
    lake = PaperLake(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", nth(DAYS))
    try:
        Random(lake, 0).deliver_all()
        lake.keep_views()
        snapshot = LakeSnapshot.now(lake.platform)
        moment, (tables, states) = snapshot.moment, states_of_all(snapshot)
        stale = states["silver.sales"][nth(3)]
        assert isinstance(stale, Stale)
        lake.ledger.hold([Hold("silver.sales", nth(3), Attempt(stale.fingerprint), "rows", "a test", "r", NOON)])
        lake.publish({"silver.sales": {nth(4): Made("a1", "another")}})
        assert (snapshot.moment, *states_of_all(snapshot)) == (moment, tables, states), "whatever others do meanwhile"
        later = LakeSnapshot.now(lake.platform)
        assert later.moment != moment
        assert isinstance(states_of_all(later)[1]["silver.sales"][nth(3)], Held)
    finally:
        lake.ledger.close()


def test_where_most_days_are_open_all_are_fetched_and_the_same_is_found(tmp_path: Path) -> None:
    lake = PaperLake(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", nth(200))
    try:
        Random(lake, 0).deliver_all()
        check(lake, look=True)
        since = LakeSnapshot.now(lake.platform).since
        assert since
        assert since.is_of_most_days(lake.platform.catalogue.names)
        check(lake, look=True)
    finally:
        lake.ledger.close()


def test_a_look_at_what_happened_finds_what_a_look_at_every_day_finds(tmp_path: Path, url: str) -> None:
    _random_history(tmp_path, url, seed=0, steps=6)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(100, 112))
def test_many_random_histories(tmp_path: Path, seed: int) -> None:
    _random_history(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", seed, steps=30)


def _random_history(tmp_path: Path, url: str, seed: int, steps: int) -> None:
    lake = PaperLake(tmp_path, url, nth(DAYS))
    try:
        history = Random(lake, seed)
        history.deliver_all()
        history.refresh()
        check(lake, look=True)
        for _ in range(steps):
            history.happen()
            check(lake, look=history.random.random() < 0.6)
    finally:
        lake.ledger.close()
