"""A domain that init writes is right; check tells all mistakes at once, and other commands refuse to begin with any."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.user_code import function_mistakes
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.cli.commands import Run, run_apart
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain

DOMAIN = "init_shop"
GUIDES = {"first-table.md": 2, "sql-tables.md": 3}
"""Pages to be followed, and how often each shows what is printed."""


@pytest.fixture
def written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project of a new domain, whose package Python finds."""
    said = run("init", DOMAIN, "--into", str(tmp_path / "a folder"))
    assert said.code == 0, said.err
    monkeypatch.syspath_prepend(str(tmp_path / "a folder" / DOMAIN))
    yield tmp_path / "a folder" / DOMAIN
    for name in [name for name in sys.modules if name.partition(".")[0] == DOMAIN]:
        del sys.modules[name]


def test_a_new_domain_has_raw_silver_and_gold_and_nothing_is_wrong_with_it(written: Path) -> None:
    catalogue = load_catalogue(load_settings(domains=DOMAIN))
    assert {contract.layer for contract in catalogue} == {"raw", "silver", "gold"}
    assert not list(function_mistakes(catalogue))
    texts = [file.read_text(encoding="utf-8") for file in (*written.rglob("*.py"), written / "platform.toml")]
    assert not re.findall(r"(?<!@)\bexample", "".join(texts))
    assert [path for path in written.parent.iterdir() if path != written] == []


def test_a_new_domain_in_sql_has_queries_and_nothing_is_wrong_with_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("init", "init_sql", "--sql", "--into", str(tmp_path)).code == 0
    monkeypatch.syspath_prepend(str(tmp_path / "init_sql"))
    assert not list(function_mistakes(load_catalogue(load_settings(domains="init_sql"))))
    package = tmp_path / "init_sql" / "init_sql"
    assert {file.stem for file in package.rglob("*.sql")} == {
        "init_sql", "init_sql_item_sales", "init_sql_item_week",
    }  # fmt: skip
    assert {file.name for file in package.rglob("*.py")} == {"__init__.py", "conftest.py", "contracts.py"}
    for name in [name for name in sys.modules if name.partition(".")[0] == "init_sql"]:
        del sys.modules[name]


def test_nothing_is_overwritten(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / DOMAIN
    mine.mkdir()
    said = run("init", DOMAIN, "--into", str(tmp_path))
    assert said.code == 2
    assert "is there already" in said.err
    assert not list(mine.iterdir())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("class", "cannot name a domain"),
        ("My-Shop", "cannot name a domain"),
        ("../shop", "cannot name a domain"),
        ("s" * 31, "cannot name a domain"),
        ("json", "in use"),
        ("pytest", "in use"),
        ("retail", "in use"),
    ],
)
def test_a_name_that_cannot_be_a_domains_is_refused(run: Run, tmp_path: Path, name: str, says: str) -> None:
    said = run("init", name, "--into", str(tmp_path / "new"))
    assert said.code == 2
    assert says in said.err
    assert not (tmp_path / "new").exists()


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_holds(tmp_path: Path, page: str) -> None:
    """All of it as a person would type it; Spark is started four times."""
    text = (project_root() / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(sh|text)\n(?!\$ )(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks].count("text") == GUIDES[page]
    script = "\n".join(block if kind == "sh" else "echo ---- end of block" for kind, block in blocks)
    bin_ = Path(sys.executable).parent
    unset = {name: value for name, value in os.environ.items() if not name.startswith("PLATFORM_")}
    environment = unset | {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "PLATFORM_JARS": str(JARS),
        "PLATFORM_SPARK_CONF": OWN_PROCESS,
        "COLUMNS": "150",
    }
    done = subprocess.run(
        ["bash", "-eu"], input=script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    until = 0
    for shown in (block for kind, block in blocks if kind == "text"):
        end = said.index("---- end of block", until)
        assert {" ".join(line.split()) for line in shown.splitlines()} <= set(said[until:end])
        until = end + 1
    for name, block in re.findall(r"<!-- example: (\S+) -->\n```(?:python|sql)\n(.*?)```", text, re.DOTALL):
        assert block in (tmp_path / "shop" / name).read_text(encoding="utf-8")


CIRCLE = (
    ('silver.sales", span(6)),)', 'silver.sales", span(6)), Input("gold.tills", same_day()))'),
    ('silver.sales", same_day()),)', 'silver.sales", same_day()), Input("gold.week", same_day()))'),
)
WEEKS_COLUMNS = '"Per till and week.", "me", (K, Column("paid", "decimal(18,2)"'
OF_RAW = '"raw.sales", same_day()'
TWO = {"silver": (("def sales(sales)", "def sales(rows)"),), "gold": (("def week", "def weak"),)}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the domain lies."""
    monkeypatch.setenv("PLATFORM_DOMAINS", PACKAGE)
    with importable(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("command", [["check"], ["refresh"], ["refresh", "--explain"], ["up"]])
def test_contracts_with_mistakes_are_all_told(run: Run, home: Path, command: list[str]) -> None:
    write_domain(home, contracts=(('"decimal(12,2)"', '"money"'), ("span(6)", "span")))
    said = run(*command)
    assert said.code == 3
    told = said.out + said.err
    assert "unknown type 'money'" in told
    assert "span stands there without brackets" in told
    assert f"{PACKAGE}/contracts.py, line 7" in told.replace("\n", "")


@pytest.mark.parametrize(
    ("wrong", "table", "field", "says"),
    [
        ((WEEKS_COLUMNS, WEEKS_COLUMNS.replace("decimal(18,2)", "money")), "gold.week", "paid", "unknown type 'money'"),
        ((OF_RAW, OF_RAW.replace("()", "")), "silver.sales", "window", "same_day stands there without brackets"),
        ((OF_RAW, OF_RAW.replace("same_day()", 'span("x")')), "silver.sales", "before", "before='x'"),
    ],
)
def test_a_mistake_in_a_part_names_its_table_and_is_told_once(
    run: Run, home: Path, wrong: tuple[str, str], table: str, field: str, says: str
) -> None:
    write_domain(home, contracts=(wrong,))
    [mistake] = run("check", "--json").json["mistakes"]
    assert (mistake["table"], mistake["field"]) == (table, field)
    assert says in mistake["what"] + mistake["todo"]
    assert f"{table} {field}: " in run("check").out


def test_tables_in_a_circle_are_told_with_one_of_them(run: Run, home: Path) -> None:
    write_domain(home, contracts=CIRCLE)
    said = run("check", "--json")
    assert said.code == 3
    [wrong] = said.json["mistakes"]
    assert " is made from itself: it reads " in wrong["what"]
    assert wrong["what"].startswith(wrong["table"])


@pytest.mark.parametrize("command", [["refresh"], ["refresh", "--explain"], ["up"]])
def test_functions_with_mistakes_keep_work_from_beginning(run: Run, home: Path, command: list[str]) -> None:
    write_domain(home, **TWO)
    said = run(*command)
    assert said.code == 3
    assert "needs a function sales(sales)" in said.err
    assert "needs a function week(sales)" in said.err


def test_the_doctor_names_them_first(run: Run, home: Path) -> None:
    write_domain(home, **TWO)
    said = run("admin", "doctor", "--json")
    assert said.code == 1
    assert said.json[0]["name"] == "Tables"
    assert "needs a function week(sales)" in said.json[0]["message"]


@pytest.mark.parametrize(
    "init", ["", "DOMAIN = 1", "from own_till.contracts import TABLE", "import own_till.contracts", "DOMAIN = ("]
)
def test_a_package_without_a_domain_is_no_traceback(run: Run, home: Path, init: str) -> None:
    write_domain(home)
    (home / PACKAGE / "__init__.py").write_text(init + "\n")
    said = run("check", "--json")
    assert said.code == 3
    assert said.json["mistakes"][0]["package"] == PACKAGE


@pytest.mark.proof
def test_functions_and_expressions_are_told_together_and_then_all_is_well(run: Run, home: Path) -> None:
    """Spark is started for it, twice."""
    write_domain(home, gold=TWO["gold"], contracts=(("paid >= 0", "payed >= 0"),))
    said = run_apart("check", "--json", PYTHONPATH=str(home))
    assert said.code == 3, said.err
    assert {(wrong["table"], wrong["field"]) for wrong in said.json["mistakes"]} == {
        ("gold.week", None),
        ("silver.sales", "paid_known"),
    }
    assert "Java" not in said.err
    write_domain(home, contracts=(("paid >= 0", "paid >= 1"),))
    said = run_apart("check", "gold.tills", PYTHONPATH=str(home))
    assert said.code == 0, said.err
    assert "raw.sales, silver.sales, gold.tills" in said.out


FED = (
    ('("till", "at"),\n                  inputs', '("till",),\n                  inputs'),
    ('Column("paid", "decimal(12,2)", "Dollars.")', 'Column("paid", "timestamp", "When.")'),
    ('("till", "at"), source', '("till",), updated_at="paid", source'),
    ('Rule("paid_known", "paid >= 0"', 'Rule("not_deleted", "string(till) <> \'D\'"'),
)


@pytest.mark.proof
def test_what_lets_deleted_and_moved_records_count_on_is_pointed_out(run: Run, home: Path) -> None:
    """A rule in place of `voided`, and an event time that can be corrected. It starts Spark."""
    write_domain(home, contracts=FED)
    told = run_apart("check", "silver.sales", PYTHONPATH=str(home))
    assert told.code == 0, told.err
    assert "look raw.sales voided: the rule 'not_deleted' of silver.sales" in told.out.replace("  ", " ")
    assert "look raw.sales moves_within_days: moves_within_days=0 says that no key's at" in told.out.replace("  ", " ")
