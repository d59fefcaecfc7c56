"""What a refresh is told to have done, and what gates found of a day that was published all the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.cli.console import print_parts
from platform_assets.engine.refresh import RefreshResult
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import Arrival, DayContent, Warned
from platform_assets.settings import Settings
from platform_assets.sources.landing import Problem
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


RAW_SALES, SALES = "raw.sales", "silver.sales"


def arrival(name: str, refused: int = 0, reason: str | None = None) -> Arrival:
    return Arrival(
        table=RAW_SALES, path=f"sales/2017-01-01/{name}", arrival_date=date(2017, 1, 1), size=10, sha256="0" * 64,
        modified_ns=1, landed=5, taken=0 if reason else 5 - refused, refused=refused, reason=reason,
    )  # fmt: skip


def content(rows: int, quarantined: int) -> DayContent:
    return DayContent(files=(), base=(), digest="d", rows=rows, bytes=1, figures={"quarantined": quarantined})


def refreshed(*arrivals: Arrival, growing: int = 0, left: dict[date, str] | None = None) -> RefreshResult:
    waits = tuple(Problem(f"sales/{n}", "is still growing", is_growing=True) for n in range(growing))
    step = StepResult(SALES, blocked=left or {})
    return RefreshResult((IngestResult(RAW_SALES, arrivals, growing=waits),), (step,))


def test_what_was_refused_is_said_and_wants_a_look(capsys: pytest.CaptureFixture[str]) -> None:
    gzipped = [arrival(f"{n}.csv.gz", reason="has the unknown ending '.gz'") for n in range(612)]
    outcome = refresh_report(refreshed(arrival("a.csv", refused=2), arrival("b.csv"), *gzipped), 1.0, None)
    assert outcome.needs_a_look
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    assert "refused sales/2017-01-01/0.csv.gz (and 611 other files likewise) has the unknown ending '.gz'" in said
    assert (
        "refused 2 of 10 rows delivered for raw.sales: `platform-assets read refused.sales` shows them; deliver" in said
    )
    assert (
        "deliver them again in order, as a-again.csv beside sales/2017-01-01/a.csv, or take that file out with" in said
    )
    assert "`platform-assets withdraw sales/2017-01-01/a.csv`" in said
    assert "2 files taken. Done in 1.0 s." in said
    assert len(outcome.data["refused_files"]) == 612


def test_rows_that_wait_for_a_decision_are_told_and_are_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    late = arrival("a.csv").model_copy(update={"taken": 2, "late": 3})
    outcome = refresh_report(refreshed(late, arrival("b.csv")), 1.0, None)
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "late 3 rows delivered for raw.sales came too late, or too far ahead, and wait: `platform-assets late" in said
    )
    assert "A history that is loaded for the first time is taken by `late approve FILE`." in said
    assert outcome.data["late_rows"] == {RAW_SALES: 3}
    assert not outcome.needs_a_look


def test_rows_that_broke_a_rule_are_counted_however_few_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    days = {date(2017, 1, n): content(rows=90, quarantined=n - 1) for n in (1, 2, 3)}
    result = RefreshResult((), (StepResult(SALES, published=days), StepResult("gold.sales", published={})))
    outcome = refresh_report(result, 1.0, None)
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    assert f"quarantined {SALES}: 3 rows of 2 days broke a rule: `platform-assets read quarantine.sales` shows" in said
    assert outcome.data["quarantined"] == {SALES: {"rows": 3, "days": 2}}
    assert not outcome.needs_a_look
    print_parts(refresh_report(result, 1.0, "s1").parts)
    assert f"quarantined {SALES}: 3 rows of 2 days broke a rule\n" in capsys.readouterr().out


def test_days_that_one_circuit_keeps_are_one_line_with_their_count(capsys: pytest.CaptureFixture[str]) -> None:
    stop = "every circuit of domain:shop is frozen since noon: opened by zoe"
    days = {date(2017, 1, n): f"{stop}. `breaker show {SALES}` says what ends that" for n in range(1, 23)}
    left = refreshed(left=days | {date(2017, 2, 1): "an input is held"})
    other = StepResult("gold.tills", blocked={date(2017, 1, 5): f"{stop}. `breaker show gold.tills` says what"})
    print_parts(refresh_report(replace(left, steps=(*left.steps, other), stopped=(stop,)), 1.0, None).parts)
    said = " ".join(capsys.readouterr().out.split())
    assert f"not published {SALES} 2017-01-01..2017-01-22, 22 days; gold.tills 2017-01-05: {stop} not pub" in said
    assert f"not published {SALES} 2017-02-01: an input is held" in said


def test_a_day_that_is_told_among_the_held_ones_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    days = {date(2017, 1, 1): "held: too few rows", date(2017, 1, 2): "an input is held"}
    outcome = refresh_report(refreshed(left=days), 1.0, None, told={(SALES, "2017-01-01")})
    print_parts(outcome.parts)
    said = capsys.readouterr().out
    assert "too few rows" not in said
    assert f"not published {SALES} 2017-01-02: an input is held" in said
    assert outcome.needs_a_look
