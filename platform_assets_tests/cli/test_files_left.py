"""What lies in the landing area and is in no table is told by reason, until somebody has done something about it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from platform_assets.cli.commands.up import tell_what_is_left
from platform_assets.cli.console import print_parts
from platform_assets.cli.files_view import left_anew_parts
from platform_assets.engine.ingest.listing import list_arrivals
from platform_assets.operations.opening import open_platform
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival
from platform_assets.settings import Settings
from platform_assets.sources import landing
from platform_assets.sources.landing import Problem
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import (
    DAY,
    DAYS,
    RAW,
    SILVER,
    arrive,
    compute,
    deliver,
    publish_arrivals,
)

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
        table=RAW,
        path=f"{day}/{name}",
        arrival_date=DAY,
        size=1,
        sha256=name,
        modified_ns=1,
        landed=landed,
        taken=0 if reason else landed - refused,
        refused=refused,
        reason=reason,
    )


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
        assert "In all 40 files of the landing area in no table: `platform-assets status --files`" in said.out
        assert "Nothing to do" not in said.out
    told = run("refresh", SILVER, "--json")
    assert (told.code, len(told.json["landing"])) == (1, 40)
    each = run("status", "--files")
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
        return [line for line in said.out.splitlines() if "status --files" in line or FOLDER in line]

    stay(products, delivered("bad.csv", 0, reason="lacks the column 'id'"))
    replaced = lies_there(products, "a.csv")
    take(products, delivered("a.csv"))
    assert [FOLDER in line for line in told()] == [True, True, False], "refused, not taken, in all 2 files"
    as_before = "not taken 2 files as an earlier refresh told: `platform-assets status --files` lists each"
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
    assert line.startswith("not taken 3 files as")


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


def test_why_reads_no_files_of_another_day(run: Run, products: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    arrive(products, "good.csv", 2)
    compute(products)
    take(products, delivered("other.csv", day="products/2017-01-01"))
    replaced = lies_there(products, "good.csv")
    lies_there(products, "../2017-01-01/other.csv")
    read: list[Path] = []

    def hashed(file: Path, *_: object) -> str:
        read.append(file)
        return "another"

    monkeypatch.setattr(landing, "sha256_of", hashed)
    assert "good.csv was replaced" in run("why", SILVER, str(DAY)).out
    assert set(read) == {replaced}


def test_a_landing_root_that_is_a_link_to_itself_is_told(run: Run, products: Settings) -> None:
    arrive(products, "good.csv", 2)
    compute(products)
    products.landing_folder.symlink_to(products.landing_folder)
    for command in ("status", "refresh"):
        said = run(command)
        assert said.code in (1, 2, 3), command
        assert f"{products.landing_folder} is the landing root and no folder" in " ".join((said.out + said.err).split())
    assert run("why", SILVER, str(DAY)).err == ""


def test_where_no_column_orders_versions_a_correction_needs_a_later_arrival_date(products: Settings) -> None:
    take(products, delivered("a.csv"))
    lies_there(products, "a.csv")
    with open_platform(products) as platform:
        unordered = replace(platform.catalogue[RAW], updated_at=None)
        [problem] = list_arrivals(platform, unordered).problems
    assert problem.todo == "deliver a correction with a later arrival date, since of each key the newest arrival counts"


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
        "status", "--files"
    ).out.replace("\n", " ")
    (products.landing_folder / FOLDER / "b.csv").unlink()
    assert run("refresh", SILVER).code == 0


def test_a_file_with_many_refused_rows_is_named_until_as_many_came_under_another_name(
    run: Run, products: Settings
) -> None:
    take(products, delivered("a.csv", 100, refused=40))

    def named() -> list[str]:
        return [file["path"] for file in run("status", "--json").json["files_with_many_refused"]]

    take(products, delivered("a-1.csv", 30))
    assert named() == [f"{FOLDER}/a.csv"]
    take(products, delivered("a-2.csv", 10))
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


def test_days_outside_the_calendar_are_counted_and_not_each_time_that_their_rows_came(
    run: Run, products: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", "2017-01-02")
    outside = DAY.replace(day=3)
    deliver(products, outside, 5, "products/2017-01-02/a.csv")
    deliver(products, outside, 10, "products/2017-01-02/b.csv")
    [table] = [table for table in run("status", "--json").json["tables"] if table["table"] == RAW]
    assert table["outside"] == 1
    assert f"outside {RAW} has rows of 1 day that the calendar does not have, {outside}" in run("status").out


def test_what_a_refresh_told_further_up_is_counted_with_what_it_did_not_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`status --files` lists all of them."""
    arrivals = [delivered(f"r{number}.csv", reason="it is no CSV") for number in range(3)]
    refused = [ArrivalRecord(**arrival.model_dump(), publication="p") for arrival in arrivals]
    left = [Problem(f"{FOLDER}/a.txt", "it has the unknown ending '.txt'")]
    print_parts(left_anew_parts(tmp_path, left, (), refused))
    assert "In all 4 files of the landing area in no table" in capsys.readouterr().out
