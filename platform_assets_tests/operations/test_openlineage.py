"""Lineage events: every publication of every table, valid by the published schemas, sent once whatever happens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.releases import manifest_of
from platform_assets.operations.outbox import deliver, retry
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.records.manifest import change_of, new_publication
from platform_assets.records.outbox import Announced, Message
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.openlineage import Consumer, consuming
from platform_assets_tests.support.orchestration.readings import GOLD, RAW, SENSORS, SILVER, land, refresh_on_paper
from platform_assets_tests.support.world import World

DAY = "2017-01-01"
AUTHOR = Author("a run", "a reading came")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Readings of one day; nothing is computed by Spark."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    dates = {"calendar_first": DAY, "calendar_last": DAY, "today": DAY}
    settings = load_settings(state=tmp_path / "state", jars=JARS, domains=SENSORS, **dates)
    yield World(settings, cast("SparkSession", None))
    os.environ.clear()  # the client adds variables of its own
    os.environ.update(before)


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Consumer]:
    with consuming() as consumer:
        monkeypatch.setenv("OPENLINEAGE_URL", consumer.url)
        monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
        yield consumer


def publish(world: World, celsius: str = "20.00") -> None:
    """A reading lands, and all that reads it is computed: three publications, one for each table."""
    land(world, DAY, DAY, name=f"r{celsius}.jsonl", celsius=celsius)
    with world.open() as platform:
        refresh_on_paper(platform, None, AUTHOR)


def waiting(world: World) -> list[tuple[str, str, str]]:
    with world.open() as platform:
        return [(one.target, one.state, one.problem) for one in platform.ledger.outbox.messages()]


def send(world: World) -> Any:
    with world.open() as platform:
        retry(platform, None)
        return deliver(platform)


def test_each_publication_and_table_is_a_run_that_starts_and_completes(world: World, consumer: Consumer) -> None:
    publish(world)
    assert len(send(world).delivered) == 3
    assert (consumer.refused, len(consumer.events)) == ([], 6)
    starts, ends = ([one for one in consumer.events if one["eventType"] == kind] for kind in ("START", "COMPLETE"))
    assert [one["run"]["runId"] for one in starts] == [one["run"]["runId"] for one in ends]
    assert [one["job"]["name"] for one in ends] == [RAW, SILVER, GOLD]
    lake = str(world.settings.lake)
    [event] = consumer.of(SILVER)
    assert event["job"]["namespace"] == "shop"
    assert event["job"]["facets"]["ownership"]["owners"] == [{"name": "sensors@example.com"}]
    [read] = event["inputs"]
    assert (read["namespace"], read["name"]) == ("file", f"{lake}/raw/readings")
    assert read["facets"]["version"]["datasetVersion"] == "0"
    assert read["facets"]["symlinks"]["identifiers"] == [{"namespace": "shop", "name": RAW, "type": "TABLE"}]
    [made] = event["outputs"]
    assert made["facets"]["version"]["datasetVersion"] == "0"
    assert [field["name"] for field in made["facets"]["schema"]["fields"]] == [
        "sensor",
        "measured_at",
        "celsius",
        "event_date",
    ]
    assert made["facets"]["columnLineage"]["fields"]["celsius"]["inputFields"] == [
        {"namespace": "file", "name": f"{lake}/raw/readings", "field": "celsius", "transformations": []}
    ]
    assert made["facets"]["dataQualityMetrics"]["rowCount"] == made["outputFacets"]["outputStatistics"]["rowCount"] == 0
    assert made["outputFacets"]["subset"]["outputCondition"]["partitions"] == [{"dimensions": {"event_date": DAY}}]
    facets = event["run"]["facets"]
    assert {one["type"]: one["status"] for one in facets["test"]["tests"]} == dict.fromkeys(
        ["contract", "conservation", "volume"], "pass"
    )
    assert facets["nominalTime"]["nominalStartTime"] == f"{DAY}T00:00:00+00:00"
    assert (facets["platformPublication"]["kind"], facets["platformPublication"]["days"]) == ("recompute", [DAY])
    [raw] = consumer.of(RAW)
    assert raw["inputs"][0]["name"].endswith("/landing/readings")
    assert raw["inputs"][0]["inputFacets"]["inputStatistics"]["fileCount"] == 1


def test_a_rollback_is_an_event_too(world: World, consumer: Consumer) -> None:
    publish(world)
    publish(world, "21.00")
    with world.open() as platform:
        newest = max(platform.ledger.indexed())
        rollback(platform, chosen_publications(platform, newest), Author("undo", "it was wrong", "Zoë"))
    send(world)
    assert consumer.refused == []
    first, _, back = consumer.of(GOLD)
    facet = back["run"]["facets"]["platformPublication"]
    assert (facet["kind"], facet["why"], facet["who"]) == ("roll back", "it was wrong", "Zoë")
    assert facet["restores"] == [first["run"]["facets"]["platformPublication"]["publication"]]


def test_a_withdrawal_is_an_event_and_a_table_that_is_gone_keeps_no_other_waiting(
    world: World, consumer: Consumer
) -> None:
    publish(world)
    with world.open() as platform:
        made = max(platform.ledger.indexed())
        change = change_of(manifest_of(platform.lake, made), GOLD)
        publish_changes(platform, new_publication(), "withdrawal", [change], Author("undo", "it was wrong", "Zoë"))
        at = datetime(2017, 1, 1, tzinfo=UTC)
        gone = Message("g" * 32, "openlineage", "Lineage of gold.gone.", '{"table": "gold.gone"}', at, at, made, 2)
        platform.ledger.notes.mark_announced("webhook", Announced(), by=gone)
    done = send(world)
    assert (len(done.delivered), consumer.refused) == (4, [])
    assert "has no events of gold.gone: There is no table 'gold.gone'" in done.failed[0].problem
    facet = consumer.of(GOLD)[-1]["run"]["facets"]["platformPublication"]
    assert (facet["kind"], facet["decides"], facet["who"]) == ("withdrawal", "", "Zoë")


def test_a_server_that_is_down_loses_nothing_and_sends_no_secret_to_a_log(
    world: World, consumer: Consumer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hush")
    consumer.status = 503
    publish(world)
    [failed] = send(world).failed[:1]
    assert failed.problem == "cannot be reached (RetryError)" or failed.problem == "answered 503"
    consumer.status = 201
    with world.open() as platform:
        platform.ledger.outbox.retry(platform.ledger.outbox.messages(["waiting"]), datetime.now(UTC))
    assert len(send(world).delivered) == 3
    assert len(consumer.events) >= 6
    assert consumer.authorizations == {"Bearer hush"}
    assert "hush" not in caplog.text + str(waiting(world))


def test_nothing_is_written_without_a_configuration(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(world)
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    publish(world, "21.00")
    assert waiting(world) == []


WRONG = {
    "transport: {type: pigeon}": "cannot be sent to",
    "transport: {}": "name no transport",
    "{": "name no transport",
    "transport: {type: http, url: nowhere}": "Need valid url",
    "transport: {type: http, url: 'https//zoe:hush@x'}": "passed ***@x",
    "transport: {type: file, log_file_path: /nowhere/events, append: true}": "/nowhere/events",
    "transport: {type: composite, transports: [{type: http, url: 'http://127.0.0.1:9', retry: {total: 0}}, "
    "{type: console}]}": "was not reached by the client's composite",
}
"""What may stand in the client's file, and what is said of it."""


def test_what_is_wrong_with_a_configuration_is_said_and_loses_nothing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lineage.yml"
    file.write_text("")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(file))
    publish(world)
    for configuration, problem in WRONG.items():
        file.write_text(configuration)
        with world.open() as platform:
            platform.ledger.outbox.retry(platform.ledger.outbox.messages(["waiting"]), datetime.now(UTC))
        found = [one.problem for one in send(world).failed]
        assert found, configuration
        assert problem in found[0]
        assert "hush" not in found[0]
        assert [state for _, state, _ in waiting(world)] == ["waiting"] * 3


def test_the_project_may_have_events_written_to_a_file(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platform.toml").write_text("")
    events = tmp_path / "events.jsonl"
    (tmp_path / "openlineage.yml").write_text(f"transport: {{type: file, log_file_path: {events}, append: true}}")
    publish(world)
    assert len(send(world).delivered) == 3
    assert [json.loads(line)["eventType"] for line in events.read_text().splitlines()] == ["START", "COMPLETE"] * 3
