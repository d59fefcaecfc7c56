"""A backfill job by job: never more days at once than its file allows, each staged day looked at once, told in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.sitting import StoppedError
from platform_assets.operations.backfill.standing import kept_figures
from platform_assets.operations.plan_record import BackfillRecord, read_record, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World

DAYS = 8
FIRST = date(2017, 1, 1)
WRONG = ('F.sum("paid")', 'F.sum(F.col("paid") * 2)')
NO_RECONCILIATION = ('("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)', '("till",), (Amount("n", "0", "0"),)')
SUM = {"table": "gold.tills", "metric": "sum", "column": "paid", "tolerance_percent": 60}


def plan(**fields: Any) -> PlanFile:
    said = {
        "name": "twice",
        "reason": "taken twice",
        "owner": "ada",
        "tables": ["gold.tills"],
        "days": {"range": f"{FIRST}..{FIRST + timedelta(DAYS - 1)}"},
        "rollout": [25, 50, 100],
    }
    return PlanFile.model_validate(said | fields)


@dataclass
class Till:
    """A platform whose gold table other code has computed."""

    world: World
    platform: Platform

    def apply(
        self, file: PlanFile, progress: OnProgress = no_progress, report: Callable[[str], None] = lambda said: None
    ) -> BackfillRecord:
        author = Author("apply", "a plan", "zoe")
        return apply(self.platform, lambda: self.world.spark, file, author, progress, report)


@pytest.fixture
def till(make_world: MakeWorld, tmp_path: Path) -> Iterator[Till]:
    with _till(make_world, tmp_path / "home") as till:
        yield till


@contextmanager
def _till(make_world: MakeWorld, home: Path) -> Iterator[Till]:
    write_domain(home, contracts=(NO_RECONCILIATION,), gold=(WRONG,))
    with importable(home):
        world = make_world(days=DAYS, domains=PACKAGE)
        for number in range(DAYS):
            day = str(FIRST + timedelta(number))
            rows = [{"till": 1, "at": f"{day}T10:00:00Z", "paid": str(Decimal(number + 1))}]
            world.deliver_rows("sales", day, "a.jsonl", rows)
        world.refresh()
    with importable(write_domain(home, contracts=(NO_RECONCILIATION,))), world.open() as platform:
        yield Till(world, platform)


@pytest.mark.proof
def test_jobs_keep_the_bound_of_the_file_and_each_staged_day_is_looked_at_once(till: Till) -> None:
    jobs: list[int] = []
    looked: list[int] = []

    def note(now: Progress) -> None:
        if now.phase == "computing" and now.table == "gold.tills" and now.done and not now.finished:
            jobs.append(now.done)
        if now.phase == "comparing" and not now.finished:
            looked.append(now.done)

    said: list[str] = []
    record = till.apply(plan(batch_days=3, gates=[SUM]), note, said.append)
    assert record.state == "published"
    assert jobs == [2, 2, 3, 3, 4], "of the last step three days at once, then the fourth"
    assert len(looked) == DAYS, "six more would be read if each step read all that is staged"
    assert [f"of {days} staged days" in sentence for days, sentence in zip((2, 4, 8), said, strict=False)] == [True] * 3
    assert (record.starts, record.pace) == (1, 0)
    kept = {figure.day: figure for figure in kept_figures(till.platform.lake, "twice")}
    assert len(kept) == DAYS
    assert kept[FIRST].sums["paid"] == (Decimal("2.00"), Decimal("1.00"))


@pytest.mark.proof
def test_a_plan_stops_where_more_keys_or_values_are_others_than_it_may(till: Till) -> None:
    nulls, changed, spread = (
        {"table": "gold.tills", "metric": metric, "tolerance_percent": most} | ({"column": "paid"} if column else {})
        for metric, most, column in (("nulls", 0, True), ("changed", 0, False), ("distribution", 10, True))
    )
    with pytest.raises(StoppedError, match=r"changed keys of 2 staged days, 100\.00 % are others; 0 % allowed") as two:
        till.apply(plan(gates=[nulls, changed]))
    assert sum("staged days" in line for line in two.value.lines) == 1, "a sentence is told once"
    with pytest.raises(StoppedError, match=r"distribution of paid of 2 staged days, 100\.00 % apart"):
        till.apply(plan(gates=[nulls, spread]))
    assert till.apply(plan(gates=[nulls, changed | {"tolerance_percent": 100}])).state == "published"


@pytest.mark.proof
def test_a_gate_that_is_edited_reads_nothing_anew(till: Till) -> None:
    looked: list[int] = []

    def note(now: Progress) -> None:
        if now.phase == "comparing" and not now.finished:
            looked.append(now.total)

    tight = SUM | {"tolerance_percent": 1}
    with pytest.raises(StoppedError, match=r"2 staged days 18\.00 before and 9\.00 after"):
        till.apply(plan(gates=[tight]), note)
    assert len(looked) == 2
    with pytest.raises(StoppedError, match=r"2 staged days 18\.00 before and 9\.00 after"):
        till.apply(plan(gates=[tight, SUM]), note)
    assert len(looked) == 2, "an edited file computes nothing and reads nothing that is there"
    assert till.apply(plan(gates=[SUM]), note).state == "published"
    assert len(looked) == DAYS


@pytest.mark.proof
def test_a_job_that_the_machine_failed_is_halved_in_the_next_sitting(till: Till) -> None:
    def lost_at(done: int) -> Callable[[Progress], None]:
        def lost(now: Progress) -> None:
            if now.phase == "computing" and now.table == "gold.tills" and now.done == done:
                raise ConnectionError("the machine is gone")

        return lost

    with pytest.raises(ConnectionError):
        till.apply(plan(batch_days=4, rollout=[100]), lost_at(4))
    record = read_record(till.platform.lake, "twice")
    assert (record.pace, record.starts) == (2, 1)
    assert record.seconds > 0
    assert "a job of 4 days was too much at once, since it failed: 2 days at most" in record.events[-1].what
    with pytest.raises(ConnectionError):
        till.apply(plan(batch_days=4, rollout=[100]), lost_at(2))
    assert read_record(till.platform.lake, "twice").pace == 1, "half of what was tried"
    jobs: list[int] = []

    def note(now: Progress) -> None:
        if now.phase == "computing" and now.table == "gold.tills" and now.done and not now.finished:
            jobs.append(now.done)

    done = till.apply(plan(batch_days=4, rollout=[100]), note)
    assert (done.state, done.starts) == ("published", 3)
    assert jobs == [1, 1, 2], "one at once; what was staged before stays"


@pytest.mark.proof
def test_a_budget_warns_once_and_what_it_took_prices_the_next(till: Till) -> None:
    """Four plans are applied."""

    def interrupt(now: Progress) -> None:
        raise KeyboardInterrupt

    file = plan(budget={"minutes": 600}, rollout=[100])
    with pytest.raises(KeyboardInterrupt):
        till.apply(file, interrupt)
    begun = read_record(till.platform.lake, "twice")
    write_record(till.platform.lake, begun.model_copy(update={"seconds": 600 * 60 * 0.85}))
    said: list[str] = []
    record = till.apply(file, report=said.append)
    assert said.count("80 % of the budget of 600 minutes are used.") == 1
    assert [event.what for event in record.events].count("80 % of the budget of 600 minutes are used") == 1
    assert record.explained_bytes > 0
    second = explain(till.platform, plan(name="other")).price
    assert (second.experience.runs, second.between) == (1, None), "one backfill does not tell how far off it is"
    for number in range(2, 4):
        till.apply(plan(name=f"n{number}", rollout=[100]))
    fourth = explain(till.platform, plan(name="other")).price
    assert fourth.experience.runs == 3
    assert fourth.between
    assert fourth.between[0] < fourth.seconds < fourth.between[1]
