"""Wrong command lines, settings and files end in a message with a next step and the documented exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import TABLE, run_apart
from platform_assets_tests.support.history import GOODS

USAGE, FAILED = 2, 3
ARRIVAL = "transactions/2017-01-01/a.csv"
DECIDED = ("--reason", "the till was offline", "--by", "Zoë")


def test_a_wrong_command_line_is_explained(run, published):
    """Some sixty of them."""
    for command, says in (
        (
            ["read", "gold.daily_sale"],
            "There is no table 'gold.daily_sale'. What to do: Did you mean gold.daily_sales?",
        ),
        (["refresh", "gold.daily_sale"], "What to do: Did you mean gold.daily_sales? Tables are raw.transactions,"),
        (["check", "gold.daily_sale"], "Did you mean gold.daily_sales?"),
        (["audit", "verify", "--table", "gold.daily_sale"], "Did you mean gold.daily_sales?"),
        (["accept", "gold.daily_sale", "--days", "2017-01-01", *DECIDED], "Did you mean gold.daily_sales?"),
        (["late", "list", "raw.transaction"], "Did you mean raw.transactions?"),
        (["read", "[/nothing]"], "There is no table '[/nothing]'."),
        (["read", "../../etc"], "There is no table '../../etc'."),
        (["read", TABLE, "--day", "yesterday"], "'yesterday' is not a day. What to do: Write it as YYYY-MM-DD"),
        (["read", TABLE, "--day", "2017-02-30"], "'2017-02-30' is not a day."),
        (["read", TABLE, "--day", ""], "'' is not a day."),
        (["rollback", "--to", "0", "--days", "", "--reason", "x"], "'' is not a day."),
        (["release", "diff", "0", "--days", ""], "'' is not a day."),
        (["read", TABLE, "--day", "2016-12-31"], "2016-12-31 is outside the calendar, 2017-01-01 to 2017-01-03."),
        (["read", TABLE, "--day", "2017-01-04"], "2017-01-04 is outside the calendar"),
        (["read", TABLE, "--limit", "0"], "Invalid value for '--limit'"),
        (["read", TABLE, "--format", "xml"], "Invalid value for '--format'"),
        (["read"], "Missing argument"),
        (["stale", "gold.daily_sale"], "There is no table 'gold.daily_sale'."),
        (["stale", "--days", "2017-01-03..2017-01-01"], "The range '2017-01-03..2017-01-01' ends before it starts."),
        (["stale", "--days", "2017-01-03,"], "'' is not a day."),
        (
            ["stale", "--days", "2017-01-02,2017-01-01:2017-01-03"],
            "'2017-01-01:2017-01-03' is not a day. What to do: A range is written 2017-01-01..2017-01-03.",
        ),
        (["refresh", "--days", "2017-01-01-2017-01-03"], "A range is written 2017-01-01..2017-01-03."),
        (["stale", "--days", "2017-01-03..2017-01-04"], "2017-01-04 is outside the calendar, 2017-01-01 to 2017-01-03"),
        (["why", "gold.nothing", "2017-01-01"], "There is no table 'gold.nothing'."),
        (["refresh", "raw.transactions"], "raw.transactions has no transform: it holds what was delivered."),
        (["reed"], "No such command 'reed'"),
        (["land", "--until", "soon"], "'soon' is not a day."),
        (["land", "--rate", "late"], "'late' is not a rate. What to do: Write <name>=<share>, with one of corrected"),
        (["land", "--rate", "lste=0.1"], "'lste=0.1' is not a rate."),
        (["land", "--rate", "late=2"], "The rate late is 2.0. What to do: Give a share"),
        (["land", "--rate", "late=nan"], "The rate late is nan."),
        (["land", "--rate", "late=0.9", "--rate", "very_late=0.9"], "are more than all lines together"),
        (["land", "--days", "0"], "Invalid value for '--days'"),
        (["land", "--days", "400"], "The source has sales from 2017-01-01 to 2018-01-01"),
        (["land", "--scale", "0"], "Invalid value for '--scale'"),
        (["demo", "--days", "0"], "Invalid value for '--days'"),
        (["verify", "--days", "2017-01-01", "--sample", "2"], "Days are either named or drawn."),
        (["verify", "--sample", "-1"], "Invalid value for '--sample'"),
        (["up", "--port", "0"], "Invalid value for '--port'"),
        (["late", "approve", *DECIDED], "Say which rows"),
        (["late", "approve", ARRIVAL, "--days", "2017-01-02", *DECIDED], "Say which rows"),
        (["late", "refuse", "--table", "raw.transactions", *DECIDED], "Say which rows"),
        (["late", "refuse", "--table", "raw.x", "--days", "2017-01-02", *DECIDED], "There is no table 'raw.x'"),
        (["late", "refuse", "--table", "raw.products", "--days", "2017-01-03..2017-01-02", *DECIDED], "ends before"),
        (["late", "refuse", "--table", "raw.products", "--days", "2017-01-03..soon", *DECIDED], "'soon' is not a day."),
        (["accept", TABLE, *DECIDED], "Say which days were looked at."),
        (["accept", "gold.nothing", "--days", "2017-01-02", "--dry-run"], "There is no table 'gold.nothing'."),
        (["audit", "verify", "--fast", "--digests"], "--fast looks at no files."),
        (["audit", "show", "gold.nothing", "2017-01-01"], "There is no table 'gold.nothing'."),
        (["audit", "show", TABLE, "2016-12-31"], "2016-12-31 is outside the calendar"),
        (["backup"], "Missing argument"),
    ):
        said = run(*command)
        assert (said.code, said.out) == (USAGE, ""), command
        assert says in said.error


def test_the_sample_is_not_landed_for_tables_that_do_not_take_it(run, state, monkeypatch):
    monkeypatch.setenv("PLATFORM_DOMAINS", GOODS)
    said = run("land", "--days", "1")
    assert said.code == USAGE
    assert "platform_assets.domains.retail, which PLATFORM_DOMAINS does not name" in said.error
    assert f"{state}/landing/<folder of the source>/<date they arrive>/" in said.error
    assert not (state / "landing").exists()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("CALENDAR_FIRST", "xyz", "calendar_first: "),
        ("CALENDAR_LAST", "2016-01-01", "calendar_last 2016-01-01 is before calendar_first 2017-01-01"),
        ("SPARK_CONF", "{", "spark_conf"),
        ("SETTLE_S", "-1", "settle_s: "),
    ],
)
def test_a_bad_setting_is_named(run, monkeypatch, name, value, says):
    monkeypatch.setenv(f"PLATFORM_{name}", value)
    for command in (["status"], ["read", TABLE], ["doctor"], ["ledger", "rebuild"], ["land"]):
        said = run(*command)
        assert said.code == FAILED, command
        assert says in said.err
        assert "What to do: Correct the PLATFORM_… variable" in said.err


def test_a_decision_about_nothing_is_explained(run, published):
    for command, says in (
        (["withdraw", ARRIVAL, "--reason", "x"], f"No arrival '{ARRIVAL}' was ever taken."),
        (["withdraw", "transactions/2017-01-01/a[/b].csv", "--reason", "x"], "was refused whole"),
        (["late", "approve", ARRIVAL, *DECIDED], "waits in the late queue: no such arrival was ever taken"),
        (["late", "refuse", "--table", "silver.products", "--days", "2017-01-02", *DECIDED], "takes no arrivals"),
        (["accept", TABLE, "--days", "2017-01-02", *DECIDED], f"Nothing was accepted: {TABLE} 2017-01-02 is not held."),
        (["accept", "raw.products", "--days", "2017-01-02", *DECIDED], "raw.products holds what was delivered"),
    ):
        said = run(*command)
        assert said.code == FAILED, command
        assert says in said.error


def test_a_domain_that_is_not_there_is_named(run, monkeypatch):
    monkeypatch.setenv("PLATFORM_DOMAINS", "no.such.domain")
    said = run("status")
    assert said.code == FAILED
    assert "The domain 'no.such.domain' cannot be loaded" in said.err


def test_an_error_in_a_domain_is_told_with_its_place_and_no_traceback(run, monkeypatch, tmp_path):
    (tmp_path / "own_contracts.py").write_text(
        "from platform_assets.contracts import Contract\n\nContract(ahed_days=10)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PLATFORM_DOMAINS", "own_contracts")
    for command in (["status"], ["refresh", "--explain"], ["read", TABLE]):
        said = run(*command)
        assert said.code == FAILED
        assert "The domain 'own_contracts' cannot be loaded: TypeError in" in said.error
        assert "own_contracts.py, line 3: Contract.__init__() got an unexpected keyword" in said.error
    assert "own_contracts.py, line 3" in run("doctor", "--json").out


def test_a_table_never_published_is_told_from_an_unknown_one(run):
    said = run("read", TABLE)
    assert said.code == FAILED
    assert f"{TABLE} has never been published" in said.err


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://me:s3cret@127.0.0.1:1/db", "postgresql://me:s3cret@[/x", "nosql://me:s3cret@here/db"]
)
def test_a_ledger_that_cannot_be_reached_is_named_without_its_password(run, monkeypatch, url):
    monkeypatch.setenv("PLATFORM_LEDGER_URL", url)
    for command in (["status"], ["ledger", "rebuild"], ["doctor", "--json"]):
        said = run(*command)
        assert said.code == (1 if command[0] == "doctor" else FAILED)
        assert "ledger" in (said.out + said.err).lower()
        assert "s3cret" not in said.out + said.err


def test_a_state_folder_that_is_a_file_is_named(run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path / "file"))
    for command in (["status"], ["land", "--until", "2017-01-01"], ["ledger", "rebuild"]):
        said = run(*command)
        assert said.code == FAILED, command
        assert str(tmp_path / "file") in said.err
        assert "What to do:" in said.err
    assert run("doctor").code == 1


@pytest.mark.parametrize(("made", "says"), [(False, "is not there"), (True, "no folder")])
def test_a_landing_root_that_is_no_folder_is_told(run, monkeypatch, tmp_path, made, says):
    root = tmp_path / "elsewhere"
    if made:
        root.write_text("")
    monkeypatch.setenv("PLATFORM_LANDING", str(root))
    said = run("status")
    assert said.code == 1
    assert f"not taken {root} is the landing root and {says}" in said.out
    [problem] = run("status", "--json").json["landing"]
    assert problem["path"] == str(root)
    said = run("refresh", "--explain")
    assert said.code == 1
    assert f"{root} is the landing root" in said.out
    assert "Nothing to do" not in said.out
    assert run("refresh", "--explain", "--json").json["landing"] == [problem]
    [finding] = [one for one in run("doctor", "--json").json if one["name"] == "Landing"]
    assert not finding["ok"]
    assert "PLATFORM_LANDING" in finding["todo"]


def test_the_default_landing_root_may_be_absent(run, state):
    assert run("status", "--json").json["landing"] == []
    said = run("refresh", "--explain")
    assert said.code == 0
    assert "landing root" not in said.out
    [finding] = [one for one in run("doctor", "--json").json if one["name"] == "Landing"]
    assert finding["ok"]


def test_a_reader_that_has_enough_ends_a_command_quietly(published):
    command = f"{sys.executable} -m platform_assets.cli read {TABLE} --format csv | true"
    script = command.replace("-m platform_assets.cli", "-c 'from platform_assets.cli import main; main()'")
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=os.environ, timeout=120)
    assert ended.stderr == ""


def test_the_console_script_ends_with_the_code_and_without_a_traceback(state):
    script = Path(sys.executable).parent / "platform-assets"
    ended = subprocess.run([script, "read", "nope"], capture_output=True, text=True, env=os.environ, timeout=120)
    assert ended.returncode == USAGE
    assert ended.stderr.startswith("Error: There is no table 'nope'.")


def test_people_do_without_the_letters_that_the_output_lacks_and_programs_are_told(state: object) -> None:
    said = run_apart("read", "gold.nosuch€", PYTHONIOENCODING="latin-1")
    assert (said.code, "There is no table 'gold.nosuch?" in said.err) == (2, True)
    said = run_apart("--help", PYTHONIOENCODING="latin-1")
    assert said.code == 3
    assert "PYTHONIOENCODING=utf-8" in said.err
