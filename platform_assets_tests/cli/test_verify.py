"""What `verify` can tell without computing anything; the rest is in the engine's tests, which compute."""

from __future__ import annotations

from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.layout import Lake
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import FIRST, TABLE, Run
from platform_assets_tests.support.places import on_disk


def test_days_without_a_record_of_their_inputs_are_counted_and_said_to_be_so(run: Run, published: Settings) -> None:
    said = run("verify", TABLE)
    assert said.code == 0
    assert (
        f"not verifiable {TABLE} 2017-01-01 and 1 more day: it is not on record which version of silver.transactions "
        "it was made from" in said.out
    )
    assert "Drawn by --seed" in said.out
    [table] = run("verify", TABLE, "--days", "2017-01-02", "--json").json["tables"]
    assert (table["equal"], table["different"], table["not_verifiable"]) == (0, 0, 1)


def test_a_file_of_another_length_is_named_whoever_made_the_day(run: Run, published: Settings) -> None:
    path = Lake.at(published.lake).table_path(TABLE)
    [file] = live_files(path)[FIRST]
    on_disk(path / file.path).write_bytes(b"something else")
    said = run("verify", TABLE, "--days", str(FIRST))
    assert said.code == 1
    assert f"different {TABLE} 2017-01-01: the file {file.path} of {TABLE} on 2017-01-01 has 14 bytes" in said.out
    on_disk(path / file.path).unlink()
    [table] = run("verify", TABLE, "--days", str(FIRST), "--json").json["tables"]
    assert table["different"] == 1
    assert table["days"][0]["reason"] == f"the file {file.path} of {TABLE} on 2017-01-01 is gone"


def test_the_sample_is_that_of_the_seed(run: Run, published: Settings) -> None:
    found = run("verify", TABLE, "--sample", "0", "--seed", "3", "--json").json
    assert found["seed"] == 3
    assert [day["day"] for day in found["tables"][0]["days"]] == ["2017-01-02"]


def test_days_never_published_are_an_error(run: Run, published: Settings) -> None:
    said = run("verify", "gold.household_28d")
    assert said.code == 3
    assert "Nothing is published of gold.household_28d." in said.err
    said = run("verify", TABLE, "--days", "2017-01-03")
    assert said.code == 3
    assert f"Nothing is published of {TABLE} on 2017-01-03." in said.err


def test_nothing_private_is_left(run: Run, published: Settings) -> None:
    run("verify", TABLE)
    assert not Lake.at(published.lake).private_path.exists()
    assert live_files(Lake.at(published.lake).table_path(TABLE))[FIRST]
