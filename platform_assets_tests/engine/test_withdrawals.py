"""A delivery taken out again: everything is as if it had never come, on exactly the days it reached."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Column
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS
from platform_assets.engine.late.approvals import RawOutcome, withdraw
from platform_assets.engine.late.queue import WithdrawalError
from platform_assets_tests.support.domains import two_raws
from platform_assets_tests.support.history import History, Version, no_session, person, two_lines_a_day
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.world import MakeWorld, World, sale


@pytest.fixture
def story(prepared: Prepared) -> History:
    return prepared(two_lines_a_day)


def withdrawn(story: History, path: str) -> RawOutcome:
    with story.world.open() as platform:
        [done] = withdraw(platform, lambda: story.world.spark, [path], person("the till was set up wrong"))
    return done


def figures(story: History, day: int) -> dict[str, int]:
    """What became of a day's raw rows, the identity of their conservation checked."""
    with story.world.open() as platform:
        found = platform.ledger.current_days("silver.transactions")[date(2017, 1, day)]
    parts = ("superseded", "voided", "quarantined", "withdrawn")
    row_balance = {name: found.figures[name] for name in ("raw", *parts)}
    assert row_balance["raw"] == found.rows + sum(row_balance[name] for name in parts)
    return row_balance


def test_an_original_is_gone_a_correction_falls_back_and_a_move_goes_home(story: History) -> None:
    """A refresh, a withdrawal, and a refresh of what it reaches; then what can be withdrawn no more."""
    story.world.deliver("transactions", "2017-01-08", "broken.csv", "basket_id\n1\n")
    bad = story.deliver(
        "2017-01-08",
        "bad.jsonl",
        Version(99, 7, 1),  # nothing else is known of it
        Version(2, 2, 4, "4.00"),  # corrects
        Version(3, 5, 4, "4.00"),  # moves from the 3rd to the 5th
        Version(4, 4, 4, voided=True),
    )
    story.refresh()
    assert story.kept() == story.expected()
    done = withdrawn(story, bad)
    [arrival] = done.arrivals
    assert (arrival.kind, arrival.origin, arrival.landed, arrival.taken) == ("withdrawal", bad, 0, 0)
    assert done.rows == 4
    assert {day.day for day in done.published} == {2, 3, 4, 5, 7}
    recomputed = story.refresh()
    assert recomputed["silver.transactions"] == {2, 3, 4, 5, 7}
    assert story.kept() == story.expected(but=[bad])
    assert figures(story, 2) == {"raw": 3, "superseded": 0, "voided": 0, "quarantined": 0, "withdrawn": 1}
    assert figures(story, 7)["withdrawn"] == figures(story, 7)["raw"] == 1
    assert story.refresh() == {}
    cases = {
        "transactions/2017-01-08/bed.jsonl": "was ever taken.*\n.*Did you mean transactions/2017-01-08/bad.jsonl",
        "transactions/2017-01-08/broken.csv": "was refused whole",
        bad: "was withdrawn before",
        arrival.path: "is a withdrawal itself",
    }
    for path, says in cases.items():
        with pytest.raises(WithdrawalError, match=says):
            withdrawn(story, path)


@pytest.mark.proof
def test_several_deliveries_are_withdrawn_by_one_publication_or_none_of_them(story: History) -> None:
    """A refresh and a withdrawal: two files that correct the same records, one of which moves one to another day."""
    first = story.deliver("2017-01-08", "bad-1.jsonl", Version(2, 2, 4, "4.00"), Version(3, 5, 4, "4.00"))
    second = story.deliver("2017-01-08", "bad-2.jsonl", Version(2, 2, 5, "5.00"), Version(3, 7, 5, "5.00"))
    story.refresh()
    with story.world.open() as platform:
        before = platform.current_release().number
        with pytest.raises(WithdrawalError, match="was ever taken"):
            withdraw(platform, no_session, [first, "transactions/2017-01-08/bad-3.jsonl"], person("bad"))
        assert platform.current_release().number == before
        [done] = withdraw(platform, lambda: story.world.spark, [first, second], person("bad"))
        assert platform.current_release().number == before + 1
    assert {arrival.origin for arrival in done.arrivals} == {first, second}
    assert done.rows == 4
    story.refresh()
    assert story.kept() == story.expected(but=[first, second])
    assert figures(story, 2)["withdrawn"] == 2


def test_a_delivery_without_rows_is_withdrawn_without_a_session(story: History) -> None:
    with story.world.open() as platform:
        [done] = withdraw(platform, no_session, ["transactions/2017-01-02/empty.jsonl"], person())
        assert (done.rows, done.published) == (0, {})
    assert story.refresh() == {}


TWO_RAWS = two_raws.__name__


def tables_withdrawn_from(world: World, path: str) -> set[str]:
    with world.open() as platform:
        withdraw(platform, lambda: world.spark, [path], person("the till was set up wrong"))
        return {one.table for one in platform.ledger.arrivals() if one.kind == "withdrawal" and one.origin == path}


@pytest.mark.proof
def test_a_delivery_is_withdrawn_from_every_table_that_took_it_and_from_no_other(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables take one file; the other has a column less than one of them needs."""
    more = replace(two_raws.RECEIPTS, columns=(*RAW_TRANSACTIONS.columns, Column("till", "string", "Which till.")))
    monkeypatch.setattr(two_raws, "DOMAIN", replace(two_raws.DOMAIN, tables=(RAW_TRANSACTIONS, more)))
    world = make_world(days=1, domains=TWO_RAWS)
    row = sale(1, 1, "2017-01-01")
    world.deliver("transactions", "2017-01-01", "bad.csv", f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    world.deliver_rows("transactions", "2017-01-01", "both.jsonl", [sale(2, 1, "2017-01-01", till="north")])
    world.refresh()
    with world.open() as platform:
        assert [one.table for one in platform.ledger.arrivals() if one.reason] == ["raw.receipts"]
    assert tables_withdrawn_from(world, "transactions/2017-01-01/bad.csv") == {"raw.transactions"}
    assert tables_withdrawn_from(world, "transactions/2017-01-01/both.jsonl") == {"raw.transactions", "raw.receipts"}
