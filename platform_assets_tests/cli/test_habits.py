"""Held over the whole tree of commands: alike in what they ask and tell, quick to import, and kind to mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from inspect import unwrap
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from typer.testing import CliRunner

from platform_assets.cli.app import COMMANDS, PANELS, build, translated
from platform_assets_tests.support.cli.commands import PROBE, TABLE, run_apart
from platform_assets_tests.support.cli.tree import ALL, BEFORE, DECIDED, EXAMPLES, options
from platform_assets_tests.support.history import GOODS

MOMENTARY = {
    "ack", "admin breaker", "admin doctor", "admin pin", "backfill approve", "backfill explain", "backfill new",
    "backfill pause", "backfill report", "backfill resume", "late refuse", "quarantine discard", "read",
    "status", "why",
}  # fmt: skip
"""They read the ledger, logs and footers, print rows as they read them, or hand over to others that tell."""

STARTS_NOTHING = sorted(
    {*EXAMPLES}
    - {"accept", "ack", "check", "demo", "test", "up", "publish", "late approve", "late refuse", "quarantine replay"}
    - {"admin adopt", "admin erase", "admin pull", "admin restore", "admin verify"}
    - {name for name in EXAMPLES if name.startswith("backfill ") and name != "backfill new"}
)
"""Those of which the example can be carried out on what the tests have published, without Spark."""


REASON_FOR_SOME = ("admin recover", "admin outbox", "admin pull")
"""They are a decision with one of their options alone."""


def test_there_are_few_commands_and_fewer_on_the_first_page() -> None:
    assert len(ALL) <= 40
    assert {*COMMANDS} == {*ALL}
    assert sum(len(PANELS[name]) for name in ("Look", "Change", "Decide")) <= 12


def test_every_command_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_what_is_the_same_is_asked_for_and_told_in_one_way(name: str) -> None:
    asked, callback = options(name), unwrap(ALL[name].callback)
    assert asked["--json"].is_flag
    assert asked["--json"].help == "For programs: JSON, also of an error."
    assert tells(callback) == (name not in MOMENTARY), "it tells how far it is"
    assert ("--reason" in asked) == ("--by" in asked) or name == "diff"  # whose sides are compared by columns
    if "--reason" in asked:
        needed = (
            ""
            if name in REASON_FOR_SOME
            else " \\[required, but for --dry-run]"
            if "--dry-run" in asked
            else " \\[required]"
        )
        assert asked["--reason"].help == f"Why, for the next person.{needed}"
        assert asked["--by"].help == "Who decides; the user by default, who is recorded in any case."
        assert not asked["--reason"].required  # a missing one is explained in words
    if name == "demo":  # it makes so many days of sales; all others choose among days that there are
        assert "int" in str(callback.__annotations__["days"])
        return
    days = asked.get("--days")
    assert days is asked.get("--day", days)
    assert days is None or (days.metavar, days.help) == (
        "DAYS",
        "Only these days: YYYY-MM-DD, A..B with both ends, or several with commas."
        + (" \\[required]" if name == "accept" else ""),
    )
    assert "day" not in asked or (asked["day"].metavar, asked["day"].help) == ("DAY", "YYYY-MM-DD.")


def tells(command: FunctionType) -> bool:
    """Whether a command, or a function of its module that it calls, tells how far it is."""
    reached = [command]
    for function in reached:
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        own = (one for one in called if isinstance(one, FunctionType) and one.__module__ == command.__module__)
        reached += [one for one in own if one not in reached]
    return any({"telling", "computing"} & {*function.__code__.co_names} for function in reached)


@pytest.mark.parametrize("name", [name for name in ALL if "--reason" in options(name) and name not in REASON_FOR_SOME])
def test_a_decision_needs_a_reason_and_a_name(run, name):
    example = [argument for argument in EXAMPLES[name] if argument not in ("--dry-run", *DECIDED)]
    for more, lacks in (((), "--reason"), (("--reason", " "), "--reason"), (("--reason", "x", "--by", " "), "--by")):
        said = run(*name.split(), *example, *more)
        assert (said.code, said.out) == (2, ""), said
        assert f"A decision needs {lacks}: it is kept for the next person." in said.error


@pytest.mark.parametrize("name", ALL)
def test_what_could_not_be_done_is_told_to_programs_in_their_way(run, monkeypatch, tmp_path, name):
    monkeypatch.setenv("PLATFORM_SETTLE_S", "-1")
    monkeypatch.chdir(tmp_path)
    said = run(*name.split(), *EXAMPLES[name], "--no-such-option", "--json")
    assert (said.code, said.out) == (2, "")
    assert error_in(said) == {
        "what": "No such option: --no-such-option",
        "do": "Add --help to see what it takes.",
        "code": 2,
        "kind": "UsageError",
    }
    said = run(*name.split(), *EXAMPLES[name], "--json")
    assert (said.code, said.out) == (3, "")
    error = error_in(said)
    assert error["code"] == 3
    assert all(isinstance(error[part], str) and error[part] for part in ("what", "do"))


@pytest.mark.parametrize("name", STARTS_NOTHING)
def test_what_is_printed_for_programs_is_one_json_document(run, published, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    said = run(*name.split(), *EXAMPLES[name], "--json")
    assert said.code in (0, 1), said.err
    json.loads(said.out)


def test_a_day_that_is_none_is_told_to_programs_in_their_way(run, published):
    said = run("read", TABLE, "--days", "soon", "--json")
    assert (said.code, said.out) == (2, "")
    assert error_in(said)["what"] == "'soon' is not a day."


def error_in(said: Any) -> dict[str, Any]:
    [error] = json.loads(said.err.splitlines()[-1]).values()
    return dict(error)


COMPUTE = {
    "admin verify", "backfill apply", "check", "demo", "late approve", "publish", "quarantine replay", "test", "up",
}  # fmt: skip
"""Commands that start Spark or Dagster whatever is asked of them, or have no other use."""
DECIDE = {name for name in EXAMPLES if "--reason" in options(name)} | {"backfill explain", "backfill report"}
"""Commands that decide about what there is not here, or read a file: each imports what its neighbours do."""

CASES: list[Any] = [
    (["--help"], ()),
    (["status"], ()),
    (["read", TABLE], ()),
    (["refresh", "silver.products", "--explain"], ()),
    (["undo", "since:0", "--dry-run"], ()),
    *(
        pytest.param(command.split(), allowed, marks=pytest.mark.proof)
        for command, allowed in {
            "init own_tills": (),
            "status engines": (),
            f"read {TABLE} --format csv": (),
            f"read {TABLE} --format json": (),
            "read --views duckdb": (),
            "read --views spark": (),
            "status stale": (),
            f"status stale {TABLE} --days 2017-01-01..2017-01-02 --json": (),
            f"why {TABLE} 2017-01-01 --diff": (),
            f"why {TABLE} 2017-01-01 --history": (),
            "status stages": (),
            "status sources": (),
            "status backfills": (),
            "status late": (),
            "status circuits": (),
            "status quarantine raw.transactions --rows": (),
            "status messages": (),
            "status releases": (),
            "status releases current": (),
            "diff 0": (),
            "accept --help": (),
            "late --help": (),
            "admin doctor": (),
            "admin recover": (),
            "admin ledger --rebuild": (),
            "admin reload raw.transactions --dry-run": (),
            f"admin breaker {TABLE} --open --reason x": (),
            "admin outbox": (),
            "admin pin 0 --reason x": (),
            "admin erase --help": (),
            "admin audit": ("numpy",),
            "admin backup FOLDER": ("numpy",),
            "admin restore FOLDER --help": (),
            "admin maintenance --dry-run": (),
            "admin maintenance --only deletion --dry-run --json": (),
            "demo --land --until 2017-01-01 --days 1": ("numpy", "pandas", "polars"),
        }.items()
    ),
]


def test_every_command_is_looked_at() -> None:
    commands = [next(iter(getattr(case, "values", case))) for case in CASES]
    looked_at = {name for words in commands for name in (words[0], " ".join(words[:2])) if name in COMMANDS}
    assert {*looked_at, *COMPUTE, *DECIDE, "admin pull", "backfill resume"} == {*COMMANDS}


@pytest.mark.parametrize(("command", "allowed"), CASES, ids=" ".join)
def test_a_command_that_only_reads_imports_neither_dagster_nor_pyspark(published, tmp_path, command, allowed):
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, *command],
        capture_output=True,
        text=True,
        env=os.environ,
        cwd=tmp_path,
        timeout=120,
    )
    assert ended.returncode in (0, 1), ended.stderr
    assert ended.stderr.splitlines()[-1].split()[1:] == sorted(allowed)


def test_the_help_of_a_command_imports_neither_sql_nor_arrow_nor_spark_nor_dagster() -> None:
    """Each takes longer to import than all of the help; `admin doctor` is about all of them."""
    modules = {place.partition(":")[0] for place in COMMANDS.values()} - {"doctor"}
    names = [f"platform_assets.cli.commands.{module}" for module in sorted(modules)]
    script = (
        "import sys; from importlib import import_module\n"
        f"for name in {names}: import_module(name)\n"
        "print(sorted({'sqlalchemy', 'pyarrow', 'numpy', 'pyspark', 'dagster'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_the_list_of_all_commands_says_of_each_what_its_own_help_says() -> None:
    """It is made without importing them."""
    runner = CliRunner(env={"COLUMNS": "400"})
    for name in COMMANDS:
        *group, last = name.split()
        listed = runner.invoke(build(only_described=True), [*group, "--help"]).output
        whole = runner.invoke(build([name]), [*name.split(), "--help"]).output
        [line] = [line for line in listed.splitlines() if line.lstrip("│ ").startswith(f"{last} ")]
        described = " ".join(line.strip("│ ").removeprefix(last).split())
        assert described[:60] in " ".join(whole.split()), name


RUNS_BEFORE = sorted(
    {*BEFORE}
    - {
        "engine compare",
        "engine verify",
        "erase",
        "ledger move",
        "maintenance delete",
        "reconcile",
        "restore",
        "verify",
    }
    - {"late approve", "late refuse", "outbox drop", "withdraw", "release unpin", "audit put-back", "land", "doctor"}
    - {
        "breaker close",
        "breaker open",
        "breaker override",
        "source pull",
        "source verify",
        "release pin",
        "ledger rebuild",
        "backup",
    }
    - {name for name in BEFORE if name.startswith("stage ") and name != "stage list"}
    - {name for name in BEFORE if name.startswith("plan ") and name not in ("plan history", "plan status")}
)
"""Those of which the example does something here, and may be done twice."""


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_a_name_of_before_runs_todays_command_and_names_it(run, monkeypatch, tmp_path, name):
    monkeypatch.setenv("PLATFORM_SETTLE_S", "-1")
    monkeypatch.chdir(tmp_path)
    new = translated([*name.split(), *BEFORE[name]])
    assert new is not None
    assert new[0] in COMMANDS or " ".join(new[:2]) in COMMANDS
    for more, code in (((), 3), (("--no-such-option",), 2)):
        old, now = run(*name.split(), *BEFORE[name], "--json", *more), run(*new, "--json", *more)
        first, *others = old.err.splitlines()
        assert (old.code, old.out, others) == (now.code, now.out, now.err.splitlines())
        assert first.startswith(f"renamed this is now: platform-assets {' '.join(new[:2])}")
        assert now.code == code, now.err


@pytest.mark.parametrize("name", RUNS_BEFORE)
def test_a_name_of_before_gives_the_same_json(run, published, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    command = [*name.split(), *BEFORE[name], "--json"]
    new = translated(command)
    assert new is not None
    old, now = run(*command), run(*new)
    assert old.code in (0, 1), old.err
    assert (old.code, json.loads(old.out)) == (now.code, json.loads(now.out))


USAGE, FAILED = 2, 3
ARRIVAL = "transactions/2017-01-01/a.csv"
SIGNED = ("--reason", "the till was offline", "--by", "Zoë")


def test_a_wrong_command_line_is_explained(run, published):
    """Some sixty of them."""
    for command, says in (
        (
            ["read", "gold.daily_sale"],
            "There is no table 'gold.daily_sale'. What to do: Did you mean gold.daily_sales?",
        ),
        (["refresh", "gold.daily_sale"], "What to do: Did you mean gold.daily_sales? Tables are raw.transactions,"),
        (["check", "gold.daily_sale"], "Did you mean gold.daily_sales?"),
        (["admin", "audit", "gold.daily_sale"], "Did you mean gold.daily_sales?"),
        (["accept", "gold.daily_sale", "--days", "2017-01-01", *SIGNED], "Did you mean gold.daily_sales?"),
        (["status", "late", "raw.transaction"], "Did you mean raw.transactions?"),
        (["read", "[/nothing]"], "There is no table '[/nothing]'."),
        (["read", "../../etc"], "There is no table '../../etc'."),
        (["read", TABLE, "--day", "yesterday"], "'yesterday' is not a day. What to do: Write it as YYYY-MM-DD"),
        (["read", TABLE, "--day", "2017-02-30"], "'2017-02-30' is not a day."),
        (["read", TABLE, "--day", ""], "'' is not a day."),
        (["undo", "since:0", "--days", "", "--reason", "x"], "'' is not a day."),
        (["diff", "0", "--days", ""], "'' is not a day."),
        (["read", TABLE, "--day", "2016-12-31"], "2016-12-31 is outside the calendar, 2017-01-01 to 2017-01-03."),
        (["read", TABLE, "--day", "2017-01-04"], "2017-01-04 is outside the calendar"),
        (["read", TABLE, "--limit", "0"], "Invalid value for '--limit'"),
        (["read", TABLE, "--format", "xml"], "Invalid value for '--format'"),
        (["read"], "Missing argument"),
        (["status", "stale", "gold.daily_sale"], "There is no table 'gold.daily_sale'."),
        (
            ["status", "stale", "--days", "2017-01-03..2017-01-01"],
            "The range '2017-01-03..2017-01-01' ends before it starts.",
        ),
        (["status", "stale", "--days", "2017-01-03,"], "'' is not a day."),
        (
            ["status", "stale", "--days", "2017-01-02,2017-01-01:2017-01-03"],
            "'2017-01-01:2017-01-03' is not a day. What to do: A range is written 2017-01-01..2017-01-03.",
        ),
        (["refresh", "--days", "2017-01-01-2017-01-03"], "A range is written 2017-01-01..2017-01-03."),
        (
            ["status", "stale", "--days", "2017-01-03..2017-01-04"],
            "2017-01-04 is outside the calendar, 2017-01-01 to 2017-01-03",
        ),
        (["why", "gold.nothing", "2017-01-01"], "There is no table 'gold.nothing'."),
        (["refresh", "raw.transactions"], "raw.transactions has no transform: it holds deliveries."),
        (["reed"], "No such command 'reed'"),
        (["demo", "--land", "--until", "soon"], "'soon' is not a day."),
        (
            ["demo", "--land", "--rate", "late"],
            "'late' is not a rate. What to do: Write <name>=<share>, with one of corrected",
        ),
        (["demo", "--land", "--rate", "lste=0.1"], "'lste=0.1' is not a rate."),
        (["demo", "--land", "--rate", "late=2"], "The rate late is 2.0. What to do: Give a share"),
        (["demo", "--land", "--rate", "late=nan"], "The rate late is nan."),
        (["demo", "--land", "--rate", "late=0.9", "--rate", "very_late=0.9"], "are more than all lines together"),
        (["demo", "--land", "--days", "0"], "Invalid value for '--days'"),
        (["demo", "--land", "--days", "400"], "The source has sales from 2017-01-01 to 2018-01-01"),
        (["demo", "--land", "--scale", "0"], "Invalid value for '--scale'"),
        (["demo", "--days", "0"], "Invalid value for '--days'"),
        (["admin", "verify", "--days", "2017-01-01", "--sample", "2"], "Days are either named or drawn."),
        (["admin", "verify", "--sample", "-1"], "Invalid value for '--sample'"),
        (["up", "--port", "0"], "Invalid value for '--port'"),
        (["late", "approve", *SIGNED], "Say which rows"),
        (["late", "approve", ARRIVAL, "--days", "2017-01-02", *SIGNED], "Say which rows"),
        (["late", "refuse", "raw.transactions", *SIGNED], "Say which rows"),
        (["late", "refuse", "raw.x", "--days", "2017-01-02", *SIGNED], "There is no table 'raw.x'"),
        (["late", "refuse", "raw.products", "--days", "2017-01-03..2017-01-02", *SIGNED], "ends before"),
        (["late", "refuse", "raw.products", "--days", "2017-01-03..soon", *SIGNED], "'soon' is not a day."),
        (["accept", TABLE, *SIGNED], "Say which days were looked at."),
        (["accept", "gold.nothing", "--days", "2017-01-02", "--dry-run"], "There is no table 'gold.nothing'."),
        (["admin", "audit", "--fast", "--digests"], "--fast looks at no files."),
        (["why", "--history", "gold.nothing", "2017-01-01"], "There is no table 'gold.nothing'."),
        (["why", "--history", TABLE, "2016-12-31"], "2016-12-31 is outside the calendar"),
        (["admin", "backup"], "Missing argument"),
    ):
        said = run(*command)
        assert (said.code, said.out) == (USAGE, ""), command
        assert says in said.error


def test_the_sample_is_not_landed_for_tables_that_do_not_take_it(run, state, monkeypatch):
    monkeypatch.setenv("PLATFORM_DOMAINS", GOODS)
    said = run("demo", "--land", "--days", "1")
    assert said.code == USAGE
    assert "platform_assets.domains.retail, which is not among the domains" in said.error
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
    for command in (
        ["status"],
        ["read", TABLE],
        ["admin", "doctor"],
        ["admin", "ledger", "--rebuild"],
        ["demo", "--land"],
    ):
        said = run(*command)
        assert said.code == FAILED, command
        assert says in said.err
        assert "What to do: Correct the PLATFORM_… variable" in said.err


def test_a_decision_about_nothing_is_explained(run, published):
    for command, says in (
        (["undo", f"arrival:{ARRIVAL}", "--reason", "x"], f"No arrival '{ARRIVAL}' was ever taken."),
        (["undo", "arrival:transactions/2017-01-01/a[/b].csv", "--reason", "x"], "was refused whole"),
        (["late", "approve", ARRIVAL, *SIGNED], "waits in the late queue."),
        (["late", "refuse", "silver.products", "--days", "2017-01-02", *SIGNED], "takes no arrivals"),
        (["accept", TABLE, "--days", "2017-01-02", *SIGNED], f"Nothing was accepted: {TABLE} 2017-01-02 is not held."),
        (["accept", "raw.products", "--days", "2017-01-02", *SIGNED], "raw.products holds what was delivered"),
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
    assert "own_contracts.py, line 3" in run("admin", "doctor", "--json").out


def test_a_table_never_published_is_told_from_an_unknown_one(run):
    said = run("read", TABLE)
    assert said.code == FAILED
    assert f"{TABLE} has never been published" in said.err


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://me:s3cret@127.0.0.1:1/db", "postgresql://me:s3cret@[/x", "nosql://me:s3cret@here/db"]
)
def test_a_ledger_that_cannot_be_reached_is_named_without_its_password(run, monkeypatch, url):
    monkeypatch.setenv("PLATFORM_LEDGER_URL", url)
    for command in (["status"], ["admin", "ledger", "--rebuild"], ["admin", "doctor", "--json"]):
        said = run(*command)
        assert said.code == (1 if "doctor" in command else FAILED)
        assert "ledger" in (said.out + said.err).lower()
        assert "s3cret" not in said.out + said.err


def test_a_state_folder_that_is_a_file_is_named(run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path / "file"))
    for command in (["status"], ["demo", "--land", "--until", "2017-01-01"], ["admin", "ledger", "--rebuild"]):
        said = run(*command)
        assert said.code == FAILED, command
        assert str(tmp_path / "file") in said.err
        assert "What to do:" in said.err
    assert run("admin", "doctor").code == 1


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
    [finding] = [one for one in run("admin", "doctor", "--json").json if one["name"] == "Landing"]
    assert not finding["ok"]
    assert "PLATFORM_LANDING" in finding["todo"]


def test_the_default_landing_root_may_be_absent(run, state):
    assert run("status", "--json").json["landing"] == []
    said = run("refresh", "--explain")
    assert said.code == 0
    assert "landing root" not in said.out
    [finding] = [one for one in run("admin", "doctor", "--json").json if one["name"] == "Landing"]
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


def test_help_reports_no_progress(run, monkeypatch):
    monkeypatch.setattr("platform_assets.cli.app.speaking", None)
    assert "Usage:" in run("status", "--help").out
    assert "[required]" in run("undo", "--help").out.replace("[required, but for --dry-run]", "[required]")
