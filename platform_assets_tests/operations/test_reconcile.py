"""Any two sides can be reconciled: where both hold the same nothing is read, and where not, each key is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from platform_assets.contracts.checks import Tolerance, ToleranceError
from platform_assets.contracts.errors import UnknownTableError
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.errors import UnknownReleaseError, UnknownStageError
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.operations.reconcile import reconcile
from platform_assets.operations.stages.stages import refresh_stage
from platform_assets.planning.selection import BY_PERSON
from platform_assets.quality.sides import SidesBeside
from platform_assets.spark.compare.row_diff import SideError
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.history import DAILY, DAYS, correct, four_days, no_session
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

__all__ = ["run", "state"]
"""Fixtures of the command line."""

SILVER, GOLD = "silver.transactions", "gold.daily_sales"
DAY = date.fromisoformat(DAYS[1])
Write = Callable[[pl.DataFrame], pl.DataFrame]


def corrected(lakes: Lakes) -> World:
    """Four days of five sales, and a second release in which the first sale of the second day is another."""
    world = lakes.again(four_days)
    correct(world, DAYS[1], "correction")
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(corrected)


@pytest.fixture
def platform(world: World) -> Iterator[Platform]:
    with world.open() as opened:
        yield opened


ONE_MORE = (pl.col("basket_id") == 2).cast(pl.Int32)


def same(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def golden(platform: Platform, table: str, to: Path, change: Write = same) -> str:
    """A copy of a table as readers see it, changed, in the form that the name asks for."""
    frame = pl.from_arrow(read_arrow(platform.lake, table))
    assert isinstance(frame, pl.DataFrame)
    frame = change(frame)
    match to.suffix:
        case ".csv":
            frame.write_csv(to)
        case ".delta":
            frame.write_delta(str(to))
        case _:
            to.mkdir()
            frame.write_parquet(to / "part.parquet")
    return str(to)


def beside(platform: Platform, world: World, left: str, right: str, **how: Any) -> SidesBeside:
    return reconcile(platform, lambda: world.spark, (left, right), **how)


def planted(rows: pl.DataFrame) -> pl.DataFrame:
    """One key of the first day is missing, one of the third is there twice, one of the fourth has another amount."""
    rows = rows.sort("event_date", "basket_id")
    other = pl.when(pl.col("basket_id") == 33).then(pl.col("net_amount") + Decimal("0.05")).otherwise("net_amount")
    rows = rows.filter(pl.col("basket_id") != 2).with_columns(other.cast(rows.schema["net_amount"]).alias("net_amount"))
    return pl.concat([rows, rows.filter(pl.col("basket_id") == 21)])


def first_release(platform: Platform) -> int:
    """The one that showed silver first."""
    return platform.ledger.revisions(SILVER, [DAY], at=platform.current_release().number)[DAY][0].release


def told(found: SidesBeside) -> list[tuple[str, str, str]]:
    return [(str(key.day), key.how, key.key) for key in found.keys]


def test_two_releases_that_hold_the_same_are_reconciled_without_spark(platform: Platform, world: World) -> None:
    now, before = platform.current_release().number, first_release(platform)
    found = reconcile(platform, no_session, (GOLD, f"{GOLD}@{now}"))
    assert (found.agree, found.days) == (True, 4)
    first = beside(platform, world, SILVER, f"{SILVER}@{before}", drill=True)
    [day], [key] = first.differing, first.keys
    assert (day.day, day.outcome, day.rows) == (DAY, "different", (5, 5))
    assert day.sums["sales_value"] == (Decimal("109.00"), Decimal("12.50"))
    assert (key.how, key.key) == ("different", "basket_id 10, product_id 1")
    assert key.values["sales_value"] == ("99.00", "2.50", "+96.50")
    assert [arrival.rpartition("/")[2] for arrival in key.arrivals] == ["t.jsonl", "correction.jsonl"]


@pytest.mark.parametrize("name", ["copy", pytest.param("copy.delta", marks=pytest.mark.proof), "copy.csv"])
def test_every_planted_difference_of_a_golden_copy_is_named_and_no_other(
    name: str, platform: Platform, world: World, tmp_path: Path
) -> None:
    assert beside(platform, world, SILVER, golden(platform, SILVER, tmp_path / f"same-{name}")).agree
    found = beside(platform, world, SILVER, golden(platform, SILVER, tmp_path / name, planted), drill=True)
    assert told(found) == [
        (DAYS[0], "missing right", "basket_id 2, product_id 1"),
        (DAYS[2], "different", "basket_id 21, product_id 1"),
        (DAYS[3], "different", "basket_id 33, product_id 1"),
    ]
    assert [key.rows for key in found.keys] == [(1, 0), (1, 2), (1, 1)]
    assert found.keys[2].values == {"net_amount": ("2.50", "2.55", "-0.05")}
    assert [(str(day.day), day.rows) for day in found.differing] == [
        (DAYS[0], (5, 4)),
        (DAYS[2], (5, 6)),
        (DAYS[3], (5, 5)),
    ]


@pytest.mark.proof
def test_a_tolerance_allows_just_what_it_says(platform: Platform, world: World, tmp_path: Path) -> None:
    copy = golden(platform, SILVER, tmp_path / "copy", planted)
    allowed = {"0.05": 2, "1 %": 3, "1 key": 0}
    for tolerance, different in allowed.items():
        found = beside(platform, world, SILVER, copy, tolerance=Tolerance.parse(tolerance))
        assert (tolerance, len(found.different), found.agree) == (tolerance, different, not different)


@pytest.mark.parametrize("text", ["-1", "0.1 %%", "101 %", "1.5 keys", "1, 2", "nan", "some"])
def test_an_impossible_tolerance_is_refused(text: str) -> None:
    with pytest.raises(ToleranceError, match=r"is no tolerance\.\n.*Write an amount"):
        Tolerance.parse(text)


def test_sums_by_columns_are_compared_of_tables_with_other_keys(platform: Platform, world: World) -> None:
    """Of raw the versions that count are compared, before any rule; silver keeps all of these here."""
    assert beside(platform, world, "raw.transactions", SILVER).agree
    assert beside(platform, world, "raw.transactions", SILVER, by=["event_date"]).agree
    found = beside(platform, world, SILVER, f"{SILVER}@{first_release(platform)}", by=["store_id"], drill=True)
    assert told(found) == [(DAYS[1], "different", "store_id 7")]
    assert found.keys[0].values["net_amount"] == ("109.00", "12.50", "+96.50")


def test_sums_of_whole_numbers_keep_a_tolerance_with_a_fraction(
    platform: Platform, world: World, tmp_path: Path
) -> None:
    copy = golden(platform, SILVER, tmp_path / "copy", lambda rows: rows.with_columns(pl.col("quantity") + ONE_MORE))
    for tolerance, agrees in {"0.6": False, "1": True}.items():
        found = beside(platform, world, SILVER, copy, by=["basket_id"], tolerance=Tolerance.parse(tolerance))
        assert (tolerance, found.agree) == (tolerance, agrees)


@pytest.mark.proof
def test_a_stage_is_a_side(platform: Platform, world: World) -> None:
    correct(world, DAYS[2], "another")
    ingest(platform, lambda: world.spark, platform.catalogue["raw.transactions"], Author("ingest", "a test"))
    refresh_stage(platform, lambda: world.spark, Author("stage", "a test"), "fix", request=BY_PERSON)
    found = beside(platform, world, f"{GOLD}@stage:fix", GOLD)
    assert [str(day.day) for day in found.different] == [DAYS[2]]


def test_sensitive_values_are_masked_and_the_list_is_capped(platform: Platform, world: World, tmp_path: Path) -> None:
    def moved(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(household_id=pl.lit(4711).cast(rows.schema["household_id"]))

    found = beside(platform, world, SILVER, golden(platform, SILVER, tmp_path / "copy", moved), drill=True, most=3)
    assert found.counts is not None
    assert (found.counts.different, len(found.keys)) == (20, 3)
    left, right, off = found.keys[0].values["household_id"]
    assert left.startswith("#")
    assert right.startswith("#")
    assert "4711" not in str(found)
    assert off is None


def renamed(old: str, new: str) -> Write:
    return lambda rows: rows.rename({old: new})


def cast(name: str, type_: Any) -> Write:
    return lambda rows: rows.with_columns(pl.col(name).cast(type_))


REFUSED: Sequence[tuple[str, Write, dict[str, Any], str]] = [
    ("copy", cast("net_amount", pl.Float64), {}, "has 'net_amount' as double, and silver.transactions.*Write the col"),
    ("copy", cast("event_date", pl.String), {}, "has 'event_date' as string"),
    ("copy", renamed("event_date", "day"), {}, "has no column 'event_date'"),
    ("copy", renamed("basket_id", "basket"), {}, r"no common key.*no 'basket_id'.*--by COLUMN"),
    ("copy", same, {"by": ["stor_id"]}, "'stor_id', to compare by, is no column in.*Did you mean store_id"),
    (
        "copy.csv",
        lambda rows: rows.with_columns(quantity=pl.lit("many")),
        {},
        "20 values of 'quantity' that are no",
    ),
]
NOT_THERE = [
    (SILVER, GOLD, SideError, r"no common key: \(basket_id, product_id\) and \(store_id, department\)"),
    (SILVER, "/nowhere/at all", SideError, "no golden copy at /nowhere/at all"),
    ("/nowhere", "/nowhere", SideError, "Neither /nowhere nor /nowhere is a table"),
    (SILVER, "silver.transaction", UnknownTableError, "Did you mean silver.transactions"),
    (SILVER, f"{SILVER}@first", UnknownReleaseError, "no release, pin or publication 'first'"),
    (SILVER, f"{SILVER}@stage:none", UnknownStageError, "none"),
]


def test_what_cannot_be_compared_is_refused_with_table_field_and_remedy(
    platform: Platform, world: World, tmp_path: Path
) -> None:
    for number, (name, change, how, says) in enumerate(REFUSED):
        copy = golden(platform, SILVER, tmp_path / f"{number}-{name}", change)
        with pytest.raises(SideError, match=rf"(?s){says}"):
            beside(platform, world, SILVER, copy, **how)
    for left, right, error, says in NOT_THERE:
        with pytest.raises(error, match=rf"(?s){says}"):
            beside(platform, world, left, right)
    short = tmp_path / "short.csv"
    short.write_text("event_date,basket_id,product_id\n2017-01-01,1\n")
    with pytest.raises(SideError, match=r"short\.csv cannot be read"):
        beside(platform, world, SILVER, str(short))
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "notes.parquet").write_text("no Parquet")
    with pytest.raises(SideError, match="cannot be read"):
        beside(platform, world, SILVER, str(tmp_path / "damaged"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SideError, match=r"empty holds no Parquet file\."):
        beside(platform, world, SILVER, str(tmp_path / "empty"))


def test_the_command_names_days_figures_and_keys(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the session of this process."""
    values = {"STATE": world.settings.state, "DOMAINS": DAILY, "CALENDAR_LAST": DAYS[-1], "TODAY": DAYS[-1]}
    for name, value in values.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    with world.open() as platform:
        now, rows = platform.current_release().number, pl.DataFrame(read_arrow(platform.lake, GOLD))
    assert (same := run("diff", GOLD, f"{GOLD}@{now}")).code == 0
    assert "they agree" in same.out

    rows.with_columns(units=pl.col("units") + (pl.col("event_date").cast(pl.String) == DAYS[1])).write_csv(
        copy := tmp_path / "copy.csv"
    )
    page = tmp_path / "page.html"
    told = run("diff", GOLD, str(copy), "--drill", "--html", str(page))
    assert told.code == 1
    assert f"different {DAYS[1]}: store_id 7, department MEAT: units 5, not 6 (-1)" in told.out
    assert [DAYS[1], "different", "units", "5", "6", "-1"] in [line.split() for line in told.out.splitlines()]
    assert "units 5, not 6 (-1)" in page.read_text()
    found = run("diff", GOLD, str(copy), "--tolerance", "1", "--json")
    assert (found.code, found.json["agree"], found.json["differing"][0]["outcome"]) == (0, True, "within tolerance")
    refused = run("diff", GOLD, str(copy), "--by", "shop", "--json")
    assert (refused.code, "'shop', to compare by, is no column in" in refused.err) == (2, True)
