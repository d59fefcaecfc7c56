"""Decisions are evidence: what somebody changes of them by hand is found, on either database, and named."""

from __future__ import annotations

import getpass
import json
import os
import pwd
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from platform_assets.ledger.connection import parse_url
from platform_assets.operations.opening import open_platform
from platform_assets.records.chain import Entry, Head
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.ledger_records import approval
from platform_assets_tests.support.postgres import PostgresServer

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
    heads = [run("audit", "head").out.strip()]
    for command in (
        ["release", "pin", "0", "--reason", "closed books", "--by", "Zoë"],
        ["rollback", corrected, "--reason", "a wrong rule", "--by", "Max"],
        [],
        ["release", "pin", "1", "--reason", "to compare"],
    ):
        if command:
            assert run(*command).code == 0
        else:
            with open_platform(load_settings()) as platform:
                platform.ledger.decide(approval())
        heads.append(run("audit", "head").out.strip())
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
    said = run("audit", "verify", "--json", *options)
    found = said.json["faults"]
    assert said.code == (1 if found else 0)
    assert {fault["check"] for fault in found} <= {"decisions", "anchor"}
    return [fault["what"] for fault in found]


def test_decisions_are_listed_with_who_says_so_and_who_it_was(run: Run, decided: list[str]) -> None:
    newest, approved, rolled_back, pinned = run("audit", "decisions", "--json").json
    assert [each["number"] for each in (newest, approved, rolled_back, pinned)] == [4, 3, 2, 1]
    said = rolled_back["decision"]
    assert (said["about"], said["kind"], said["reason"]) == ("publication", "roll back", "a wrong rule")
    assert (said["who"], said["as_user"], said["on_host"]) == ("Max", USER, HOST)
    assert (newest["decision"]["who"], newest["decision"]["as_user"]) == (getpass.getuser(), USER)
    out = run("audit", "decisions").out
    assert f"Max ({USER} on {HOST})" in out
    assert "transactions/2017-01-09/late.csv" in out
    assert "3 older ones" in run("audit", "decisions", "--limit", "1").out
    [made, *_] = run("releases", "--json").json
    assert (made["who"], made["as_user"], made["on_host"]) == ("Max", USER, HOST)
    assert f"Max ({USER} on {HOST})" in run("audit", "show", SILVER, "2017-01-02").out


def test_nobody_types_away_the_user_that_the_process_belongs_to(
    run: Run, corrected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "somebody_else")
    monkeypatch.setenv("USER", "somebody_else")
    run("release", "pin", "0", "--reason", "x")
    [pinned] = run("audit", "decisions", "--json").json
    assert (pinned["decision"]["who"], pinned["decision"]["as_user"]) == ("somebody_else", USER)


def test_a_sound_chain_goes_through_every_head_that_was_kept(run: Run, decided: list[str]) -> None:
    for head in ("releases=none,decisions=none", *decided):
        assert faults(run, "--expect", head) == faults(run, "--fast", "--expect", head) == []
    said = run("audit", "verify", "--expect", decided[0])
    assert f"head {decided[-1]}" in said.out
    shown = run("audit", "verify", "--json").json
    assert (shown["seen"]["decisions"], shown["decisions"]["number"], shown["head"]) == (4, 4, decided[-1])
    assert run("audit", "head", "--json").json["decisions"]["number"] == 4
    wrong = run("audit", "verify", "--expect", "yesterday")
    assert (wrong.code, "'yesterday' is no head" in wrong.err) == (2, True)


def test_what_was_changed_is_named(run: Run, sql: Sql) -> None:
    sql("UPDATE ledger_decisions SET content = replace(content, 'Max', 'Eve') WHERE number = 2")
    named, differs = faults(run)
    assert named.startswith("Decision 2 (roll back by Eve, 20")
    assert named.endswith("says something else than what was written.")
    assert "than the manifest of" in differs


def test_what_was_changed_with_its_hash_made_again_breaks_the_next(
    run: Run, sql: Sql, decided: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    first = Entry.after(Head(), '{"about":"release"}')
    sql("UPDATE ledger_decisions SET content = :content, chain = :chain WHERE number = 1", **vars(first))
    none, breaks = faults(run)
    assert none.startswith("Decision 1 is none")
    assert breaks.startswith("Decision 2 (roll back by Max")
    assert "was rewritten, moved or put in" in breaks
    assert run("releases").code == 0, "what only shows goes on"
    assert "`platform-assets audit verify` names it" in caplog.text
    refused = run("release", "pin", "0", "--reason", "kept", "--by", "zoe")
    assert (refused.code, "`platform-assets audit verify` names it" in refused.err) == (3, True)
    assert run("audit", "decisions").code == 0


@pytest.mark.parametrize("hides", [False, True])
def test_what_was_removed_is_missed(run: Run, sql: Sql, hides: bool) -> None:
    sql("DELETE FROM ledger_decisions WHERE number = 2")
    if hides:
        sql("UPDATE ledger_decisions SET number = 2 WHERE number = 3")
        sql("UPDATE ledger_decisions SET number = 3 WHERE number = 4")
    after, lacks = faults(run)
    assert after.startswith(f"Decision {2 if hides else 3} (approval by Zoë")
    assert ("does not follow the one before, which was" if hides else "the one before: 2 is gone") in after
    assert "lacks the roll back by Max that publication" in lacks


def test_what_was_put_in_is_named(run: Run, sql: Sql) -> None:
    content = json.dumps({"about": "publication", "kind": "withdrawal", "publication": "x", "reason": "r", "who": "Eve",
                          "created_at": "2017-01-01T00:00:00+00:00"})  # fmt: skip
    put_in = Entry.after(Head(), content)
    for number in (4, 3, 2, 1):
        sql("UPDATE ledger_decisions SET number = :next WHERE number = :number", next=number + 1, number=number)
    sql("INSERT INTO ledger_decisions VALUES (:number, :content, :before, :chain)", **vars(put_in))
    [breaks] = faults(run)
    assert breaks.startswith("Decision 2 (pin by Zoë")
    assert any("by publication x, which the lake does not have" in note for note in noted(run))


def noted(run: Run) -> list[str]:
    notes: list[str] = run("audit", "verify", "--json").json["notes"]
    return notes


def test_what_was_cut_off_the_end_is_found_with_a_head_of_before_alone(run: Run, sql: Sql, decided: list[str]) -> None:
    sql("DELETE FROM ledger_decisions WHERE number > 2")
    assert faults(run) == []
    assert faults(run, "--expect", decided[2]) == []
    [cut] = faults(run, "--expect", decided[4])
    assert "decisions do not go through the expected head 4:" in cut
    assert cut.endswith("they end at 2: history was cut since.")


def test_a_rebuild_keeps_the_chain_and_a_lost_ledger_has_what_the_lake_knows(
    run: Run, decided: list[str], products: Settings
) -> None:
    assert run("ledger", "rebuild").code == 0
    assert run("audit", "head").out.strip() == decided[4]
    if files := list(products.state.glob("ledger.db*")):
        for file in files:
            file.unlink()
        assert run("ledger", "rebuild").code == 0
        [only] = run("audit", "decisions", "--json").json
        assert only["decision"]["kind"] == "roll back"
        assert faults(run) == []
        [cut] = faults(run, "--expect", decided[4])
        assert "decisions do not go through" in cut


@pytest.fixture
def backed_up(corrected: str, run: Run, tmp_path: Path) -> tuple[Path, str]:
    """A backup with one decision in it, the head of that moment, and a rollback and a pin after it."""
    run("release", "pin", "0", "--reason", "closed books")
    assert run("backup", str(tmp_path / "backup")).code == 0
    head = run("audit", "head").out.strip()
    run("rollback", corrected, "--reason", "a wrong rule")
    run("release", "pin", "1", "--reason", "to compare")
    return tmp_path / "backup", head


def test_a_ledger_older_than_its_lake_gets_what_publications_carried_out_and_lacks_the_rest(
    run: Run, backed_up: tuple[Path, str], products: Settings
) -> None:
    backup, head = backed_up
    now = run("audit", "head").out.strip()
    for file in products.state.glob("ledger.db*"):
        file.unlink()
    shutil.copy2(backup / "ledger.db", products.state / "ledger.db")
    run("status")
    assert [each["decision"]["kind"] for each in run("audit", "decisions", "--json").json] == ["roll back", "pin"]
    assert faults(run, "--expect", head) == []
    [cut] = faults(run, "--expect", now)
    assert cut.endswith("they end at 2: history was cut since.")


def test_a_lake_older_than_its_ledger_keeps_the_decisions_and_says_which_are_of_releases_that_are_gone(
    run: Run, backed_up: tuple[Path, str], products: Settings
) -> None:
    backup, _ = backed_up
    shutil.rmtree(products.lake)
    shutil.copytree(backup / "lake", products.lake)
    now = run("audit", "head").out.strip()
    assert run("ledger", "rebuild").code == 0
    assert faults(run) == []
    assert any("Decision 2 (roll back by" in note and "does not have" in note for note in noted(run))
    assert run("audit", "head").out.strip() == now
