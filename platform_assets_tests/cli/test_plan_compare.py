"""`plan compare` as a command: what cannot be compared is told."""

from __future__ import annotations

import pytest

from platform_assets_tests.support.cli.commands import Run


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("plans/none.yaml",), "plans/none.yaml cannot be read: No such file"),
        (("none.yaml",), "none.yaml cannot be read: No such file"),
        (("none",), "No plan 'none' was ever applied"),
        (("none", "--days", "2017-01-01"), "--days chooses what is computed of a plan file"),
    ],
)
def test_what_cannot_be_compared_is_told(run: Run, args: tuple[str, ...], says: str) -> None:
    said = run("plan", "compare", *args)
    assert said.code in (2, 3)
    assert says in " ".join(said.err.split())
