"""What commands print at any width: names and numbers are whole, in a terminal and where a program reads on."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

from platform_assets.cli.console import console
from platform_assets.operations.opening import open_platform
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets_tests.support.cli.commands import TABLE, Said
from platform_assets_tests.support.cli.products import DAY, SILVER, arrive, computed

WHOLE = 24
"""Characters that fit into the narrowest terminal beside a heading, or deep in a tree."""
READING = [
    ["status"],
    ["stale"],
    ["why", SILVER, str(DAY)],
    ["why", SILVER, str(DAY), "--diff"],
    ["refresh", "--explain"],
    ["releases"],
    ["release", "show"],
    ["release", "diff", "0"],
    ["late", "list"],
    ["stage", "list"],
    ["audit", "show", SILVER, str(DAY)],
    ["audit", "verify"],
    ["doctor"],
    ["read", SILVER],
    ["maintenance", "run", "--dry-run"],
    ["rollback", "--to", "0", "--dry-run"],
    ["recover"],
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
    """Every command that looks, four times, on one installation."""
    wide = {" ".join(command): run(*command) for command in READING}
    for columns in (40, 60, 100):
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
    said = ("--table", SILVER, "--days", str(DAY), "--reason", "a wrong rule", "--by", "ada", "--out", plan)
    assert run("plan", "new", "mend", *said).code == 0
    monkeypatch.setenv("COLUMNS", "40")
    telling = (["status"], ["stale"], ["why", SILVER, str(DAY)], ["refresh", "--explain"], ["stage", "list"])
    for command in (*telling, ["plan", "explain", plan], ["plan", "status"]):
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
