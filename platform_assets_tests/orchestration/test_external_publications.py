"""What the command line publishes is shown in Dagster too: once, and only what stands."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from platform_assets.cli.commands.up import show_published
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.releases import manifest_of
from platform_assets.ledger import sync as index
from platform_assets.orchestration.assets.publications import (
    Cursor,
    Elsewhere,
    published_elsewhere,
    show,
)
from platform_assets.records.manifest import Arrival, DayContent, TableChange, Warned, change_of, new_publication
from platform_assets.spark.tables.schemas import raw_schema
from platform_assets_tests.support.days_on_paper import DAY, correct, opened, publish, publish_all, put_back
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.orchestration.daemon import Daemon, run_one
from platform_assets_tests.support.orchestration.readings import DAYS, land, refresh_on_paper
from platform_assets_tests.support.world import World

SILVER = dg.AssetKey(["silver.readings"])


def refresh(world: World, run: str) -> None:
    """What a person does at a terminal."""
    with world.open() as platform:
        refresh_on_paper(platform, None, Author(run, "refresh"))


def shown(daemon: Daemon, key: dg.AssetKey = SILVER) -> dict[str, dg.AssetMaterialization]:
    """The newest materialization of every day, as Dagster shows it."""
    found: dict[str, dg.AssetMaterialization] = {}
    for record in daemon.instance.fetch_materializations(key, limit=1000, ascending=True).records:
        assert record.asset_materialization is not None
        found[str(record.partition_key)] = record.asset_materialization
    return found


def test_days_of_the_command_line_are_shown_once(readings: World, daemon: Daemon) -> None:
    for day in DAYS[:3]:
        land(readings, day, day)
    refresh(readings, "refresh-1")
    tick = daemon.tick("published_elsewhere")
    assert tick.skip_reason == "shown now: days published without Dagster, 9 over all tables"
    found, gold = shown(daemon), shown(daemon, dg.AssetKey(["gold.sensor_week"]))
    assert list(found) == DAYS[:3]
    assert [day for day, event in gold.items() if "preview" in event.metadata] == DAYS[2:3]
    assert list(shown(daemon, dg.AssetKey(["raw.readings"]))) == DAYS[:3], "of the very first release"
    with readings.open() as platform:
        now = platform.ledger.current_days("silver.readings")
    for day, event in found.items():
        record = now[date.fromisoformat(day)]
        assert event.tags == {"dagster/data_version": record.digest}
        assert event.metadata["dagster/row_count"].value == record.rows
        assert "rows of silver.readings" in str(event.metadata["rows by day"].value), "the charts of a run"
        assert "(`refresh`), not by a run of Dagster (refresh-1)" in str(event.metadata["published by"].value)
    asset = dg.AssetCheckKey(SILVER, "contract")
    [check] = daemon.instance.event_log_storage.get_latest_asset_check_execution_by_key([asset]).values()
    assert check.event is not None
    evaluation = check.event.dagster_event.asset_check_evaluation_data if check.event.dagster_event else None
    assert evaluation is not None
    assert evaluation.passed
    assert evaluation.partition == DAYS[2]

    before = daemon.instance.get_asset_records([SILVER])[0].asset_entry.last_materialization_storage_id
    assert daemon.tick("published_elsewhere").skip_reason == "nothing was published without Dagster"
    assert daemon.instance.get_asset_records([SILVER])[0].asset_entry.last_materialization_storage_id == before


@pytest.mark.proof
def test_what_a_run_published_or_replaced_is_its_own_to_tell(readings: World, daemon: Daemon) -> None:
    for day in DAYS[:2]:
        land(readings, day, day)
    refresh(readings, "refresh-1")
    land(readings, DAYS[2], DAYS[1], name="correction.jsonl")
    run = run_one(daemon)
    with readings.open() as platform:
        found = list(published_elsewhere(daemon.instance, platform, Cursor()))
    told = {
        (event.asset_key.to_user_string(), event.partition)
        for part in found
        for event in part.events
        if isinstance(event, dg.AssetMaterialization)
    }
    assert ("silver.readings", DAYS[0]) in told
    assert ("silver.readings", DAYS[1]) not in told
    assert found[-1].cursor == Cursor(max(platform.ledger.indexed().values()))
    assert daemon.instance.has_run(run.run_id)


@pytest.mark.proof
def test_much_is_told_in_several_ticks_and_an_older_lake_from_its_beginning(readings: World, daemon: Daemon) -> None:
    for day in DAYS:
        land(readings, day, day)
        refresh(readings, f"refresh-{day}")
    with readings.open() as platform:
        everything = list(published_elsewhere(daemon.instance, platform, Cursor()))
        since, days, ticks = Cursor(), 0, 0
        while True:
            part = show(daemon.instance, published_elsewhere(daemon.instance, platform, since), since, within_s=0)
            since, days, ticks = Cursor.parse(str(part.cursor)), days + part.days, ticks + 1
            if not part.more:
                break
        assert (days, since) == (sum(bool(part.events) for part in everything), everything[-1].cursor)
        assert ticks > days / 2, "days of one publication are told in several ticks, too"
        assert list(published_elsewhere(daemon.instance, platform, Cursor(10**6))) == everything


@pytest.mark.proof
def test_a_day_that_is_published_and_shown_again_is_shown_as_it_is_then(readings: World, daemon: Daemon) -> None:
    """Dagster keeps one result without a run for each check and day, and refuses another."""
    for number, day in enumerate(DAYS[:3]):
        land(readings, day, day)
        land(readings, day, DAYS[0], name=f"correction-{number}.jsonl")
        refresh(readings, f"refresh-{number}")
        assert "shown now" in str(daemon.tick("published_elsewhere").skip_reason)
        event = shown(daemon, dg.AssetKey(["raw.readings"]))[DAYS[0]]
        assert f"(refresh-{number})" in str(event.metadata["published by"].value)
    assert daemon.tick("published_elsewhere").skip_reason == "nothing was published without Dagster"
    asset = dg.AssetCheckKey(dg.AssetKey(["raw.readings"]), "contract")
    history = daemon.instance.event_log_storage.get_asset_check_execution_history(asset, limit=100)
    assert sorted(str(result.partition) for result in history) == DAYS[:3]


def test_a_rollback_that_is_indexed_after_a_later_publication_is_shown_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its release and the ledger somebody else publishes, and the sensor looks."""
    with opened(tmp_path / "state") as platform, opened(tmp_path / "state") as other:
        publish_all(platform)
        wrong = correct(platform)
        since = max(platform.ledger.indexed().values())
        instance, seen = dg.DagsterInstance.ephemeral(), list[list[Elsewhere]]()
        contract = platform.catalogue["raw.readings"]
        empty = DayContent(files=(), base=(), digest="0-7-0-0-0", rows=0, bytes=0)
        change = TableChange(
            table=contract.name, schema_string=raw_schema(contract).json(), days={date.fromisoformat(DAYS[0]): empty}
        )

        def published_and_looked_at() -> None:
            publish_changes(other, new_publication(), "ingest", [change], Author("ingest", "a file came"))
            seen.append(list(published_elsewhere(instance, other, Cursor(since))))

        once_at(monkeypatch, index, "ledger.before_record", published_and_looked_at)
        put_back(platform, wrong)
        [found] = seen
        assert found[-1].cursor == Cursor(since + 2)
        told = {event.asset_key for part in found for event in part.events}
        assert SILVER in told, "or its page shows what was rolled back for ever"


def checks_of(found: Iterable[Elsewhere], day: date, key: dg.AssetKey = SILVER) -> dict[str, dg.AssetCheckEvaluation]:
    """What the checks say of a day of a table, by name."""
    return {
        event.check_name: event
        for part in found
        for event in part.events
        if isinstance(event, dg.AssetCheckEvaluation) and (event.asset_key, event.partition) == (key, str(day))
    }


def test_what_gates_warned_of_at_a_terminal_is_a_warning_in_dagster_until_the_day_heals(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        half = Warned(gate="volume", found="416 rows", expected="780 to 840 rows are usual")
        publish(platform, "silver.readings", [DAY], 2, warnings=(half,))
        instance = dg.DagsterInstance.ephemeral()
        found = list(published_elsewhere(instance, platform, Cursor()))
        checks = checks_of(found, DAY)
        assert {name: check.passed for name, check in checks.items()} == {
            "contract": True,
            "conservation": True,
            "volume": False,
        }
        [shown] = [
            event.metadata["warned"].value
            for part in found
            for event in part.events
            if isinstance(event, dg.AssetMaterialization) and "warned" in event.metadata
        ]
        assert str(half) in str(shown), "its partition is green all the same"
        warned = checks["volume"]
        assert warned.severity == dg.AssetCheckSeverity.WARN
        assert not warned.blocking
        assert str(warned.description).splitlines()[0] == f"{half}.", "a page shows all lines as one"
        assert {name: value.value for name, value in warned.metadata.items()} == {
            "expected": "780 to 840 rows are usual",
            "found": "416 rows",
            "what came with it": f"platform-assets why silver.readings {DAY}",
        }
        publish(platform, "silver.readings", [DAY], 3)
        healed = checks_of(published_elsewhere(instance, platform, Cursor()), DAY)
        assert all(check.passed for check in healed.values())


def test_refused_rows_of_a_delivery_that_was_taken_at_a_terminal_are_a_warning_in_dagster(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        since, contract = max(platform.ledger.indexed().values()), platform.catalogue["raw.readings"]
        content = DayContent(files=(), base=(), digest="0-7-0-0-0", rows=0, bytes=0)
        change = TableChange(table=contract.name, schema_string=raw_schema(contract).json(), days={DAY: content})
        file = Arrival(
            table=contract.name, path=f"readings/{DAY}/a.csv", arrival_date=DAY, size=1, sha256="a", modified_ns=1,
            landed=10, taken=7, refused=3,
        )  # fmt: skip
        publish_changes(platform, new_publication(), "ingest", [change], Author("r", "refresh"), arrivals=[file])
        found = published_elsewhere(dg.DagsterInstance.ephemeral(), platform, Cursor(since))
        checks = checks_of(found, DAY, dg.AssetKey(["raw.readings"]))
    assert {name: check.passed for name, check in checks.items()} == {"contract": False, "conservation": True}
    assert checks["contract"].severity == dg.AssetCheckSeverity.WARN
    assert "3 of 10 rows refused" in str(checks["contract"].description)


def test_a_check_says_in_whole_sentences_who_published_put_back_or_erased(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        since, instance = max(platform.ledger.indexed().values()), dg.DagsterInstance.ephemeral()
        wrong = correct(platform)
        found = checks_of(published_elsewhere(instance, platform, Cursor(since)), DAY)
        put_back(platform, wrong)
        back = checks_of(published_elsewhere(instance, platform, Cursor(since)), DAY)
        [now] = platform.ledger.current_days("silver.readings", among=[DAY]).values()
        change = change_of(manifest_of(platform.lake, now.publication), "silver.readings")
        publish_changes(platform, new_publication(), "erasure", [change], Author("erase", "request 1", "zoe"))
        erased = checks_of(published_elsewhere(instance, platform, Cursor(since)), DAY)
    said = [str(checks["volume"].description) for checks in (found, back, erased)]
    assert said[0].startswith("Kept nothing of the day back when it was published, by ")
    assert said[0].endswith(" (`a test`), not by a run of Dagster.")
    assert said[1] == (
        "Passed when the restored content was first published, by Zoë (`it was wrong`), not by a run of Dagster."
    )
    assert said[2] == (
        "Kept nothing of the day back when it was published; rows were taken out of it since, by zoe (`request 1`), "
        "not by a run of Dagster."
    )


@pytest.mark.proof
def test_a_lake_that_no_daemon_ever_looked_at_is_shown_before_its_pages_are_only_looked_at(
    readings: World, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `up --read-only` does before it opens them; the sensor goes on from there."""
    for day in DAYS[:3]:
        land(readings, day, day)
    refresh(readings, "refresh-1")
    home = tmp_path / "dagster" / "home"
    monkeypatch.setattr("platform_assets.cli.commands.up._KEPT_EVERY_S", 0.0)
    show_published(readings.settings, home)
    assert list(shown(daemon)) == DAYS[:3]
    assert daemon.tick("published_elsewhere").skip_reason == "nothing was published without Dagster"
    land(readings, DAYS[3], DAYS[3])
    refresh(readings, "refresh-2")
    assert "shown now" in str(daemon.tick("published_elsewhere").skip_reason)
    before = daemon.instance.get_asset_records([SILVER])[0].asset_entry.last_materialization_storage_id
    show_published(readings.settings, home)
    assert daemon.instance.get_asset_records([SILVER])[0].asset_entry.last_materialization_storage_id == before
