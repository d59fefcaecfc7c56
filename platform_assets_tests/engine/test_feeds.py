"""Deletes and corrections as change feeds write them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from platform_assets.cli.held_view import DayWarning
from platform_assets.contracts import ContractError, LandingFiles
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.moves import keys_on_two_days
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.status import table_metrics
from platform_assets.operations.verify import verify
from platform_assets.planning.selection import Selection
from platform_assets_tests.support import feeds
from platform_assets_tests.support.feeds import deliver, order
from platform_assets_tests.support.history import person
from platform_assets_tests.support.world import MakeWorld, World


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world(days=3, domains=feeds.__name__)


def with_raw(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """The raw table has another contract from now on."""
    tables = (replace(feeds.RAW, **changes), feeds.SILVER)
    monkeypatch.setattr(feeds, "DOMAIN", replace(feeds.DOMAIN, tables=tables))


def refresh_with(world: World, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    with_raw(monkeypatch, **changes)
    world.refresh()


def amounts(world: World) -> dict[int, str]:
    return {row["order_id"]: str(row["amount"]) for row in world.rows("silver.orders")}


def balance(world: World) -> dict[str, int]:
    """What became of the rows of the first day, none of them lost."""
    with world.open() as platform:
        record = min(platform.ledger.current_days("silver.orders").values(), key=lambda record: record.day)
    found = {name: record.figures[name] for name in ("raw", "superseded", "voided", "quarantined")}
    assert found["raw"] == record.rows + found["superseded"] + found["voided"] + found["quarantined"]
    return found


def test_a_delete_and_a_correction_to_missing_take_a_record_back_and_a_broken_rule_only_its_row(world: World) -> None:
    """A delete is told by an operation, with the order's day or without; a key that was missing may have an amount."""
    deliver(
        world,
        order(1, "10.00", 1, "I"),
        order(1, None, 2, "D"),
        order(2, "20.00", 3, "D"),  # and what is written before it, comes after it
        order(2, "20.00", 1, None),
        order(3, "30.00", 1, None),
        {"order_id": 3, "op": "D", "updated_at": "2017-01-02T05:00:00Z"},
        order(4, "40.00", 1) | {"amount": "forty"},
        order(5, "50.00", 1, "D") | {"amount": "fifty"},
    )
    deliver(world, *(order(number, "10.00", 1) for number in range(11, 16)), order(16, "-9999", 1))
    deliver(
        world,
        order(11, "-9999", 2),
        order(12, "5000", 2),
        order(13, "-9999", 2),
        order(13, "7.00", 3),
        order(14, "-9999", 2),
        order(14, None, 3, "D"),
    )
    world.refresh()
    assert amounts(world) == {12: "10.00", 13: "7.00", 15: "10.00"}
    assert balance(world) == {"raw": 18, "superseded": 6, "voided": 4, "quarantined": 5}
    assert {row["_reason"] for row in world.rows("refused.orders")} == {"amount: not decimal(12,2): forty"}
    reasons = sorted(row["_reason"] for row in world.rows("quarantine.orders"))
    assert reasons == ["amount_known"] * 4 + ["amount_small"]


@pytest.mark.parametrize(
    ("voided", "says"),
    [
        ("op = 'D' and", "not a condition on its columns"),
        ("operation = op", "operation"),
        ("op", "'op' as a column of type boolean"),
        ("concat(op, 'x')", "not a condition on its columns"),
        ("1 = 1", "looks at none of its columns"),
    ],
)
def test_a_condition_that_is_none_is_told_by_the_name_of_its_table(
    world: World, monkeypatch: pytest.MonkeyPatch, voided: str, says: str
) -> None:
    deliver(world, order(1, "10.00", 1))
    with pytest.raises(PlatformError, match=says) as error:
        refresh_with(world, monkeypatch, voided=voided)
    assert "raw.orders" in str(error.value)


@pytest.mark.proof
def test_a_key_moved_further_than_its_contract_says_is_told_in_the_days_check_and_by_a_look_at_whole_tables(
    make_world: MakeWorld,
) -> None:
    """What is told: the day it came to, the other day, and how far apart they are; never a key whose days are near."""
    world = make_world(days=3, domains=feeds.__name__)
    deliver(world, order(1, "10.00", 1), order(2, "20.00", 1), arrival="2017-01-01")
    deliver(world, order(7, "1.00", 1, day="2017-01-02"))
    assert not warnings(world)
    deliver(world, order(2, "25.00", 2, day="2017-01-03"), order(8, "1.00", 2, day="2017-01-03"), arrival="2017-01-03")
    [told] = warnings(world)
    assert "2017-01-03 contract: 1 key also on 2017-01-01, further away than raw.orders compares keys" in told
    with world.open() as platform:
        [found] = keys_on_two_days(platform, platform.catalogue.names)["silver.orders"]
    assert found == (date(2017, 1, 1), date(2017, 1, 3), 1, "order_id 2")


def warnings(world: World) -> list[str]:
    """What a refresh tells, and `status` then, too."""
    [step] = world.refresh().steps
    with world.open() as platform:
        warned = platform.ledger.warned(platform.catalogue.names, at=platform.current_release().number)
    assert [(record.day, *record.warnings) for record in warned] == [
        (day, *content.warnings) for day, content in step.published.items() if content.warnings
    ]
    return [str(warning) for warning in DayWarning.of(step.table, step.published)]


@pytest.mark.proof
@pytest.mark.parametrize("newer_first", [True, False])
def test_a_day_delivered_again_is_what_its_newest_arrival_brought_until_that_is_withdrawn(
    world: World, monkeypatch: pytest.MonkeyPatch, newer_first: bool
) -> None:
    """In whatever order the arrivals are taken; the files of one arrival date are one delivery."""
    with_raw(monkeypatch, source=LandingFiles("orders", replaces="days"))
    older = {"2017-01-02/a.jsonl": [order(1, "10.00", 5), order(2, "20.00", 1), order(3, "30.00", 1)]}
    newer = {
        "2017-01-03/a.jsonl": [order(1, "11.00", 2), order(9, "9.00", 2, day="2017-01-03")],
        "2017-01-03/b.jsonl": [order(2, "20.00", 1)],
    }
    for files in (newer, older) if newer_first else (older, newer):
        for path, rows in files.items():
            arrival, _, name = path.partition("/")
            world.deliver_rows("orders", arrival, name, rows)
        world.refresh()
    assert amounts(world) == {1: "11.00", 2: "20.00", 9: "9.00"}
    assert balance(world) == {"raw": 5, "superseded": 3, "voided": 0, "quarantined": 0}
    with world.open() as platform:
        found: dict[str, Any] = dict(table_metrics(LakeSnapshot.now(platform), {"silver.orders": date(2017, 1, 1)}))
        assert [day["duplicates_per_1000"] for day in found["silver.orders"]["days"].values()] == [0.0], (
            "replaced, not repeated"
        )
        withdraw(platform, lambda: world.spark, [f"orders/{path}" for path in newer], person("a bad export"))
    world.refresh()
    assert amounts(world) == {1: "10.00", 2: "20.00", 3: "30.00"}


@pytest.mark.parametrize("newer_first", [True, pytest.param(False, marks=pytest.mark.proof)])
def test_a_snapshot_of_the_whole_table_empties_the_days_it_has_no_row_of_until_it_is_withdrawn(
    world: World, monkeypatch: pytest.MonkeyPatch, newer_first: bool
) -> None:
    """In whatever order they are taken. A file without rows, and a day too far back to be taken, are left out."""
    with_raw(monkeypatch, source=LandingFiles("orders", replaces="table", resent="anew"), restatement_window_days=1)
    files = {
        "2017-01-02": {"a": [order(1, "10.00", 1), order(2, "20.00", 1), order(3, "30.00", 1, day="2017-01-02")]},
        "2017-01-03": {
            "a": [order(8, "8.00", 2, day="2017-01-03")],
            "b": [order(9, "9.00", 2, day="2017-01-03")],
            "c": [],
        },
    }
    for arrival in sorted(files, reverse=newer_first):
        for name, rows in files[arrival].items():
            world.deliver_rows("orders", arrival, f"{name}.jsonl", rows)
        world.refresh()
    old = {1: "10.00", 2: "20.00"}
    assert amounts(world) == old | {8: "8.00", 9: "9.00"}
    # A part of the snapshot, then the rest; in every run both at once.
    parts = [("b", "a")] if newer_first else [("b",), ("a",)]
    for names in parts:
        with world.open() as platform:
            paths = [f"orders/2017-01-03/{name}.jsonl" for name in names]
            withdraw(platform, lambda: world.spark, paths, person("a bad export"))
        world.refresh()
        assert amounts(world) == old | ({3: "30.00"} if "a" in names else {8: "8.00"})


@pytest.mark.parametrize("replaces", ["days", "table"])
def test_a_source_that_replaces_days_has_no_records_that_move(replaces: Any) -> None:
    source = LandingFiles("orders", replaces=replaces, resent="anew")
    with pytest.raises(ContractError, match=r"raw\.orders has a source that replaces whole days"):
        replace(feeds.RAW, source=source, moves_within_days=3)


def test_a_source_of_snapshots_takes_no_file_for_a_replay() -> None:
    with pytest.raises(ContractError, match="is taken for a replay of that"):
        LandingFiles("orders", replaces="table")


def deleted(number: int, hour: int, **changes: Any) -> dict[str, Any]:
    """A delete with nothing but its key and its place in the order."""
    written = f"2017-01-02T{hour:02}:00:00Z"
    return {"order_id": number, "op": "D", "updated_at": written} | changes


@pytest.mark.proof
@pytest.mark.parametrize("order_of_taking", [((2, 3), (0, 1)), ((3,), (2,), (1,), (0,)), ((0, 1, 2, 3),)])
def test_a_delete_with_nothing_but_its_key_takes_the_record_back_wherever_it_lies(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch, order_of_taking: tuple[tuple[int, ...], ...]
) -> None:
    """In whatever order the files are taken, or all at once; a record that is newer than the delete stays."""
    may_lack = ("ordered_on", "amount")
    columns = [replace(c, nullable=True, may_be_absent=True) if c.name in may_lack else c for c in feeds.RAW.columns]
    with_raw(monkeypatch, columns=tuple(columns), moves_within_days=1)
    world = make_world(days=5, domains=feeds.__name__)
    files = [
        ("2017-01-01", [order(1, "10.00", 1), order(2, "20.00", 1), order(3, "30.00", 1), order(4, "40.00", 1)]),
        (
            "2017-01-02",
            [order(5, "50.00", 1, day="2017-01-02"), order(6, "60.00", 1), order(7, "70.00", 1, day="2016-09-01")],
        ),
        ("2017-01-04", [deleted(number, 5) for number in (1, 2, 5, 6, 7, 8)]),
        ("2017-01-05", [order(2, "22.00", 6, day="2017-01-05"), deleted(6, 7)]),
    ]
    for taken in order_of_taking:
        for number in taken:
            arrival, rows = files[number]
            world.deliver_rows("orders", arrival, f"{number}.jsonl", rows)
        world.refresh()
    assert amounts(world) == {2: "22.00", 3: "30.00", 4: "40.00"}


@pytest.mark.proof
def test_a_delete_that_finds_no_record_is_told_and_waits_for_one_until_it_is_withdrawn(world: World) -> None:
    deliver(world, order(9, "90.00", 1), deleted(1, 5), deleted(9, 5), deleted(2, 5))
    [raw] = world.refresh().ingests
    [note] = raw.arrivals[0].notes
    assert note.startswith("brings deletes without ordered_on: 2 keys of them without a record within 90 days")
    deliver(world, order(1, "10.00", 1), order(2, "20.00", 6))
    world.refresh()
    assert amounts(world) == {2: "20.00"}
    assert balance(world) == {"raw": 3, "superseded": 2, "voided": 0, "quarantined": 0}
    with world.open() as platform:
        withdraw(platform, lambda: world.spark, [raw.arrivals[0].path], person("a bad export"))
    world.refresh()
    assert amounts(world) == {1: "10.00", 2: "20.00"}


@pytest.mark.proof
def test_a_day_is_verified_by_the_order_that_its_files_had_before_the_first_of_a_copy_came(world: World) -> None:
    original, correction = order(1, "10.00", 1), order(1, "20.00", 1)
    deliver(world, original, arrival="2017-01-03")
    deliver(world, correction, arrival="2017-01-02")
    world.refresh()
    deliver(world, original, arrival="2017-01-01")
    world.recompute(["raw.orders"], [date(2017, 1, 1)])
    for amount in ("10.00", "20.00"):  # silver as it was, then as it is with the copy in the place of the first
        assert amounts(world) == {1: amount}
        with world.open() as platform, private_folder(platform.lake) as folder:
            verified = verify(platform, lambda: world.spark, Selection(), folder)
        [silver] = [table for table in verified if table.table == "silver.orders"]
        assert {day.verdict for day in silver.days} == {"equal"}
        world.refresh()
