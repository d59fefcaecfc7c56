"""A refresh shows all its tables at once, or nothing; what others publish meanwhile is heeded, failures are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discarded_on_error
from platform_assets.engine.step import stage as staging
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.verify import verify
from platform_assets.planning.selection import Selection
from platform_assets_tests.support.history import DAYS, RETAIL, TILLS, correct, four_days
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import MakeWorld, World, recompute, sale

SILVER, GOLD = "silver.transactions", "gold.daily_sales"


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(four_days)


def corrected(lakes: Lakes) -> World:
    """All tables of the shipped domain, after a correction of the second day."""
    world = lakes.again(four_days, RETAIL)
    correct(world, DAYS[1], "correction")
    world.refresh()
    return world


@pytest.mark.proof
def test_days_read_as_staged_can_be_verified_and_explained(prepared: Prepared) -> None:
    world = prepared(corrected)
    with world.open() as platform:
        record = platform.ledger.current_days(GOLD)[date.fromisoformat(DAYS[1])]
        assert record.reads[SILVER] == current_release(platform.lake).versions[SILVER]
        folder = platform.lake.private_path
        every = Selection(frozenset({SILVER, GOLD, "gold.sales_month_to_date"}))
        found = verify(platform, lambda: world.spark, every, folder)
    assert {day.verdict for table in found for day in table.days} == {"equal"}


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[Platform], None]) -> None:
    """Something that happens once after everything is staged and before it is published."""
    publish = staging.Stage.publish
    done: list[bool] = []

    def later(stage: staging.Stage, *args: object) -> int | None:
        if not done:
            done.append(True)
            act(stage.platform)
        return publish(stage, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(staging.Stage, "publish", later)


@pytest.mark.proof
def test_what_was_staged_goes_with_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that fails at its end, and one that does not."""
    correct(world, DAYS[1], "ours")
    folders = set(world.settings.lake_folder.glob("*/*/*Z-*"))

    def fails(platform: Platform) -> None:
        raise RuntimeError("the machine is tired")

    between(monkeypatch, fails)
    with pytest.raises(RuntimeError):
        world.refresh()
    left = set(world.settings.lake_folder.glob("*/*/*Z-*")) - folders
    assert {folder.parent.name for folder in left} == {"transactions"}
    assert {folder.parent.parent.name for folder in left} == {"raw"}
    world.refresh()
    assert sum(row["net"] for row in world.rows(GOLD, DAYS[1])) == sum(
        row["sales_value"] for row in world.rows(SILVER, DAYS[1])
    )


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (OSError(28, "No space left on device"), "The stage could not be removed: [Errno 28] No space left on device."),
        (LakeError("The store does not answer.", "Try."), "The stage could not be removed: The store does not answer."),
    ],
)
def test_that_a_stage_cannot_be_removed_is_a_note_and_not_in_place_of_what_failed(left: Exception, told: str) -> None:
    def discard() -> None:
        raise left

    with pytest.raises(ValueError, match="what failed") as caught, discarded_on_error("The stage", discard):
        raise ValueError("what failed")
    assert caught.value.__notes__ == [told]


DAY = date(2017, 1, 1)


RAW, AUTHOR = "raw.transactions", Author("test", "a test")


@pytest.mark.proof
def test_a_correction_that_comes_during_a_step_is_not_read_and_makes_the_day_stale(make_world: MakeWorld) -> None:
    """Two ingests, a recomputation and a refresh."""
    world = make_world(days=1, domains=TILLS)
    world.deliver_rows("transactions", str(DAY), "t.jsonl", [sale(n, 1, str(DAY)) for n in range(3)])
    with world.open() as platform:
        ingest(platform, lambda: world.spark, platform.catalogue[RAW], AUTHOR)
        at_start = current_release(platform.lake)

        def session() -> SparkSession:
            """Started by the step once it has its release: a good moment for others to publish."""
            if current_release(platform.lake) == at_start:
                later = sale(0, 1, str(DAY), sales_value="99.00", updated_at=f"{DAY}T12:00:00Z")
                world.deliver_rows("transactions", str(DAY), "later.jsonl", [later])
                with world.open() as other:
                    ingest(other, lambda: world.spark, other.catalogue[RAW], AUTHOR)
            return world.spark

        recompute(platform, session, (SILVER,), (DAY,), AUTHOR)
        assert current_release(platform.lake).versions[RAW] == at_start.versions[RAW] + 1, "it did come meanwhile"
        assert platform.ledger.current_days(SILVER)[DAY].reads == {RAW: at_start.versions[RAW]}
    assert {str(row["sales_value"]) for row in world.rows(SILVER)} == {"2.50"}
    world.refresh()
    assert {str(row["sales_value"]) for row in world.rows(SILVER)} == {"2.50", "99.00"}
