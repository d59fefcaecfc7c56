"""The sample: the same every time, as wrong as asked for, and honest about it."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from platform_assets.contracts import Contract
from platform_assets.domains.retail.contracts import (
    CLOSED,
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)
from platform_assets.domains.retail.sample import (
    Rates,
    SampleError,
    Simulation,
    land,
    land_recount,
)
from platform_assets.domains.retail.sample.simulation import read_lines, with_money
from platform_assets.progress import Progress
from platform_assets_tests.support.models.oracle import DERIVED, Oracle

MONTH = Simulation(days=30)


def contents(landing: Path) -> dict[str, tuple[str, float]]:
    """Hash and time of every delivered file, and the hash of every other."""
    found = {}
    for file in sorted(landing.rglob("*")):
        if file.is_file():
            path = str(file.relative_to(landing))
            when = 0.0 if path.startswith(".") else file.stat().st_mtime
            found[path] = (hashlib.sha256(file.read_bytes()).hexdigest(), when)
    return found


def truth(landing: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(landing / ".truth" / f"{name}.parquet")


def total(frame: pl.DataFrame, column: str) -> Decimal:
    return Decimal(str(frame[column].sum()))


def expected(oracle: Oracle, table: str) -> pl.DataFrame:
    return pl.DataFrame(oracle.arrow(table))


def physical_rows(file: Path) -> int:
    if file.suffix == ".parquet":
        return int(pq.ParquetFile(file).metadata.num_rows)
    lines = file.read_bytes().splitlines()
    assert all(lines)
    return len(lines) - (file.suffix == ".csv")


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    landing = tmp_path_factory.mktemp("month")
    land(MONTH, landing, MONTH.last_arrival)
    return landing


@pytest.fixture(scope="module")
def flawless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    landing = tmp_path_factory.mktemp("flawless")
    land(Simulation(days=30, rates=Rates.none()), landing, date(2018, 6, 1))
    return landing


@pytest.mark.proof
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(month: Path, tmp_path: Path) -> None:
    land(MONTH, tmp_path / "again", MONTH.last_arrival)
    assert contents(tmp_path / "again") == contents(month)
    other = Simulation(days=30, seed=2)
    land(other, tmp_path / "other", other.last_arrival)
    ours, theirs = contents(month), contents(tmp_path / "other")
    assert not any(ours[path] == theirs[path] for path in ours.keys() & theirs.keys() if "tills" in path)


def test_a_second_landing_writes_nothing(month: Path) -> None:
    before = contents(month)
    landed = land(MONTH, month, MONTH.last_arrival)
    assert (landed.files, landed.rows, landed.dates) == (0, 0, ())
    assert landed.newest == truth(month, "deliveries")["arrival_date"].max()
    assert contents(month) == before


@pytest.mark.proof
def test_landing_in_steps_equals_landing_at_once_byte_for_byte(month: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    files = 0
    for until in (date(2017, 1, 9), MONTH.last, date(2017, 3, 5), MONTH.last_arrival):
        landed = land(MONTH, tmp_path, until, told.append)
        files += landed.files
        assert landed.newest is not None
        assert landed.newest <= until
        newest = max(path for path in contents(tmp_path) if path.startswith("transactions"))
        assert newest.split("/")[1] <= str(until)
    assert contents(tmp_path) == contents(month)
    assert files == len(truth(month, "deliveries"))
    assert all(0 <= now.done <= now.total for now in told)
    assert sum(not now.done for now in told) == 4


@pytest.mark.proof
def test_a_landing_that_was_interrupted_goes_on_where_it_stopped(month: Path, tmp_path: Path) -> None:
    def interrupt(now: Progress) -> None:
        if now.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        land(MONTH, tmp_path, MONTH.last_arrival, interrupt)
    assert 0 < land(MONTH, tmp_path, MONTH.last_arrival).files < len(truth(month, "deliveries"))
    assert contents(tmp_path) == contents(month)


def test_a_file_that_went_missing_comes_back_the_same(month: Path) -> None:
    before = contents(month)
    lost = [month / path for path in before if "/2017-02-0" in path or path.endswith("2017-01-01/products-2.csv")]
    for file in lost:
        file.unlink()
    assert land(MONTH, month, MONTH.last_arrival).files == len(lost) > 5
    assert contents(month) == before


def test_other_parameters_are_refused_by_name(month: Path) -> None:
    with pytest.raises(SampleError, match=r"days is 30 there and 31 here.*rate of late is 0.02 there and 0.5 here"):
        land(Simulation(days=31, rates=Rates(late=0.5)), month, MONTH.last)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Rates(late=1.5), "rate late is 1.5"),
        (lambda: Rates(moved=-0.1), "rate moved is -0.1"),
        (lambda: Rates(voided=float("nan")), "rate voided is nan"),
        (lambda: Rates(late=0.6, very_late=0.6), "more than all lines"),
        (lambda: Simulation(days=0), "days is 0"),
        (lambda: Simulation(scale=0), "scale is 0"),
        (lambda: Simulation(seed=-1), "seed is -1"),
        (lambda: Simulation(days=367), "367 days from 2017-01-01"),
        (lambda: Simulation(first=date(2016, 12, 31), days=3), "from 2016-12-31"),
    ],
)
def test_senseless_parameters_are_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(SampleError, match=says):
        make()


def test_every_landed_row_is_in_the_truth_of_deliveries(month: Path) -> None:
    planned = {f"{d['table']}/{d['arrival_date']}/{d['file']}": d for d in truth(month, "deliveries").to_dicts()}
    landed = {path for path in contents(month) if not path.startswith(".")}
    assert landed == planned.keys()
    for path, delivery in planned.items():
        assert physical_rows(month / path) == delivery["rows"] >= delivery["refused"] + delivery["quarantined"]
    formats = Counter(Path(path).suffix for path in landed if "tills" in path)
    assert formats == {".parquet": 30, ".csv": 30, ".jsonl": 30}


def test_the_rates_are_met(month: Path) -> None:
    versions = truth(month, "transactions")
    originals = versions.filter(~pl.col("kind").is_in(["correction", "move", "void", "repair"]))
    lines = len(originals)
    assert lines == len(read_lines(MONTH.first, MONTH.last))
    delay = (originals["arrival_date"] - originals["event_date"]).dt.total_days().to_numpy()
    kinds = dict(versions["kind"].value_counts().rows())
    malformed = kinds["malformed_refused"] + kinds["malformed_quarantined"]
    duplicates = int(total(truth(month, "deliveries").filter(table="transactions"), "rows")) - len(versions)
    rates = Rates()
    for found, rate in (
        (int(((delay >= 1) & (delay <= 46)).sum()), rates.late),
        (int((delay >= 61).sum()), rates.very_late),
        (kinds["correction"], rates.corrected),
        (kinds["void"], rates.voided),
        (kinds["move"], rates.moved),
        (malformed, rates.malformed),
        (duplicates * lines / len(versions), rates.duplicated),
    ):
        expected = rate * lines
        assert abs(found - expected) < 4 * expected**0.5 + 1
    assert delay.max() <= 90
    assert 0 < kinds["repair"] < malformed
    assert versions["malformation"].n_unique() > 15


@pytest.mark.proof
def test_without_anything_wrong_the_truth_and_the_files_are_the_source(flawless: Path) -> None:
    key = ["basket_id", "product_id"]
    versions = truth(flawless, "transactions")
    source = with_money(read_lines(MONTH.first, MONTH.last))
    assert set(versions["kind"]) == {"original"}
    assert versions.select(source.columns).sort(key).equals(source.sort(key))
    assert (versions["arrival_date"] == versions["event_date"]).all()
    delivered = pl.concat(delivered_lines(file) for file in sorted((flawless / "transactions").rglob("*.*")))
    assert delivered.sort(key).equals(versions.select(delivered.columns).sort(key))


def delivered_lines(file: Path) -> pl.DataFrame:
    """A file of good lines with the contract's types, read without any of the code that wrote it."""
    types: dict[str, pl.DataType | type[pl.DataType]] = {
        "long": pl.Int64, "int": pl.Int32, "boolean": pl.Boolean, "decimal(12,2)": pl.Decimal(12, 2),
        "timestamp": pl.Datetime("us", "UTC"),
    }  # fmt: skip
    columns = RAW_TRANSACTIONS.column_names
    if file.suffix == ".parquet":
        frame = pl.read_parquet(file)
        assert frame.schema == {column.name: types[column.type] for column in RAW_TRANSACTIONS.columns}
        return frame
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream)) if file.suffix == ".csv" else [json.loads(line) for line in stream]
    text = pl.DataFrame([[str(row[name]) for name in columns] for row in rows], orient="row", schema=list(columns))
    return text.with_columns(
        pl.col(column.name).str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us", time_zone="UTC")
        if column.type == "timestamp"
        else pl.col(column.name).str.to_lowercase() == "true"
        if column.type == "boolean"
        else pl.col(column.name).cast(types[column.type])
        for column in RAW_TRANSACTIONS.columns
    )


@pytest.mark.parametrize(("name", "raw", "silver"), [
    ("transactions", RAW_TRANSACTIONS, SILVER_TRANSACTIONS), ("products", RAW_PRODUCTS, SILVER_PRODUCTS),
])  # fmt: skip
def test_every_version_of_the_truth_keeps_the_contract(month: Path, name: str, raw: Contract, silver: Contract) -> None:
    versions = truth(month, name)
    good = versions.filter(~pl.col("kind").str.starts_with("malformed"))
    key = [*raw.key, "updated_at"]
    assert good.select(key).is_unique().all()
    assert good.select(pl.col(*raw.key).is_null().any()).row(0) == (False, False)
    assert good["arrival_date"].is_between(MONTH.first, MONTH.last_arrival).all()
    assert good["event_date"].is_between(MONTH.first, MONTH.last).all()
    assert (good["updated_at"].dt.date() <= good["arrival_date"]).all()
    assert (good["event_date"] <= good["arrival_date"]).all()
    rules = " AND ".join(f"({rule.kind.text})" for rule in silver.rules)
    assert duckdb.execute(f"SELECT * FROM good WHERE ({rules}) IS NOT TRUE").fetchall() == []


def test_moves_stay_within_reach_and_some_arrive_before_their_original(month: Path) -> None:
    versions = truth(month, "transactions").filter(~pl.col("kind").str.starts_with("malformed"))
    key = ["basket_id", "product_id"]
    spread = versions.group_by(key).agg(days=pl.col("event_date").max() - pl.col("event_date").min())["days"]
    assert timedelta(0) < spread.max() <= timedelta(days=30)  # type: ignore[operator]
    originals = versions.filter(kind="original").select(*key, first="arrival_date")
    later = versions.filter(pl.col("kind").is_in(["correction", "move", "void"])).join(originals, on=key)
    assert (later["arrival_date"] < later["first"]).any()


def test_a_larger_sample_has_more_lines_with_keys_of_their_own(tmp_path: Path) -> None:
    large = Simulation(days=2, scale=3)
    land(large, tmp_path, large.last)
    originals = truth(tmp_path, "transactions").filter(pl.col("updated_at").dt.date() == pl.col("event_date"))
    lines = originals.unique(["basket_id", "product_id"])
    assert len(lines) == 3 * len(read_lines(large.first, large.last))
    assert lines["household_id"].is_between(1, 2500).all()
    daily = originals.group_by("event_date").len()["len"]
    assert len(daily) == 2


@pytest.mark.proof
def test_nothing_arrives_for_or_on_a_closed_day(tmp_path: Path) -> None:
    [closed] = CLOSED
    around = Simulation(first=closed - timedelta(days=20), days=28, rates=Rates(moved=0.2, late=0.2))
    land(around, tmp_path, around.last_arrival)
    assert not (tmp_path / "transactions" / str(closed)).exists()
    versions = truth(tmp_path, "transactions")
    assert closed not in set(versions["event_date"])
    assert (versions["arrival_date"] - versions["event_date"]).max() <= timedelta(days=90)  # type: ignore[operator]


def test_products_change_and_the_oracle_follows_them(month: Path) -> None:
    products = truth(month, "products")
    assert products.filter(kind="original").height == 92_331
    assert products.filter(kind="change").height == 300
    corrections = products.filter(kind="correction")
    assert corrections.height > 0
    assert (corrections["arrival_date"] > corrections["effective_date"]).all()


def test_the_oracle_of_a_flawless_sample_is_the_source(flawless: Path) -> None:
    oracle = Oracle(flawless, MONTH.last_arrival, MONTH.last)
    source = with_money(read_lines(MONTH.first, MONTH.last))
    assert oracle.rows("silver.transactions") == len(source)
    received = total(source, "sales_value") - total(source, "coupon_disc")
    assert total(expected(oracle, "silver.transactions"), "net_amount") == received
    sales = expected(oracle, "gold.daily_sales")
    assert total(sales, "net") == received
    assert total(sales, "lines") == len(source)
    assert (sales["gross"] - sales["discounts"] == sales["net"]).all()
    month_to_date = expected(oracle, "gold.sales_month_to_date")
    assert total(month_to_date.filter(event_date=MONTH.last), "net") == received
    households = expected(oracle, "gold.household_28d")
    assert households["recency_days"].is_between(0, 27).all()
    last28 = source.filter(pl.col("event_date") > MONTH.last - timedelta(days=28))
    found = households.filter(event_date=MONTH.last)
    assert total(found, "trips") == last28["basket_id"].n_unique()
    assert total(found, "spend") == total(last28, "sales_value") - total(last28, "coupon_disc")


def test_the_oracle_knows_only_what_has_arrived(month: Path) -> None:
    early, late = (Oracle(month, until, MONTH.last) for until in (MONTH.last, MONTH.last_arrival))
    assert early.rows("silver.transactions") < late.rows("silver.transactions")
    for table in DERIVED:
        assert late.differences(table, late.arrow(table)) == []
    found = early.differences("gold.daily_sales", late.arrow("gold.daily_sales"))
    assert {row[0] for row in found} == {"missing", "unexpected"}


def test_a_recount_corrects_five_lines_of_which_nothing_else_is_known_and_is_landed_once(
    month: Path, tmp_path: Path
) -> None:
    shutil.copytree(month, tmp_path / "landing")
    landing = tmp_path / "landing"
    recount = land_recount(MONTH, landing)
    assert recount is not None
    assert recount.day == date(2017, 1, 15), "the middle of the sample"
    with (landing / recount.path).open() as file:
        rows = list(csv.DictReader(file))
    every = truth(landing, "transactions")
    assert len(rows) == 5
    for row in rows:
        key = {name: int(row[name]) for name in RAW_TRANSACTIONS.key}
        [line] = every.filter(**key).rows(named=True)
        assert (line["event_date"], line["store_id"]) == (recount.day, recount.store)
        assert Decimal(row["sales_value"]) == 2 * line["sales_value"]
        assert row["updated_at"] > f"{line['updated_at']:%Y-%m-%dT%H:%M:%SZ}"
    before = contents(landing)
    assert land_recount(MONTH, landing) == recount
    assert contents(landing) == before
    assert land(MONTH, landing, MONTH.last_arrival).files == 0


def test_where_no_day_has_five_such_lines_there_is_no_recount(tmp_path: Path) -> None:
    holiday = Simulation(first=date(2017, 12, 25), days=1)
    land(holiday, tmp_path, holiday.last)
    assert land_recount(holiday, tmp_path) is None
