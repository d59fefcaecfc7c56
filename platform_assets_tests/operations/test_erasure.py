"""A person's rows erased: all is as if they had never come, nothing brings them back, and no file holds them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from platform_assets.engine.erasures import OtherSecretError
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.compute import Computed, compute
from platform_assets.engine.step.holds import DeletedMeanwhileError
from platform_assets.engine.step.work import Work
from platform_assets.errors import PlatformError
from platform_assets.failpoints import VARIABLE
from platform_assets.lakehouse.errors import DamagedTableError, ErasedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import manifest_bytes
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.deletion import delete_unneeded
from platform_assets.operations.erasure import lift, lift_unreadable
from platform_assets.operations.erasure_places import Request
from platform_assets.operations.pins import pin, pinned_releases
from platform_assets.operations.reload import reload
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.secret import secret_file
from platform_assets_tests.support.cli.commands import PROBE, Run, Said, run, state
from platform_assets_tests.support.domains.transforms import gold
from platform_assets_tests.support.installation import OWN_PROCESS, Jvm
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.shelf import in_process, killed
from platform_assets_tests.support.visits import (
    BY_WHO,
    DOMAIN,
    WHO,
    ZOE,
    Visits,
    erased_by_another,
    files_with,
    loaded,
    visit,
)
from platform_assets_tests.support.world import MakeWorld

__all__ = ["run", "state"]
"""Fixtures of the command line."""


@pytest.fixture
def visits(prepared: Prepared) -> Visits:
    return prepared(loaded, True)


@pytest.fixture
def never(prepared: Prepared) -> Visits:
    return prepared(loaded, False)


def lake_of(visits: Visits) -> Lake:
    return Lake.at(visits.world.settings.lake)


def sound(visits: Visits) -> None:
    """The audit, files page by page and digests computed anew, finds nothing."""
    with visits.world.open() as platform:
        found = audit_installation(
            platform.settings, Scope(every_release=True, read_bytes=None), lambda *_: None, lambda: visits.world.spark
        )
        assert [str(fault) for fault in found.findings.faults] == []


def test_after_an_erasure_all_is_as_in_an_installation_that_never_had_the_rows(visits: Visits, never: Visits) -> None:
    """Two installations loaded, an erasure with its refresh, a delivery of the same rows and one more refresh."""
    lake = lake_of(visits)
    assert {file.split("/")[0] for file in files_with(lake)} == {
        "raw", "silver", "gold", "late", "refused", "quarantine"
    }  # fmt: skip
    with visits.world.open() as platform:
        old = platform.current_release().number
    (on_disk(lake.table_path("raw.visits")) / "notes.txt").write_text("of others, in no publication's folder")
    waits = [each.deliver("2017-01-04", "waits", visit(30, 8, "2017-01-04")) for each in (visits, never)]
    done = visits.erase()
    with visits.world.open() as platform:
        assert platform.ledger.arrival("raw.visits", waits[0]) is None, "whoever erases signs no delivery"
    assert done.is_whole, (done.left, done.not_refreshed)
    assert {table: sum(days.values()) for table, days in done.found.rows.items()} == {
        "raw.visits": 5,  # one of them a tombstone
        "late.visits": 1,
        "refused.visits": 2,
        "silver.visits": 2,
        "quarantine.visits": 1,
        "gold.persons": 2,
    }
    assert files_with(lake) == set()
    assert visits.digests() == never.digests()
    assert visits.records() == never.records()
    with pytest.raises(ErasedError, match=f"Release {old} cannot be read any more: rows that it may show were erased"):
        read_arrow(lake, "silver.visits", release=old)
    with visits.world.open() as platform:
        [head] = platform.ledger.heads("erasure")
        assert str(WHO) not in manifest_bytes(lake, head.publication).decode()
        assert (head.who, head.why, head.release) == (ZOE.who, ZOE.why, done.release)
    assert str(WHO).encode() not in (visits.world.settings.state / "ledger.db").read_bytes()
    sound(visits)
    assert done.unreached.landing == tuple(
        f"visits/2017-01-0{name}.jsonl" for name in ("1/a", "2/b", "2/c", "3/d", "3/e", "4/f")
    )

    both = [visit(20, WHO, "2017-01-02"), visit(21, 8, "2017-01-02")]
    again = visits.deliver("2017-01-04", "again", *both, broken=f"{WHO}")
    never.deliver("2017-01-04", "again", *both)
    visits.refresh()
    never.refresh()
    assert files_with(lake) == set()
    assert visits.digests() == never.digests()
    with visits.world.open() as platform:
        arrival = platform.ledger.arrival("raw.visits", again)
        assert arrival is not None
        assert (arrival.landed, arrival.taken, arrival.refused, arrival.erased) == (3, 1, 0, 2)
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.arrival("raw.visits", again) == arrival
    sound(visits)


@pytest.mark.parametrize(
    "table",
    ["raw.visits", *(pytest.param(each, marks=pytest.mark.proof) for each in ("silver.visits", "refused.visits"))],
)
def test_a_file_that_cannot_be_read_is_not_taken_for_one_without_the_rows(visits: Visits, table: str) -> None:
    """Whether half of it is gone or a page of it is damaged: nobody can tell whose rows it holds."""
    lake = lake_of(visits)
    with visits.world.open() as platform:
        before = platform.current_release().number
        [file, *_] = sorted(f.path for of_day in LakeSnapshot.now(platform).files(table).values() for f in of_day)
    place = on_disk(lake.table_path(table) / file)
    content = place.read_bytes()
    for damaged in (
        content[: len(content) // 2],
        content[:8] + bytes(byte ^ 255 for byte in content[8:40]) + content[40:],
    ):
        place.write_bytes(damaged)
        with pytest.raises(DamagedTableError, match=f"The file .*{place.name} (cannot be read|is damaged)"):
            visits.erase()
    place.write_bytes(content)
    with visits.world.open() as platform:
        assert platform.current_release().number == before


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "point",
    [
        "stage.logged:3",
        "publish.before_manifest",
        "publish.after_manifest",
        "replace.before_commit:2",
        "replace.after_commit:3",
        "publish.after_table",
        "publish.before_release",
        "release.after_commit",
        "publish.after_release",
        "ledger.before_record",
        "ledger.recorded",
        "delete.before_horizon",
        "delete.after_horizon",
        "delete.after_file:3",
        "delete.done",
        "stage.before_publish",
        "publish.after_table:8",
        "publish.after_release:2",
        "delete.after_horizon:2",
        "delete.done:2",
    ],
)
def test_killed_anywhere_it_shows_no_half_and_goes_on_when_called_again(
    visits: Visits, never: Visits, point: str
) -> None:
    """Two processes, of which one dies."""
    before, jvm = visits.named_rows(), Jvm.of(visits.world.spark)
    dead = in_process(erased_by_another, visits.world.settings, jvm, failpoint=point)
    assert killed(dead), dead.exitcode
    with visits.world.open() as platform:
        platform.settle()
    assert visits.named_rows() in (before, {}), "some tables with, others without the rows"
    again = visits.erase()
    assert again.is_whole, (again.left, again.not_refreshed)
    assert files_with(lake_of(visits)) == set()
    assert visits.digests() == never.digests()
    sound(visits)
    visits.deliver("2017-01-04", "again", visit(20, WHO, "2017-01-02"))
    visits.refresh()
    assert files_with(lake_of(visits)) == set()


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_maintenance_deletes_what_an_erasure_that_died_left(visits: Visits) -> None:
    """It died before it deleted anything, and nobody called it again; a pin of before keeps nothing."""
    with visits.world.open() as platform:
        pin(platform, platform.current_release().number, ZOE)
    dead = in_process(
        erased_by_another, visits.world.settings, Jvm.of(visits.world.spark), failpoint="delete.before_horizon"
    )
    assert killed(dead), dead.exitcode
    assert files_with(lake_of(visits)) != set()
    with visits.world.open() as platform:
        delete_unneeded(platform, "deletion")
    assert files_with(lake_of(visits)) == set()


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_neither_reload_nor_rollback_nor_pin_brings_rows_back_and_a_withdrawal_still_adds_up(
    visits: Visits, never: Visits
) -> None:
    """An erasure and three refreshes."""
    with visits.world.open() as platform:
        old = platform.current_release().number
        pin(platform, old, ZOE, "kept")
        [of_silver] = {record.publication for record in platform.ledger.current_days("silver.visits").values()}
    done = visits.erase()
    with visits.world.open() as platform:
        assert pinned_releases(platform.ledger) == {}
        with pytest.raises(ErasedError):
            pin(platform, old, ZOE)
        with pytest.raises(ErasedError):
            chosen_publications(platform, to=old)
        with pytest.raises(PlatformError, match="was published again since"):
            rollback(platform, chosen_publications(platform, of_silver), ZOE)
        with pytest.raises(PlatformError, match=r"is an erasure by Zoë \(request 17"):
            rollback(platform, chosen_publications(platform, of_silver), ZOE, cascade=True)
        withdraw(platform, lambda: visits.world.spark, ["visits/2017-01-02/b.jsonl"], ZOE)
    with never.world.open() as platform:
        withdraw(platform, lambda: never.world.spark, ["visits/2017-01-02/b.jsonl"], ZOE)
    visits.refresh()
    never.refresh()
    assert visits.digests() == never.digests()
    assert done.cut > old


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_a_reload_drops_the_rows_once_more_until_somebody_lifts_the_erasure(visits: Visits, never: Visits) -> None:
    """An erasure, two reloads, a refresh after each."""
    visits.erase()
    with visits.world.open() as platform:
        taken = reload(platform, lambda: visits.world.spark, "raw.visits", ZOE).taken
        assert taken is not None
        assert sum(arrival.erased for arrival in taken.arrivals) == 7
    visits.refresh()
    assert files_with(lake_of(visits)) == set()
    assert visits.digests() == never.digests()
    with visits.world.open() as platform:
        lift(platform, BY_WHO, ZOE)
        rebuild(platform.lake, platform.ledger)
        reload(platform, lambda: visits.world.spark, "raw.visits", ZOE)
    visits.refresh()
    assert {table.split(".")[0] for table in visits.named_rows()} == {
        "raw", "silver", "gold", "late", "refused", "quarantine"
    }  # fmt: skip
    sound(visits)


@pytest.mark.proof
def test_another_table_with_another_name_for_the_field_and_another_secret(make_world: MakeWorld) -> None:
    """A load, an erasure, and a delivery that nobody can tell from others any more."""
    visits = Visits(make_world(days=4, domains=DOMAIN))
    visits.deliver("2017-01-01", "a", visit(1, WHO, "2017-01-01"))
    nights = [{"guest": guest, "stay": n, "night": "2017-01-01T22:00:00Z"} for n, guest in enumerate((str(WHO), "8"))]
    visits.world.deliver_rows("stays", "2017-01-01", "a.jsonl", nights)
    visits.refresh()
    done = visits.erase(Request("gold.persons", {"person": str(WHO)}, (("raw.stays", "guest"),)))
    assert done.is_whole
    assert files_with(lake_of(visits)) == set()
    assert [row["guest"] for row in visits.world.rows("raw.stays")] == ["8"]
    secret_file(visits.world.settings).unlink()
    visits.world.deliver_rows("stays", "2017-01-02", "b.jsonl", nights)
    with pytest.raises(OtherSecretError, match=r"erased from raw\.stays are remembered by hashes with another secret"):
        visits.refresh()
    with visits.world.open() as platform:
        for table in ("raw.visits", "raw.stays"):
            lift_unreadable(platform, table, ZOE)
        with pytest.raises(PlatformError, match=r"Nothing is remembered of raw\.stays under another secret"):
            lift_unreadable(platform, "raw.stays", ZOE)
    visits.refresh()
    assert str(WHO) in [row["guest"] for row in visits.world.rows("raw.stays")]


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_a_day_that_cannot_be_computed_without_the_rows_is_told_and_shows_none_of_them(
    visits: Visits, never: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate holds what a table that does not say whose rows are has become; erased twice, and mended."""
    right = gold.takings
    with monkeypatch.context() as patch:
        patch.setattr(gold, "takings", lambda visits: right(visits).unionByName(right(visits)))
        done = visits.erase()
    held = {date(2017, 1, day) for day in (1, 2)}
    assert {table: set(days) for table, days in done.not_refreshed.items()} == {"gold.takings": held}
    assert not done.is_whole
    assert files_with(lake_of(visits)) == set()
    assert {table: set(days) for table, days in visits.erase().not_refreshed.items()} == {"gold.takings": held}
    visits.world.recompute(["gold.takings"], held)
    assert visits.digests() == never.digests()
    assert visits.erase().is_whole


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_a_table_that_is_named_later_is_kept_from_the_rows_too_though_it_has_none_yet(make_world: MakeWorld) -> None:
    """A load, an erasure, the same with one more table, and a delivery of that."""
    visits = Visits(make_world(days=2, domains=DOMAIN))
    visits.deliver("2017-01-01", "a", visit(1, WHO, "2017-01-01"))
    visits.world.deliver_rows("stays", "2017-01-01", "a.jsonl", [_night("8")])
    visits.refresh()
    assert visits.erase().is_whole
    both = Request("raw.visits", {"person": str(WHO)}, (("raw.stays", "guest"),))
    again = visits.erase(both)
    assert (again.remembered, again.is_whole, again.release is not None) == (True, True, True)
    assert visits.erase(both).release is None
    visits.world.deliver_rows("stays", "2017-01-02", "b.jsonl", [_night(str(WHO)), _night("9")])
    visits.refresh()
    assert sorted(row["guest"] for row in visits.world.rows("raw.stays")) == ["8", "9"]
    assert files_with(lake_of(visits)) == set()


def _night(guest: str) -> dict[str, object]:
    return {"guest": guest, "stay": int(guest), "night": "2017-01-01T22:00:00Z"}


@pytest.mark.proof
def test_a_refresh_whose_files_are_erased_while_they_are_read_says_so_and_the_next_one_goes_on(
    visits: Visits, never: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = visit(21, 8, "2017-01-02")
    visits.deliver("2017-01-04", "again", more)
    never.deliver("2017-01-04", "again", more)
    to_come = ["once"]

    def overtaken(work: Work, *rest: Any) -> Computed:
        if work.contract.layer == "gold" and to_come:
            to_come.pop()
            done = visits.erase()
            assert not done.not_refreshed, "a day that the rows do not reach counts none of them, though it is held"
        return compute(work, *rest)

    with visits.world.open() as platform:
        for number in (1, 4):
            refused = Attempt(f"of day {number}")
            held = Hold("gold.takings", date(2017, 1, number), refused, "volume", "odd", "r", datetime.now(UTC))
            platform.ledger.hold([held])

    monkeypatch.setattr("platform_assets.engine.step.stage.compute", overtaken)
    with pytest.raises(
        DeletedMeanwhileError, match=r"deleted while these were computed, by the erasure in publication \S+: files that"
    ):
        visits.refresh()
    visits.refresh()
    never.refresh()
    assert visits.digests() == never.digests()
    assert files_with(lake_of(visits)) == set()


KEY = ("--key", f"person={WHO}")
WHY = ("--reason", "request 17", "--by", "Zoë")


@pytest.fixture
def installed(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> Visits:
    """What commands see."""
    for name, value in {"DOMAINS": DOMAIN, "CALENDAR_LAST": "2017-01-04", "TODAY": "2017-01-04"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    return lakes.copy(state, loaded, True)


def untouched(installed: Visits, said: Said, code: int) -> str:
    """What was said, by which nothing was changed and the value not repeated."""
    assert said.code == code, said.out + said.err
    assert files_with(Lake.at(installed.world.settings.lake)) != set()
    assert str(WHO) not in said.out + said.err
    return " ".join((said.out + said.err).split())


def test_a_dry_run_shows_tables_days_rows_and_what_stays(run: Run, installed: Visits) -> None:
    run("admin", "pin", "1", "--reason", "the quarter")
    shown = run("admin", "erase", "raw.visits", *KEY, "--dry-run", "--json").json
    assert shown["dry_run"]
    assert shown["rows"]["raw.visits"] == {"2017-01-01": 2, "2017-01-02": 3}
    assert shown["rows"]["refused.visits"] == {"2017-01-03": 2}
    assert (shown["before"], shown["pins"], shown["older"]) == (shown["before"], [1], {})
    told = untouched(installed, run("admin", "erase", "silver.visits", *KEY, "--dry-run"), 0)
    assert "Looked into raw.visits, late.visits, refused.visits, silver.visits, quarantine.visits, gold" in told
    assert "could not be read any more, pinned ones (1) among them. Nothing was changed" in told
    assert "logs and manifests of raw.visits: the value is the smallest or greatest of" in told
    assert "generations of backups from before" in told


@pytest.mark.usefixtures("installed")
def test_a_dry_run_needs_neither_dagster_nor_spark() -> None:
    command = [sys.executable, "-c", PROBE, "erase", "raw.visits", *KEY, "--dry-run"]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert not {"dagster", "pyspark", "py4j"} & set(ended.stderr.splitlines()[-1].split())


def test_what_cannot_be_erased_is_told_without_the_value(run: Run, installed: Visits) -> None:
    cases = (
        (("raw.visits", *KEY, *WHY), 2, "cannot be undone, and cuts the history of all tables"),
        (("raw.visits", *WHY, "--yes"), 2, "Say whose rows are to be erased"),
        (("raw.visits", "--key", "person", *WHY, "--yes"), 2, "--key is not FIELD=VALUE"),
        (("raw.visit", *KEY, *WHY, "--yes"), 2, "Did you mean raw.visits?"),
        (("raw.visits", "--key", "persn=1", *WHY, "--yes"), 3, "Did you mean person?"),
        (("raw.visits", *KEY, "--also", "guest", *WHY, "--yes"), 2, "'guest' is not TABLE.FIELD"),
        (("raw.visits", "--key", "person=99", *WHY, "--yes"), 3, "No row has this key: searched every file of raw"),
        (("raw.visits", *KEY, "--lift", *WHY), 3, "Nothing with this key was erased from raw.visits"),
    )
    for args, code, says in cases:
        assert says in untouched(installed, run("admin", "erase", *args), code), args
    named = run("admin", "erase", "raw.visits", *KEY, "--reason", f"for {WHO}.", "--by", "zoe", "--yes")
    assert "The reason names the value" in untouched(installed, named, 3)


def erase_apart(*args: str, failpoint: str = "") -> CompletedProcess[str]:
    """The command as a process with a Spark of its own."""
    own = {"PLATFORM_SPARK_DRIVER_MEMORY": "1g", "PLATFORM_SPARK_CONF": OWN_PROCESS, VARIABLE: failpoint}
    started = [sys.executable, "-c", PROBE, "erase", "raw.visits", *KEY, *WHY, *args]
    return subprocess.run(started, capture_output=True, text=True, env=os.environ | own, timeout=240)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_person_is_erased_by_commands_alone_though_one_is_killed(run: Run, installed: Visits, tmp_path: Path) -> None:
    """Three processes, each with a Spark of its own: one is killed."""
    lake, backup = Lake.at(installed.world.settings.lake), str(tmp_path / "backup")
    assert run("admin", "backup", backup).code == 0
    dead = erase_apart("--yes", failpoint="publish.after_table:2")
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert run("admin", "recover").code == 0
    done = erase_apart("--yes", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["remembered"], shown["left"], shown["not_refreshed"]) == (True, {}, {})
    assert str(WHO) not in done.stdout + done.stderr + dead.stdout + dead.stderr
    assert files_with(lake) == set()
    assert run("admin", "audit", "--all", "--read-all").code == 0
    [made] = [each for each in run("status", "releases", "--json").json if each["kind"] == "erasure"]
    assert (made["who"], made["why"]) == ("Zoë", "request 17")
    assert "erasure" in run("why", "--history", "silver.visits", "2017-01-02").out
    old = run("read", "silver.visits", "--release", "1")
    assert (old.code, "rows that it may show were erased for good" in " ".join(old.err.split())) == (3, True)
    assert run("admin", "backup", backup, "--keep", "1").code == 0
    assert files_with(Lake.at(f"{backup}/lake")) == set()
    again = erase_apart("--yes")
    assert (again.returncode, "was erased before" in again.stdout) == (0, True), again.stderr
    assert run("admin", "erase", "raw.visits", *KEY, *WHY, "--lift").code == 0
    assert run("status").code in (0, 1)
