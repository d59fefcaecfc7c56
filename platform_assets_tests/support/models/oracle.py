"""What silver and gold must hold, computed by DuckDB from the sample's truth and from nothing else.

Nothing here is shared with the platform but the contracts' column names and types.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Collection, Iterator
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from platform_assets.contracts import DAY, Contract
from platform_assets.domains.retail.contracts import TABLES
from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute_step
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.planning.steps import Step
from platform_assets_tests.support.history import RETAIL
from platform_assets_tests.support.world import MakeWorld, World

_TYPES = {
    "long": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "decimal(12,2)": pa.decimal128(12, 2),
    "decimal(18,2)": pa.decimal128(18, 2),
}
_CONTRACTS = {contract.name: contract for contract in TABLES}
DERIVED = tuple(contract.name for contract in TABLES if contract.layer != "raw")


class Oracle:
    """Expected tables as they are once everything up to an arrival date was taken.

    Args:
        landing: landing root of a sample; its hidden truth is read.
        until: newest arrival date that counts.
        last: last day of the calendar.
        first: first day of the calendar.
    """

    def __init__(self, landing: Path, until: date, last: date, first: date = date(2017, 1, 1)) -> None:
        self._db = duckdb.connect()
        self._db.execute("SET TimeZone = 'UTC'; SET threads = 2")
        for name in ("transactions", "products"):
            versions = f"read_parquet('{landing / '.truth' / f'{name}.parquet'}')"
            self._db.execute(
                f"CREATE VIEW {name}_versions AS SELECT * FROM {versions} "
                f"WHERE arrival_date <= DATE '{until}' AND kind NOT IN ('malformed_refused', 'malformed_quarantined')"
            )
        days = f"generate_series(DATE '{first}', DATE '{last}', INTERVAL 1 DAY)"
        self._db.execute(f"CREATE TABLE calendar AS SELECT unnest({days})::DATE AS day")
        for name in DERIVED:
            self._db.execute(f"CREATE TABLE {_sql_name(name)} AS {_QUERIES[name]()}")

    def relation(self, table: str) -> duckdb.DuckDBPyRelation:
        """A table with exactly the contract's columns and `event_date`, in no order."""
        columns = ", ".join((*_CONTRACTS[table].column_names, DAY))
        return self._db.sql(f"SELECT {columns} FROM {_sql_name(table)}")

    def arrow(self, table: str) -> pa.Table:
        """A table with exactly the contract's columns and types and `event_date`, ordered by day and key."""
        contract = _CONTRACTS[table]
        key = ", ".join((DAY, *contract.key))
        return self.relation(table).order(key).to_arrow_table().cast(arrow_schema(contract))

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        [(count,)] = self._db.sql(f"SELECT count(*) FROM {_sql_name(table)}").fetchall()
        return int(count)

    def differences(self, table: str, found: pa.Table) -> list[tuple]:
        """Rows that are only expected or only found, at most twenty; duplicates count.

        Each begins with `missing` or `unexpected`.
        """
        columns = ", ".join((*_CONTRACTS[table].column_names, DAY))
        self._db.register("found", found)
        query = (
            f"(SELECT 'missing' AS what, * FROM (SELECT {columns} FROM {_sql_name(table)} "
            f"EXCEPT ALL SELECT {columns} FROM found) LIMIT 10) UNION ALL "
            f"(SELECT 'unexpected' AS what, * FROM (SELECT {columns} FROM found "
            f"EXCEPT ALL SELECT {columns} FROM {_sql_name(table)}) LIMIT 10)"
        )
        rows = self._db.sql(query).fetchall()
        self._db.unregister("found")
        return rows


def arrow_schema(contract: Contract) -> pa.Schema:
    """The contract's columns and the day."""
    return pa.schema([*((column.name, _TYPES[column.type]) for column in contract.columns), (DAY, pa.date32())])


def _sql_name(table: str) -> str:
    return table.replace(".", "_")


_IN_CALENDAR = f"{DAY} IN (SELECT day FROM calendar)"
"""A version on another day beats older ones all the same, and is not seen."""


def _newest(name: str, key: str) -> str:
    return f"SELECT * FROM {name}_versions QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY updated_at DESC) = 1"


def _silver_transactions() -> str:
    newest = _newest("transactions", "basket_id, product_id")
    net = "(sales_value - coupon_disc)::DECIMAL(12,2) AS net_amount"
    return f"SELECT *, {net} FROM ({newest}) WHERE NOT voided AND {_IN_CALENDAR}"


def _silver_products() -> str:
    newest = _newest("products", "product_id, effective_date")
    return f"SELECT * FROM ({newest}) WHERE length(trim(department)) > 0 AND {_IN_CALENDAR}"


def _daily_sales() -> str:
    return """
        WITH lines AS (
            SELECT t.event_date, store_id, basket_id, quantity, sales_value, retail_disc, coupon_disc,
                   coupon_match_disc, coalesce(p.department, 'UNKNOWN') AS department
            FROM silver_transactions t
            ASOF LEFT JOIN silver_products p ON t.product_id = p.product_id AND t.event_date >= p.event_date
        )
        SELECT event_date, store_id, department,
               count(*) AS lines,
               count(DISTINCT basket_id) AS baskets,
               sum(quantity) AS units,
               sum(sales_value + retail_disc + coupon_match_disc)::DECIMAL(18,2) AS gross,
               sum(retail_disc + coupon_match_disc + coupon_disc)::DECIMAL(18,2) AS discounts,
               sum(sales_value - coupon_disc)::DECIMAL(18,2) AS net
        FROM lines GROUP BY ALL
    """


def _household_28d() -> str:
    return """
        WITH trips AS (
            SELECT household_id, event_date AS day, count(DISTINCT basket_id) AS trips, sum(net_amount) AS spend
            FROM silver_transactions GROUP BY ALL
        )
        SELECT c.day AS event_date, household_id,
               sum(spend)::DECIMAL(18,2) AS spend,
               sum(trips) AS trips,
               c.day - max(t.day) AS recency_days
        FROM calendar c JOIN trips t ON t.day BETWEEN c.day - 27 AND c.day
        GROUP BY c.day, household_id
    """


def _sales_month_to_date() -> str:
    sums = ", ".join(f"sum({name}) AS {name}" for name in ("lines", "baskets", "units", "gross", "discounts", "net"))
    return f"""
        SELECT c.day AS event_date, store_id, department, {sums}
        FROM calendar c JOIN gold_daily_sales s ON s.event_date BETWEEN date_trunc('month', c.day)::DATE AND c.day
        GROUP BY c.day, store_id, department
    """


_QUERIES: dict[str, Callable[[], str]] = {
    "silver.transactions": _silver_transactions,
    "silver.products": _silver_products,
    "gold.daily_sales": _daily_sales,
    "gold.household_28d": _household_28d,
    "gold.sales_month_to_date": _sales_month_to_date,
}


Landing = Callable[[World, Simulation], Iterator[date | None]]
"""Lands one batch after another, and says up to which arrival date everything is there; None if no date says it."""

SALES = "silver.transactions"


def in_order(world: World, simulation: Simulation) -> Iterator[date | None]:
    """Half of the days, the other half, then everything that came late."""
    for until in (simulation.first + timedelta(days=simulation.days // 2), simulation.last, simulation.last_arrival):
        land(simulation, world.settings.landing_folder, until)
        yield until


def shuffled(world: World, simulation: Simulation) -> Iterator[date | None]:
    """All files in two deliveries that have nothing to do with their dates."""
    aside = world.settings.state / "aside"
    land(simulation, aside, simulation.last_arrival)
    files = sorted(path for path in aside.glob("*/*/*") if not path.parts[-3].startswith("."))
    random.Random(simulation.seed).shuffle(files)
    shutil.copytree(aside / ".truth", world.settings.landing_folder / ".truth")
    for half, until in ((files[::2], None), (files[1::2], simulation.last_arrival)):
        for file in half:
            _deliver(file, world.settings.landing_folder / file.relative_to(aside))
        yield until


def twice(world: World, simulation: Simulation) -> Iterator[date | None]:
    """Every file once more under another name, after it was taken."""
    land(simulation, world.settings.landing_folder, simulation.last)
    yield simulation.last
    land(simulation, world.settings.landing_folder, simulation.last_arrival)
    for file in sorted(world.settings.landing_folder.glob("*/*/*")):
        if not file.parts[-3].startswith("."):
            _deliver(file, file.with_name(f"again-{file.name}"))
    yield simulation.last_arrival


def _deliver(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def check(
    make_world: MakeWorld, simulation: Simulation, way: Landing, unusual: Collection[date] = (), domain: str = RETAIL
) -> None:
    """Land in some way, refresh after each batch, and compare every table with the oracle of all that is there.

    Args:
        make_world: the fixture.
        simulation: what is landed.
        way: how.
        unusual: days of sales that are held, exactly these, because their volume is far from all that is known when
            they are first computed. Somebody has to accept them before everything is there.
        domain: whose tables are computed.
    """
    world = make_world(days=simulation.days, today=simulation.last_arrival, domains=domain)
    lake = Lake.at(world.settings.lake)
    with world.open() as platform:
        tables = [table for table in DERIVED if table in platform.catalogue.names]
    assert tables
    met: set[date] = set()
    for until in way(world, simulation):
        world.refresh()
        met |= _accept_volume(world)
        if until is not None:
            oracle = Oracle(world.settings.landing_folder, until, min(until, simulation.last))
            for table in tables:
                assert oracle.differences(table, read_arrow(lake, table)) == [], (until, table)
    assert met == set(unusual)


def _accept_volume(world: World) -> set[date]:
    """Publish the sales that were held for their volume, and what is made from them; nothing else may be held."""
    with world.open() as platform:
        holds = platform.ledger.holds()
        assert {(hold.table, hold.gate) for hold in holds} <= {(SALES, "volume")}
        days = {hold.day for hold in holds}
        if days:
            author = Author("test", "few customers around a holiday")
            recompute_step(platform, lambda: world.spark, Step(SALES, tuple(sorted(days))), author, accept=["volume"])
    if days:
        world.refresh()
    return days
