"""One key, one row: whatever day a record moves to, and in whatever order its versions arrive."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.contracts import Contract, ContractError, Rule
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.engine import raw as ingest_turn
from platform_assets.engine.ingest import batch as arrivals
from platform_assets.engine.moves import moved, moved_meanwhile, sent_home
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import LockLostError
from platform_assets.lakehouse.layout import located
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.selection import BY_PERSON
from platform_assets.records.manifest import DataFile
from platform_assets.settings import load_settings
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.domains import tills
from platform_assets_tests.support.history import TILLS, person
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.world import MakeWorld, World, sale

Version = dict[str, Any]
FIRST: Version = {"day": "2017-01-02"}
MOVED: Version = {"day": "2017-01-05", "updated_at": "2017-01-06T00:00:00Z", "sales_value": "9.00"}


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return eight_days(make_world, TILLS)


def eight_days(make_world: MakeWorld, domain: str, without: int = 0) -> World:
    """Eight days on which a file without rows was delivered, but for one."""
    world = make_world(days=8, domains=domain)
    for day in {*range(1, 9)} - {without}:
        world.deliver("transactions", f"2017-01-0{day}", "empty.jsonl", "")
    return world


def line(basket: int, version: Version) -> dict[str, Any]:
    return sale(basket, 1, **version)


def land_in_turn(world: World, orders: Sequence[Sequence[Version]], arrival: str = "2017-01-08") -> None:
    """The versions of basket n in the n-th order; in every round one version of each basket, then a refresh."""
    for turn, versions in enumerate(zip(*orders, strict=True)):
        rows = [line(basket, version) for basket, version in enumerate(versions)]
        world.deliver_rows("transactions", arrival, f"turn-{turn}.jsonl", rows)
        world.refresh()


def kept(world: World) -> list[tuple[int, str, str]]:
    rows = world.rows("silver.transactions")
    return sorted((row["basket_id"], str(row["event_date"]), str(row["sales_value"])) for row in rows)


BAD: Version = {"updated_at": "2017-01-07T12:00:00Z", "quantity": -1}


def test_a_correction_moves_a_sale_as_far_as_it_may_and_one_that_breaks_a_rule_takes_none_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three refreshes, one for each turn of the deliveries."""
    with_contracts(monkeypatch, replace(RAW_TRANSACTIONS, moves_within_days=3), SILVER_TRANSACTIONS)
    here: Version = {"day": "2017-01-02", **BAD}
    elsewhere: Version = {"day": "2017-01-05", **BAD}
    stays, moved = ("2017-01-02", "2.50"), ("2017-01-05", "9.00")
    orders = [
        ((FIRST, here, FIRST), stays),
        ((FIRST, elsewhere, FIRST), stays),
        ((elsewhere, FIRST, here), stays),
        ((FIRST, MOVED, here), moved),
        ((MOVED, FIRST, elsewhere), moved),
    ]
    land_in_turn(world, [order for order, _ in orders])
    assert kept(world) == [(basket, *where) for basket, (_, where) in enumerate(orders)]
    assert len(world.rows("quarantine.transactions")) == 6


@pytest.mark.proof
def test_a_contract_that_looks_further_for_versions_settles_those_that_lie_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four refreshes, each under another contract or with another delivery."""
    with_contracts(monkeypatch, replace(RAW_TRANSACTIONS, moves_within_days=0), SILVER_TRANSACTIONS)
    land_in_turn(world, [(FIRST, MOVED)])
    assert kept(world) == [(0, "2017-01-02", "2.50"), (0, "2017-01-05", "9.00")]
    with_contracts(monkeypatch, replace(RAW_TRANSACTIONS, moves_within_days=3), SILVER_TRANSACTIONS)
    by_person(world)
    assert kept(world) == [(0, "2017-01-05", "9.00")]
    assert not by_person(world).ingests[0].published, "raw is settled once"
    with_contracts(monkeypatch, replace(RAW_TRANSACTIONS, moves_within_days=2), SILVER_TRANSACTIONS)
    by_person(world)
    assert kept(world) == [(0, "2017-01-02", "2.50"), (0, "2017-01-05", "9.00")], "as if it had never looked further"


DEAR: Version = {"day": "2017-01-05", "updated_at": "2017-01-06T00:00:00Z", "sales_value": "900.00"}
CHEAP = replace(SILVER_TRANSACTIONS, rules=(Rule("cheap", "sales_value < 100", "Nothing is dear."),))


def a_sale_that_other_rules_would_move(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its newest version lies on another day, in quarantine; from now on it is good."""
    with_contracts(monkeypatch, RAW_TRANSACTIONS, CHEAP)
    world.deliver_rows("transactions", "2017-01-08", "both.jsonl", [line(0, FIRST), line(0, DEAR)])
    world.refresh()
    assert kept(world) == [(0, "2017-01-02", "2.50")]
    with_contracts(monkeypatch, RAW_TRANSACTIONS, replace(CHEAP, rules=()))


@pytest.mark.proof
def test_of_two_days_between_which_other_rules_move_a_sale_none_is_published_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of one of them comes, then both are computed, and a rollback of one of them is refused."""
    a_sale_that_other_rules_would_move(world, monkeypatch)
    world.deliver_rows("transactions", "2017-01-08", "more.jsonl", [sale(7, 1, "2017-01-05")])
    [step] = world.refresh().steps
    assert {str(day) for day in step.blocked} == {"2017-01-05"}
    assert kept(world) == [(0, "2017-01-02", "2.50")]
    by_person(world)
    after = [(0, "2017-01-05", "900.00"), (7, "2017-01-05", "2.50")]
    assert kept(world) == after
    with world.open() as platform:
        chosen = chosen_publications(platform, sorted(platform.ledger.indexed())[-1])
        for day in ("2017-01-02", "2017-01-05"):
            with pytest.raises(PlatformError, match="2017-01-02"):
                rollback(platform, chosen, person(), days=[date.fromisoformat(day)])
        rollback(platform, chosen, person())
    assert kept(world) == [(0, "2017-01-02", "2.50")]


@pytest.mark.proof
def test_files_wait_while_a_contract_orders_rows_otherwise_than_those_that_are_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three refreshes: before the change, under it, and once it is taken back."""
    world.deliver_rows("transactions", "2017-01-08", "first.jsonl", [line(0, FIRST)])
    world.refresh()
    with_contracts(monkeypatch, replace(RAW_TRANSACTIONS, voided=None), SILVER_TRANSACTIONS)
    world.deliver_rows("transactions", "2017-01-08", "second.jsonl", [line(1, FIRST)])
    assert not world.refresh().ingests
    with pytest.raises(ContractError, match=r"voided' changed from voided to None"):
        by_person(world)
    with_contracts(monkeypatch, RAW_TRANSACTIONS, SILVER_TRANSACTIONS)
    world.refresh()
    assert kept(world) == [(0, "2017-01-02", "2.50"), (1, "2017-01-02", "2.50")]


def with_contracts(monkeypatch: pytest.MonkeyPatch, *tables: Contract) -> None:
    """The tills have other contracts from now on."""
    monkeypatch.setattr(tills, "DOMAIN", replace(tills.DOMAIN, tables=tables))


def by_person(world: World) -> RefreshResult:
    with world.open() as platform:
        return refresh(platform, lambda: world.spark, Author("test", "other contracts"), request=BY_PERSON)


@pytest.mark.proof
def test_who_lost_the_lock_of_an_ingest_takes_nothing_and_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three refreshes, one of them in the midst of another."""
    one = world.deliver_rows("transactions", "2017-01-07", "one.jsonl", [line(0, FIRST)])

    def another_refresh() -> None:
        hidden = one.rename(one.with_name(".one.jsonl"))  # so that no day is published by both
        world.deliver_rows("transactions", "2017-01-08", "other.jsonl", [line(0, MOVED)])
        world.refresh()
        hidden.rename(one)

    once_at(monkeypatch, arrivals, "ingest.counted", another_refresh)
    monkeypatch.setattr(ingest_turn, "ingest_lock", lambda *_: nullcontext())
    with pytest.raises(LockLostError, match=r"made version \d of raw\.transactions"):
        world.refresh()
    assert kept(world) == [(0, "2017-01-05", "9.00")]
    world.refresh()
    assert kept(world) == [(0, "2017-01-05", "9.00")]


RAW, SILVER = "raw.transactions", "silver.transactions"
DAYS = [date(2017, 1, 1) + timedelta(days=n) for n in range(8)]
LEFT, CAME = DAYS[1], DAYS[4]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """Eight days, computed from raw without rows."""
    settings = load_settings(
        state=tmp_path / "state", domains=TILLS, calendar_first=DAYS[0], calendar_last=DAYS[-1], today=DAYS[-1]
    )
    with open_platform(settings) as opened:
        publish(opened, RAW, DAYS, 1)
        publish(opened, SILVER, DAYS, 1)
        yield opened


def a_record_moves(platform: Platform) -> None:
    """From one of the two days to the other; raw has told of it, silver does not know yet."""
    publish(platform, RAW, [LEFT], 2, told=CAME)
    publish(platform, RAW, [CAME], 2)


def undo(platform: Platform, publication: str, days: Collection[date] | None = None) -> str:
    """Roll back; the name of the publication that did."""
    rollback(platform, chosen_publications(platform, publication), person(), days=days)
    indexed = platform.ledger.indexed()
    return max(indexed, key=lambda name: indexed[name])


def digests(platform: Platform) -> dict[date, str]:
    return {day: found.digest for day, found in platform.ledger.current_days(SILVER).items() if day in (LEFT, CAME)}


def test_days_come_forward_as_they_went_back_both_or_none(platform: Platform) -> None:
    before = digests(platform)
    a_record_moves(platform)
    moved = publish(platform, SILVER, [LEFT, CAME], 2)
    after = digests(platform)
    for alone in (LEFT, CAME):
        with pytest.raises(PlatformError, match="moved between"):
            undo(platform, moved, [alone])
    back = undo(platform, moved)
    assert digests(platform) == before
    for alone in (LEFT, CAME):
        with pytest.raises(PlatformError, match="moved between"):
            undo(platform, back, [alone])
    assert digests(platform) == before
    undo(platform, back)
    assert digests(platform) == after


def test_days_that_knew_of_a_move_before_and_know_of_it_after_go_back_without_each_other(platform: Platform) -> None:
    """Of these made again, one goes back; another day beside it, to what it was before the move."""
    a_record_moves(platform)
    publish(platform, SILVER, [LEFT, CAME], 2)
    after = digests(platform)
    again = publish(platform, SILVER, [LEFT, DAYS[5]], 2)
    undo(platform, again)
    assert digests(platform) == after
    assert platform.ledger.history(SILVER, LEFT)[0].publication != again


def test_a_day_that_was_as_if_never_computed_comes_back_only_beside_one_that_knows_of_the_same_moves(
    platform: Platform,
) -> None:
    publish(platform, SILVER, DAYS[:1], 3)  # so that the days' first publication is not the newest
    first = platform.ledger.current_days(SILVER)[CAME].publication
    a_record_moves(platform)
    moved = publish(platform, SILVER, [LEFT, CAME], 2)
    rollback(platform, chosen_publications(platform, first), person(), days=[CAME], cascade=True)
    gone = platform.ledger.history(SILVER, CAME)[0].publication
    assert set(digests(platform)) == {LEFT} or not digests(platform)[CAME]
    knows = undo(platform, gone)  # the other day knows of the move as well
    undo(platform, knows)
    gone = platform.ledger.history(SILVER, CAME)[0].publication
    undo(platform, moved, [LEFT])  # nothing is shown twice, since the other day is not shown
    with pytest.raises(PlatformError, match=f"moved between {CAME} and {LEFT}"):
        undo(platform, gone)


def test_an_older_version_that_came_late_ties_no_day_to_one_that_would_come_out_the_same(platform: Platform) -> None:
    publish(platform, SILVER, DAYS[:1], 3)
    first = platform.ledger.current_days(SILVER)[LEFT].publication
    publish(platform, RAW, [LEFT], 2, told=CAME)
    publish(platform, SILVER, [LEFT], 2)
    rollback(platform, chosen_publications(platform, first), person(), days=[LEFT], cascade=True)
    undo(platform, platform.ledger.history(SILVER, LEFT)[0].publication)
    assert digests(platform)[LEFT] == "0-2-0-0-0"


def test_what_others_published_of_a_move_is_seen_from_either_side(platform: Platform) -> None:
    snapshot = LakeSnapshot.now(platform)
    a_record_moves(platform)
    contract = platform.catalogue[SILVER]
    assert moved_meanwhile(contract, [LEFT], snapshot, LakeSnapshot.now(platform)) == set(), "of that day nothing yet"
    publish(platform, SILVER, [DAYS[6]], 2)
    assert moved_meanwhile(contract, [LEFT, CAME], snapshot, LakeSnapshot.now(platform)) == set(), "nothing moved there"
    publish(platform, SILVER, [CAME], 2)
    assert moved_meanwhile(contract, [LEFT], snapshot, LakeSnapshot.now(platform)) == {(LEFT, CAME)}
    older = LakeSnapshot(platform, LakeSnapshot.now(platform).release)
    publish(platform, SILVER, [LEFT], 2)
    assert moved_meanwhile(contract, [CAME], older, LakeSnapshot.now(platform)) == set(), "both know of it"
    assert moved_meanwhile(contract, [CAME], snapshot, LakeSnapshot.now(platform)) == {(LEFT, CAME)}


NEAR, FAR = date(2017, 1, 5), date(2017, 1, 9)
Row = tuple[str, str, date]
"""Kind, arrival, day of the version."""


def raw_file(table: Path, name: str, *rows: Row, told: bool = True) -> DataFile:
    """A file of a raw day, with statistics or without."""
    kinds, arrivals, days = zip(*rows, strict=True)
    pq.write_table(pa.table({"_kind": kinds, "_arrival": arrivals, "_order_day": days}), table / name)
    stats = {"minValues": {"_kind": min(kinds)}, "maxValues": {"_kind": max(kinds)}} if told else {}
    return DataFile(path=name, size=(table / name).stat().st_size, modified_ms=0, stats=json.dumps(stats))


@pytest.mark.parametrize("told", [True, False])
def test_records_move_with_the_tombstones_that_came_since(tmp_path: Path, told: bool) -> None:
    known = raw_file(tmp_path, "known", ("record", "a", NEAR), ("tombstone", "b", NEAR), told=told)
    new = raw_file(tmp_path, "new", ("tombstone", "c", FAR), told=told)
    assert moved(located(tmp_path), [known], [known, new]) == {FAR}
    assert moved(located(tmp_path), [], [known, new]) == {NEAR, FAR}
    assert moved(located(tmp_path), [known, new], [known, new]) == set()


def test_a_withdrawal_sends_home_what_its_arrival_had_taken_away(tmp_path: Path) -> None:
    known = raw_file(tmp_path, "known", ("tombstone", "b", NEAR), ("tombstone", "c", FAR))
    back = raw_file(tmp_path, "back", ("withdrawal", "b", NEAR))
    assert moved(located(tmp_path), [known], [known, back]) == {NEAR}
    assert sent_home(located(tmp_path), [known], [known, back]) == {NEAR}
    assert sent_home(located(tmp_path), [], [known, back]) == {NEAR}, "whenever its tombstone came"
    assert sent_home(located(tmp_path), [known, back], [known, back]) == set()
    assert sent_home(located(tmp_path), [], [known]) == set()


def test_what_moved_is_read_without_pandas(tmp_path: Path) -> None:
    """To import it takes longer than a rollback of a year; Arrow does where a value of Python's is asked for."""
    raw_file(tmp_path, "new", ("record", "a", NEAR), ("tombstone", "b", FAR))
    said = """
import sys
from pathlib import Path
from platform_assets.engine.moves import moved
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.releases import _vector
from platform_assets.records.manifest import DataFile
print(moved(located(sys.argv[1]), [], [DataFile(path="new", size=1, modified_ms=0, stats="{}")]))
print(len(_vector({"gold.sales": 3})) > 0, sorted({"pandas"} & sys.modules.keys()))
"""
    ended = subprocess.run(
        [sys.executable, "-c", said, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stdout.splitlines() == ["{datetime.date(2017, 1, 9)}", "True []"]
