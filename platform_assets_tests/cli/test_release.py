"""One release, the difference of two, and pins: the commands, without Spark."""

from __future__ import annotations

import platform_assets
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.operations.pins import pinned_releases
from platform_assets.records.decisions import PinDecision
from platform_assets.records.manifest import new_publication
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import DAY, RAW, SILVER
from platform_assets_tests.support.shelf import day, staged_manifest

WHY = ("--reason", "the auditors read it [/b]", "--by", "Zoë")


def decisions() -> list[tuple[str, str]]:
    with open_platform(load_settings()) as platform:
        return [(one.kind, one.who) for one in platform.ledger.decisions(PinDecision)]


def test_a_release_says_what_it_changed_why_and_by_whom(run: Run, corrected: str) -> None:
    said = run("release", "show", "--json").json
    assert (said["release"], said["publication"], said["current"], said["pin"]) == (2, corrected, True, None)
    assert (said["why"], said["run"], said["kind"]) == ("a test", "r", "recompute")
    assert {table: found["version"] for table, found in said["tables"].items()} == {RAW: 0, SILVER: 0}, "no files"
    [change] = said["changes"]
    assert (change["table"], change["day"], change["releases"]) == (SILVER, str(DAY), [2])
    assert (change["before"]["digest"], change["after"]["digest"]) == ("0-0-0-0-0", "0-1-1-1-1")
    assert run("release", "show", corrected, "--json").json == said
    text = run("release", "show", "1", "--limit", "2").out
    assert "not there → 0" in text
    assert "and 1 more days: --limit 3" in text
    assert f"{SILVER}" in text


def test_a_lifted_erasure_is_shown_as_what_it_is(run: Run, published: Settings) -> None:
    with open_platform(published) as platform:
        for decides in ("", "erasure lifted"):
            author = Author("process 1", "request 17", "zoe", decides=decides)
            publish_changes(platform, new_publication(), "erasure", [], author, erasures=[])
    said = run("releases").out
    assert "erasure lifted by zoe: request 17" in said
    assert "erasure by zoe: request 17" in said
    lifted, erased, *_ = run("releases", "--json").json
    assert (lifted["kind"], lifted["decides"], erased["decides"]) == ("erasure", "erasure lifted", "")
    assert "erasure lifted, 20" in run("release", "show").out


def test_a_new_installation_has_no_release_to_show(run: Run) -> None:
    assert run("release", "show").out.strip() == "Nothing was published yet."
    assert run("release", "show", "--json").json is None
    for command in (
        ["views"],
        ["release", "diff", "0"],
        ["release", "pin", "0", *WHY],
        ["release", "unpin", "0", *WHY],
    ):
        said = run(*command)
        assert (said.code, said.out) == (3, "")
        assert "What to do" in said.err


def test_a_difference_names_days_figures_and_publications(run: Run, corrected: str) -> None:
    said = run("release", "diff", "0", "2", "--json").json
    assert [(one["table"], one["day"], one["releases"]) for one in said["changes"]] == [
        (SILVER, "2017-01-01", [1]),
        (SILVER, "2017-01-02", [1, 2]),
        (SILVER, "2017-01-03", [1]),
    ]
    assert {change["before"] is None for change in said["changes"]} == {True}
    assert [(one["release"], one["why"]) for one in said["publications"]] == [(1, "a test"), (2, "a test")]
    [back] = run("release", "diff", "2", "1", "--json").json["changes"]
    assert (back["before"]["digest"], back["after"]["digest"]) == ("0-1-1-1-1", "0-0-0-0-0")
    assert corrected in run("release", "diff", "1", "--table", SILVER, "--days", "2017-01-02").out
    for same in (["1", "1"], ["1", "2", "--table", RAW], ["1", "2", "--days", "2017-01-01,2017-01-03"]):
        assert "show the same" in run("release", "diff", *same).out


def test_what_was_put_back_does_not_differ(run: Run, corrected: str) -> None:
    run("rollback", corrected, "--reason", "wrong")
    assert run("release", "diff", "1", "3", "--json").json["changes"] == []
    assert [change["releases"] for change in run("release", "diff", "2", "3", "--json").json["changes"]] == [[3]]


def test_a_pinned_release_is_listed_read_by_name_and_kept_until_it_is_unpinned(run: Run, published: Settings) -> None:
    lake = Lake.at(published.lake_folder)
    assert run("release", "pin", "0", *WHY, "--name", "audit", "--json").json["publication"]
    publish(lake, staged_manifest(lake, {TABLE: {day(0): [("later", 7)]}}))
    assert platform_assets.read(TABLE, release="audit").num_rows == 2
    assert platform_assets.read(TABLE, release="0").num_rows == 2
    assert "later" not in run("read", TABLE, "--release", "audit").out
    [*_, listed] = run("releases", "--json").json
    assert (listed["pin"]["name"], listed["pin"]["who"]) == ("audit", "Zoë")
    assert [one["release"] for one in run("releases", "--pinned", "--json").json] == [0]
    assert "pinned as 'audit' by Zoë" in run("releases").out
    assert "the auditors read it [/b]" in run("release", "show", "audit").out
    run("ledger", "rebuild")
    with open_platform(published) as platform:
        assert [(number, pin.reason) for number, pin in pinned_releases(platform.ledger).items()] == [(0, WHY[1])]
    assert "no longer pinned" in run("release", "unpin", "audit", *WHY).out
    assert run("releases", "--pinned").out.strip() == "No release is pinned."
    assert decisions() == [("pin", "Zoë"), ("unpin", "Zoë")]


def test_mistakes_are_told_and_write_nothing(run: Run, published: Settings) -> None:
    run("release", "pin", "0", *WHY, "--name", "audit")
    for args, says in (
        (["show", "2"], "no release 2. What to do: Name one from 0 to 1."),
        (["show", "audti"], "no release, pin or publication 'audti'. What to do: Did you mean audit?"),
        (["diff", "0", "7"], "There is no release 7."),
        (["diff", "0", "--table", "gold.daily_sale"], "Did you mean gold.daily_sales?"),
        (["diff", "0", "--table", "silver.products"], "silver.products has never been published"),
        (["diff", "0", "--days", "2017-01-03..2017-01-01"], "ends before it starts"),
        (["pin", "1"], "A decision needs --reason"),
        (["pin", "7", *WHY], "There is no release 7."),
        (["pin", "0", *WHY], "Release 0 is pinned as 'audit' by Zoë"),
        (["pin", "1", *WHY, "--name", "audit"], "The name 'audit' is that of release 0."),
        (["pin", "1", *WHY, "--name", "7"], "'7' cannot name a pin."),
        (["unpin", "1", *WHY], "Release 1 is not pinned. What to do: Name one that is: 0."),
    ):
        said = run("release", *args)
        assert said.code in (2, 3), args
        assert says in " ".join(said.err.split())
        assert "What to do" in said.err
    assert decisions() == [("pin", "Zoë")]


def test_a_release_that_lost_a_file_is_not_pinned_and_says_so_to_readers(run: Run, published: Settings) -> None:
    gone = next((published.lake_folder / "gold" / "daily_sales").rglob("event_date=2017-01-01/*.parquet"))
    gone.unlink()
    for command in (["release", "pin", "1", *WHY], ["read", TABLE], ["views"]):
        said = run(*command)
        assert (said.code, said.out) == (3, "")
        assert gone.name in said.err.replace("\n", "")
    assert decisions() == []
    assert run("read", TABLE, "--day", "2017-01-02").code == 0
