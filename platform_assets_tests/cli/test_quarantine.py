"""`quarantine`: what was set aside has its line and no secret, in any terminal; every example of its page runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from platform_assets import contracts
from platform_assets.settings import project_root
from platform_assets_tests.support.cli.commands import Run, run_apart
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.visits import DOMAIN, WHO, Visits, loaded

RAW, SILVER, FILE = "raw.visits", "silver.visits", "visits/2017-01-03/d.jsonl"
SIGNED = ("--reason", "sent twice", "--by", "zoe")
BROKEN = "broken line: not one JSON object"


@pytest.fixture
def visits(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> Visits:
    """The installation that commands see: of one person a broken line, a broken amount and a row that breaks a rule."""
    monkeypatch.setenv("PLATFORM_DOMAINS", DOMAIN)
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", "2017-01-04")
    monkeypatch.setenv("PLATFORM_TODAY", "2017-01-04")
    return lakes.copy(state, loaded, True)


@pytest.mark.proof
@pytest.mark.usefixtures("visits")
def test_every_example_of_the_page_runs(run: Run) -> None:
    """The replay starts Spark in a process of its own."""
    text = (project_root() / "docs" / "quarantine.md").read_text(encoding="utf-8")
    codes: list[tuple[str, int]] = []
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(block, "docs/quarantine.md", "exec"), {**vars(contracts)})
        for line in block.splitlines() if language == "sh" else ():
            words = shlex.split(line)[3:]
            said = run_apart(*words) if "replay" in words else run(*words)
            codes.append((" ".join(words[:2]), said.code))
            if words == ["status", "quarantine"]:
                shown = text[text.index("Set aside\n") :].partition("```")[0]
                assert " ".join(re.sub("discarded|─", "", said.out).split()) == " ".join(shown.split())
            if "replay" in words:
                assert f"2 rows of {RAW} read once more from their files; 2 stay." in said.out, said.out + said.err
    assert codes == [
        *[("status quarantine", 0)] * 3,
        ("quarantine replay", 1),
        ("quarantine discard", 0),
        ("admin audit", 0),
    ]
    left = run("status", "quarantine", RAW, "--json").json
    assert [(row["error"], row["attempts"]) for row in left] == [("paid: not decimal(8,2)", 2)]


@pytest.mark.usefixtures("visits")
def test_rows_have_file_and_line_and_no_value_of_a_person(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    said = run("status", "quarantine", "--rows", RAW)
    assert f"{FILE}, line 1: paid: not decimal(8,2)" in said.out
    assert f"{FILE}, line 2: {BROKEN}" in said.out
    assert str(WHO) not in said.out
    assert "paid: much" in said.out
    assert re.search(r"person: #[0-9a-f]{8}", said.out)
    quarantined = run("status", "quarantine", "--rows", SILVER, "--json")
    assert str(WHO) not in quarantined.out
    assert {(row["error"], row["attempts"], row["values"]["paid"]) for row in quarantined.json} == {
        ("paid_something", 1, "-1.00")
    }
    for options in ((), ("--all",)):
        shown = run("status", "quarantine", *options).out
        assert all(name in " ".join(shown.split()) for name in (RAW, SILVER, "paid_something", "2017-01-02"))


@pytest.mark.usefixtures("visits")
def test_what_is_discarded_is_a_decision_in_the_chain_and_left_alone(run: Run) -> None:
    done = run("quarantine", "discard", RAW, "--rule", BROKEN, *SIGNED)
    assert (done.code, f"1 row of {RAW} discarded" in done.out) == (0, True)
    assert [row["error"] for row in run("status", "quarantine", RAW, "--json").json] == ["paid: not decimal(8,2)"]
    every = run("status", "quarantine", RAW, "--all", "--json").json
    assert {row["error"]: row["discarded"] for row in every}[BROKEN] == 1
    again = run("quarantine", "discard", RAW, "--rule", BROKEN, *SIGNED)
    assert (again.code, "a person discarded it" in again.err) == (3, True)
    [made] = [each["decision"] for each in run("status", "decisions", "--json").json]
    assert (made["kind"], made["about"], made["who"], made["reason"]) == ("discard", "quarantine", "zoe", "sent twice")
    assert (made["table"], made["arrival"], made["error"]) == (RAW, FILE, BROKEN)
    assert f"{RAW} 2017-01-03, {BROKEN}, {FILE}" in run("status", "decisions").words
    assert run("admin", "audit").code == 0


@pytest.mark.usefixtures("visits")
def test_what_makes_no_sense_is_refused_by_name_with_a_remedy(run: Run) -> None:
    kinds = (project_root() / "docs" / "errors.md").read_text(encoding="utf-8")
    for args, code, says in (
        (("status", "quarantine", "--rows", "raw.visit"), 2, "There is no table 'raw.visit'"),
        (("status", "quarantine", "--rows", "gold.persons"), 3, "gold.persons sets no rows aside"),
        (
            ("status", "quarantine", "--rows", RAW, "--rule", "paid: not decimal(8,3)"),
            3,
            "Did you mean paid: not decimal(8,2)?",
        ),
        (
            ("status", "quarantine", "--rows", RAW, "--day", "2017-01-01"),
            3,
            f"No rows of {RAW}, 2017-01-01 are set aside",
        ),
        (("status", "quarantine", "--rows", RAW, "--day", "soon"), 2, "'soon' is not a day"),
        (("quarantine", "replay", "raw.stays", *SIGNED), 3, "No rows of raw.stays are set aside"),
        (("quarantine", "replay", SILVER, *SIGNED), 3, f"There is nothing to replay of {SILVER}"),
    ):
        refused = run(*args)
        assert (refused.code, says in refused.error) == (code, True), refused.err
        assert "What to do:" in refused.err
        error = json.loads(run(*args, "--json").err.splitlines()[-1])["error"]
        assert (error["code"], f"**`{error['kind']}`**" in kinds) == (code, True)
