"""What is on record of a delivery is what was read of it."""

from __future__ import annotations

import json
from datetime import date
from hashlib import sha256

import pytest

from platform_assets.engine import ingest as ingesting
from platform_assets.engine.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.results import IngestResult
from platform_assets.sources.landing import Problem
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.world import MakeWorld, World, sale

RAW, DAY = "raw.transactions", "2017-01-01"


def taken(world: World) -> IngestResult:
    with world.open() as platform:
        return ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("r", "a test"))


def test_a_file_that_changes_between_being_listed_and_read_waits_and_the_others_are_taken(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ingests, the first of which Spark has to wait for."""
    world = make_world(days=1, domains=DAILY, settle_s=0)
    whole = world.deliver_rows("transactions", DAY, "a.jsonl", [sale(1, 1, DAY)])
    changing = world.deliver_rows("transactions", DAY, "b.jsonl", [sale(2, 1, DAY)])

    def meanwhile(point: str) -> None:
        if point == "ingest.listed":
            with changing.open("a") as stream:
                stream.write(json.dumps(sale(3, 1, DAY)) + "\n")

    with monkeypatch.context() as patch:
        patch.setattr(ingesting, "failpoint", meanwhile)
        first = taken(world)
    assert [arrival.path for arrival in first.arrivals] == [f"transactions/{DAY}/a.jsonl"]
    assert first.growing == (Problem(f"transactions/{DAY}/b.jsonl", "is still growing, changed while it was read"),)
    assert first.arrivals[0].sha256 == sha256(whole.read_bytes()).hexdigest()
    second = taken(world)
    assert [(arrival.taken, arrival.sha256) for arrival in second.arrivals] == [
        (2, sha256(changing.read_bytes()).hexdigest())
    ]
    assert second.published[date.fromisoformat(DAY)].rows == 3
