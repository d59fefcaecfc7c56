"""What is told of versions that nothing declared settles, and of files that come again."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from platform_assets.contracts import Checks, Contract
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.results import StepResult
from platform_assets.records.manifest import Arrival
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.domains import stock
from platform_assets_tests.support.history import person
from platform_assets_tests.support.world import MakeWorld, World

__all__ = ["run", "state"]

DOMAIN = "platform_assets_tests.support.domains.stock"
DAY = date(2017, 1, 1)


@pytest.fixture
def world(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> World:
    world = make_world(days=1, today=date(2017, 6, 30), domains=DOMAIN)
    monkeypatch.setenv("PLATFORM_DOMAINS", DOMAIN)
    for name in ("state", "calendar_first", "calendar_last", "today"):
        monkeypatch.setenv(f"PLATFORM_{name.upper()}", str(getattr(world.settings, name)))
    return world


def with_contracts(monkeypatch: pytest.MonkeyPatch, *tables: Contract) -> None:
    monkeypatch.setattr(stock, "DOMAIN", replace(stock.DOMAIN, tables=tables))


def item(number: int, amount: int, lsn: int = 1, **changes: Any) -> dict[str, Any]:
    row = {"item": number, "amount": amount, "counted_at": f"{DAY}T10:00:00Z", "updated_at": "2017-01-01", "lsn": lsn}
    return row | {"gone": False} | changes


def deliver(world: World, arrival: str, name: str, *rows: dict[str, Any]) -> list[Arrival]:
    world.deliver_rows("stock", arrival, name, rows)
    return [arrival for done in world.refresh().ingests for arrival in done.arrivals]


def amounts(world: World) -> dict[int, int]:
    return {row["item"]: row["amount"] for row in world.rows("silver.stock")}


def step_of(world: World) -> StepResult:
    [step] = world.refresh().steps
    return step


def test_rivals_are_told_with_examples_and_a_contract_can_have_them_block(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshes, and what three commands say."""
    rivals = [item(1, 10), item(1, 11), item(2, 20), item(2, 20), item(3, 30, lsn=1), item(3, 31, lsn=2)]
    world.deliver_rows("stock", "2017-01-02", "a.jsonl", rivals)
    world.deliver_rows("stock", "2017-01-02", "b.jsonl", [item(4, 40), item(5, 50, gone=True), item(6, 60)])
    world.deliver_rows("stock", "2017-01-02", "c.jsonl", [item(4, 41), item(5, 51), item(6, 60)])
    step = step_of(world)
    assert amounts(world) == {1: 11, 2: 20, 3: 31, 4: 41, 6: 60}, "the row further down, the file that sorts later"
    [warned] = step.published[DAY].warnings
    assert warned.found.startswith("2 keys with rivals: versions of the same updated_at, lsn, arrival date and another")
    [finding] = step.checks[DAY].findings
    assert (finding.severity, step.published[DAY].figures["rivals"]) == ("warn", 2)
    assert finding.examples == ("item 1 (2017-01-02/a.jsonl)", "item 4 (2017-01-02/b.jsonl, 2017-01-02/c.jsonl)")
    for command in (("status",), ("status", "warnings"), ("why", "silver.stock", str(DAY))):
        assert "2 keys with rivals" in run(*command).out
    lost = run("read", "superseded.stock", "--format", "json", "--columns", "item,amount,_superseded_by").out
    assert [line for line in lost.splitlines() if '"item": 4' in line] == [
        '{"item": 4, "amount": 40, "_superseded_by": "stock/2017-01-02/c.jsonl"}'
    ]
    assert len(lost.splitlines()) == 6 == step.published[DAY].figures["superseded"]
    with_contracts(monkeypatch, stock.RAW, replace(stock.SILVER, checks=Checks(rivals="block")))
    world.deliver_rows("stock", "2017-01-03", "d.jsonl", [item(7, 70)])
    assert "keys with rivals" in step_of(world).held[DAY][0].message


@pytest.mark.proof
def test_a_file_sent_again_undoes_no_correction_and_is_told_and_who_means_it_anew_withdraws_the_first(
    run: Run, world: World
) -> None:
    """The correction's time is that of what it corrects; the file comes again long after rows of the day are late."""
    first = (item(1, 10), item(2, 20))
    world.deliver_rows("stock", "2017-01-02", "eod.jsonl", first)
    deliver(world, "2017-01-03", "fix.jsonl", item(1, 1))
    [again] = deliver(world, "2017-06-01", "eod (1).jsonl", *first)
    assert amounts(world) == {1: 1, 2: 20}
    assert (again.taken, again.late) == (2, 0)
    told = "has the same content as stock/2017-01-02/eod.jsonl, which arrived on 2017-01-02: its rows keep that place"
    assert again.notes[0].startswith(told)
    assert told in run("why", "raw.stock", str(DAY)).out
    with world.open() as platform:
        withdraw(platform, lambda: world.spark, ["stock/2017-01-02/eod.jsonl"], person())
    world.refresh()
    assert amounts(world) == {1: 10, 2: 20}
