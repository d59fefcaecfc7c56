"""`refresh --only` and `why` of what it made, as commands say it."""

from __future__ import annotations

import pytest

from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.stores import DAYS, GOLD, published, scoped, twenty_stores

DAY = str(DAYS[0])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--days", "2017-01-02", "--only", "store_id=330"), "into a stage"),
        (("--stage", "keys", "--only", "store_id=330"), "into a stage"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id"), "is not COLUMN=VALUE"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=330,"), "is not COLUMN=VALUE"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=330,"), "the values ['330', '']"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", 'store_id="330'), "cannot be told apart"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "department=MEAT"), "does not promise"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=some"), "is no long"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=330"), "not there or not good"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(run: Run, args: tuple[str, ...], says: str) -> None:
    said = run("refresh", GOLD, *args)
    assert said.code in (2, 3)
    assert says in " ".join(said.err.split())


def test_it_is_explained_before_and_why_tells_it_after(
    run: Run, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = prepared(twenty_stores)
    settings = world.settings
    for name in ("state", "calendar_last", "today"):
        monkeypatch.setenv(f"PLATFORM_{name.upper()}", str(getattr(settings, name)))
    monkeypatch.setenv("PLATFORM_DOMAINS", ",".join(settings.domains))
    asked = ("refresh", "--stage", "keys", GOLD, "--days", DAY, "--only", "store_id=331,330", "--explain")
    explained = run(*asked)
    assert explained.code == 0, explained.err
    assert "only rows of store_id=330,331; the others are carried over" in explained.out
    shown = run(*asked, "--json").json
    assert shown["only"] == {"store_id": ["330", "331"]}
    assert [(step["table"], step["days"]) for step in shown["plan"]["steps"]] == [(GOLD, 1)]
    with world.open() as platform:
        platform.code_versions[GOLD] = "other"
        scoped(platform, world, [330], DAYS[:1])
        assert f"only store_id=330 of {GOLD} {DAY}; the other rows are carried over" in run("stage", "show", "keys").out
        published(platform, world)
    said = run("why", GOLD, DAY)
    assert said.code == 1
    assert f"stale {GOLD} {DAY}: code" in said.out
    assert "in part computed last, only store_id=330 (2 rows)" in said.out
    assert run("why", GOLD, DAY, "--json").json["only"] == {"store_id": ["330"]}
