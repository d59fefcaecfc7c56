"""A stage is dropped by deleting its folder, if nobody refers to it."""

from __future__ import annotations

from pathlib import Path

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.staging_folders import discard
from platform_assets.records.manifest import new_publication
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    change,
    contents,
    day,
    manifest,
    publish_elsewhere,
    stage,
    staged_manifest,
)


def test_a_stage_nobody_published_is_dropped(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    publication = stage(lake, SALES, {day(0): [("a", 2)]})
    assert discard(lake, SALES, publication)
    assert not lake.stage_path(SALES, publication).exists()
    assert contents(lake, SALES) == {day(0): [("a", 1)]}
    assert discard(lake, SALES, publication)


def test_a_published_stage_stays_also_after_it_was_replaced(lake: Lake) -> None:
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    publish(lake, first)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 2)]}}))
    assert not discard(lake, SALES, first.publication)
    assert contents(lake, SALES, 0) == {day(0): [("a", 1)]}


def test_a_stage_published_under_another_name_stays(lake: Lake) -> None:
    staged = stage(lake, SALES, {day(0): [("a", 1)]})
    publish(lake, manifest(new_publication(), change(lake, SALES, staged)))
    assert not discard(lake, SALES, staged)


def test_a_stage_whose_publication_was_begun_is_finished_instead(lake: Lake, tmp_path: Path) -> None:
    dying = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}, STORES: {day(0): [("s", 1)]}})
    publish_elsewhere(lake, dying, tmp_path, "publish.after_table.0")
    assert not discard(lake, STORES, dying.publication)
    assert contents(lake, STORES) == {day(0): [("s", 1)]}
