"""Where the output has not every letter, as on machines with an old locale, people read on, and programs are told."""

from __future__ import annotations

import json

import pytest

from platform_assets_tests.support.cli.commands import run_apart


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_tables_and_messages_do_without_the_letters_that_the_output_lacks(state: object, encoding: str) -> None:
    said = run_apart("status", PYTHONIOENCODING=encoding)
    assert "gold.daily_sales" in said.out
    assert "---" in said.out
    said = run_apart("read", "gold.nosuch€", PYTHONIOENCODING=encoding)
    assert (said.code, "There is no table 'gold.nosuch?" in said.err) == (2, True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "iso8859-15"])
def test_a_letter_that_the_output_lacks_is_told_where_nothing_may_be_another(state: object, encoding: str) -> None:
    said = run_apart("--help", PYTHONIOENCODING=encoding)
    assert said.code == 3
    assert "The output is to be " in said.err
    assert "PYTHONIOENCODING=utf-8" in said.err
    assert json.loads(run_apart("status", "--json", PYTHONIOENCODING=encoding).out)
