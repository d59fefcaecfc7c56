"""What commands print: whole at any width, and nothing that others wrote acts on a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.cli import console as consoles
from platform_assets.cli.commands.read import _guarded_text
from platform_assets.cli.console import Grid, console
from platform_assets.cli.progress import Narration
from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot, OpenStage
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.operations.opening import open_platform
from platform_assets.operations.pins import pin
from platform_assets.operations.stages.store import write_stage
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.progress import Progress
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold, StagedDays
from platform_assets.records.manifest import Arrival, new_publication
from platform_assets.report import Table
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import FIRST, TABLE, Said
from platform_assets_tests.support.cli.products import (
    DAY,
    DAYS,
    RAW,
    SILVER,
    arrive,
    computed,
    deliver,
    publish_on_paper,
)
from platform_assets_tests.support.cli.tree import ALL, EXAMPLES, options
from platform_assets_tests.support.hostile import HOSTILE, SHOWN, faults
from platform_assets_tests.support.shelf import day, staged_manifest

SOMEBODY = Author(run="r", why=HOSTILE, who=HOSTILE)
PATH = f"products/{FIRST}/{HOSTILE}.csv"
WHO = ("--reason", HOSTILE, "--by", HOSTILE)


@pytest.fixture
def hostile(state: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Hostile values, names of files, reasons, people and holds, in everything that commands show."""
    settings = load_settings()
    lake = Lake.at(settings.lake)
    publish(lake, staged_manifest(lake, {TABLE: {day(0): [(HOSTILE, 150), ("=1+1", 1), ("-1", 2)]}}))
    with open_platform(settings) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        arrivals = (_arrival(PATH, None), _arrival(f"products/{FIRST}/refused-{HOSTILE}.csv", HOSTILE))
        publish_changes(platform, new_publication(), "ingest", [], SOMEBODY, arrivals=arrivals)
        version, parts = platform.version(SILVER), platform.configurations[SILVER].parts
        made = computed(platform, SILVER)
        publish_on_paper(platform, SILVER, made, author=SOMEBODY, code_version=version.code, configuration=parts)
        deliver(settings, DAY, 5, PATH)
        platform.sync()
        digests = {RAW: LakeSnapshot.now(platform).digests(RAW)}
        mark = fingerprints(platform.catalogue[SILVER], [DAY], digests, platform.calendar, {})[DAY]
        platform.ledger.hold([Hold(SILVER, DAY, Attempt(mark), "volume", HOSTILE, "r", datetime.now(UTC))])
        pin(platform, current_release(platform.lake).number, SOMEBODY)
        _open_stage(platform)
    folder = settings.landing_folder / "products" / f"{FIRST}"
    folder.mkdir(parents=True)
    for name in (f"{HOSTILE}.csv", f"refused-{HOSTILE}.csv", f"{HOSTILE}.xls"):
        (folder / name).write_text("a;b\n1;2\n")
    (settings.landing_folder / HOSTILE / f"{FIRST}").mkdir(parents=True)
    (settings.landing_folder / HOSTILE / f"{FIRST}" / "a.csv").write_text("a\n1\n")
    return settings


def _arrival(path: str, reason: str | None) -> Arrival:
    taken = 0 if reason else 10
    return Arrival(
        table=RAW, path=path, arrival_date=FIRST, size=1, sha256="0" * 64, modified_ns=1, reason=reason,
        landed=taken, taken=taken and 5, refused=taken and 5, notes=(HOSTILE,),
    )  # fmt: skip


def _open_stage(platform: Platform) -> None:
    [(_, publication)] = published(platform.lake, after=current_release(platform.lake).number - 1)
    now = datetime.now(UTC)
    held = Hold(SILVER, DAY, Attempt("f"), "contract", HOSTILE, "r", now)
    stage = OpenStage(
        name="trial", release=current_release(platform.lake).number, publication=publication, opened_at=now,
        changed_at=now, who=HOSTILE, why=HOSTILE, staged=StagedDays().with_days([], [held]), reasons={},
    )  # fmt: skip
    write_stage(platform.lake, stage)


def walked(name: str) -> Iterator[tuple[str, ...]]:
    """A command as it is and with hostile arguments, where it takes any."""
    asked = options(name)
    arguments = tuple(argument for argument in EXAMPLES[name] if argument != "a test")
    arguments = tuple(argument for argument in arguments if argument != "--reason")
    yield (*name.split(), *arguments, *(WHO if "--reason" in asked else ()))
    if arguments == (TABLE, f"{FIRST}"):
        yield from ((*name.split(), table, f"{DAY}") for table in (RAW, SILVER))
    if any(parameter.param_type_name == "argument" for parameter in ALL[name].params):
        yield (*name.split(), HOSTILE, *(WHO if "--reason" in asked else ()))


STARTS_SPARK = {"check", "demo", "test", "up", "admin verify", "late approve", "publish", "backfill apply"}
SECTIONS = {
    name: ("status", *name.split())
    for name in (
        "stale", "warnings", "files", "late", "quarantine", "quarantine raw.transactions --rows", "circuits", "stages",
        "stages trial", "backfills", "recomputed", "releases", "releases 0", "decisions", "messages", "sources",
        "engines",
    )
}  # fmt: skip
MORE: dict[str, tuple[str, ...]] = SECTIONS | {
    "read --stage": ("read", TABLE, "--stage", "trial"),
    "diff stage": ("diff", "stage:trial"),
    "undo stage": ("undo", "stage:trial", "--dry-run"),
}
SHOW_IT = {
    "read", "diff", "status", "why", "decisions", "releases", "stages", "stages trial", "stale",
    "why --history", "read --stage",
}  # fmt: skip


def test_no_command_lets_hostile_text_act(run, hostile, monkeypatch, tmp_path):
    """Every command but those that start Spark, each on a copy of one installation."""
    monkeypatch.setenv("COLUMNS", "4000")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(hostile.state, tmp_path / "kept")
    commands = {name: [*walked(name)] for name in sorted({*EXAMPLES} - STARTS_SPARK)}
    commands |= {name: [each, *([(*each, HOSTILE)] if name in SECTIONS else [])] for name, each in MORE.items()}
    tables = ((RAW, DAY), (SILVER, DAY), (TABLE, FIRST))
    commands["why --history"] = [("why", table, f"{day}", "--history") for table, day in tables]
    for name, each in commands.items():
        shutil.rmtree(hostile.state)
        shutil.copytree(tmp_path / "kept", hostile.state)
        shown = False
        for command in each:
            said = run(*command)
            assert list(faults(said.out)) == list(faults(said.err)) == [], command
            shown |= SHOWN in said.out + said.err
        assert shown or name not in SHOW_IT, name


@pytest.mark.parametrize(
    "command",
    [
        ("read", TABLE, "--days"),
        ("late", "refuse", "--reason", "r", RAW, "--days"),
        ("why", TABLE),
        ("status", "releases"),
    ],
)
def test_what_is_mistyped_does_not_act_either(run, hostile, command):
    said = run(*command, HOSTILE)
    assert said.code in (2, 3)
    assert list(faults(said.out + said.err)) == []
    said = run(*command, HOSTILE, "--json")
    assert "[red]y![p](http:e)" in json.loads(said.err)["error"]["what"]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_terminal_gets_no_commands_but_our_colours(hostile, monkeypatch, terminal):
    out = io.StringIO()
    console = consoles._Console(
        file=out, force_terminal=terminal, color_system="standard" if terminal else None, width=4000
    )
    consoles.say("[bold red]Error:[/]", HOSTILE, HOSTILE, to=console)
    console.print(HOSTILE, markup=False)
    console.print(f"[green]{consoles.escape(HOSTILE)}[/]\n{consoles.escape(chr(92))}[bold]b[/]")
    console.print(Grid(Table(HOSTILE, ["a"], [[HOSTILE]])))
    own = re.compile("\x1b\\[[0-9;]*m")
    assert bool(own.search(out.getvalue())) == terminal
    plain = own.sub("", out.getvalue())
    assert list(faults(plain)) == []
    assert plain.count(SHOWN) == 6


def test_progress_is_told_in_lines_of_its_own():
    clock = iter(range(100))
    narration = Narration("refresh", lambda: float(next(clock)))
    narration.tell(Progress(HOSTILE, HOSTILE, 1, 2))
    assert f"{SHOWN} {SHOWN}" in str(narration.now())
    narration.tell(Progress(HOSTILE, HOSTILE, 2, 2, finished=True))
    [line] = narration.lines()
    assert list(faults(line)) == []


def test_programs_get_the_very_text(run, hostile):
    assert HOSTILE in {release["why"] for release in run("status", "releases", "--json").json}
    assert [row["key"] for row in run("read", TABLE, "--json").json["rows"]] == [HOSTILE, "=1+1", "-1"]
    lines = run("read", TABLE, "--format", "json").out.split("\n")[:-1]
    assert [json.loads(line)["key"] for line in lines] == [HOSTILE, "=1+1", "-1"]
    assert keys(run("read", TABLE, "--format", "csv").out) == [HOSTILE, "=1+1", "-1"]


def keys(text: str) -> list[str]:
    return [row["key"] for row in csv.DictReader(io.StringIO(text, newline=""))]


@pytest.mark.parametrize("stage", [(), ("--stage", "trial")])
def test_a_spreadsheet_is_given_no_formulas_where_that_is_asked_for(run, hostile, stage):
    read = ("read", *stage, TABLE)
    guarded = run(*read, "--format", "csv", "--guard-formulas")
    assert keys(guarded.out) == [HOSTILE, "'=1+1", "'-1"]
    for other in ((), ("--json",), ("--format", "json")):
        refused = run(*read, *other, "--guard-formulas")
        assert refused.code == 2
        assert "--format csv" in refused.err


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_text_is_guarded_and_numbers_are_not(begins):
    assert _guarded_text(f"{begins}1") == f"'{begins}1"
    assert [_guarded_text(value) for value in (-1, Decimal("-1.50"), None, "a=b")] == ["-1", "-1.50", "", "a=b"]


def test_a_file_whose_name_is_no_text_is_named(run, products):
    folder = products.landing_folder / "products" / f"{FIRST}"
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"\xff\x1b.xls")).write_text("a")
    assert r"\udcff\x1b.xls" in run("status").out
    assert run("status", "--json").json


WHOLE = 24
"""Characters that fit into the narrowest terminal beside a heading, or deep in a tree."""
READING = [
    ["status"],
    ["status", "stale"],
    ["why", SILVER, str(DAY)],
    ["why", SILVER, str(DAY), "--diff"],
    ["refresh", "--explain"],
    ["status", "releases"],
    ["status", "releases", "current"],
    ["diff", "0"],
    ["status", "late"],
    ["status", "stages"],
    ["why", "--history", SILVER, str(DAY)],
    ["admin", "audit"],
    ["admin", "doctor"],
    ["read", SILVER],
    ["admin", "maintenance", "--dry-run"],
    ["undo", "since:0", "--dry-run"],
    ["admin", "recover"],
]
ANOTHER_EACH_TIME = re.compile(r"[\d,.]+ (s|GB)\b")
OVER_NOTHING = {"aside", "figures"}
"""Headings of columns that may be empty, which rows that stand upright leave out."""


def words(said: Said) -> set[str]:
    """Names, numbers and days, without what stands around them."""
    text = ANOTHER_EACH_TIME.sub("", said.out)
    stripped = (word.strip("():;,.│├└─") for word in text.split())
    return {word for word in stripped if 0 < len(word) <= WHOLE}


def test_nothing_is_cut_at_any_width(run, corrected, monkeypatch):
    """Every command that looks, twice, on one installation."""
    wide = {" ".join(command): run(*command) for command in READING}
    for columns in (40,):
        monkeypatch.setenv("COLUMNS", str(columns))
        for command in READING:
            whole, narrow = wide[" ".join(command)], run(*command)
            assert console.width == columns
            assert narrow.code == whole.code
            for said in (whole, narrow):
                assert said.out, command
                assert "\N{HORIZONTAL ELLIPSIS}" not in said.out, command
            assert words(whole) - words(narrow) <= OVER_NOTHING, (command, columns)


def tell_of_a_day_that_is_held(settings):
    """A gate refused a day of silver, a file waits, and a plan would compute the day."""
    waits = settings.landing_folder / "products" / str(DAY) / "waits.csv"
    waits.parent.mkdir(parents=True)
    waits.write_text("product_id\n1\n")
    os.utime(waits, (1, 1))
    arrive(settings, "new.csv", 5)
    with open_platform(settings) as platform:
        refused = Attempt(computed(platform, SILVER)[DAY].fingerprint, platform.version(SILVER))
        platform.ledger.hold([Hold(SILVER, DAY, refused, "volume", "too few rows", "r", datetime.now(UTC))])


def test_no_command_is_broken_into_two_lines(run, products, tmp_path, monkeypatch):
    tell_of_a_day_that_is_held(products)
    plan = str(tmp_path / "plan.yaml")
    said = (SILVER, "--days", str(DAY), "--reason", "a wrong rule", "--by", "ada", "--out", plan)
    assert run("backfill", "new", "mend", *said).code == 0
    monkeypatch.setenv("COLUMNS", "40")
    telling = (
        ["status"],
        ["status", "stale"],
        ["why", SILVER, str(DAY)],
        ["refresh", "--explain"],
        ["status", "stages"],
    )
    for command in (*telling, ["backfill", "explain", plan], ["status", "backfills"]):
        for line in run(*command).out.splitlines():
            assert line.count("`") % 2 == 0, (command, line)
    assert "taken out with (a command may name several)\n" in run("status").out, (
        "it stands before the commands, indented"
    )


def test_rows_are_one_below_another_where_they_do_not_fit(run, published, monkeypatch):
    monkeypatch.setenv("COLUMNS", "22")
    assert "price       1.50" in run("read", TABLE).out


def test_what_goes_into_a_pipe_is_not_broken_into_lines(run, corrected, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = run("why", SILVER, str(DAY)).out.splitlines()
    assert any(re.search(r"recompute \S+ .* by \S+, run \S+: ", line) for line in lines)
    assert any(re.search(r"^ ?silver\.products .*\d$", line.rstrip()) for line in run("status").out.splitlines())
