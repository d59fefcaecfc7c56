"""What is shown of a plan: its pages hold all they need and nothing that acts, its status says what it waits for."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from threading import Event, Thread

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.files import written
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, pause, read_record, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAY, DAYS, SILVER

HOSTILE = "<script>alert('x')</script> <img src=http://example.com/x> & \"more\""
NAME = "mend"


def plan(**fields: object) -> PlanFile:
    said = {
        "name": NAME,
        "reason": HOSTILE,
        "owner": "ada <ada@example.com>",
        "tables": [SILVER],
        "days": {"list": [str(DAYS[0]), str(DAY)]},
        "gates": [{"table": SILVER, "metric": "sum", "column": "product_id", "tolerance_percent": 10}],
        "budget": {"minutes": 10, "price_per_core_hour": "0.5"},
        "approvals": {"above_days": 1},
    }
    return PlanFile.model_validate(said | fields)


def begun(settings: Settings, file: PlanFile, **changes: object) -> BackfillRecord:
    """The record of a plan that was applied on paper."""
    with open_platform(settings) as platform:
        record = BackfillRecord.new(explain(platform, file)).with_event("begun", HOSTILE)
        record = record.model_copy(update=changes)
        write_record(platform.lake, record)
        return record


class Page(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.references += [value or "" for name, value in attrs if name in {"src", "href", "action", "data"}]
        self.references += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(file: Path) -> Page:
    text = file.read_text(encoding="utf-8")
    found = Page(text)
    assert not found.tags & {"script", "img", "link", "iframe", "object", "form"}
    assert [reference for reference in found.references if not reference.startswith("#")] == []
    assert not re.search(r"url\((?!#)", text)
    assert HOSTILE in found.text, "it is read as it was written"
    return found


def test_the_record_is_one_page_that_acts_on_nothing(
    products: Settings, corrected: str, run: Run, tmp_path: Path
) -> None:
    record = begun(products, plan(), publication=corrected, state="published", release=2, done=1, seconds=12.0, bytes=9)
    before, after = 100, 140
    same = {"files": [], "base": [], "rows": [3, 3], "keys": [3, 3], "changed": 1, "nulls": {}, "shifts": {}}
    kept = [
        {"table": SILVER, "day": str(day), "sums": {"product_id": sums}, **same}
        for day, sums in ((DAYS[0], ["5", "5"]), (DAY, [str(before), str(after)]))
    ]
    (Path(str(products.lake)) / "_plans" / f"{NAME}.figures").write_text(json.dumps({"days": kept}))
    explained = tmp_path / "plan.yaml"
    explained.write_text(written(plan()), encoding="utf-8")
    approved = ("backfill", "approve", str(explained), "--hash", record.hash, "--reason", HOSTILE, "--by", "bob")
    assert run(*approved).code == 0
    html, markdown = tmp_path / "record.html", tmp_path / "record.md"
    done = run("backfill", "report", NAME, "--html", str(html), "--out", str(markdown))
    assert (done.code, str(html) in done.out) == (0, True), done.err
    found = page(html)
    assert markdown.read_text(encoding="utf-8").startswith(f"# Plan {NAME}: published")
    for said in (
        record.hash,
        "this one",
        "bob",
        "0-1-1-1-1",
        corrected,
        "12.0 s",
        "40",
        "verify backfill:mend",
        "failed",
    ):
        assert said in found.text, said
    assert "sum of product_id of 1 staged day 5 before and 5 after" in found.text
    assert f"sum of product_id of 2 staged days {before + 5} before and {after + 5} after" in found.text
    assert "<td>40</td>" in re.sub(r' (class|title)="[^"]*"', "", html.read_text(encoding="utf-8")), "the calendar"
    nowhere = run("backfill", "report", NAME, "--html", str(tmp_path / "no" / "x.html"))
    assert (nowhere.code, "Name a file in a folder that is there" in nowhere.err) == (2, True)


def test_a_plan_is_explained_on_a_page(products: Settings, run: Run, tmp_path: Path) -> None:
    file, html = tmp_path / "plan.yaml", tmp_path / "plan.html"
    file.write_text(written(plan()), encoding="utf-8")
    done = run("backfill", "explain", str(file), "--html", str(html), "--json")
    assert done.code == 0, done.err
    price = done.json["price"]
    assert (price["start_s"], price["step_s"], price["backfills"], price["between"]) == (8.0, 0.5, 0, None)
    [step] = done.json["plan"]["steps"]
    of_days = step["estimate"]["seconds"]
    assert price["seconds"] == pytest.approx(8.0 + 2 * 0.5 + of_days, abs=0.1), "a start, two steps, and days in jobs"
    assert 2 * 1.0 < of_days < 2 * 2.0, "once were three days computed, by a job of 1.5 s"
    found = page(html)
    for said in (done.json["hash"], "2017-01", "backfill approve FILE --hash", "to start"):
        assert said in found.text, said


def test_explain_ends_with_the_command_that_comes_next(products: Settings, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a plan.yaml"
    file.write_text(written(plan()), encoding="utf-8")
    said, of = (
        run("backfill", "explain", str(file)).out.strip(),
        run("backfill", "explain", str(file), "--json").json["hash"],
    )
    assert said.endswith(f"next `platform-assets backfill approve '{file}' --hash {of} --reason … --by …`")
    assert run("backfill", "approve", str(file), "--hash", of, "--reason", "looked at", "--by", "bob").code == 0
    assert (
        run("backfill", "explain", str(file))
        .out.strip()
        .endswith(f"approved: `platform-assets backfill apply '{file}'`")
    )
    file.write_text(written(plan(approvals={})), encoding="utf-8")
    assert "next it needs no approval: `platform-assets backfill apply" in run("backfill", "explain", str(file)).out


def test_who_approves_twice_is_told_that_another_has_to(products: Settings, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(written(plan(approvals={"above_days": 0, "people": 2})), encoding="utf-8")
    of = run("backfill", "explain", str(file), "--json").json["hash"]
    approve = ("backfill", "approve", str(file), "--hash", of, "--reason", "looked at", "--by")
    for _ in range(2):
        assert run(*approve, "bob").out.split() == f"Approved {of} by bob; 2 needed, so 1 more by other people.".split()
    assert run(*approve, "ann").out.split() == f"Approved {of} by ann, bob; 2 needed.".split()


def test_status_says_what_a_plan_waits_for(products: Settings, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(written(plan()), encoding="utf-8")
    unbegun = run("status", "backfills", str(file))
    assert "not begun: 2 days of tables" in unbegun.out
    assert "It waits for 1 approval of" in unbegun.out
    [told] = run("status", "backfills", str(file), "--json").json
    assert (told["state"], len(told["waits"])) == ("not begun", 1)
    now = datetime.now(UTC)
    elsewhen = f"{now + timedelta(hours=2):%H:%M}-{now + timedelta(hours=3):%H:%M}"
    begun(products, plan(service={"hours": elsewhen}), seconds=601.0, state="paused")
    lake = Lake.at(products.lake)
    pause(lake, NAME, "lunch")
    told = run("status", "backfills", str(file)).out
    for said in (
        f"backfill resume {NAME}",
        f"It waits for its hours, {elsewhen} UTC",
        "It waits for more of a budget: the budget of 10 minutes is used up",
        "No process applies it now",
    ):
        assert said in told, said
    assert f"backfill resume {NAME}" in run("status", "backfills").out, "of all plans, too"
    write_record(lake, read_record(lake, NAME).model_copy(update={"versions": {SILVER: ("other", "code")}}))
    [anew] = run("status", "backfills", NAME, "--json").json
    assert any("is explained again" in sentence for sentence in anew["waits"])
    assert any("It waits for 1 approval of" in sentence for sentence in anew["waits"])


@pytest.mark.parametrize(
    ("ended", "todo"),
    [
        ("cancelled", "backfill apply FILE"),
        ("published", f"status backfills {NAME}"),
        ("rolled back", f"status backfills {NAME}"),
    ],
)
def test_a_plan_that_is_over_is_neither_paused_nor_resumed(products: Settings, run: Run, ended: str, todo: str) -> None:
    begun(products, plan(), state=ended)
    for said in (run("backfill", "pause", NAME, "--reason", "lunch", "--by", "ada"), run("backfill", "resume", NAME)):
        assert said.code == 3, said
        assert f"The plan {NAME} is {ended}" in said.err
        assert todo in said.err


def test_whoever_watches_is_told_until_nobody_applies_it_any_more(products: Settings, run: Run) -> None:
    record = begun(products, plan(), explained_seconds=60.0)
    lake = Lake.at(products.lake)
    half_way = record.model_copy(update={"done": 1, "seconds": 50.0})
    write_record(lake, half_way)
    assert "about 30 s left" in run("status", "backfills", NAME).out, (
        "by how fast it went, too, and not 10 s as explained"
    )
    write_record(lake, record)
    held, seen = Event(), Event()

    def work() -> None:
        with plan_lock(lake, NAME):
            held.set()
            seen.wait(2.5)
            write_record(lake, record.with_event("published", state="published", release=9, done=2, seconds=30.0))

    worker = Thread(target=work)
    worker.start()
    assert held.wait(5)
    told = run("status", "backfills", NAME, "--watch")
    worker.join()
    lines = [line for line in told.out.splitlines() if line.startswith(NAME)]
    assert "staged 0 of 2 days" in lines[0]
    assert "left about" in lines[0]
    assert "mend published: staged 2 of 2 days, rate 4.0 days a minute" in lines[1]
    assert "cost 0." in lines[1]
    for wrong in (("status", "backfills", "--watch"), ("status", "backfills", NAME, "--watch", "--json")):
        assert run(*wrong).code == 2


def test_history_says_of_a_plan_that_it_was_rolled_back(products: Settings, corrected: str, run: Run) -> None:
    begun(products, plan(), publication=corrected, state="published", release=2)
    assert "rolled back" not in run("status", "recomputed").out
    begun(products, plan(), publication=corrected, state="rolled back", release=2)
    assert [row["rolled_back"] for row in run("status", "recomputed", "--json").json].count(True) == 1
    assert run("status", "recomputed").out.count(", rolled back since, by ") == 1


@pytest.mark.parametrize("name", ["nothing", "nothing.yaml"])
def test_a_plan_that_nobody_knows_is_named(products: Settings, run: Run, name: str) -> None:
    told = run("status", "backfills", name)
    assert told.code == 3
    assert f"No plan '{name}' was ever applied" in told.err
