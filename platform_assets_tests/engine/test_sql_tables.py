"""Tables in SQL come out as the Python functions of the same contracts do, and are stale when their query changes."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import HOUSEHOLD_28D, TABLES
from platform_assets.domains.retail.transforms import gold, silver
from platform_assets.engine.platform import code_versions
from platform_assets.engine.step.analysis import analysis_mistakes
from platform_assets.engine.user_code import column_sources, function_mistakes
from platform_assets.operations import outbox
from platform_assets.operations.verify import why_refused
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import DayContent
from platform_assets.spark.windows import Windowed, relations
from platform_assets_tests.support.cli.products import publish_on_paper
from platform_assets_tests.support.openlineage import consuming
from platform_assets_tests.support.world import MakeWorld, World, product, sale

QUERIES = {
    "silver/transactions": """
        SELECT * EXCEPT (voided), CAST(sales_value - coupon_disc AS decimal(12,2)) AS net_amount FROM transactions""",
    "silver/products": "SELECT * EXCEPT (updated_at) FROM products;",
    "gold/daily_sales": """
        WITH lines AS (
            SELECT t.*, coalesce(p.department, 'UNKNOWN') AS department, sales_value + retail_disc + coupon_match_disc
                AS gross, retail_disc + coupon_match_disc + coupon_disc AS discounts
            FROM transactions t
            LEFT JOIN products p ON p.product_id = t.product_id AND p._valid_from <= t.event_date
                AND (p._valid_to IS NULL OR t.event_date < p._valid_to)
        )
        SELECT event_date, store_id, department, count(*) AS lines, count(DISTINCT basket_id) AS baskets,
            sum(quantity) AS units, CAST(sum(gross) AS decimal(18,2)) AS gross,
            CAST(sum(discounts) AS decimal(18,2)) AS discounts, CAST(sum(gross - discounts) AS decimal(18,2)) AS net
        FROM lines GROUP BY event_date, store_id, department""",
    "gold/household_28d": """
        WITH daily AS (
            SELECT event_date, household_id, count(DISTINCT basket_id) AS trips, sum(net_amount) AS spend
            FROM transactions_rows GROUP BY event_date, household_id
        )
        SELECT w.event_date, household_id, CAST(sum(spend) AS decimal(18,2)) AS Spend, sum(trips) AS trips,
            min(date_diff(w.event_date, w.source_date)) AS recency_days
        FROM transactions_window w JOIN daily d ON d.event_date = w.source_date
        GROUP BY w.event_date, household_id""",
    "gold/sales_month_to_date": Path(str(gold.__file__))
    .with_name("gold")
    .joinpath("sales_month_to_date.sql")
    .read_text(encoding="utf-8"),
}

MONTH_IN_PYTHON = """

def sales_month_to_date(daily_sales: Windowed) -> DataFrame:
    sums = [F.sum(name).cast(type_).alias(name) for name, type_ in FIGURES.items()]
    return daily_sales.per_day().groupBy("event_date", "store_id", "department").agg(*sums)
"""
"""What the shipped domain has as a query."""


@pytest.fixture
def with_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Makes a domain of the retail tables, computed by some files; gives the name of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def made(name: str, files: dict[str, str]) -> str:
        for file, text in {"__init__.py": "", **files}.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text, encoding="utf-8")
        domain = types.ModuleType(f"{name}_domain")
        vars(domain)["DOMAIN"] = Domain("retail", TABLES, name)
        monkeypatch.setitem(sys.modules, f"{name}_domain", domain)
        return f"{name}_domain"

    yield made
    for name in [name for name in sys.modules if name.startswith(("of_sql", "of_python"))]:
        del sys.modules[name]


def in_sql(**changed: tuple[str, str]) -> dict[str, str]:
    """The files of all tables, with a part of the text of some replaced."""
    files = {f"{name}.sql": text for name, text in QUERIES.items()}
    for table, (old, new) in changed.items():
        [file] = [file for file in files if file.endswith(f"/{table}.sql")]
        assert old in files[file]
        files[file] = files[file].replace(old, new)
    return files


def deliver(world: World) -> None:
    """Sales of three days, and one product that goes to another department."""
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "MEAT")])
    world.deliver_rows("products", "2017-01-03", "p.jsonl", [product(1, "2017-01-03", "DELI")])
    for number, day in enumerate(("2017-01-01", "2017-01-02", "2017-01-03"), 1):
        rows = [sale(10 * number + basket, item, day) for basket in (1, 2) for item in (1, 2)]
        world.deliver_rows("transactions", day, "t.jsonl", rows)


def correct(world: World) -> None:
    """One sale has another amount, and one moves to another day."""
    newer = {"updated_at": "2017-01-03T23:00:00Z"}
    rows = [sale(11, 1, "2017-01-01", sales_value="9.99", **newer), sale(22, 2, "2017-01-03", **newer)]
    world.deliver_rows("transactions", "2017-01-03", "c.jsonl", rows)


def test_all_tables_in_sql_come_out_as_in_python_and_so_do_corrections(
    make_world: MakeWorld, with_code: Callable[..., str]
) -> None:
    """Same day, month to date, 28 days and as of a day; two platforms, so it takes a minute."""
    source = {module: Path(str(module.__file__)).read_text(encoding="utf-8") for module in (silver, gold)}
    python = with_code("of_python", {"silver.py": source[silver], "gold.py": source[gold] + MONTH_IN_PYTHON})
    of_sql, of_python = make_world(days=3, domains=with_code("of_sql", in_sql())), make_world(days=3, domains=python)
    deliver(of_sql)
    deliver(of_python)
    of_sql.refresh()
    first = of_sql.digests()
    for world in (of_sql, of_python):
        correct(world)
        world.refresh()
    assert of_sql.digests() == of_python.digests()
    changed = {table for table, days in of_sql.digests().items() if days != first[table]}
    assert changed >= {"silver.transactions", "gold.daily_sales", "gold.household_28d", "gold.sales_month_to_date"}
    assert {len(days) for table, days in first.items() if table.startswith("gold.")} == {3}


def test_only_what_can_give_other_rows_makes_a_table_stale(
    make_world: MakeWorld, with_code: Callable[..., str]
) -> None:
    def versions(**changed: tuple[str, str]) -> dict[str, str]:
        with make_world(days=1, domains=with_code("of_sql", in_sql(**changed))).open() as platform:
            return code_versions(platform.catalogue)

    first = versions()
    assert versions(daily_sales=("WITH lines AS (\n", "-- per line\nwith lines as(")) == first
    changed = versions(daily_sales=("'UNKNOWN'", "'unknown'"))
    assert {table for table in first if changed[table] != first[table]} == {"gold.daily_sales"}


@pytest.mark.parametrize(
    ("table", "old", "new", "says", "todo"),
    [
        ("daily_sales", "FROM transactions t", "FROM transaction t", "reads transaction in", "mean transactions?"),
        ("daily_sales", "FROM transactions t", "FROM silver.transactions t", "silver.transactions", "Declare it in"),
        ("daily_sales", "FROM transactions t", "FROM delta.`/lake/x` t", "reads delta./lake/x in", "Declare it in"),
        ("daily_sales", "FROM transactions t", "FROM transactions_window t", "through same_day", "span(6)"),
        ("daily_sales", "count(*)", "rand() + count(*)", "rand in", "Leave it out"),
        ("daily_sales", "count(*)", "count(current_date)", "reads the clock", "Leave it out"),
        ("daily_sales", "count(*)", "count(DATE 'Today')", "'today' in", "Leave it out"),
        ("daily_sales", "count(*)", "count(event_date < ' now UTC')", "reads the clock", "Leave it out"),
        ("daily_sales", "count(*)", "count(CAST('yesterday' AS timestamp))", "reads the clock", "Leave it out"),
        ("products", "SELECT *", "WITH RECURSIVE a AS (SELECT 1) SELECT *", "is recursive in", "in Python"),
        ("products", "SELECT * EXCEPT (updated_at)", "SELECT TRANSFORM (brand) USING 'cat'", "a program", "in Python"),
        ("products", "SELECT *", "INSERT INTO products SELECT *", "is no SELECT", "creates and writes it"),
        ("products", "SELECT *", "DROP TABLE t; SELECT *", "more than one statement", "one SELECT"),
        ("products", "SELECT *", "SHOW TABLES --", "is no SELECT", "creates and writes it"),
        ("products", "FROM products", "FROM (products", "cannot be read by sqlglot", "Correct it"),
        ("products", "FROM products", "WHERE 'x FROM products", "has a ' without its end", "one SELECT"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_without_spark_with_file_line_and_column(
    make_world: MakeWorld, with_code: Callable[..., str], table: str, old: str, new: str, says: str, todo: str
) -> None:
    files = in_sql(**{table: (old, new)})
    with make_world(days=1, domains=with_code("of_sql", files)).open() as platform:
        [mistake] = function_mistakes(platform.catalogue)
    assert says in mistake.what
    assert todo in mistake.todo
    [(file, text)] = [(file, text) for file, text in files.items() if file.endswith(f"/{table}.sql")]
    assert mistake.place
    assert mistake.place in mistake.what
    where, _, at = mistake.place.partition(", line ")
    assert where.endswith(file)
    line, column = (int(part) for part in at.split(", column "))
    assert 1 <= column <= len(text.split("\n")[line - 1])


def test_a_text_that_is_no_moment_is_none(make_world: MakeWorld, with_code: Callable[..., str]) -> None:
    files = in_sql(daily_sales=("'UNKNOWN'", "nullif(if(p.updated = 'now', 'today', DATE '2017-01-01'), 'x')"))
    with make_world(days=1, domains=with_code("of_sql", files)).open() as platform:
        assert list(function_mistakes(platform.catalogue)) == []


def test_a_table_has_a_query_or_a_function(make_world: MakeWorld, with_code: Callable[..., str]) -> None:
    files = in_sql() | {"silver.py": "def products(products):\n    return products\n"}
    with make_world(days=1, domains=with_code("of_sql", files)).open() as platform:
        [mistake] = function_mistakes(platform.catalogue)
    assert "silver.products has a query in" in mistake.what
    assert mistake.todo == "Remove one of them."


@pytest.mark.parametrize(
    ("table", "old", "new", "says", "word"),
    [
        ("household_28d", "sum(spend)", "sum(spent)", "`spent` cannot be resolved. Did you mean", "spent"),
        ("daily_sales", "= t.product_id", "= product_id", "Reference `product_id` is ambiguous", "product_id"),
        ("daily_sales", "AS units", "AS pieces", "units is missing; pieces is not declared", ""),
        ("daily_sales", "count(*) AS lines", "'1' AS lines", "lines is string, declared long", ""),
        ("daily_sales", "AS units", "AS Lines", "returns more than one column lines", ""),
        ("daily_sales", "sum(quantity)", "add_up(quantity)", "routine `ADD_UP`", "add_up"),
    ],
)
def test_what_spark_finds_wrong_is_told_with_line_and_column(
    make_world: MakeWorld,
    with_code: Callable[..., str],
    spark: SparkSession,
    table: str,
    old: str,
    new: str,
    says: str,
    word: str,
) -> None:
    files = in_sql(**{table: (old, new)})
    with make_world(days=1, domains=with_code("of_sql", files)).open() as platform:
        [mistake] = analysis_mistakes(platform.catalogue, [f"gold.{table}"], spark)
    assert says in mistake.what
    assert mistake.todo
    if word:
        text = files[f"gold/{table}.sql"]
        before = text[: text.index(new) + new.index(word)].split("\n")
        assert f"{table}.sql, line {len(before)}, column {len(before[-1]) + 1}" in mistake.what


def test_lineage_goes_through_common_table_expressions_windows_and_joins(
    make_world: MakeWorld, with_code: Callable[..., str]
) -> None:
    with make_world(days=1, domains=with_code("of_sql", in_sql())).open() as platform:
        catalogue = platform.catalogue
        month = column_sources(catalogue, catalogue["gold.sales_month_to_date"])
        silvers = column_sources(catalogue, catalogue["silver.products"])
        daily = column_sources(catalogue, catalogue["gold.daily_sales"])
    assert month["net"] == ("gold.daily_sales.net",)
    assert silvers["brand"] == ("raw.products.brand",)
    assert daily["department"] == ("silver.products.department",)
    assert daily["lines"] == ()


def test_lineage_events_have_the_columns_and_the_query_of_a_table_in_sql(
    make_world: MakeWorld, with_code: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, digest = "gold.daily_sales", str(Digest(0, (0, 0, 0, 0)))
    empty = DayContent(files=(), base=(), digest=digest, rows=0, bytes=0)
    with consuming() as consumer, make_world(days=1, domains=with_code("of_sql", in_sql())).open() as platform:
        monkeypatch.setenv("OPENLINEAGE_URL", consumer.url)
        day, code = platform.calendar.first, platform.code_versions[name]
        publish_on_paper(platform, name, {day: empty}, code_version=code, reads={})
        outbox.deliver(platform)
    assert consumer.refused == []
    [event] = consumer.of(name)
    [read] = event["outputs"][0]["facets"]["columnLineage"]["fields"]["department"]["inputFields"]
    assert (read["name"].rpartition("/lake")[2], read["field"]) == ("/silver/products", "department")
    assert event["job"]["facets"]["sql"]["query"].strip().startswith("WITH lines AS")


def test_sail_computes_no_query(make_world: MakeWorld, with_code: Callable[..., str]) -> None:
    """It is said without asking Spark what it plans."""

    def no_session() -> SparkSession:
        raise AssertionError("started")

    with make_world(days=1, domains=with_code("of_sql", in_sql())).open() as platform:
        refused = why_refused(platform, no_session, platform.catalogue["gold.daily_sales"])
    assert "Sail reads by a grammar of its own" in refused


def test_what_is_read_for_a_day_is_what_the_window_holds(spark: SparkSession) -> None:
    rows = [(1, date(2017, 1, day)) for day in (1, 2, 20)]
    frame = spark.createDataFrame(rows, "k long, event_date date")
    given = Windowed(frame, HOUSEHOLD_28D.inputs[0].window, [date(2017, 1, 2), date(2017, 1, 20)])
    pairs = {(row["event_date"].day, row["source_date"].day) for row in relations("t", given)["t_window"].collect()}
    assert pairs == {(2, 1), (2, 2), (20, 1), (20, 2), (20, 20)}
