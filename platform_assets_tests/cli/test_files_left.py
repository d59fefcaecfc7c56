"""What a refresh, status and why tell of files that were not taken, and of days published with warnings."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.cli.commands.up import tell_what_is_left
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
from platform_assets_tests.support.cli.products import DAY, DAYS, RAW, SILVER, arrive, compute, publish_arrivals

FOLDER = f"products/{DAY}"


def lies_there(settings: Settings, name: str, content: str = "not what was taken") -> Path:
    file = settings.landing_folder / FOLDER / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    os.utime(file, (time.time() - 60,) * 2)
    return file


def delivered(name: str, landed: int = 10, refused: int = 0, reason: str | None = None, day: str = FOLDER) -> Arrival:
    """A file as it lies there after `lies_there`, so that nobody tries to take it again."""
    return Arrival(
        table=RAW, path=f"{day}/{name}", arrival_date=DAY, size=1, sha256=name, modified_ns=1, reason=reason,
        landed=landed, taken=0 if reason else landed - refused, refused=refused,
    )  # fmt: skip


def take(settings: Settings, *arrivals: Arrival) -> None:
    with open_platform(settings) as platform:
        publish_arrivals(platform, RAW, *arrivals)


def stay(settings: Settings, *arrivals: Arrival) -> None:
    """Refused files that still lie in the landing area as they were when they were looked at."""
    take(settings, *arrivals)
    for arrival in arrivals:
        file = lies_there(settings, Path(arrival.path).name, "x")
        os.utime(file, ns=(1, 1))


def test_files_that_were_replaced_are_told_once_by_refresh_and_one_by_one_on_demand(
    run: Run, products: Settings
) -> None:
    names = [f"a{n}.csv" for n in range(40)]
    take(products, *map(delivered, names))
    files = [lies_there(products, name) for name in names]
    for command in (["refresh", SILVER], ["status"]):
        said = run(*command)
        assert said.code == 1, command
        [line] = [line for line in said.out.splitlines() if line.startswith("not taken")]
        assert f"{FOLDER}/a0.csv (and 39 other files likewise) was replaced: 1 bytes with sha256" in line
        assert "deliver a correction under a new name" in line
        assert "of each key the row with the newest `updated_at` counts" in line
        assert "In all 40 files of the landing area in no table: `platform-assets status files`" in said.out
        assert "Nothing to do" not in said.out
    told = run("refresh", SILVER, "--json")
    assert (told.code, len(told.json["landing"])) == (1, 40)
    each = run("status", "files")
    assert (each.code, len(each.out.splitlines())) == (1, 40)
    for file in files:
        file.unlink()
    done = run("refresh", SILVER)
    assert (done.code, "Nothing to do" in done.out) == (0, True)


def test_what_one_refresh_told_the_next_ones_count_and_what_is_new_they_tell_in_full(
    run: Run, products: Settings
) -> None:
    def told() -> list[str]:
        said = run("refresh", SILVER)
        assert said.code == 1, "it waits for a person all the same"
        return [line for line in said.out.splitlines() if "status files" in line or FOLDER in line]

    stay(products, delivered("bad.csv", 0, reason="lacks the column 'id'"))
    replaced = lies_there(products, "a.csv")
    take(products, delivered("a.csv"))
    assert [FOLDER in line for line in told()] == [True, True, False], "refused, not taken, in all 2 files"
    as_before = "not taken 2 files reported by an earlier refresh: `platform-assets status files` lists each"
    [line] = told()
    assert line.startswith(as_before)
    assert len(run("refresh", SILVER, "--json").json["landing"]) == 1
    assert sum(FOLDER in line for line in run("status").out.splitlines()) == 2, "status tells all"
    lies_there(products, "notes.txt")
    new, line = told()
    assert f"{FOLDER}/notes.txt has the unknown ending" in new
    assert line.startswith(as_before)
    replaced.write_text("something else again")
    os.utime(replaced, (time.time() - 60,) * 2)
    (products.state / "told.json").write_text("{[")
    assert sum(FOLDER in line for line in told()) == 3, "what is remembered can be lost"
    [line] = told()
    assert line.startswith("not taken 3 files reported")


def test_a_replaced_file_of_a_day_is_told_by_why(run: Run, products: Settings) -> None:
    for name in ("good.csv", "other.csv"):
        arrive(products, name, 2)
    compute(products)
    lies_there(products, "another-day.csv")
    assert "not taken" not in run("why", SILVER, str(DAY)).out
    lies_there(products, "other.csv")
    for table in (SILVER, RAW):
        said = run("why", table, str(DAY))
        [line] = [line for line in said.out.splitlines() if line.startswith("not taken")]
        assert line.startswith(f"not taken {FOLDER}/other.csv was replaced: 1 bytes with sha256 other.csv were taken")
        assert "of each key the row with the newest `updated_at` counts" in line
    [told] = run("why", SILVER, str(DAY), "--json").json["replaced_files"]
    assert (told["path"], "was replaced" in told["reason"]) == (f"{FOLDER}/other.csv", True)
    assert "not taken" not in run("why", SILVER, str(DAYS[0])).out, "it has nothing of that day"


def test_a_refresh_of_some_tables_tells_of_files_for_these(run: Run, products: Settings) -> None:
    file = lies_there(products, "notes.txt")
    assert run("refresh", SILVER).code == 1
    other = products.landing_folder / "transactions" / str(DAY)
    other.mkdir(parents=True)
    file.rename(other / "notes.txt")
    assert run("refresh", SILVER).code == 0


def test_up_says_once_what_no_run_will_take(products: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.txt", "b.txt"):
        lies_there(products, name)
    tell_what_is_left(products)
    said = " ".join(capsys.readouterr().out.split())
    assert f"not taken {FOLDER}/a.txt (and 1 other file likewise) has the unknown ending" in said


def test_a_refused_file_is_told_by_every_refresh_until_it_is_repaired_or_taken_away(
    run: Run, products: Settings
) -> None:
    stay(products, delivered("a.csv", 0, reason="lacks the column 'id'"), delivered("b.csv", 0, reason="is empty"))
    said = run("refresh", SILVER)
    assert said.code == 1
    assert f"refused {FOLDER}/a.csv lacks the column 'id'" in said.out
    told = run("refresh", SILVER, "--json").json["refused_files"]
    assert [file["path"] for file in told] == [f"{FOLDER}/a.csv", f"{FOLDER}/b.csv"]
    take(products, delivered("a-again.csv"))
    assert f"{FOLDER}/a.csv" not in run("refresh", SILVER).out
    assert f"{FOLDER}/a.csv" not in run("status").out
    [repaired] = run("status", "--json").json["refused_files_repaired"]
    assert (repaired["path"], repaired["by"]) == (f"{FOLDER}/a.csv", f"{FOLDER}/a-again.csv")
    assert f"repaired {FOLDER}/a.csv lacks the column 'id'; {FOLDER}/a-again.csv was taken since" in run(
        "status", "files"
    ).out.replace("\n", " ")
    (products.landing_folder / FOLDER / "b.csv").unlink()
    assert run("refresh", SILVER).code == 0


def test_a_file_with_many_refused_rows_is_named_until_as_many_came_under_another_name_or_it_is_withdrawn(
    run: Run, products: Settings
) -> None:
    take(products, delivered("a.csv", 100, refused=40))

    def named() -> list[str]:
        return [file["path"] for file in run("status", "--json").json["files_with_many_refused"]]

    take(products, delivered("a-1.csv", 30))
    assert named() == [f"{FOLDER}/a.csv"]
    take(products, delivered("a-2.csv", 10))
    assert named() == []
    take(products, delivered("[many].csv", 100, refused=11), delivered("few.csv", 100, refused=10))
    many = f"{FOLDER}/[many].csv"
    assert named() == [many]
    assert f"refused {many}: 11 of its 100 rows were refused: `platform-assets read refused" in run("status").out
    assert f"take that file out with `platform-assets undo '{many}' --reason …`" in run("status").out
    back = delivered("w", 0).model_copy(update={"kind": "withdrawal", "origin": many})
    take(products, back)
    assert named() == []


@pytest.mark.parametrize("name", ["b.csv", "ab.csv", "a2.csv", "a.jsonl"])
def test_a_file_of_a_name_of_its_own_repairs_no_other(run: Run, products: Settings, name: str) -> None:
    stay(products, delivered("a.csv", 0, reason="is empty"))
    take(products, delivered(name), delivered("a.csv", day="products/2017-01-03"))
    assert run("refresh", SILVER).code == 1


def test_before_anything_was_loaded_status_says_that_and_what_to_do(run: Run, state: Path) -> None:
    said = run("status").out
    assert said.startswith("Nothing was loaded yet; no file waits")
    assert "blocked" not in said
    folder = state / "landing" / "products" / "2017-01-02"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("product_id\n")
    os.utime(folder / "a.csv", (time.time() - 60,) * 2)
    said = run("status").out
    assert said.startswith("Nothing was loaded yet; 1 file waits: run `platform-assets refresh`")
    assert said.count("1 file waits") == 1


HALF = Warned(gate="volume", found="416 rows", expected="780 to 840 rows are usual (median 812 of 21 days)")
SAID = f"{SILVER} {DAY} volume: 416 rows; expected: 780 to 840 rows are usual (median 812 of 21 days)"


def test_a_warning_is_told_with_its_figures_and_with_what_came_until_the_day_heals(
    run: Run, products: Settings
) -> None:
    good = arrive(products, "good.csv", 812)
    compute(products)
    none = run("status", "warnings").words
    assert none.startswith("No warnings: as far as gates could judge the days readers see")
    bad = arrive(products, "half.csv", 416)
    compute(products, HALF)

    status = run("status").words
    assert f"warned {SILVER}: 1 day with warnings (1 by volume); published last: {SAID.split(' ', 1)[1]}" in status
    assert run("status", "warnings").words == f"warned {SAID}"
    [named] = run("status", "--json").json["warnings"]
    assert run("status", "warnings", "--json").json == [named]
    assert {name: named[name] for name in ("table", "day", "gate")} == {
        "table": SILVER,
        "day": str(DAY),
        "gate": "volume",
    }

    why = run("why", SILVER, str(DAY))
    assert f"volume: {HALF.found}; expected: {HALF.expected}" in why.words
    command = f"platform-assets undo {bad} --reason 'volume warned of {SILVER} {DAY}'"
    assert command in why.out
    assert f"undo {good}" not in why.out, "what was there before it is not to blame"
    assert why.code == 0, "readers see the day, and nothing is left to do by itself"
    assert run("why", SILVER, str(DAY), "--json").json["warned"]["new_arrivals"] == [bad]
    assert (
        f"warning of volume: {HALF.found}; expected: {HALF.expected}" in run("why", "--history", SILVER, str(DAY)).out
    )

    compute(products)
    assert "warned" not in run("status").out
    assert "warned" not in run("why", SILVER, str(DAY)).out
    assert f"warning of volume: {HALF.found}" in run("why", "--history", SILVER, str(DAY)).out, "the record stays"


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
    assert run("status", "warnings", "--json").json == []
    with open_platform(products) as platform:
        healed = platform.ledger.current_days(SILVER)[DAY].publication
    run("undo", f"publication:{healed}", "--reason", "a test")
    assert [named["gate"] for named in run("status", "warnings", "--json").json] == ["volume"]


def test_the_end_of_a_refresh_names_the_first_warnings_and_the_command_for_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = DayContent(files=(), base=(), digest="0-0-0-0-0", rows=0, bytes=0, warnings=(HALF,))
    days = [date(2017, 1, number) for number in range(1, 8)]
    outcome = refresh_report(RefreshResult((), (StepResult(SILVER, dict.fromkeys(days, content)),)), 1.0, None)
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    assert "warned 7 days were published with warnings; `platform-assets status warnings` shows all:" in said
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
    assert "`platform-assets undo sales/2017-01-01/a.csv --reason …`" in said
    assert "2 files taken. Done in 1.0 s." in said
    assert len(outcome.data["refused_files"]) == 612


def test_rows_that_wait_for_a_decision_are_told_and_are_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    late = arrival("a.csv").model_copy(update={"taken": 2, "late": 3})
    outcome = refresh_report(refreshed(late, arrival("b.csv")), 1.0, None)
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "late 3 rows delivered for raw.sales came too late, or too far ahead, and wait: `platform-assets status late"
        in said
    )
    assert "A history that is loaded for the first time is taken by `late approve FILE --reason …`." in said
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
    days = {date(2017, 1, n): f"{stop}. `status circuits {SALES}` says what ends that" for n in range(1, 23)}
    left = refreshed(left=days | {date(2017, 2, 1): "an input is held"})
    other = StepResult("gold.tills", blocked={date(2017, 1, 5): f"{stop}. `status circuits gold.tills` says what"})
    print_parts(refresh_report(replace(left, steps=(*left.steps, other), stopped=(stop,)), 1.0, None).parts)
    said = " ".join(capsys.readouterr().out.split())
    assert f"not published {SALES} 2017-01-01..2017-01-22, 22 days; gold.tills 2017-01-05: {stop} not pub" in said
    assert f"not published {SALES} 2017-02-01: an input is held" in said


def test_a_day_that_is_told_among_the_held_ones_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    days = {date(2017, 1, 1): "held: too few rows", date(2017, 1, 2): "an input is held"}
    outcome = refresh_report(refreshed(left=days), 1.0, None, kept_elsewhere={(SALES, "2017-01-01")})
    print_parts(outcome.parts)
    said = capsys.readouterr().out
    assert "too few rows" not in said
    assert f"not published {SALES} 2017-01-02: an input is held" in said
    assert outcome.needs_a_look
