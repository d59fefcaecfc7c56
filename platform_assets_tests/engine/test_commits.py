"""A day's commit and versions are those by which it was computed; an upgrade makes nothing stale."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from platform_assets.engine import day_contents as changes
from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.platform import Commits
from platform_assets.lakehouse.releases import manifest_of, published
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.records.code_version import shown_commits
from platform_assets.records.manifest import platform_version
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.cli.products import DAY, DAYS, RAW, SILVER, computed, publish_on_paper
from platform_assets_tests.support.history import four_days, person
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.world import MakeWorld

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Works in a repository of its own that has the domain, with the commit of the platform's nowhere in it."""
    for name, value in {"NAME": "Zoë", "EMAIL": "zoe@example.com"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    home = write_domain(tmp_path / "theirs")

    def run(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=home, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    run("init", "--quiet")
    run("add", ".")
    run("commit", "--quiet", "--message", "all of it")
    return run


def commits(tmp_path: Path) -> dict[str, str]:
    settings = load_settings(domains=PACKAGE, state=tmp_path / "state")
    with importable(tmp_path / "theirs"), open_platform(settings) as platform:
        return platform.git_commits


def test_each_table_has_the_commit_of_its_own_repository_marked_where_its_own_files_differ(
    git: Git, tmp_path: Path
) -> None:
    head = git("rev-parse", "HEAD")
    assert commits(tmp_path) == dict.fromkeys(("silver.sales", "gold.tills", "gold.week"), head)
    write_domain(tmp_path / "theirs", gold=(("decimal(18,2)", "decimal(18,2) "),))
    of_table = commits(tmp_path)
    assert (of_table["gold.tills"], of_table["gold.week"]) == (f"{head}+dirty", f"{head}+dirty")


def test_a_file_that_the_table_does_not_reach_leaves_the_commit_as_it_is(git: Git, tmp_path: Path) -> None:
    (tmp_path / "theirs" / PACKAGE / "notes.py").write_text("X = 1\n")
    assert set(commits(tmp_path).values()) == {git("rev-parse", "HEAD")}


def test_a_module_that_was_never_added_is_no_part_of_the_commit(git: Git, tmp_path: Path) -> None:
    (tmp_path / "theirs" / PACKAGE / "rates.py").write_text("RATE = 1\n")
    write_domain(tmp_path / "theirs", silver=(("def sales", "from own_till.rates import RATE\n\n\ndef sales"),))
    git("add", f"{PACKAGE}/transforms")
    git("commit", "--quiet", "--message", "but for one")
    assert commits(tmp_path)["silver.sales"] == f"{git('rev-parse', 'HEAD')}+dirty"


def test_what_lies_in_no_repository_or_is_ignored_by_one_has_no_commit(git: Git, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("")
    installed = tmp_path / "theirs" / "env" / "site-packages" / "module.py"
    installed.parent.mkdir(parents=True)
    installed.write_text("")
    (tmp_path / "theirs" / ".gitignore").write_text("env/\n")
    assert Commits().of([outside, installed]) == ""
    assert Commits().of([outside, tmp_path / "theirs" / PACKAGE / "contracts.py"]) == git("rev-parse", "HEAD")


def test_a_module_that_is_a_link_has_the_commit_of_what_it_leads_to(git: Git, tmp_path: Path) -> None:
    """The repository of the link has the link alone, whatever becomes of the code."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "rates.py").write_text("RATE = 1\n")
    link = tmp_path / "theirs" / PACKAGE / "rates.py"
    link.symlink_to(shared / "rates.py")
    git("add", ".")
    git("commit", "--quiet", "--message", "a link")
    assert Commits().of([link]) == ""
    git("-C", str(shared), "init", "--quiet")
    git("-C", str(shared), "add", ".")
    git("-C", str(shared), "commit", "--quiet", "--message", "rates")
    of_shared = git("-C", str(shared), "rev-parse", "HEAD")
    assert Commits().of([link]) == of_shared
    (shared / "rates.py").write_text("RATE = 2\n")
    assert Commits().of([link]) == f"{of_shared}+dirty"
    both = Commits().of([link, tmp_path / "theirs" / PACKAGE / "contracts.py"])
    assert set(both.split(", ")) == {f"{of_shared}+dirty", git("rev-parse", "HEAD")}


def test_commits_are_shown_short_with_their_mark() -> None:
    assert shown_commits(f"{'a' * 40}+dirty, {'b' * 40}") == f"{'a' * 12}+dirty, {'b' * 12}"


@pytest.mark.proof
def test_a_published_day_names_it_and_a_raw_day_none(git: Git, make_world: MakeWorld, tmp_path: Path) -> None:
    """A refresh."""
    with importable(tmp_path / "theirs"):
        world = make_world(days=1, domains=PACKAGE)
        row = {"till": 1, "at": "2017-01-01T10:00:00Z", "paid": "2.50"}
        world.deliver_rows("sales", "2017-01-01", "a.jsonl", [row])
        world.refresh()
        with world.open() as platform:
            recorded = {
                table: record.git_commit
                for table in platform.catalogue.names
                for record in platform.ledger.current_days(table).values()
            }
    head = git("rev-parse", "HEAD")
    assert recorded == {"raw.sales": "", "silver.sales": head, "gold.tills": head, "gold.week": head}


__all__ = ["run", "state"]
"""Fixtures of the command line."""


def test_days_are_recorded_with_what_computed_them(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the module: it waits for four days to be loaded."""
    world = prepared(four_days)
    with world.open() as platform:
        manifests = [manifest_of(platform.lake, name) for _, name in published(platform.lake)]
    software = [change.software for one in manifests for change in one.tables]
    expected = {"platform": platform_version(), "spark": pyspark.__version__, "delta": "4.4.0"}
    assert expected in software
    without_spark = {"platform": platform_version()}
    assert [one for one in software if one not in (expected, without_spark)] == []
    monkeypatch.setattr(changes, "platform_version", lambda: "99.0")
    assert world.refresh().steps == ()


def test_why_says_it_of_a_day_and_of_one_that_was_put_back(run: Run) -> None:
    with open_platform(load_settings()) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        first = {"platform": "1.0", "spark": "4.2.0", "delta": "4.4.0"}
        publish_on_paper(platform, SILVER, computed(platform, SILVER), software=first)
        publish_on_paper(platform, SILVER, {DAY: computed(platform, SILVER)[DAY]}, software={"platform": "2.0"})
        assert "computed with platform-assets 2.0\n" in run("why", SILVER, str(DAY)).out
        newest = platform.ledger.current_days(SILVER)[DAY].publication
        rollback(platform, chosen_publications(platform, newest), person("wrong"))
    assert "computed with platform-assets 1.0, Spark 4.2.0, Delta 4.4.0\n" in run("why", SILVER, str(DAY)).out
    why = run("why", SILVER, str(DAY), "--json").json
    assert why["computed_with"] == first
    assert why["columns"]["brand"] == ["raw.products.brand"]
