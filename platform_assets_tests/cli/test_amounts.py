"""What changed in money: a difference of releases and a rollback tell the amounts of their days before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import published
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.lineage import amount_changes
from platform_assets.operations.lineage.amount_changes import AmountChanges
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.own_domain import PACKAGE, forget, importable, write_domain
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import SALES, day, staged_manifest

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
    said = run("release", "diff", "0", "1", "--json").json
    [change] = said["changes"]
    cents = {"before": 1199, "after": 3299}
    assert change["sums"] == {"cents": cents, "price": {"before": "11.99", "after": "32.99"}}
    assert said["amounts_not_told"] == {}
    [back] = run("release", "diff", "1", "0", "--json").json["changes"]
    assert back["sums"]["cents"] == dict(zip(("after", "before"), change["sums"]["cents"].values(), strict=True))
    text = run("release", "diff", "0", "1").out
    assert "sum of cents 1,199 → 3,299" in text
    assert text.count("price ") == 2, "of the table and of its day"


def test_a_rollback_tells_them_before_it_is_done_and_after(run: Run, sold: Lake) -> None:
    for more in (["--dry-run"], ["--reason", "a wrong price"]):
        said = run("rollback", "--to", "0", *more)
        assert "sum of cents 3,299 → 1,199" in said.out
    [change] = run("rollback", "--to", "1", "--dry-run", "--json").json["days"]
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
    told = run("plan", "report", "mend-1", "--html", str(page)).out
    assert f"| {SALES} | price | 11.99 | 32.99 | +21.00 (+175.15%) |" in run("plan", "report", "mend-1").out
    assert f"| {SALES} | 1 | 1 | 2 | 3 |" in run("plan", "report", "mend-1").out
    html = page.read_text()
    assert '<td>price</td><td class="n">11.99</td><td class="n">32.99</td>' in html, told
    assert "othing changed" not in html
    publish(sold, staged_manifest(sold, {SALES: {day(1): [("b", 299), ("c", 1_000), ("d", 2_000)]}}))
    with open_platform(load_settings()) as platform:
        [(release, publication)] = published(sold, after=1)
        again = {"name": "again", "release": release, "publication": publication}
        write_record(sold, record.model_copy(update=again))
    assert "Nothing changed: 1 day of tables came out as they were." in run("plan", "report", "again").out
    run("plan", "report", "again", "--html", str(page))
    assert "Nothing changed: all its days came out as they were." in page.read_text()


def test_what_cannot_be_read_or_is_too_much_is_said(run: Run, sold: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as small:
        small.setattr(amount_changes, "MOST_BYTES", 1)
        said = run("release", "diff", "0", "1")
    assert said.code == 0
    assert f"amounts not told {SALES}: 0 MiB would have to be read" in said.out
    for file in on_disk(sold.table_path(SALES)).glob("*/event_date=2017-01-02/*.parquet"):
        file.unlink()
    said = run("release", "diff", "0", "1")
    assert (said.code, "3 → 3" in said.out, "2 → 3" in said.out) == (0, False, True)
    assert f"amounts not told {SALES}: " in said.out
    assert "are gone" in said.out


def test_a_column_that_was_not_there_yet_is_no_sum_of_nothing(run: Run, sold: Lake, tmp_path: Path) -> None:
    two = {(SALES, day(n)): ({"seats": None}, {"seats": 5}) for n in range(2)}
    assert AmountChanges(two).of(SALES, [day(0), day(1)]) == {"seats": (None, 10)}
    mixed = AmountChanges({**two, (SALES, day(2)): ({}, {"seats": 1})})
    assert mixed.of(SALES, [day(2)]) == {"seats": (0, 1)}, "a day without rows has nothing of it"
    contracts = tmp_path / PACKAGE / "contracts.py"
    contracts.write_text(contracts.read_text().replace('"cents"', '"pennies"'))
    forget()
    assert run("release", "diff", "0", "1", "--json").json["changes"][0]["sums"].keys() == {"price"}
