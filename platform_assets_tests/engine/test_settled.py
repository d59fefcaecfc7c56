"""A settled figure does not move unasked: small steps pass, what adds up to more waits for a person or a plan."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from platform_assets import contracts
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import recompute_step, refresh
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import approve
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.quarantine import acceptance
from platform_assets.operations.rollback import rollback
from platform_assets.operations.status import table_metrics
from platform_assets.planning.selection import BY_PERSON
from platform_assets.settings import project_root
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.tills import NO_RECONCILIATION, nth, plan
from platform_assets_tests.support.world import World

GOLD, SHOWN = "gold.tills", 8
FAR = "till 2: paid 22.00 became 27.00 (+5.00); at most 1.00 allowed"
SAME_DAY = 'inputs=(Input("silver.sales", same_day()),),'

DECLARED = (
    NO_RECONCILIATION,
    ("Reconciliation, Rule", "Reconciliation, Rule, Settled"),
    (SAME_DAY, f'{SAME_DAY} settled=(Settled(("paid",), ("till",), 3, "1.00"),),'),
)


@dataclass(frozen=True)
class Shop:
    """Eight days of two tills, of which those up to the fourth are settled, and the code of their tables."""

    world: World
    home: Path

    def copied_to(self, state: Path) -> Shop:
        return replace(self, world=self.world.copied_to(state))

    def arrive(self, name: str, *lines: tuple[int, int, str]) -> None:
        """Land a file on the eighth day with what tills took on other days."""
        rows = [{"till": till, "at": f"{nth(day)}T10:00:00Z", "paid": paid} for day, till, paid in lines]
        self.world.deliver_rows("sales", str(nth(SHOWN)), name, rows)

    def refresh(self) -> StepResult:
        with importable(self.home):
            return next(step for step in self.world.refresh().steps if step.table == GOLD)

    def seen(self, day: int) -> dict[int, Decimal]:
        return {row["till"]: row["paid"] for row in self.world.rows(GOLD, str(nth(day)))}


def shop(lakes: Lakes) -> Shop:
    world = lakes.new(days=SHOWN, domains=PACKAGE)
    home = write_domain(world.settings.state.parent / "code", contracts=DECLARED)
    made = Shop(world, home)
    for day in range(1, SHOWN + 1):
        lines = [{"till": till, "at": f"{nth(day)}T10:00:00Z", "paid": f"{10 * day + till}"} for till in (1, 2)]
        world.deliver_rows("sales", str(nth(day)), f"{day}.jsonl", lines)
    made.refresh()
    made.arrive("c1.jsonl", (1, 1, "11.60"), (2, 2, "27.00"), (3, 3, "0.50"), (7, 1, "99.00"))
    return made


def reasons(done: StepResult) -> dict[date, str]:
    return {day: findings[0].message.partition("moved: ")[2] for day, findings in done.held.items()}


def accept(shop: Shop, days: Collection[int]) -> StepResult:
    with importable(shop.home), shop.world.open() as platform:
        accepted = acceptance(platform, GOLD, [nth(day) for day in days])
        assert accepted.checks == {"settled"}
        author = Author("accept", "finance knows", "zoe")
        return recompute_step(
            platform,
            lambda: shop.world.spark,
            accepted.step,
            author,
            accept=accepted.checks,
            looked_at=accepted.made_from,
        )


def measured(shop: Shop) -> dict[str, dict[str, float]]:
    """The metrics of the first day, without its seconds."""
    with importable(shop.home), shop.world.open() as platform:
        tables = ("raw.sales", "silver.sales", GOLD)
        found: dict[str, Any] = dict(table_metrics(LakeSnapshot.now(platform), dict.fromkeys(tables, nth(SHOWN))))
        assert found["raw.sales"]["refused_share"] == {str(nth(day)): 0.0 for day in range(1, SHOWN + 1)}
        assert found["raw.sales"]["lag_of_arrival_days_p95"] == pytest.approx(2.217)
        assert found[GOLD]["duration_s_p95"] > 0
        return {
            table: {name: value for name, value in of_table["days"][str(nth(1))].items() if name != "seconds"}
            for table, of_table in found.items()
        }


def blamed(platform: Platform) -> dict[date, list[str]]:
    return {
        held.hold.day: sorted(arrival.path.rpartition("/")[2] for arrival in held.arrivals)
        for held in held_days(platform, platform.ledger.holds())
    }


def test_what_moves_a_settled_figure_too_far_is_held_until_it_is_accepted_and_all_else_is_corrected(
    prepared: Prepared,
) -> None:
    """Two refreshes and an acceptance, each of them with Spark."""
    made = prepared(shop)
    done = made.refresh()
    assert reasons(done) == {nth(2): FAR}
    assert made.seen(1) == {1: Decimal("11.60"), 2: 12}
    assert made.seen(2) == {1: 21, 2: 22}, "readers keep what they have"
    assert made.seen(3) == {1: 31, 2: 32, 3: Decimal("0.50")}
    assert made.seen(7)[1] == 99, "a day that is not settled yet is corrected as it comes"
    assert measured(made) == {
        "raw.sales": {"lag_of_arrival_days": 2.333333},  # two rows on their day, one a week later
        "silver.sales": {"duplicates_per_1000": 333.333333, "quarantined_share": 0.0},
        GOLD: {"mismatches": 0.0},
    }
    assert sorted(accept(made, (2,)).published) == [nth(2)]
    assert made.seen(2) == {1: 21, 2: 27}


@pytest.mark.proof
def test_small_steps_add_up_until_they_are_accepted(prepared: Prepared) -> None:
    """Three refreshes and an acceptance, each of them with Spark."""
    made = prepared(shop)
    made.refresh()
    made.arrive("c2.jsonl", (1, 1, "12.20"), (3, 3, "5.00"))
    with importable(made.home), made.world.open() as platform:
        withdraw(platform, lambda: made.world.spark, ["sales/2017-01-04/4.jsonl"], Author("test", "all of the day"))
    done = made.refresh()
    assert reasons(done) == {
        nth(1): "till 1: paid 11.00 became 12.20 (+1.20); at most 1.00 allowed",
        nth(3): "till 3: paid 0.00 became 5.00 (+5.00); at most 1.00 allowed",
        nth(4): "till 2: paid 42.00 became nothing (-42.00) and 1 more sum; at most 1.00 allowed",
    }
    assert made.seen(4) == {1: 41, 2: 42}
    with importable(made.home), made.world.open() as platform:
        assert {hold.gate for hold in platform.ledger.holds()} == {"settled"}
        assert blamed(platform) == {
            nth(1): ["c1.jsonl", "c2.jsonl"],
            nth(2): ["c1.jsonl"],
            nth(3): ["c1.jsonl", "c2.jsonl"],
            nth(4): [],
        }

    assert sorted(accept(made, (1, 3, 4)).published) == [nth(1), nth(3), nth(4)]
    assert (made.seen(1)[1], made.seen(3)[3]) == (Decimal("12.20"), Decimal(5))
    assert not made.seen(4)
    made.arrive("c3.jsonl", (1, 1, "13.30"), (3, 3, "5.70"))  # by what was accepted, from then on
    assert reasons(made.refresh()) == {nth(1): "till 1: paid 12.20 became 13.30 (+1.10); at most 1.00 allowed"}

    with importable(made.home), made.world.open() as platform:
        first = platform.ledger.publication(platform.ledger.current_days(GOLD)[nth(2)].publication)
        assert first is not None
        rollback(platform, (first,), Author("test", "was it right?", "zoe"), days=[nth(2)], cascade=True)
    made.arrive("c5.jsonl", (2, 1, "21.50"))
    done = made.refresh()
    assert nth(2) in done.held, "nothing is there that its figures could be compared with"
    assert "were rolled back" in done.held[nth(2)][0].message
    assert not made.seen(2)


@pytest.mark.proof
def test_a_held_day_names_the_rule_that_moved_its_figures_where_no_file_did(prepared: Prepared, tmp_path: Path) -> None:
    made = prepared(shop)
    made = replace(made, home=write_domain(tmp_path, contracts=(*DECLARED, ("paid >= 0", "paid <> 41"))))
    with importable(made.home), made.world.open() as platform:
        refresh(platform, lambda: made.world.spark, Author("by hand", "a rule"), request=BY_PERSON)
        held = {held.hold.day: held for held in held_days(platform, platform.ledger.holds())}
    assert held.keys() == {nth(2), nth(4)}
    assert not held[nth(4)].arrivals
    assert "till 1: paid 41.00 became nothing" in held[nth(4)].sentence
    for each in held.values():
        assert "changed since: the configuration of silver.sales;" in each.sentence


@pytest.mark.proof
def test_a_plan_moves_a_settled_figure_as_it_was_approved_and_no_further(prepared: Prepared) -> None:
    """Two refreshes and some sittings of a plan, each of them with Spark."""
    made = prepared(shop)
    made.refresh()
    file = plan(days={"list": [str(nth(2))]}, gates=[], rollout=[100], afterwards={"verify": 0})

    def sit() -> str:
        with importable(made.home), made.world.open() as platform:
            return apply(platform, lambda: made.world.spark, file, Author("apply", "a plan", "zoe")).state

    def next_stop() -> StoppedError:
        with pytest.raises(StoppedError) as stopped:
            sit()
        return stopped.value

    def approve_after(figure: str) -> None:
        stopped = next_stop()
        while "nothing to publish" in stopped.what:  # it goes on at another release, and is applied again
            stopped = next_stop()
        assert "settled figures move at 100 %, and hash" in stopped.what
        assert figure in stopped.what
        looked_at = stopped.todo.partition("--hash ")[2].split()[0]
        with importable(made.home), made.world.open() as platform:
            approve(platform, file, looked_at, Author("", "right", "bob"))

    approve_after("till 2: paid 22.00 became 27.00 (+5.00)")
    made.arrive("c9.jsonl", (2, 2, "1000.00"))
    made.refresh()
    approve_after("till 2: paid 22.00 became 1,000.00")
    assert made.seen(2) == {1: 21, 2: 22}
    assert sit() == "published"
    assert made.seen(2) == {1: 21, 2: 1000}


def test_the_examples_of_the_guide_are_declarations_and_what_a_person_sees() -> None:
    text = (project_root() / "docs" / "settled.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, "docs/settled.md", "exec"), {**vars(contracts)})
    assert f"settled figures moved: {FAR}" in text
