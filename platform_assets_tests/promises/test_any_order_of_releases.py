"""Land, ingest, refresh, stage, publish, roll back, compact, delete and crash in any order, against a plain model."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from pyspark.sql import SparkSession

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.state.planner import plan_steps
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release, published, release
from platform_assets.operations import deletion
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.maintenance import maintain
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.stages import drop_stage, publish_stage, refresh_stage
from platform_assets.planning.selection import BY_PERSON
from platform_assets.settings import Settings
from platform_assets_tests.support.history import WINDOWS
from platform_assets_tests.support.kills.points import POINTS
from platform_assets_tests.support.meanwhile import usage_later
from platform_assets_tests.support.models.releases import DAYS, GOLD, SILVER, Day, Made, Model, Sale
from platform_assets_tests.support.shelf import PUBLISHING, in_process
from platform_assets_tests.support.world import MakeWorld, sale

TABLES = {SILVER: "silver.transactions", GOLD: "gold.household_28d"}
KEYS = 6
PUBLICATION = (*PUBLISHING, *POINTS["ledger"])
AUTHOR = Author("machine", "a test")
ZERO = datetime(2017, 1, 4, tzinfo=UTC)
"""So many seconds later the versions were written, one each."""


def when(number: int) -> date:
    return date(2017, 1, number)


def no_spark() -> SparkSession:
    raise AssertionError("nothing has to be computed")


def publish_trial(settings: Settings) -> None:
    with open_platform(settings) as platform:
        publish_stage(platform, no_spark, AUTHOR, "trial")


def roll_back_newest(settings: Settings, publication: str) -> None:
    with open_platform(settings) as platform:
        rollback(platform, chosen_publications(platform, publication), AUTHOR)


def delete_all(settings: Settings) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deletion, "usage", usage_later)
        with open_platform(settings) as platform:
            maintain(platform, no_spark, "stages", AUTHOR)
            maintain(platform, no_spark, "deletion", AUTHOR)


class Releases(RuleBasedStateMachine):
    """The platform beside its model."""

    def __init__(self, make_world: MakeWorld) -> None:
        super().__init__()
        self.world = make_world(days=len(DAYS), domains=WINDOWS, compaction_files=1)
        self.model, self.version, self.whole_from, self.compacted = Model(), 0, 0, 0
        for day in DAYS:
            self.world.deliver("transactions", str(when(day)), "empty.jsonl", "")
        self._first_load()

    def _first_load(self) -> None:
        """Rolled back, its days would be as if never computed, and what reads them could not be."""
        self.world.refresh()
        self.model.refresh()
        self.model.published.clear()
        self._remember({})

    @property
    def lake(self) -> Lake:
        """Of the world."""
        return Lake.at(self.world.settings.lake)

    @precondition(lambda self: not self.model.landed)
    @rule(sales=st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(1, 3)), min_size=1, max_size=3))
    def land(self, sales: list[tuple[int, int]]) -> None:
        """Versions of a few keys, in one file."""
        rows = []
        for key, value in sales:
            self.version += 1
            self.model.landed.append(Sale(key, self.version, value))
            written = (ZERO + timedelta(seconds=self.version)).isoformat()
            day = str(when(self.model.landed[-1].day))
            rows.append(sale(key, 1, day, sales_value=f"{value}.00", updated_at=written))
        self.world.deliver_rows("transactions", str(when(DAYS[-1])), f"{self.version}.jsonl", rows)

    @precondition(lambda self: self.model.landed)
    @rule()
    def ingest(self) -> None:
        """Take what was landed, and compute nothing."""
        with self.world.open() as platform:
            ingest(platform, lambda: self.world.spark, platform.catalogue["raw.transactions"], AUTHOR)
        self.model.ingest()
        self._remember()

    @precondition(lambda self: self.model.landed or self.model.now.stale(self.model.refused))
    @rule()
    def refresh(self) -> None:
        """Everything that is stale, and nothing else."""
        before = dict(self.model.now.made)
        done = self.world.refresh()
        assert _days({step.table: step.published for step in done.steps}) == set(self.model.refresh())
        self._remember(before)

    @precondition(lambda self: self.model.now.stale(self.model.refused) or self.model.stage)
    @rule()
    def stage(self) -> None:
        """Everything that is stale, into a stage."""
        with self.world.open() as platform:
            done = refresh_stage(platform, lambda: self.world.spark, AUTHOR, "trial")
        assert _days({step.table: step.published for step in done.steps}) == set(self.model.open_stage())

    @precondition(lambda self: self.model.stage and self.model.stage[1])
    @rule()
    def publish(self) -> None:
        """The stage, whatever happened meanwhile."""
        with self.world.open() as platform:
            publish_stage(platform, lambda: self.world.spark, AUTHOR, "trial")
        self.model.publish_stage()
        self._remember()

    @precondition(lambda self: self.model.stage)
    @rule()
    def drop(self) -> None:
        """Nobody ever sees it."""
        with self.world.open() as platform:
            drop_stage(platform, "trial")
        self.model.stage = None

    @precondition(lambda self: self.model.published)
    @rule()
    def roll_back(self) -> None:
        """The newest publication of silver and gold."""
        roll_back_newest(self.world.settings, self._newest())
        self._rolled_back()

    @precondition(lambda self: len(self.model.history) > self.compacted)
    @rule()
    def compact(self) -> None:
        """Fewer files, the same rows."""
        with self.world.open() as platform:
            maintain(platform, lambda: self.world.spark, "compaction", AUTHOR)
            maintain(platform, no_spark, "checkpoints", AUTHOR)
        self._remember()
        self.compacted = len(self.model.history)

    @precondition(lambda self: self.whole_from < len(self.model.history) - 1)
    @rule()
    def delete(self) -> None:
        """What only releases beyond the window need."""
        delete_all(self.world.settings)
        self._deleted()

    @precondition(lambda self: self.model.stage and self.model.stage[1] and self._is_on_top())
    @rule(point=st.sampled_from(PUBLICATION))
    def die_publishing(self, point: str) -> None:
        """The process that publishes the stage is killed; whoever comes next finishes it, or nothing happened."""
        number = current_release(self.lake).number
        in_process(publish_trial, self.world.settings, failpoint=point)
        self._settle()
        if current_release(self.lake).number > number:
            self.model.publish_stage()
            with self.world.open() as platform:
                drop_stage(platform, "trial")
        self._remember()

    @precondition(lambda self: self.model.published)
    @rule(point=st.sampled_from(PUBLICATION))
    def die_rolling_back(self, point: str) -> None:
        """The process that rolls back is killed; asked once more, it is rolled back."""
        number, newest = current_release(self.lake).number, self._newest()
        in_process(roll_back_newest, self.world.settings, newest, failpoint=point)
        self._settle()
        if current_release(self.lake).number == number:
            roll_back_newest(self.world.settings, newest)
        self._rolled_back()

    @precondition(lambda self: self.whole_from < len(self.model.history) - 1)
    @rule(point=st.sampled_from(POINTS["delete"]))
    def die_deleting(self, point: str) -> None:
        """The process that deletes is killed; the next one goes on with what is left."""
        in_process(delete_all, self.world.settings, failpoint=point)
        delete_all(self.world.settings)
        self._deleted()

    @invariant()
    def readers_see_the_model(self) -> None:
        """Every table at the current release and at an old one."""
        for number in sorted({self.whole_from, current_release(self.lake).number}):
            assert self._seen(number) == _expected(self.model, number), f"release {number}"

    @invariant()
    def what_is_stale_is_known(self) -> None:
        """No day too many, none too few."""
        with self.world.open() as platform:
            found = {step.table: step.days for step in plan_steps(platform, BY_PERSON).steps}
        view = deepcopy(self.model.now)
        planned = _days(found)
        wanted = set(view.stale(self.model.refused))
        assert {day for day in planned if day[0] == SILVER} == {day for day in wanted if day[0] == SILVER}
        assert {day for day in wanted if day[0] == GOLD} <= planned

    def teardown(self) -> None:
        """Nothing is damaged, and all of it is as it should be once everything was taken."""
        if self.model.stage:
            self.drop()
        self.refresh()
        self.readers_see_the_model()
        assert not audit_installation(self.world.settings, Scope(), lambda *_: None).findings.faults

    def _newest(self) -> str:
        with self.world.open() as platform:
            names = [name for _, name in published(platform.lake)]
            return next(name for name in reversed(names) if _kind(platform, name) == "recompute")

    def _is_on_top(self) -> bool:
        """Whether nobody published since the stage was opened, so that nothing has to be computed again."""
        assert self.model.stage
        return self.model.stage[0] == self.model.now and not any(
            self.model.refused.get(day) == made.source for day, made in self.model.stage[1].items()
        )

    def _settle(self) -> None:
        with self.world.open() as platform:
            platform.settle()

    def _rolled_back(self) -> None:
        self.model.roll_back()
        self.model.published.clear()
        self._remember()

    def _deleted(self) -> None:
        self.whole_from = current_release(self.lake).number
        self.model.published.clear()

    def _remember(self, before: Mapping[Day, Made] | None = None) -> None:
        """What new releases show: the last of them what the model has now, those before only took what was landed."""
        newest = current_release(self.lake).number
        for number in range(len(self.model.history), newest + 1):
            shown = self.model.now.made if number == newest or before is None else before
            self.model.history[number] = dict(shown)

    def _seen(self, number: int) -> dict[Day, Any]:
        shown = release(self.lake, number)
        found: dict[Day, Any] = {}
        for table, name in TABLES.items():
            for day in DAYS:
                # A table of which every day is empty has no version yet.
                there = name in shown.versions
                rows = read_arrow(self.lake, name, days=[when(day)], release=shown).to_pylist() if there else []
                found[table, day] = _silver(rows) if table == SILVER else _gold(rows)
        return found


def _silver(rows: list[dict[str, Any]]) -> Any:
    return tuple(
        sorted(
            Sale(
                row["basket_id"],
                int((row["updated_at"].replace(tzinfo=UTC) - ZERO).total_seconds()),
                int(row["sales_value"]),
            )
            for row in rows
        )
    )


def _gold(rows: list[dict[str, Any]]) -> Any:
    return [(int(row["spend"]), row["trips"], row["recency_days"]) for row in rows]


def _expected(model: Model, number: int) -> dict[Day, Any]:
    found: dict[Day, Any] = {}
    shown = model.history[number]
    for day in ((table, number) for table in TABLES for number in DAYS):
        content: tuple[Any, ...] = shown[day].content if day in shown else ()
        has_rows = bool(content) and (day[0] == SILVER or content[1] > 0)
        found[day] = content if day[0] == SILVER else [content] if has_rows else []
    return found


def _days(found: Any) -> set[Day]:
    names = {name: table for table, name in TABLES.items()}
    return {(names[table], day.day) for table, days in found.items() if table in names for day in days}


def _kind(platform: Platform, publication: str) -> str:
    head = platform.ledger.head(publication)
    assert head
    return head.kind


@pytest.mark.timeout(1800)
@pytest.mark.proof
def test_any_order_of_what_people_and_processes_do(make_world: MakeWorld) -> None:
    """Sequences of twelve steps, each compared with a model."""
    run_state_machine_as_test(
        lambda: Releases(make_world),  # type: ignore[arg-type]
        settings=settings(
            max_examples=20,
            stateful_step_count=12,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
