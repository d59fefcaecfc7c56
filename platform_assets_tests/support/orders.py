"""Orders of four stores, judged by a rule of each kind; ways to spoil a day of them, and what readers see of it."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import (
    Amount,
    Checks,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    Reconciliation,
    Rule,
    Settled,
    as_of,
    compare,
    exists,
    in_range,
    length,
    matches,
    not_null,
    one_of,
    same_day,
    unique,
)
from platform_assets_tests.support.world import World

STORES = ("north", "east", "south", "west")
_OWNER = "orders@example.com"
_STORE = Column("store", "string", "Where it was sold.")
_ITEM = Column("item", "string", "What was sold.", nullable=False)
_SINCE = Column("since", "date", "First day on which it is sold.", nullable=False)
_UPDATED = Column("updated_at", "timestamp", "When the source wrote this version, UTC.", nullable=False)
_ORDER = (
    Column("order_id", "long", "Which order.", nullable=False),
    _STORE,
    Column("item", "string", "What was sold."),
    Column("quantity", "int", "Units sold."),
    Column("price", "decimal(12,2)", "Euro for a unit.", additive=False),
    Column("currency", "string", "Of the price."),
    Column("note", "string", "As the customer wrote it."),
    Column("ordered_at", "timestamp", "When it was ordered, UTC.", nullable=False),
    _UPDATED,
)
_RULES = (
    Rule("store_given", not_null("store"), "An order has a store."),
    Rule("store_known", one_of("store", *STORES), "There are four stores.", where="store IS NOT NULL"),
    Rule("item_code", matches("item", r"[a-z]+-\d{4}"), "Items have codes."),
    Rule("quantity_in_range", in_range("quantity", 1, 100), "Nobody orders more."),
    Rule("price_in_range", "price BETWEEN 0.01 AND 500", "Nothing is free, nothing is dearer."),
    Rule("in_euro", one_of("currency", "EUR"), "All is paid in Euro."),
    Rule("written_after", compare("ordered_at", "<=", "updated_at"), "No version is older than its order."),
    Rule("short_note", length("note", most=40), "Notes are short.", severity="warn", where="note IS NOT NULL"),
    Rule("open", "hour(ordered_at) BETWEEN 8 AND 19", "From 8 to 20 UTC.", severity="block", tolerance="5 %"),
    Rule("item_known", exists("item", table="silver.items"), "We sell it.", severity="block", tolerance="5 %"),
    Rule("ordered_once", unique("store", "item", "quantity", "price", "ordered_at"), "One each.", severity="block"),
)

TABLES = (
    Contract(
        name="raw.orders",
        description="Orders as delivered.",
        owner=_OWNER,
        columns=(*_ORDER, Column("voided", "boolean", "Taken back.")),
        key=("order_id",),
        source=LandingFiles("orders"),
        event_time="ordered_at",
        updated_at="updated_at",
        voided="voided",
        moves_within_days=10,
        restatement_window_days=20,
    ),
    Contract(
        name="raw.items",
        description="Items as delivered.",
        owner=_OWNER,
        columns=(_ITEM, _SINCE),
        key=("item", "since"),
        source=LandingFiles("items"),
        event_time="since",
        delivers="on change",
    ),
    Contract(
        name="silver.orders",
        description="One row per order.",
        owner=_OWNER,
        columns=_ORDER,
        key=("order_id",),
        inputs=(Input("raw.orders", same_day()), Input("silver.items", as_of())),
        rules=_RULES,
        checks=Checks(volume="block", rivals="block", most_aside_percent=50),
        code_version="1",  # code that a test puts in its place makes no other day stale
    ),
    Contract(
        name="silver.items",
        description="Items and the day from which they are sold.",
        owner=_OWNER,
        columns=(_ITEM, _SINCE),
        key=("item", "since"),
        inputs=(Input("raw.items", same_day()),),
    ),
    Contract(
        name="gold.store_sales",
        description="Orders of a day by store.",
        owner=_OWNER,
        columns=(
            Column("store", "string", "Where it was sold.", nullable=False),
            Column("orders", "long", "How many.", nullable=False),
            Column("units", "long", "Units sold.", nullable=False),
            Column("revenue", "decimal(18,2)", "Euro.", nullable=False),
        ),
        key=("store",),
        inputs=(Input("silver.orders", same_day()),),
        rules=(Rule("plausible", "revenue <= 20 * units", "A unit costs 20 at most.", severity="block"),),
        reconciles=(
            Reconciliation(
                "silver.orders",
                by=("store",),
                amounts=(
                    Amount("orders", "sum(orders)", "count(1)"),
                    Amount("revenue", "sum(revenue)", "sum(quantity * price)"),
                ),
            ),
        ),
        code_version="1",
        settled=(Settled(("revenue",), by=("store",), after_days=14, tolerance="5 %"),),
    ),
)

DOMAIN = Domain("orders", TABLES, "platform_assets_tests.support.domains.transforms")


CLEAN, TODAY, LINES = 30, 31, 20
ITEMS = ("tea-0001", "tea-0002", "rice-0001", "oil-0001", "salt-0001")
Row = dict[str, Any]
Rows = list[Row]
Files = Mapping[str, Rows | bytes]
Spoil = Callable[[Rows], Rows | bytes | Files]
Transform = Callable[[DataFrame], DataFrame]
Shown = dict[date, dict[Any, tuple[Any, ...]]]
"""What readers see of a table: the content of each row, by day and key."""


def day(number: int) -> date:
    """Return a day by its number in January 2017."""
    return date(2016, 12, 31) + timedelta(number)


def clean(number: int) -> Rows:
    """Return the orders of a day as the source writes them."""
    return [
        {
            "order_id": 1000 * number + n,
            "store": STORES[n % 4],
            "item": ITEMS[n % 5],
            "quantity": 1 + n % 3,
            "price": f"{4 + n % 7 * 0.5:.2f}",
            "currency": "EUR",
            "note": "for Zoë" if n == 0 else "",
            "ordered_at": f"{day(number)}T{8 + n % 12:02}:00:00Z",
            "updated_at": f"{day(number)}T{8 + n % 12:02}:05:00Z",
            "voided": "false",
        }
        for n in range(LINES)
    ]


def text(rows: Rows) -> str:
    """Return rows as CSV with a header."""
    written = io.StringIO()
    writer = csv.DictWriter(written, rows[0] if rows else clean(1)[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def path(name: str, number: int = TODAY) -> str:
    """Return where a file lands that arrives on a day."""
    return f"orders/{day(number)}/{name}"


def some(count: int = LINES, **changes: Any) -> Callable[[Rows], Rows]:
    """Change fields of the first rows; a function gets the row."""
    return lambda rows: [
        row | {name: new(row) if callable(new) else new for name, new in changes.items()} if n < count else row
        for n, row in enumerate(rows)
    ]


def written(change: Callable[[str], str | bytes]) -> Spoil:
    """Change the text of the file."""

    def spoil(rows: Rows) -> bytes:
        changed = change(text(rows))
        return changed.encode() if isinstance(changed, str) else changed

    return spoil


def later(moment: str, hours: int) -> str:
    """Return a moment some hours later, as the source writes it."""
    at, hour = date.fromisoformat(moment[:10]), int(moment[11:13]) + hours
    return f"{at + timedelta(hour // 24)}T{hour % 24:02}{moment[13:]}"


def shifted(hours: int) -> Spoil:
    """Write all moments as if clocks were some hours ahead."""
    return some(
        ordered_at=lambda row: later(row["ordered_at"], hours), updated_at=lambda row: later(row["updated_at"], hours)
    )


def also(number: int, count: int = LINES, copies: int = 1, **changes: Any) -> Spoil:
    """Add rows of another day, with some changes; copies after the first have keys of their own."""

    def spoil(rows: Rows) -> Rows:
        more = some(**changes)(clean(number)[:count])
        return rows + [row | {"order_id": row["order_id"] + 1_000_000 * n} for n in range(copies) for row in more]

    return spoil


def times(factor: int | str) -> Callable[[Row], str]:
    """Return what makes a price so many times as high."""
    return lambda row: f"{Decimal(row['price']) * Decimal(factor):.2f}"


def json_lines(rows: Rows) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def other(column: str, expression: str) -> Transform:
    """Return a change of one column."""
    return lambda rows: rows.withColumn(column, F.expr(expression))


def broken(module: ModuleType, name: str, change: Transform) -> tuple[ModuleType, str, Transform]:
    """Return a transform that changes the rows of the last day, and where it belongs."""
    right = getattr(module, name)
    today = f"event_date = date'{day(TODAY)}'"

    def changed(orders: DataFrame) -> DataFrame:
        return change(right(orders.where(today))).unionByName(right(orders.where(f"NOT {today}")))

    return module, name, changed


def deliver(world: World, spoiled: Rows | bytes | Files) -> None:
    """Land what a case makes of the last day."""
    files = spoiled if isinstance(spoiled, Mapping) else {path("a.csv"): spoiled}
    for where, content in files.items():
        folder, arrival, name = where.split("/")
        world.deliver(folder, arrival, name, content if isinstance(content, bytes) else text(content))


def rows_shown(world: World) -> Shown:
    """Return what readers see of silver."""
    found: Shown = defaultdict(dict)
    for row in world.rows("silver.orders"):
        at = f"{row['ordered_at']:%Y-%m-%dT%H:%M:%SZ}"
        content = (row["store"], row["item"], row["quantity"], row["price"], row["currency"], row["note"] or "", at)
        found[row["event_date"]][row["order_id"]] = content
    return found


def rows_right() -> Shown:
    """Return what they should see, in plain Python."""
    names = ("store", "item", "quantity", "price", "currency", "note", "ordered_at")
    return {
        day(number): {
            row["order_id"]: tuple(Decimal(row[name]) if name == "price" else row[name] for name in names)
            for row in clean(number)
        }
        for number in range(1, TODAY + 1)
    }


def sums_shown(world: World) -> Shown:
    """Return what readers see of gold."""
    found: Shown = defaultdict(dict)
    for row in world.rows("gold.store_sales"):
        found[row["event_date"]][row["store"]] = (row["orders"], row["units"], row["revenue"])
    return found


def sums(rows: Shown) -> Shown:
    """Return what gold makes of rows of silver, in plain Python."""
    found: Shown = {}
    for at, orders in rows.items():
        by_store: defaultdict[str, list[tuple[int, Decimal]]] = defaultdict(list)
        for store, _, quantity, price, *_ in orders.values():
            by_store[store].append((quantity, price))
        found[at] = {
            store: (len(sold), sum(units for units, _ in sold), sum(units * price for units, price in sold))
            for store, sold in by_store.items()
        }
    return found


def readers_see(shown: Shown, right: Shown, part: Shown) -> str:
    """Return which rows of the day readers see; what they see of other days has to be right, too.

    Args:
        shown: to readers.
        right: all of it.
        part: of it, which is right as far as it goes.
    """
    today = day(TODAY)
    others = {at: rows for at, rows in right.items() if at != today}
    if {at: rows for at, rows in shown.items() if at != today} != others:
        return "wrong"
    now = shown.get(today, {})
    return "none" if not now else "all" if now == right[today] else "some" if now == part.get(today) else "wrong"
