"""Audit, the life of a day, backup, and a ledger or lake restored older: the commands, without Spark."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

from deltalake import write_deltalake

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import SILVER, computed
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import day, rows_of, staged_manifest

DAY = date(2017, 1, 2)


def more(settings: Settings) -> None:
    """One more publication, indexed."""
    lake = Lake.at(settings.lake)
    publish(lake, staged_manifest(lake, {TABLE: {day(2): [("z", 3)]}}))
    with open_platform(settings):
        pass


def test_a_sound_installation_passes_and_says_where_the_chain_stands(run: Run, published: Settings) -> None:
    said = run("audit", "verify")
    assert (said.code, said.err.strip()) == (0, "")
    head = commits.commit(Lake.at(published.lake).releases_path, 1)
    assert f"chain {head.chain} at release 1" in said.out
    shown = run("audit", "verify", "--json").json
    assert (shown["faults"], shown["release"], shown["chain"]["chain"]) == ([], 1, head.chain)
    assert shown["seen"] == {"chain": 2, "logs": 2, "commits": 2, "files": 2, "rows": 2, "contents": 2, "ledger": 2}
    assert run("audit", "verify", "--fast", "--json").json["seen"] == {"chain": 2, "logs": 2}


def test_who_writes_into_the_ledger_that_a_day_was_replaced_hides_it_and_is_found(
    run: Run, published: Settings
) -> None:
    more(published)
    before = run("status", "--json").json
    with closing(sqlite3.connect(published.state / "ledger.db")) as ledger:
        ledger.execute("update ledger_days set replaced_at = 1 where replaced_at is null and day = '2017-01-03'")
        ledger.commit()
    found = run("audit", "verify", "--json").json["faults"]
    assert [(fault["check"], fault["table"], fault["day"]) for fault in found] == [("ledger", TABLE, "2017-01-03")]
    assert run("ledger", "rebuild").code == 0
    assert run("audit", "verify").code == 0
    assert run("status", "--json").json == before


def test_a_fault_is_named_with_table_day_file_and_repair(run: Run, published: Settings) -> None:
    [file] = on_disk(Lake.at(published.lake).table_path(TABLE)).glob("*/event_date=2017-01-01/*.parquet")
    file.unlink()
    said = run("audit", "verify")
    assert said.code == 1
    assert f"of {TABLE} 2017-01-01 is missing." in said.out
    assert (
        f"What to do: Restore the day's files from a backup, or compute it again: `platform-assets refresh {TABLE}"
        in (said.out)
    )
    [fault] = run("audit", "verify", "--table", TABLE, "--days", "2017-01-01", "--json").json["faults"]
    assert (fault["check"], fault["table"], fault["day"], fault["file"]) == ("files", TABLE, "2017-01-01", str(file))
    assert run("audit", "verify", "--days", "2017-01-02").code == 0


def test_what_another_tool_wrote_is_put_back(run: Run, published: Settings) -> None:
    write_deltalake(str(Lake.at(published.lake).table_path(TABLE)), rows_of({day(0): [("f", 6)]}), mode="append")
    [fault] = run("audit", "verify", "--json").json["faults"]
    assert f"audit put-back {TABLE} --reason" in fault["todo"]
    done = run("audit", "put-back", TABLE, "--reason", "not by the rules", "--by", "Zoë")
    assert (done.code, "release 2 shows it" in done.out) == (0, True), done.err
    assert run("audit", "verify").code == 0
    [newest, *_] = run("releases", "--json").json
    assert (newest["who"], newest["why"]) == ("Zoë", "not by the rules")
    [decided] = run("audit", "decisions", "--json").json
    assert [decided["decision"][name] for name in ("kind", "who", "publication")] == [
        "put back",
        "Zoë",
        newest["publication"],
    ]
    assert "nothing to put back" in run("audit", "put-back", TABLE, "--reason", "again").out


def test_the_life_of_a_day_is_told_oldest_first(run: Run, corrected: str) -> None:
    run("rollback", corrected, "--reason", "a wrong rule [/b]", "--by", "Zoë")
    first, second, last = run("audit", "show", SILVER, str(DAY), "--json").json
    assert [one["event"] for one in (first, second, last)] == ["recompute", "recompute", "roll back"]
    assert (first["before"], second["before"], last["after"]) == (None, first["after"], first["after"])
    assert (second["publication"], last["who"], last["why"]) == (corrected, "Zoë", "a wrong rule [/b]")
    said = run("audit", "show", SILVER, str(DAY)).out
    assert said.index("never computed ->") < said.index(corrected) < said.index("a wrong rule [/b]")
    assert "nothing is on record" in run("audit", "show", "gold.daily_sales", str(DAY)).out


def test_a_lake_older_than_its_ledger_is_refused_by_every_command_and_named_by_doctor(
    run: Run, published: Settings, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "backup"))
    more(published)
    shutil.rmtree(published.lake)
    shutil.copytree(tmp_path / "backup" / "lake", published.lake)
    for command in (
        ["status"],
        ["refresh"],
        ["withdraw", "x", "--reason", "y"],
        ["late", "refuse", "x", "--reason", "y", "--by", "z"],
        ["rollback", "--to", "0", "--reason", "y"],
        ["audit", "put-back", TABLE, "--reason", "y"],
    ):
        said = run(*command)
        assert (said.code, "is older than the ledger" in said.err, "ledger rebuild" in said.err) == (3, True, True)
    [finding] = [one for one in run("doctor", "--json").json if one["name"] == "Ledger and lake"]
    assert (finding["ok"], "is older than the ledger" in finding["message"]) == (False, True)
    [fault] = run("audit", "verify", "--json").json["faults"]
    assert fault["check"] == "ledger"
    said = run("ledger", "rebuild")
    assert "forgotten 1 publication" in said.out
    assert run("audit", "verify").code == 0


def test_a_ledger_that_was_lost_says_what_it_lacks_once(run: Run, published: Settings) -> None:
    for file in published.state.glob("ledger.db*"):
        file.unlink()
    assert "The ledger lacks 2 publications" in run("doctor", "--json").out
    assert "mended The ledger lacked releases 0 to 1" in run("status").err
    assert run("status").err == ""
    assert "Holds and people's decisions from that time" in run("doctor", "--json").out


def test_the_life_of_a_day_has_its_holds_also_once_they_ended(run: Run, products: Settings) -> None:
    with open_platform(products) as platform:
        refused = Attempt(computed(platform, SILVER)[DAY].fingerprint, platform.version(SILVER))
        held = Hold(SILVER, DAY, refused, "volume", "too few rows", "a run", datetime.now(UTC))
        platform.ledger.hold([held])
        assert "held by volume, run a run: too few rows" in run("audit", "show", SILVER, str(DAY)).out
        platform.ledger.drop([held])
        assert platform.ledger.holds() == ()
    *_, was, over = run("audit", "show", SILVER, str(DAY)).out.strip().splitlines()
    assert was.endswith("held by volume, run a run: too few rows")
    assert f"held no longer by volume, as since {held.created_at:%Y-%m-%d %H:%M:%S} UTC" in over
    *_, hold, ended = run("audit", "show", SILVER, str(DAY), "--json").json
    assert (hold["event"], ended["event"], ended["reason"]) == ("hold", "hold ended", "too few rows")
