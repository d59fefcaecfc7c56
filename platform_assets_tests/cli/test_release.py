"""One release, the difference of two with its amounts, and pins: the commands, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import platform_assets
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import published
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.lineage import amount_changes
from platform_assets.operations.lineage.amount_changes import AmountChanges
from platform_assets.operations.opening import open_platform
from platform_assets.operations.pins import pinned_releases
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.decisions import PinDecision
from platform_assets.records.manifest import new_publication
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import TABLE, Run, assert_refused
from platform_assets_tests.support.cli.products import DAY, RAW, SILVER
from platform_assets_tests.support.own_domain import PACKAGE, forget, importable, write_domain
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import SALES, day, staged_manifest

WHY = ("--reason", "the auditors read it [/b]", "--by", "Zoë")


def decisions() -> list[tuple[str, str]]:
    with open_platform(load_settings()) as platform:
        return [(one.kind, one.who) for one in platform.ledger.decisions(PinDecision)]


def test_a_release_says_what_it_changed_why_and_by_whom(run: Run, corrected: str) -> None:
    said = run("status", "releases", "current", "--json").json
    assert (said["release"], said["publication"], said["current"], said["pin"]) == (2, corrected, True, None)
    assert (said["why"], said["run"], said["kind"]) == ("a test", "r", "recompute")
    assert {table: found["version"] for table, found in said["tables"].items()} == {RAW: 0, SILVER: 0}, "no files"
    [change] = said["changes"]
    assert (change["table"], change["day"], change["releases"]) == (SILVER, str(DAY), [2])
    assert (change["before"]["digest"], change["after"]["digest"]) == ("0-0-0-0-0", "0-1-1-1-1")
    assert run("status", "releases", corrected, "--json").json == said
    text = run("status", "releases", "1", "--limit", "2").out
    assert "not there → 0" in text
    assert "and 1 more days: --limit 3" in text
    assert f"{SILVER}" in text


def test_a_lifted_erasure_is_shown_as_what_it_is(run: Run, published: Settings) -> None:
    with open_platform(published) as platform:
        for decides in ("", "erasure lifted"):
            author = Author("process 1", "request 17", "zoe", decides=decides)
            publish_changes(platform, new_publication(), "erasure", [], author, erasures=[])
    said = run("status", "releases").out
    assert "erasure lifted by zoe: request 17" in said
    assert "erasure by zoe: request 17" in said
    lifted, erased, *_ = run("status", "releases", "--json").json
    assert (lifted["kind"], lifted["decides"], erased["decides"]) == ("erasure", "erasure lifted", "")
    assert "erasure lifted, 20" in run("status", "releases", "current").out


def test_a_new_installation_has_no_release_to_show(run: Run) -> None:
    assert run("status", "releases", "current").out.strip() == "Nothing was published yet."
    assert run("status", "releases", "current", "--json").json is None
    for command in (
        ["read", "--views", "duckdb"],
        ["diff", "0"],
        ["admin", "pin", "0", *WHY],
        ["undo", "pin:0", *WHY],
    ):
        said = run(*command)
        assert (said.code, said.out) == (3, "")
        assert "What to do" in said.err


def test_a_difference_names_days_figures_and_publications(run: Run, corrected: str) -> None:
    said = run("diff", "0", "2", "--json").json
    assert [(one["table"], one["day"], one["releases"]) for one in said["changes"]] == [
        (SILVER, "2017-01-01", [1]),
        (SILVER, "2017-01-02", [1, 2]),
        (SILVER, "2017-01-03", [1]),
    ]
    assert {change["before"] is None for change in said["changes"]} == {True}
    assert [(one["release"], one["why"]) for one in said["publications"]] == [(1, "a test"), (2, "a test")]
    [back] = run("diff", "2", "1", "--json").json["changes"]
    assert (back["before"]["digest"], back["after"]["digest"]) == ("0-1-1-1-1", "0-0-0-0-0")
    assert corrected in run("diff", "1", SILVER, "--days", "2017-01-02").out
    for same in (["1", "1"], ["1", "2", RAW], ["1", "2", "--days", "2017-01-01,2017-01-03"]):
        assert "show the same" in run("diff", *same).out


def test_what_was_put_back_does_not_differ(run: Run, corrected: str) -> None:
    run("undo", f"publication:{corrected}", "--reason", "wrong")
    assert run("diff", "1", "3", "--json").json["changes"] == []
    assert [change["releases"] for change in run("diff", "2", "3", "--json").json["changes"]] == [[3]]


def test_a_pinned_release_is_listed_read_by_name_and_kept_until_it_is_unpinned(run: Run, published: Settings) -> None:
    lake = Lake.at(published.lake_folder)
    assert run("admin", "pin", "0", *WHY, "--name", "audit", "--json").json["publication"]
    publish(lake, staged_manifest(lake, {TABLE: {day(0): [("later", 7)]}}))
    assert platform_assets.read(TABLE, release="audit").num_rows == 2
    assert platform_assets.read(TABLE, release="0").num_rows == 2
    assert "later" not in run("read", TABLE, "--release", "audit").out
    [*_, listed] = run("status", "releases", "--json").json
    assert (listed["pin"]["name"], listed["pin"]["who"]) == ("audit", "Zoë")
    assert [one["release"] for one in run("status", "releases", "--pinned", "--json").json] == [0]
    assert "pinned as 'audit' by Zoë" in run("status", "releases").out
    assert "the auditors read it [/b]" in run("status", "releases", "audit").out
    run("admin", "ledger", "--rebuild")
    with open_platform(published) as platform:
        assert [(number, pin.reason) for number, pin in pinned_releases(platform.ledger).items()] == [(0, WHY[1])]
    assert "no longer pinned" in run("undo", "pin:audit", *WHY).out
    assert run("status", "releases", "--pinned").out.strip() == "No release is pinned."
    assert decisions() == [("pin", "Zoë"), ("unpin", "Zoë")]


def test_mistakes_are_told_and_write_nothing(run: Run, published: Settings) -> None:
    run("admin", "pin", "0", *WHY, "--name", "audit")
    cases = (
        (["status", "releases", "2"], "no release 2. What to do: Name one from 0 to 1."),
        (["status", "releases", "audti"], "no release, pin or publication 'audti'. What to do: Did you mean audit?"),
        (["diff", "0", "7"], "There is no release 7."),
        (["diff", "0", "gold.daily_sale"], "Did you mean gold.daily_sales?"),
        (["diff", "0", "silver.products"], "silver.products has never been published"),
        (["diff", "0", "--days", "2017-01-03..2017-01-01"], "ends before it starts"),
        (["admin", "pin", "7", *WHY], "There is no release 7."),
        (["admin", "pin", "0", *WHY], "Release 0 is pinned as 'audit' by Zoë"),
        (["admin", "pin", "1", *WHY, "--name", "audit"], "The name 'audit' belongs to release 0."),
        (["admin", "pin", "1", *WHY, "--name", "7"], "'7' cannot name a pin."),
        (["undo", "pin:1", *WHY], "Release 1 is not pinned. What to do: Name one that is: 0."),
    )
    assert_refused(run, cases=cases)
    assert decisions() == [("pin", "Zoë")]


def test_a_release_that_lost_a_file_is_not_pinned_and_says_so_to_readers(run: Run, published: Settings) -> None:
    gone = next((published.lake_folder / "gold" / "daily_sales").rglob("event_date=2017-01-01/*.parquet"))
    gone.unlink()
    for command in (["admin", "pin", "1", *WHY], ["read", TABLE], ["read", "--views", "duckdb"]):
        said = run(*command)
        assert (said.code, said.out) == (3, "")
        assert gone.name in said.err.replace("\n", "")
    assert decisions() == []
    assert run("read", TABLE, "--day", "2017-01-02").code == 0


AMOUNTS = (
    ('K = Column("till", "long"', 'K = Column("key", "string"'),
    (
        'PAID = Column("paid", "decimal(12,2)", "Dollars.")',
        'PAID = Column("price", "decimal(10,2)", "Dollars.")\nCENTS = Column("cents", "long", "Of it.")',
    ),
    ('"Clean.", "me", (K, AT, PAID), ("till", "at")', '"Clean.", "me", (K, AT, PAID, CENTS), ("key", "at")'),
    ('"As delivered.", "me", (K, AT, PAID), ("till", "at")', '"As delivered.", "me", (K, AT, PAID), ("key", "at")'),
    ('"paid >= 0"', '"price >= 0"'),
    ("TABLES = (RAW, SILVER, GOLD, WEEK)", "TABLES = (RAW, SILVER)"),
)


@pytest.fixture
def sold(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """Two days of silver.sales, the second of which is corrected by a publication of its own."""
    with importable(tmp_path):
        write_domain(tmp_path, contracts=AMOUNTS)
        cut = tmp_path / PACKAGE / "contracts.py"
        whole = cut.read_text()
        cut.write_text(whole[: whole.index("GOLD =")] + whole[whole.index("TABLES =") :])
        monkeypatch.setenv("PLATFORM_DOMAINS", PACKAGE)
        lake = Lake.at(load_settings().lake)
        publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 150)], day(1): [("b", 199), ("c", 1_000)]}}))
        publish(lake, staged_manifest(lake, {SALES: {day(1): [("b", 299), ("c", 1_000), ("d", 2_000)]}}))
        with open_platform(load_settings()):
            yield lake


def test_a_difference_tells_the_amounts_that_differ(run: Run, sold: Lake) -> None:
    said = run("diff", "0", "1", "--json").json
    [change] = said["changes"]
    cents = {"before": 1199, "after": 3299}
    assert change["sums"] == {"cents": cents, "price": {"before": "11.99", "after": "32.99"}}
    assert said["amounts_not_told"] == {}
    [back] = run("diff", "1", "0", "--json").json["changes"]
    assert back["sums"]["cents"] == dict(zip(("after", "before"), change["sums"]["cents"].values(), strict=True))
    text = run("diff", "0", "1").out
    assert "sum of cents 1,199 → 3,299" in text
    assert text.count("price ") == 2, "of the table and of its day"


def test_a_rollback_tells_them_before_it_is_done_and_after(run: Run, sold: Lake) -> None:
    for more in (["--dry-run"], ["--reason", "a wrong price"]):
        said = run("undo", "since:0", *more)
        assert "sum of cents 3,299 → 1,199" in said.out
    [change] = run("undo", "since:1", "--dry-run", "--json").json["days"]
    assert change["sums"]["cents"] == {"before": 1199, "after": 3299}


def test_the_report_of_a_plan_tells_them_and_where_nothing_changed(run: Run, sold: Lake, tmp_path: Path) -> None:
    days = {"list": [str(day(0)), str(day(1))]}
    file = PlanFile.model_validate(
        {"name": "mend", "reason": "a test", "owner": "ada", "tables": [SALES], "days": days}
    )
    with open_platform(load_settings()) as platform:
        record = BackfillRecord.new(explain(platform, file)).model_copy(update={"state": "published"})
        for release, publication in published(sold, after=-1):
            done = record.model_copy(update={"release": release, "publication": publication})
            write_record(sold, done.model_copy(update={"name": f"mend-{release}"}))
    page = tmp_path / "record.html"
    told = run("backfill", "report", "mend-1", "--html", str(page)).out
    assert f"| {SALES} | price | 11.99 | 32.99 | +21.00 (+175.15%) |" in run("backfill", "report", "mend-1").out
    assert f"| {SALES} | 1 | 1 | 2 | 3 |" in run("backfill", "report", "mend-1").out
    html = page.read_text()
    assert '<td>price</td><td class="n">11.99</td><td class="n">32.99</td>' in html, told
    assert "othing changed" not in html
    publish(sold, staged_manifest(sold, {SALES: {day(1): [("b", 299), ("c", 1_000), ("d", 2_000)]}}))
    with open_platform(load_settings()) as platform:
        [(release, publication)] = published(sold, after=1)
        again = {"name": "again", "release": release, "publication": publication}
        write_record(sold, record.model_copy(update=again))
    assert "Nothing changed: 1 day of tables came out unchanged." in run("backfill", "report", "again").out
    run("backfill", "report", "again", "--html", str(page))
    assert "Nothing changed: all its days came out unchanged." in page.read_text()


def test_what_cannot_be_read_or_is_too_much_is_said(run: Run, sold: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as small:
        small.setattr(amount_changes, "MOST_BYTES", 1)
        said = run("diff", "0", "1")
    assert said.code == 0
    assert f"amounts not shown {SALES}: 0 MiB would have to be read" in said.out
    for file in on_disk(sold.table_path(SALES)).glob("*/event_date=2017-01-02/*.parquet"):
        file.unlink()
    said = run("diff", "0", "1")
    assert (said.code, "3 → 3" in said.out, "2 → 3" in said.out) == (0, False, True)
    assert f"amounts not shown {SALES}: " in said.out
    assert "are gone" in said.out


def test_a_column_that_was_not_there_yet_is_no_sum_of_nothing(run: Run, sold: Lake, tmp_path: Path) -> None:
    two = {(SALES, day(n)): ({"seats": None}, {"seats": 5}) for n in range(2)}
    assert AmountChanges(two).of(SALES, [day(0), day(1)]) == {"seats": (None, 10)}
    mixed = AmountChanges({**two, (SALES, day(2)): ({}, {"seats": 1})})
    assert mixed.of(SALES, [day(2)]) == {"seats": (0, 1)}, "a day without rows has nothing of it"
    contracts = tmp_path / PACKAGE / "contracts.py"
    contracts.write_text(contracts.read_text().replace('"cents"', '"pennies"'))
    forget()
    assert run("diff", "0", "1", "--json").json["changes"][0]["sums"].keys() == {"price"}
