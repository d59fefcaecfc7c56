"""What commands print at any width: names and numbers are whole, in a terminal and where a program reads on."""

from __future__ import annotations

import re

import pytest

from platform_assets.cli.console import console
from platform_assets_tests.support.cli.commands import TABLE, Said
from platform_assets_tests.support.cli.products import DAY, SILVER

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


@pytest.mark.parametrize("columns", [40, 60, 100])
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_nothing_is_cut_at_any_width(run, corrected, monkeypatch, command, columns):
    wide = run(*command)
    assert wide.out
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = run(*command)
    assert console.width == columns
    assert narrow.code == wide.code
    for said in (wide, narrow):
        assert "\N{HORIZONTAL ELLIPSIS}" not in said.out
    assert words(wide) - words(narrow) <= OVER_NOTHING


def test_rows_are_one_below_another_where_they_do_not_fit(run, published, monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    assert "price       1.50" in run("read", TABLE).out


def test_what_goes_into_a_pipe_is_not_broken_into_lines(run, corrected, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = run("why", SILVER, str(DAY)).out.splitlines()
    assert any(re.search(r"recompute \S+ .* by \S+, run \S+: ", line) for line in lines)
    assert any(re.search(r"^ ?silver\.products .*\d$", line.rstrip()) for line in run("status").out.splitlines())
