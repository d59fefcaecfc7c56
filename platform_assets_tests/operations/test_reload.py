"""A raw table begun anew: its deliveries taken by a corrected contract, as if that had been the first one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Catalogue, Column, Contract, ContractError
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.refresh import refresh
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import Conflict
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.reload import Reload, planned_reload, reload
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.stages import refresh_stage
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets.records.code_version import Attempt
from platform_assets.records.differences import Digest
from platform_assets.records.history import Hold
from platform_assets.records.manifest import DayContent, TableChange, new_publication
from platform_assets_tests.support.history import Version, two_lines_a_day
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import MakeWorld, World

RAW, SILVER, GOLD = "raw.readings", "silver.readings", "gold.sensor_week"
KEPT = (RAW, SILVER, GOLD, "refused.readings", "late.readings", "quarantine.readings")
AUTHOR = Author("reload", "the event time was wrong", "zoe")
SENT_AT = Column("sent_at", "timestamp", "When it was sent, UTC.", nullable=False)
BATTERY = Column("battery", "long", "Percent.")


@dataclass(frozen=True)
class Sensors:
    """An installation whose contracts somebody corrects: readings count on the day they were measured on, not sent."""

    world: World

    @contextmanager
    def open(self, *, corrected: bool = True) -> Iterator[Platform]:
        battery = BATTERY if corrected else replace(BATTERY, type="string")

        def changed(contract: Contract) -> Contract:
            if contract.name == GOLD:
                return contract
            wider = replace(contract, columns=(*contract.columns, SENT_AT, battery))
            return wider if corrected or not contract.source else replace(wider, event_time="sent_at")

        with self.world.open() as opened:
            [domain] = opened.catalogue.domains
            yield replace(opened, catalogue=Catalogue.of([replace(domain, tables=tuple(map(changed, domain.tables)))]))

    def deliver(
        self, arrival: str, name: str, *measured: str, celsius: str = "1.50", battery: str = "7", sent: str = ""
    ) -> None:
        rows = [
            {
                "sensor": f"{name}-{number}",
                "measured_at": f"{day}T06:00:00Z",
                "celsius": celsius,
                "sent_at": f"{sent or arrival}T07:00:00Z",
                "battery": battery,
            }
            for number, day in enumerate(measured)
        ]
        self.world.deliver_rows("readings", arrival, f"{name}.jsonl", rows)

    def refresh(self, *, corrected: bool = True) -> None:
        with self.open(corrected=corrected) as platform:
            refresh(platform, lambda: self.world.spark, Author("test", "a test"), request=BY_PERSON)

    def reload(self) -> Reload:
        with self.open() as platform:
            return reload(platform, lambda: self.world.spark, RAW, AUTHOR)

    def digests(self) -> dict[str, dict[date, str]]:
        """Of every day of every table, those without rows of tables that keep rows aside left out."""
        with self.open() as platform:
            found = {name: platform.ledger.current_days(name) for name in KEPT}
        return {
            name: {day: record.digest for day, record in days.items() if record.rows or name in (RAW, SILVER, GOLD)}
            for name, days in found.items()
        }


def deliver_all(sensors: Sensors) -> None:
    """Readings of the day and of the day before, one far too late by when it was measured, broken ones.

    Nothing was measured on the first day, on which one was sent as its clock says.
    """
    sensors.deliver("2017-01-02", "a", "2017-01-02", "2017-01-02", sent="2017-01-01")
    sensors.deliver("2017-01-03", "b", "2017-01-02", "2016-09-01")
    sensors.deliver("2017-01-04", "c", "2017-01-03", celsius="-300.00")
    sensors.deliver("2017-01-04", "d", "2017-01-03", battery="full")
    sensors.deliver("2017-01-05", "e", "2017-01-04")


def loaded_wrongly(lakes: Lakes) -> World:
    world = lakes.new(days=5, domains="platform_assets_tests.support.domains.sensors")
    sensors = Sensors(world)
    deliver_all(sensors)
    sensors.refresh(corrected=False)
    return world


def loaded_rightly(lakes: Lakes) -> World:
    world = lakes.new(days=5, domains="platform_assets_tests.support.domains.sensors")
    sensors = Sensors(world)
    deliver_all(sensors)
    sensors.refresh()
    return world


@pytest.fixture
def sensors(prepared: Prepared) -> Sensors:
    return Sensors(prepared(loaded_wrongly))


def test_after_a_reload_all_is_as_with_a_fresh_installation(sensors: Sensors, prepared: Prepared) -> None:
    """Four refreshes, two of them of installations that other tests begin with: two contracts in two installations."""
    fresh = Sensors(prepared(loaded_rightly))
    wrong, lake = sensors.digests(), Lake.at(sensors.world.settings.lake)
    with sensors.open() as platform, pytest.raises(ContractError, match=r"platform-assets admin reload raw\.readings"):
        ingest(platform, lambda: sensors.world.spark, platform.catalogue[RAW], AUTHOR)
    with sensors.open() as platform:
        dry = planned_reload(platform, RAW)
        assert platform.current_release().number == dry.before, "a dry run changes nothing"
    done = sensors.reload()
    assert done.taken is not None
    assert (done.days, done.rows, done.files, done.before) == (dry.days, dry.rows, 5, dry.before)
    assert {arrival.path for arrival in done.taken.arrivals} == {
        f"readings/{name}.jsonl"
        for name in ("2017-01-02/a", "2017-01-03/b", "2017-01-04/c", "2017-01-04/d", "2017-01-05/e")
    }
    assert sensors.digests()[GOLD] == {}
    sensors.refresh()
    assert sensors.digests() == fresh.digests() != wrong
    gone = {str(day) for day in wrong[SILVER].keys() - sensors.digests()[SILVER].keys()}
    assert gone == {"2017-01-01"}, "a day that comes no more is as if never computed"
    assert read_arrow(lake, SILVER, release=dry.before).num_rows == dry.rows[SILVER]

    def said(of: Sensors) -> list[tuple[str, int, int, int, int]]:
        with of.open() as platform:
            records = platform.ledger.arrivals(RAW)
            rows = platform.ledger.refused_rows()
        found = sorted((a.path, a.landed, a.taken, a.refused, a.late) for a in records)
        assert all(landed == taken + refused + late for _, landed, taken, refused, late in found)
        assert rows == {RAW: 1}
        return found

    assert said(sensors) == said(fresh)
    with sensors.open() as platform:
        shown = audit_installation(platform.settings, Scope(), lambda *_: None, lambda: sensors.world.spark)
        assert [str(fault) for fault in shown.findings.faults] == []
        before = platform.ledger.arrivals()
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.arrivals() == before
        assert not ingest(platform, lambda: sensors.world.spark, platform.catalogue[RAW], AUTHOR).arrivals
    assert sensors.digests() == fresh.digests()


def test_neither_a_reload_nor_what_was_before_it_is_rolled_back(sensors: Sensors) -> None:
    with sensors.open() as platform:
        of_silver = next(record.publication for record in platform.ledger.current_days(SILVER).values())
    done = sensors.reload()
    assert done.release is not None
    with sensors.open() as platform:
        for chosen in (
            chosen_publications(platform, to=done.before),
            chosen_publications(platform, of_silver),
            chosen_publications(platform, run="reload"),
        ):
            for cascade in (False, True):
                with pytest.raises(PlatformError, match=r"is a reload by zoe \(the event time was wrong\)"):
                    rollback(platform, chosen, AUTHOR, cascade=cascade)
        assert platform.ledger.current_days(SILVER) == {}


def test_days_computed_from_what_was_there_before_are_not_published_any_more(sensors: Sensors) -> None:
    with sensors.open(corrected=False) as platform:
        before = LakeSnapshot.now(platform)
        reads, schema = before.reads([RAW]), before.schema_string(SILVER)
    sensors.reload()
    empty = DayContent(files=(), base=(), digest=str(Digest()), fingerprint="of before", rows=0, bytes=0)
    change = TableChange(table=SILVER, schema_string=schema, days={date(2017, 1, 5): empty}, reads=reads)
    with sensors.open() as platform, pytest.raises(Conflict, match=r"silver\.readings: 2017-01-05"):
        publish_changes(platform, new_publication(), "recompute", [change], AUTHOR)


def refused(sensors: Sensors, message: str, table: str = RAW) -> None:
    """Neither a dry run nor a reload is done, and nothing is changed."""
    with sensors.open() as platform:
        before = platform.current_release().number
        with pytest.raises(PlatformError, match=message):
            planned_reload(platform, table)
        with pytest.raises(PlatformError, match=message):
            reload(platform, lambda: sensors.world.spark, table, AUTHOR)
        assert platform.current_release().number == before


def test_a_file_that_is_gone_or_another_one_keeps_all_as_it_is(sensors: Sensors) -> None:
    sensors.deliver("2017-01-04", "c", "2017-01-03", celsius="4.00")
    refused(sensors, r"readings/2017-01-04/c\.jsonl has sha256 \w+, and had \w+ when it was taken\. Nothing was")
    (sensors.world.settings.landing_folder / "readings/2017-01-02/a.jsonl").unlink()
    refused(sensors, r"readings/2017-01-02/a\.jsonl is not among the files of readings any more; readings/2017-01-04/c")


def test_what_people_decided_is_not_undone(sensors: Sensors) -> None:
    with sensors.open(corrected=False) as platform:
        withdraw(platform, lambda: sensors.world.spark, ["readings/2017-01-05/e.jsonl"], AUTHOR)
    refused(sensors, r"people decided about its rows: the withdrawal of readings/2017-01-05/e\.jsonl")


@pytest.mark.proof
def test_what_a_dead_process_left_is_taken_by_whoever_takes_deliveries_next(
    sensors: Sensors, prepared: Prepared
) -> None:
    """It began anew and could take nothing; then as with a fresh installation."""

    def no_session() -> SparkSession:
        raise InterruptedError

    with sensors.open() as platform:
        with pytest.raises(InterruptedError):
            reload(platform, no_session, RAW, AUTHOR)
        assert platform.ledger.arrivals(RAW) == ()
    assert all(days == {} for days in sensors.digests().values())
    sensors.refresh()
    assert sensors.digests() == Sensors(prepared(loaded_rightly)).digests()


@pytest.mark.proof
def test_files_that_were_all_refused_are_taken_once_the_column_is_spelt_right(make_world: MakeWorld) -> None:
    world = make_world(days=5, domains="platform_assets_tests.support.domains.sensors")
    sensors = Sensors(world)
    deliver_all(sensors)
    with world.open() as platform:
        [domain] = platform.catalogue.domains
        raw, *others = domain.tables
        misspelt = replace(raw, columns=(*raw.columns, replace(BATTERY, name="batery"), SENT_AT))
        wrong = replace(platform, catalogue=Catalogue.of([replace(domain, tables=(misspelt, *others))]))
        taken = ingest(wrong, lambda: world.spark, misspelt, AUTHOR).arrivals
        assert {arrival.taken for arrival in taken} == {0}
    with sensors.open() as platform:
        assert ingest(platform, lambda: world.spark, platform.catalogue[RAW], AUTHOR).arrivals == ()
    done = sensors.reload()
    assert done.taken is not None
    # One of the five has nothing but a row that is refused by any contract.
    assert sorted(arrival.reason is None for arrival in done.taken.arrivals) == [False, *[True] * 4]


@pytest.mark.proof
def test_holds_of_days_that_come_no_more_go_with_them(sensors: Sensors) -> None:
    day = date(2017, 1, 5)
    with sensors.open(corrected=False) as platform:
        attempt = Attempt("of before", platform.version(SILVER))
        platform.ledger.hold([Hold(SILVER, day, attempt, "volume", "too few rows", "r", datetime.now(UTC))])
    sensors.reload()
    with sensors.open() as platform:
        assert platform.ledger.holds() == ()


def test_days_that_a_person_put_back_stay_so(sensors: Sensors) -> None:
    with sensors.open(corrected=False) as platform:
        of_silver = next(record.publication for record in platform.ledger.current_days(SILVER).values())
        rollback(platform, chosen_publications(platform, of_silver), AUTHOR)
    refused(sensors, r"as a person put it back .*, and a reload would undo that")


@pytest.mark.proof
def test_open_stages_are_in_the_way(sensors: Sensors) -> None:
    with sensors.open(corrected=False) as platform:
        request = Request(frozenset({GOLD}), by_person=True, force=True)
        refresh_stage(platform, lambda: sensors.world.spark, AUTHOR, "looked-at", request=request)
    refused(sensors, "The stage looked-at is open")


@pytest.mark.proof
def test_records_that_moved_come_out_as_they_were(prepared: Prepared) -> None:
    """The same contract once more, after corrections, moves and voids; three refreshes."""
    story = prepared(two_lines_a_day)
    story.deliver("2017-01-07", "moved.jsonl", Version(3, 5, 4, "4.00"), Version(2, 2, 4, "4.00"))
    story.refresh()
    story.deliver("2017-01-08", "back.jsonl", Version(3, 3, 5, "5.00"), Version(4, 4, 4, voided=True))
    story.refresh()
    before = story.world.digests()
    with story.world.open() as platform:
        reload(platform, lambda: story.world.spark, "raw.transactions", AUTHOR)
    story.refresh()
    assert story.kept() == story.expected()
    after = story.world.digests()
    derived = [table for table in before if not table.startswith("raw.")]
    assert {table: after[table] for table in derived} == {table: before[table] for table in derived}
