"""What gates found of a day that was published all the same: told wherever a person looks, until the day heals."""

from __future__ import annotations

from datetime import date

import pytest

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.cli.console import print_parts
from platform_assets.engine.refresh import RefreshResult
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import DayContent, Warned
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAY, SILVER, arrive, compute

HALF = Warned(gate="volume", found="416 rows", expected="780 to 840 rows are usual (median 812 of 21 days)")
SAID = f"{SILVER} {DAY} volume: 416 rows; expected: 780 to 840 rows are usual (median 812 of 21 days)"


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_warning_is_told_with_its_figures_and_with_what_came_until_the_day_heals(
    run: Run, products: Settings
) -> None:
    good = arrive(products, "good.csv", 812)
    compute(products)
    none = words(run("status", "--warnings").out)
    assert none.startswith("No warnings: as far as gates could judge the days readers see")
    bad = arrive(products, "half.csv", 416)
    compute(products, HALF)

    status = words(run("status").out)
    assert f"warned {SILVER}: 1 day with warnings (1 by volume); published last: {SAID.split(' ', 1)[1]}" in status
    assert words(run("status", "--warnings").out) == f"warned {SAID}"
    [named] = run("status", "--json").json["warnings"]
    assert run("status", "--warnings", "--json").json == [named]
    assert {name: named[name] for name in ("table", "day", "gate")} == {
        "table": SILVER,
        "day": str(DAY),
        "gate": "volume",
    }

    why = run("why", SILVER, str(DAY))
    assert f"volume: {HALF.found}; expected: {HALF.expected}" in words(why.out)
    command = f"platform-assets withdraw {bad} --reason 'volume warned of {SILVER} {DAY}'"
    assert command in why.out
    assert f"withdraw {good}" not in why.out, "what was there before it is not to blame"
    assert why.code == 0, "readers see the day, and nothing is left to do by itself"
    assert run("why", SILVER, str(DAY), "--json").json["warned"]["new_arrivals"] == [bad]
    assert f"warning of volume: {HALF.found}; expected: {HALF.expected}" in run("audit", "show", SILVER, str(DAY)).out

    compute(products)
    assert "warned" not in run("status").out
    assert "warned" not in run("why", SILVER, str(DAY)).out
    assert f"warning of volume: {HALF.found}" in run("audit", "show", SILVER, str(DAY)).out, "the record stays"


def test_a_day_computed_again_with_the_same_warning_is_warned_of_since_the_first_time(
    run: Run, products: Settings
) -> None:
    arrive(products, "good.csv", 812)
    compute(products)
    bad = arrive(products, "half.csv", 416)
    compute(products, HALF)
    first = run("why", SILVER, str(DAY), "--json").json["warned"]
    compute(products, HALF.model_copy(update={"found": "417 rows"}))
    again = run("why", SILVER, str(DAY), "--json").json["warned"]
    assert (again["since"], again["release"], again["new_arrivals"]) == (first["since"], first["release"], [bad])
    assert again["warnings"][0]["found"] == "417 rows"


def test_of_a_day_that_was_never_good_all_that_came_is_new(run: Run, products: Settings) -> None:
    only = arrive(products, "half.csv", 416)
    compute(products, HALF)
    with open_platform(products) as platform:
        history = platform.ledger.history(SILVER, DAY)
    assert len(history) == 2, "it was loaded empty before"
    assert run("why", SILVER, str(DAY), "--json").json["warned"]["new_arrivals"] == [only]


def test_warnings_belong_to_the_content_where_it_is_indexed_anew_or_put_back(run: Run, products: Settings) -> None:
    compute(products, HALF)
    with open_platform(products) as platform:
        [record] = platform.ledger.warned([SILVER], at=LakeSnapshot.now(platform).number)
        assert record.warnings == (HALF,)
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.current_days(SILVER)[DAY] == record
    compute(products)
    assert run("status", "--warnings", "--json").json == []
    with open_platform(products) as platform:
        healed = platform.ledger.current_days(SILVER)[DAY].publication
    run("rollback", healed, "--reason", "a test")
    assert [named["gate"] for named in run("status", "--warnings", "--json").json] == ["volume"]


def test_the_end_of_a_refresh_names_the_first_warnings_and_the_command_for_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = DayContent(files=(), base=(), digest="0-0-0-0-0", rows=0, bytes=0, warnings=(HALF,))
    days = [date(2017, 1, number) for number in range(1, 8)]
    outcome = refresh_report(RefreshResult((), (StepResult(SILVER, dict.fromkeys(days, content)),)), 1.0, None)
    print_parts(outcome.parts)
    said = words(capsys.readouterr().out)
    assert "warned 7 days were published with warnings; `platform-assets status --warnings` shows all:" in said
    assert f"{SILVER} 2017-01-07 volume: 416 rows; expected: 780 to 840 rows are usual" in said
    assert "and 2 more warnings" in said
    assert [warning["day"] for warning in outcome.data["warnings"]] == sorted(days, reverse=True)
    assert not outcome.needs_a_look
