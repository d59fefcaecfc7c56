"""Audit, the life of a day, and decisions: what is changed by hand, lost or restored older is found and named."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from deltalake import write_deltalake
from sqlalchemy import create_engine, text

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.ledger.connection import parse_url
from platform_assets.operations.opening import open_platform
from platform_assets.records.chain import Entry, Head
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import SILVER, computed
from platform_assets_tests.support.ledger_records import approval
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shelf import day, rows_of, staged_manifest

DAY = date(2017, 1, 2)


def more(settings: Settings) -> None:
    """One more publication, indexed."""
    lake = Lake.at(settings.lake)
    publish(lake, staged_manifest(lake, {TABLE: {day(2): [("z", 3)]}}))
    with open_platform(settings):
        pass


def test_a_sound_installation_passes_and_says_where_the_chain_stands(run: Run, published: Settings) -> None:
    said = run("admin", "audit")
    assert (said.code, said.err.strip()) == (0, "")
    head = commits.commit(Lake.at(published.lake).releases_path, 1)
    assert f"chain {head.chain} at release 1" in said.out
    shown = run("admin", "audit", "--json").json
    assert (shown["faults"], shown["release"], shown["chain"]["chain"]) == ([], 1, head.chain)
    assert shown["seen"] == {"chain": 2, "logs": 2, "commits": 2, "files": 2, "rows": 2, "contents": 2, "ledger": 2}
    assert run("admin", "audit", "--fast", "--json").json["seen"] == {"chain": 2, "logs": 2}


def test_who_writes_into_the_ledger_that_a_day_was_replaced_hides_it_and_is_found(
    run: Run, published: Settings
) -> None:
    more(published)
    before = run("status", "--json").json
    with closing(sqlite3.connect(published.state / "ledger.db")) as ledger:
        ledger.execute("update ledger_days set replaced_at = 1 where replaced_at is null and day = '2017-01-03'")
        ledger.commit()
    found = run("admin", "audit", "--json").json["faults"]
    assert [(fault["check"], fault["table"], fault["day"]) for fault in found] == [("ledger", TABLE, "2017-01-03")]
    assert run("admin", "ledger", "--rebuild").code == 0
    assert run("admin", "audit").code == 0
    assert run("status", "--json").json == before


def test_a_fault_is_named_with_table_day_file_and_repair(run: Run, published: Settings) -> None:
    [file] = on_disk(Lake.at(published.lake).table_path(TABLE)).glob("*/event_date=2017-01-01/*.parquet")
    file.unlink()
    said = run("admin", "audit")
    assert said.code == 1
    assert f"of {TABLE} 2017-01-01 is missing." in said.out
    assert (
        f"What to do: Restore the day's files from a backup, or compute it again: `platform-assets refresh {TABLE}"
        in (said.out)
    )
    [fault] = run("admin", "audit", TABLE, "--days", "2017-01-01", "--json").json["faults"]
    assert (fault["check"], fault["table"], fault["day"], fault["file"]) == ("files", TABLE, "2017-01-01", str(file))
    assert run("admin", "audit", "--days", "2017-01-02").code == 0


def test_what_another_tool_wrote_is_put_back(run: Run, published: Settings) -> None:
    write_deltalake(str(Lake.at(published.lake).table_path(TABLE)), rows_of({day(0): [("f", 6)]}), mode="append")
    [fault] = run("admin", "audit", "--json").json["faults"]
    assert f"undo foreign:{TABLE} --reason" in fault["todo"]
    done = run("undo", f"foreign:{TABLE}", "--reason", "not by the rules", "--by", "Zoë")
    assert (done.code, "release 2 shows it" in done.out) == (0, True), done.err
    assert run("admin", "audit").code == 0
    [newest, *_] = run("status", "releases", "--json").json
    assert (newest["who"], newest["why"]) == ("Zoë", "not by the rules")
    [decided] = run("status", "decisions", "--json").json
    assert [decided["decision"][name] for name in ("kind", "who", "publication")] == [
        "put back",
        "Zoë",
        newest["publication"],
    ]
    assert "nothing to put back" in run("undo", f"foreign:{TABLE}", "--reason", "again").out


def test_the_life_of_a_day_is_told_oldest_first(run: Run, corrected: str) -> None:
    run("undo", f"publication:{corrected}", "--reason", "a wrong rule [/b]", "--by", "Zoë")
    first, second, last = run("why", "--history", SILVER, str(DAY), "--json").json
    assert [one["event"] for one in (first, second, last)] == ["recompute", "recompute", "roll back"]
    assert (first["before"], second["before"], last["after"]) == (None, first["after"], first["after"])
    assert (second["publication"], last["who"], last["why"]) == (corrected, "Zoë", "a wrong rule [/b]")
    said = run("why", "--history", SILVER, str(DAY)).out
    assert said.index("never computed ->") < said.index(corrected) < said.index("a wrong rule [/b]")
    assert "nothing is on record" in run("why", "--history", "gold.daily_sales", str(DAY)).out


def test_a_lake_older_than_its_ledger_is_refused_by_every_command_and_named_by_doctor(
    run: Run, published: Settings, tmp_path: Path
) -> None:
    run("admin", "backup", str(tmp_path / "backup"))
    more(published)
    shutil.rmtree(published.lake)
    shutil.copytree(tmp_path / "backup" / "lake", published.lake)
    for command in (
        ["status"],
        ["refresh"],
        ["undo", "x/y", "--reason", "y"],
        ["late", "refuse", "x/y", "--reason", "y", "--by", "z"],
        ["undo", "since:0", "--reason", "y"],
        ["undo", f"foreign:{TABLE}", "--reason", "y"],
    ):
        said = run(*command)
        assert (said.code, "is older than the ledger" in said.err, "ledger --rebuild" in said.err) == (3, True, True)
    [finding] = [one for one in run("admin", "doctor", "--json").json if one["name"] == "Ledger and lake"]
    assert (finding["ok"], "is older than the ledger" in finding["message"]) == (False, True)
    [fault] = run("admin", "audit", "--json").json["faults"]
    assert fault["check"] == "ledger"
    said = run("admin", "ledger", "--rebuild")
    assert "forgotten 1 publication" in said.out
    assert run("admin", "audit").code == 0


def test_a_ledger_that_was_lost_says_what_it_lacks_once(run: Run, published: Settings) -> None:
    for file in published.state.glob("ledger.db*"):
        file.unlink()
    assert "The ledger lacks 2 publications" in run("admin", "doctor", "--json").out
    assert "mended The ledger lacked releases 0 to 1" in run("status").err
    assert run("status").err == ""
    assert "Holds and people's decisions from that time" in run("admin", "doctor", "--json").out


def test_the_life_of_a_day_has_its_holds_also_once_they_ended(run: Run, products: Settings) -> None:
    with open_platform(products) as platform:
        refused = Attempt(computed(platform, SILVER)[DAY].fingerprint, platform.version(SILVER))
        held = Hold(SILVER, DAY, refused, "volume", "too few rows", "a run", datetime.now(UTC))
        platform.ledger.hold([held])
        assert "held by volume, run a run: too few rows" in run("why", "--history", SILVER, str(DAY)).out
        platform.ledger.drop([held])
        assert platform.ledger.holds() == ()
    *_, was, over = run("why", "--history", SILVER, str(DAY)).out.strip().splitlines()
    assert was.endswith("held by volume, run a run: too few rows")
    assert f"held no longer by volume, as since {held.created_at:%Y-%m-%d %H:%M:%S} UTC" in over
    *_, hold, ended = run("why", "--history", SILVER, str(DAY), "--json").json
    assert (hold["event"], ended["event"], ended["reason"]) == ("hold", "hold ended", "too few rows")


Sql = Callable[..., None]
USER, HOST = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.proof)])
def ledger_url(request: pytest.FixtureRequest, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the installation keeps its ledger."""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        monkeypatch.setenv("PLATFORM_LEDGER_URL", server.new_database())


@pytest.fixture
def decided(ledger_url: None, corrected: str, run: Run) -> list[str]:
    """Four decisions: a pin, a rollback, rows approved, another pin; the heads before the first and after each."""
    heads = [run("admin", "audit", "--head").out.strip()]
    for command in (
        ["admin", "pin", "0", "--reason", "closed books", "--by", "Zoë"],
        ["rollback", corrected, "--reason", "a wrong rule", "--by", "Max"],
        [],
        ["admin", "pin", "1", "--reason", "to compare"],
    ):
        if command:
            assert run(*command).code == 0
        else:
            with open_platform(load_settings()) as platform:
                platform.ledger.decide(approval())
        heads.append(run("admin", "audit", "--head").out.strip())
    assert len(set(heads)) == 5
    return heads


@pytest.fixture
def sql(decided: list[str]) -> Iterator[Sql]:
    """Whoever can write to the ledger by hand."""
    engine = create_engine(parse_url(load_settings().ledger_url.get_secret_value()))

    def execute(statement: str, **values: object) -> None:
        with engine.begin() as connection:
            connection.execute(text(statement), values)

    yield execute
    engine.dispose()


def faults(run: Run, *options: str) -> list[str]:
    said = run("admin", "audit", "--json", *options)
    found = said.json["faults"]
    assert said.code == (1 if found else 0)
    assert {fault["check"] for fault in found} <= {"decisions", "anchor"}
    return [fault["what"] for fault in found]


def test_decisions_are_listed_with_who_says_so_and_who_it_was(run: Run, decided: list[str]) -> None:
    newest, approved, rolled_back, pinned = run("status", "decisions", "--json").json
    assert [each["number"] for each in (newest, approved, rolled_back, pinned)] == [4, 3, 2, 1]
    said = rolled_back["decision"]
    assert (said["about"], said["kind"], said["reason"]) == ("publication", "roll back", "a wrong rule")
    assert (said["who"], said["as_user"], said["on_host"]) == ("Max", USER, HOST)
    assert (newest["decision"]["who"], newest["decision"]["as_user"]) == (getpass.getuser(), USER)
    out = run("status", "decisions").out
    assert f"Max ({USER} on {HOST})" in out
    assert "transactions/2017-01-09/late.csv" in out
    assert "3 older ones" in run("status", "decisions", "--limit", "1").out
    [made, *_] = run("status", "releases", "--json").json
    assert (made["who"], made["as_user"], made["on_host"]) == ("Max", USER, HOST)
    assert f"Max ({USER} on {HOST})" in run("why", "--history", SILVER, "2017-01-02").out


def test_nobody_types_away_the_user_that_the_process_belongs_to(
    run: Run, corrected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "somebody_else")
    monkeypatch.setenv("USER", "somebody_else")
    run("admin", "pin", "0", "--reason", "x")
    [pinned] = run("status", "decisions", "--json").json
    assert (pinned["decision"]["who"], pinned["decision"]["as_user"]) == ("somebody_else", USER)


def test_a_sound_chain_goes_through_every_head_that_was_kept(run: Run, decided: list[str]) -> None:
    for head in ("releases=none,decisions=none", *decided):
        assert faults(run, "--expect", head) == faults(run, "--fast", "--expect", head) == []
    said = run("admin", "audit", "--expect", decided[0])
    assert f"head {decided[-1]}" in said.out
    shown = run("admin", "audit", "--json").json
    assert (shown["seen"]["decisions"], shown["decisions"]["number"], shown["head"]) == (4, 4, decided[-1])
    assert run("admin", "audit", "--head", "--json").json["decisions"]["number"] == 4
    wrong = run("admin", "audit", "--expect", "yesterday")
    assert (wrong.code, "'yesterday' is no head" in wrong.err) == (2, True)


def test_what_was_changed_with_its_hash_made_again_breaks_the_next(
    run: Run, sql: Sql, decided: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    first = Entry.after(Head(), '{"about":"release"}')
    sql("UPDATE ledger_decisions SET content = :content, chain = :chain WHERE number = 1", **vars(first))
    none, breaks = faults(run)
    assert none.startswith("Decision 1 cannot be read")
    assert breaks.startswith("Decision 2 (roll back by Max")
    assert "was rewritten, moved or put in" in breaks
    assert run("status", "releases").code == 0, "what only shows goes on"
    assert "`platform-assets admin audit` names it" in caplog.text
    refused = run("admin", "pin", "0", "--reason", "kept", "--by", "zoe")
    assert (refused.code, "`platform-assets admin audit` names it" in refused.err) == (3, True)
    assert run("status", "decisions").code == 0


def noted(run: Run) -> list[str]:
    notes: list[str] = run("admin", "audit", "--json").json["notes"]
    return notes


def test_a_rebuild_keeps_the_chain_and_a_lost_ledger_has_what_the_lake_knows(
    run: Run, decided: list[str], products: Settings
) -> None:
    assert run("admin", "ledger", "--rebuild").code == 0
    assert run("admin", "audit", "--head").out.strip() == decided[4]
    if files := list(products.state.glob("ledger.db*")):
        for file in files:
            file.unlink()
        assert run("admin", "ledger", "--rebuild").code == 0
        [only] = run("status", "decisions", "--json").json
        assert only["decision"]["kind"] == "roll back"
        assert faults(run) == []
        [cut] = faults(run, "--expect", decided[4])
        assert "decisions do not go through" in cut


@pytest.fixture
def backed_up(corrected: str, run: Run, tmp_path: Path) -> tuple[Path, str]:
    """A backup with one decision in it, the head of that moment, and a rollback and a pin after it."""
    run("admin", "pin", "0", "--reason", "closed books")
    assert run("admin", "backup", str(tmp_path / "backup")).code == 0
    head = run("admin", "audit", "--head").out.strip()
    run("undo", f"publication:{corrected}", "--reason", "a wrong rule")
    run("admin", "pin", "1", "--reason", "to compare")
    return tmp_path / "backup", head


def test_a_ledger_older_than_its_lake_gets_what_publications_carried_out_and_lacks_the_rest(
    run: Run, backed_up: tuple[Path, str], products: Settings
) -> None:
    backup, head = backed_up
    now = run("admin", "audit", "--head").out.strip()
    for file in products.state.glob("ledger.db*"):
        file.unlink()
    shutil.copy2(backup / "ledger.db", products.state / "ledger.db")
    run("status")
    assert [each["decision"]["kind"] for each in run("status", "decisions", "--json").json] == ["roll back", "pin"]
    assert faults(run, "--expect", head) == []
    [cut] = faults(run, "--expect", now)
    assert cut.endswith("they end at 2: history was rewritten or cut since.")


def test_a_lake_older_than_its_ledger_keeps_the_decisions_and_says_which_are_of_releases_that_are_gone(
    run: Run, backed_up: tuple[Path, str], products: Settings
) -> None:
    backup, _ = backed_up
    shutil.rmtree(products.lake)
    shutil.copytree(backup / "lake", products.lake)
    now = run("admin", "audit", "--head").out.strip()
    assert run("admin", "ledger", "--rebuild").code == 0
    assert faults(run) == []
    assert any("Decision 2 (roll back by" in note and "does not have" in note for note in noted(run))
    assert run("admin", "audit", "--head").out.strip() == now
