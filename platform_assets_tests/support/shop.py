"""A shop's orders in a real PostgreSQL, which its application changes, and as a raw table that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, LiteralString

import psycopg

from platform_assets.contracts import Column, Contract, Domain, Input, same_day
from platform_assets.sources.postgres import READING, PostgresTable
from platform_assets_tests.support.postgres import PostgresServer

URL = "SHOP_DATABASE_URL"
PASSWORD = "s3cret/reader"
_ORDER = (
    Column("order_id", "long", "Which order.", nullable=False),
    Column("amount", "decimal(12,2)", "Dollars."),
    Column("note", "string", "What the customer wrote."),
    Column("tags", "string", "A list, as JSON."),
    Column("ordered_at", "timestamp", "When it was ordered, UTC.", nullable=False),
    Column("updated_at", "timestamp", "When the row was changed last, UTC."),
    *READING,
)
RAW = Contract(
    name="raw.orders",
    description="Orders as the shop's database has them.",
    owner="shop@example.com",
    columns=_ORDER,
    key=("order_id",),
    source=PostgresTable("orders", table="public.orders", url_env=URL, overlap_minutes=10),
    event_time="ordered_at",
    updated_at="read_at",
    voided="is_deleted",
    restatement_window_days=36_500,
    moves_within_days=3,
)
SILVER = Contract(
    name="silver.orders",
    description="One row per order.",
    owner="shop@example.com",
    columns=_ORDER,
    key=("order_id",),
    inputs=(Input("raw.orders", same_day()),),
)
DOMAIN = Domain("shop", (RAW, SILVER), "platform_assets_tests.support.domains.transforms")

_TABLE: LiteralString = """
CREATE TABLE orders (
  order_id bigint PRIMARY KEY, amount numeric, note text, tags text[], ordered_at timestamptz,
  updated_at timestamptz DEFAULT now()
);
CREATE INDEX ON orders (updated_at);
"""


@dataclass(frozen=True)
class Shop:
    """The application's own way into its database.

    Args:
        url: as its owner.
        reader: as the role that may only read.
    """

    url: str
    reader: str

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """Commit at the end."""
        with psycopg.connect(self.url) as connection:
            yield connection

    def run(self, statement: LiteralString, *values: object) -> None:
        """One transaction."""
        with self.transaction() as connection:
            connection.execute(statement, values or None)

    def order(self, number: int, amount: str = "10.00", at: str = "2017-01-01 10:00Z", **others: object) -> None:
        """Write an order as it is from now on; its `updated_at` is the transaction's time unless given."""
        row = {"note": None, "tags": None, "updated_at": None} | others
        self.run(
            "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, coalesce(%s::timestamptz, now())) ON CONFLICT (order_id) "
            "DO UPDATE SET amount = excluded.amount, note = excluded.note, tags = excluded.tags, "
            "ordered_at = excluded.ordered_at, updated_at = excluded.updated_at",
            number,
            amount,
            row["note"],
            row["tags"],
            at,
            row["updated_at"],
        )

    def content(self) -> dict[tuple[date, int], str | None]:
        """Amounts by day and order."""
        with self.transaction() as connection:
            rows = connection.execute("SELECT (ordered_at AT TIME ZONE 'UTC')::date, order_id, amount FROM orders")
            return {(day, number): amount and f"{amount:.2f}" for day, number, amount in rows}


def open_shop(server: PostgresServer) -> Shop:
    """A fresh database, and a role that reads it."""
    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'shop_reader'").fetchone():
            connection.execute("CREATE ROLE shop_reader LOGIN PASSWORD 's3cret/reader'")
            connection.execute("GRANT pg_read_all_stats TO shop_reader")
        connection.execute("GRANT SELECT ON orders TO shop_reader")
    head, _, rest = url.partition("://")
    return Shop(url, f"{head}://shop_reader:s3cret%2Freader@{rest.partition('@')[2]}")
