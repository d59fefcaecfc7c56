"""What people and programs are told of a refresh."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.cli.console import print_parts
from platform_assets.engine.refresh import RefreshResult
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.records.manifest import Arrival, DayContent
from platform_assets.sources.landing import Problem

RAW, SILVER = "raw.sales", "silver.sales"


def arrival(name: str, refused: int = 0, reason: str | None = None) -> Arrival:
    return Arrival(
        table=RAW,
        path=f"sales/2017-01-01/{name}",
        arrival_date=date(2017, 1, 1),
        size=10,
        sha256="0" * 64,
        modified_ns=1,
        landed=5,
        taken=0 if reason else 5 - refused,
        refused=refused,
        late=0,
        reason=reason,
    )


def day(rows: int, quarantined: int) -> DayContent:
    return DayContent(files=(), base=(), digest="d", rows=rows, bytes=1, figures={"quarantined": quarantined})


def refreshed(*arrivals: Arrival, growing: int = 0, left: dict[date, str] | None = None) -> RefreshResult:
    waits = tuple(Problem(f"sales/{n}", "is still growing", is_growing=True) for n in range(growing))
    step = StepResult(SILVER, blocked=left or {})
    return RefreshResult((IngestResult(RAW, arrivals, growing=waits),), (step,))


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
    assert outcome.data["late_rows"] == {RAW: 3}
    assert not outcome.needs_a_look


def test_rows_that_broke_a_rule_are_counted_however_few_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    days = {date(2017, 1, n): day(rows=90, quarantined=n - 1) for n in (1, 2, 3)}
    result = RefreshResult((), (StepResult(SILVER, published=days), StepResult("gold.sales", published={})))
    outcome = refresh_report(result, 1.0, None)
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    assert f"quarantined {SILVER}: 3 rows of 2 days broke a rule: `platform-assets read quarantine.sales` shows" in said
    assert outcome.data["quarantined"] == {SILVER: {"rows": 3, "days": 2}}
    assert not outcome.needs_a_look
    print_parts(refresh_report(result, 1.0, "s1").parts)
    assert f"quarantined {SILVER}: 3 rows of 2 days broke a rule\n" in capsys.readouterr().out


def test_days_whose_input_is_held_are_not_said_to_have_inputs_that_came_out_as_they_were(
    capsys: pytest.CaptureFixture[str],
) -> None:
    struck = {"gold.sales": (date(2017, 1, 1),)}
    print_parts(refresh_report(replace(refreshed(), struck=struck), 1.0, None).parts)
    assert "gold.sales: 1 day struck: their inputs came out as they were\n" in capsys.readouterr().out
    held = refreshed(left={date(2017, 1, 1): "held: too few rows"})
    print_parts(refresh_report(replace(held, struck=struck), 1.0, None).parts)
    assert "1 day struck: their inputs came out as they were or were not published" in capsys.readouterr().out


def test_what_grows_is_left_for_later_and_wants_no_look(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = refresh_report(refreshed(arrival("a.csv"), growing=1), 1.0, None)
    assert not outcome.needs_a_look
    print_parts(outcome.parts)
    assert "1 file taken, 1 file may still grow and is left for the next refresh." in capsys.readouterr().out


def test_a_day_that_is_told_among_the_held_ones_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    days = {date(2017, 1, 1): "held: too few rows", date(2017, 1, 2): "an input is held"}
    outcome = refresh_report(refreshed(left=days), 1.0, None, told={(SILVER, "2017-01-01")})
    print_parts(outcome.parts)
    said = capsys.readouterr().out
    assert "too few rows" not in said
    assert f"not published {SILVER} 2017-01-02: an input is held" in said
    assert outcome.needs_a_look


def test_a_day_that_was_not_published_wants_a_look() -> None:
    assert refresh_report(refreshed(left={date(2017, 1, 1): "an input is held"}), 1.0, "trial").needs_a_look
