"""What `init --from` writes for files as others make them is right: checked, tested, and refreshed with these files."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from platform_assets import read
from platform_assets.settings import project_root
from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.installation import JARS

__all__ = ["run", "state"]

TILL = """Beleg-Nr.;Kaufdatum;Kunde;Betrag;PLZ
1001;28/01/2018;Müller;1.234,50;01067
1002;28/01/2018;Meier;-0,99;80331
1003;29/01/2018;NA;12,00;10115
1004;30/01/2018;;7,5;
"""
WEB = """{"id": 7, "at": 1517133600123, "customer": {"name": "Ann", "tags": ["a"]}, "total": {"value": 10.10}}
{"id": 8, "at": 1517133600123, "customer": null, "total": {"value": 100}}
{"id": 9, "at": 1517220000000, "customer": {"name": "Bob"}, "total": {"value": 5.5}, "order": "x"}
"""
CARDS = """customer_id,purchased_on,cds,dollars
00001,20180128,1,11.77
00002,20180128,1,12.00
00002,20180128,1,77.00
00003,20180130,2,20.76
"""
FIRST = datetime(2018, 1, 28, 10, tzinfo=UTC)
TABLE = pa.table(
    {
        "order_id": [1, 1, 2, 3],
        "store": pa.array([1, 1, 2, 2], pa.int32()),
        "amount": [Decimal("1.10"), Decimal("2.20"), Decimal("3.30"), None],
        "ordered_at": [FIRST, FIRST, FIRST, FIRST + timedelta(days=2)],
        "updated_at": [FIRST, FIRST + timedelta(hours=1), FIRST, FIRST + timedelta(days=2)],
        "is_deleted": [False, False, True, False],
        "tags": [["a"]] * 4,
    }
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files of one table each, named like its domain."""
    (tmp_path / "from_till.csv").write_text(TILL, encoding="cp1252")
    (tmp_path / "from_web.jsonl").write_text(WEB, encoding="utf-8")
    (tmp_path / "from_cards.txt").write_text(CARDS, encoding="utf-8")
    pq.write_table(TABLE, tmp_path / "from_store.parquet")
    write_deltalake(str(tmp_path / "from_delta"), TABLE)
    return tmp_path


GUESSED = {
    "till.csv": (
        r'"beleg_nr", "long", .*source_name="Beleg-Nr\."',
        r'"kaufdatum", "date", .*pattern="%d/%m/%Y"',
        r'"betrag", "decimal\(18,2\)"',
        r'"plz", "string"',
        r'# guess: the text is not UTF-8.*\n.*Csv\(delimiter=";", encoding="cp1252", decimal=",", thousands="\."\)',
        r'# sure: tells all 4 rows apart\n +key=\("beleg_nr",\)',
    ),
    "web.jsonl": (
        r'"at", "timestamp", .*epoch="ms"',
        r'"customer_name", "string", .*path=\("customer", "name"\)',
        r'"total_value", "decimal\(18,2\)", .*path=\("total", "value"\)',
        r'"order", "string", .*may_be_absent=True',
    ),
    "cards.txt": (
        r'"customer_id", "string"',
        r'"purchased_on", "date", .*pattern="%Y%m%d"',
        r"# guess: NOT UNIQUE: 1 of 4 rows have the key of another one with other content",
    ),
    "store.parquet": (
        r'# guess: tells all 4 rows apart with updated_at\n +key=\("order_id",\)',
        r'event_time="ordered_at"',
        r'updated_at="updated_at"',
        r'voided="is_deleted"',
    ),
    "delta": (r'"amount", "decimal\(3,2\)"',),
}


@pytest.mark.parametrize("name", GUESSED)
def test_dialect_types_key_and_days_are_proposed_with_what_speaks_for_them(run: Run, files: Path, name: str) -> None:
    said = run("init", "shop_of", "--from", str(files / f"from_{name}"), "--into", str(files / "new"), "--dry-run")
    assert said.code == 0, said.err
    for pattern in GUESSED[name]:
        assert re.search(pattern, said.out), (pattern, said.out)
    assert not (files / "new").exists()


def test_its_page_shows_what_is_printed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (project_root() / "docs" / "first-table.md").read_text(encoding="utf-8")
    [(command, shown)] = re.findall(r"^```text\n\$ platform-assets (.*?)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "till.csv").write_text(TILL, encoding="cp1252")
    assert " ".join(shown.split()) in run(*shlex.split(command)).words


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name,amount\na,1\nb,2\n", r"has no column of dates or times.* name \(string\), amount \(long\).*pattern"),
        ("", "has no rows"),
        ("a,d\n", "has no rows"),
        ("a,d\n,2018-01-01\n,\n", "has no column without gaps"),
        (None, "cannot be read: .*No such file"),
    ],
)
def test_a_file_of_which_no_contract_can_be_made_is_refused_with_advice(
    run: Run, tmp_path: Path, content: str | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "x.csv").write_text(content)
    said = run("init", "shop_of", "--from", str(tmp_path / "x.csv"), "--into", str(tmp_path / "new"))
    assert said.code == 3
    assert re.search(says, said.error)
    assert "What to do:" in said.error
    assert not (tmp_path / "new").exists()


def test_dates_that_can_be_read_in_two_ways_are_a_guess(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,day\n1,01/02/2018\n2,03/04/2018\n")
    said = run("init", "shop_of", "--from", str(tmp_path / "x.csv"), "--dry-run")
    assert "guess day: all its values are %d/%m/%Y, and %m/%d/%Y, too" in said.words


def test_files_that_a_shell_lists_behind_the_first_one_count(run: Run, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c.csv")]
    for number, file in enumerate(files):
        Path(file).write_text(f"id,day\n{number},2018-01-0{number + 1}\n")
    assert "3 rows of 2018-01-01 to 2018-01-03" in run("init", "shop_of", "--from", *files, "--dry-run").words
    assert "is one argument too many" in run("init", "shop_of", files[0], "--dry-run").error


def test_broken_lines_and_values_that_keep_a_column_from_being_a_number_are_named(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{n},2018-01-02,{'abc' if n == 7 else n}\n" for n in range(3, 30))
    (tmp_path / "a.csv").write_text(f"id,day,minutes\n{rows}")
    (tmp_path / "b.csv").write_text("id,day,minutes\n1,2018-01-01,5\n2,2018\n")
    words = run("init", "shop_of", "--from", *(str(tmp_path / f"{name}.csv") for name in "ab"), "--dry-run").words
    assert "1 line is left out: " in words
    assert f"{tmp_path / 'b.csv'}, line 3: Expected Number of Columns: 3 Found: 2" in words
    assert "guess minutes: text, for 1 of 28 values fit no long, such as 'abc'" in words


@pytest.mark.timeout(900)
def test_what_is_written_is_tested_and_refreshed_with_the_very_files(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five kinds of files as one project; Spark is started twice, and a refresh begins with what `check` looks at."""
    names = [f"from_{name.partition('.')[0]}" for name in GUESSED]
    project = files / "new" / names[0]
    for number, (domain, name) in enumerate(zip(names, GUESSED, strict=True)):
        sql = ["--sql"] if number % 2 else []
        into = project if number else files / "new"
        said = run("init", domain, "--from", str(files / f"from_{name}"), "--into", str(into), *sql, "--json")
        assert said.code == 0, said.err
        steps = said.json["next"]
        if number:
            assert f"write domains = {json.dumps(names[: number + 1])} in" in steps[0]
            settings = (project / "platform.toml").read_text()
            listed = steps[0].partition("write ")[2].partition(" in ")[0]
            (project / "platform.toml").write_text(re.sub(r"domains = .*", listed, settings))
        for step in steps:
            words = shlex.split(step.replace("<landing>", "landing"), comments=True)
            if words and words[0] in ("mkdir", "cp"):
                subprocess.run(words, cwd=project, check=True)
    pq.write_table(TABLE, project / "landing" / "from_delta" / "2018-01-30" / "all.parquet")
    for name in [name for name in os.environ if name.startswith("PLATFORM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLATFORM_JARS", str(JARS))
    monkeypatch.setenv("PLATFORM_SETTLE_S", "0")
    monkeypatch.chdir(project)
    said = run_apart("test")
    assert (said.code, "15 tests: none with differences" in said.out) == (0, True), said.out
    said = run_apart("refresh")
    assert "refused" not in said.out, said.out
    days = {
        name: [(str(row["event_date"]), row["row_count"]) for row in read(f"gold.{name}_daily").to_pylist()]
        for name in names
    }
    assert {name: sorted(rows) for name, rows in days.items()} == {
        "from_till": [("2018-01-28", 2), ("2018-01-29", 1), ("2018-01-30", 1)],
        "from_web": [("2018-01-28", 2), ("2018-01-29", 1)],
        "from_cards": [("2018-01-28", 2), ("2018-01-30", 1)],
        "from_store": [("2018-01-28", 1), ("2018-01-30", 1)],
        "from_delta": [("2018-01-28", 1), ("2018-01-30", 1)],
    }
