"""TPC-H orders and lines as a platform: both as delivered and cleaned, and two gold tables after its queries.

Orders of seven years lie on as many days as the calendar has, so that scale adds rows and no days.
"""

from typing import Any

from platform_assets.contracts import (
    Amount,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    Reconciliation,
    same_day,
    span,
)

OWNER = "benchmark@example.com"
MONEY, TOTAL = "decimal(15,2)", "decimal(38,2)"
WEEK = 6
"""Days that a week's window reaches back."""


def _columns(declared: str) -> tuple[Column, ...]:
    """One of each line: name, type, whether it is always there (`!`) or not to be added (`~`), and what it is."""
    rows = (line.split(maxsplit=3) for line in declared.strip().splitlines())
    return tuple(
        Column(name, type_, text, nullable=mark != "!", additive=mark != "~") for name, type_, mark, text in rows
    )


_TIMES = """
    ordered_at       timestamp ! When it was ordered, UTC.
    updated_at       timestamp ! When the source last wrote this version, UTC.
"""
ORDERS = _columns(f"""
    o_orderkey       long      ! The order.
    o_custkey        long      . Who ordered.
    o_orderstatus    string    . F, O or P.
    o_totalprice     {MONEY}   . Dollars for all lines.
    o_orderdate      date      . As TPC-H has it.
    o_orderpriority  string    . 1-URGENT to 5-LOW.
    o_clerk          string    . Who took the order.
    o_shippriority   int       ~ Always 0.
    o_comment        string    . Text.{_TIMES}""")
LINES = _columns(f"""
    l_orderkey       long      ! The order.
    l_linenumber     int       ! The line of the order.
    l_partkey        long      . What was ordered.
    l_suppkey        long      . From whom.
    l_quantity       {MONEY}   . Pieces.
    l_extendedprice  {MONEY}   . Dollars before discount and tax.
    l_discount       {MONEY}   ~ Share of the price.
    l_tax            {MONEY}   ~ Share of the discounted price.
    l_returnflag     string    . R, A or N.
    l_linestatus     string    . O or F.
    l_shipdate       date      . When it was sent.
    l_commitdate     date      . When it was promised.
    l_receiptdate    date      . When it came.
    l_shipinstruct   string    . How to hand it over.
    l_shipmode       string    . How it travels.
    l_comment        string    . Text.{_TIMES}""")


def _source(name: str, key: tuple[str, ...], columns: tuple[Column, ...]) -> tuple[Contract, Contract]:
    """A table as delivered, and its newest versions."""
    both: dict[str, Any] = {"owner": OWNER, "columns": columns, "key": key}
    delivered: dict[str, Any] = {"event_time": "ordered_at", "updated_at": "updated_at", "source": LandingFiles(name)}
    raw = Contract(name=f"raw.{name}", description=f"{name} as delivered: every version.", **both, **delivered)
    newest = (Input(raw.name, same_day()),)
    return raw, Contract(name=f"silver.{name}", description=f"The newest version of {name}.", inputs=newest, **both)


PRICING = Contract(
    name="gold.pricing",
    description="Prices of a day's lines by what became of them, after TPC-H's first query.",
    owner=OWNER,
    columns=(
        Column("l_returnflag", "string", "R, A or N.", nullable=False),
        Column("l_linestatus", "string", "O or F.", nullable=False),
        Column("lines", "long", "How many."),
        Column("quantity", TOTAL, "Pieces."),
        Column("price", TOTAL, "Dollars before discount and tax."),
    ),
    key=("l_returnflag", "l_linestatus"),
    inputs=(Input("silver.lineitem", same_day()),),
    reconciles=(
        Reconciliation(
            "silver.lineitem",
            by=("l_returnflag", "l_linestatus"),
            amounts=(Amount("lines", "sum(lines)", "count(1)"), Amount("price", "sum(price)", "sum(l_extendedprice)")),
        ),
    ),
)
LATE_LINES = Contract(
    name="gold.late_lines",
    description="Orders of the last seven days with a line that came late, by priority, after TPC-H's fourth query.",
    owner=OWNER,
    columns=(
        Column("o_orderpriority", "string", "1-URGENT to 5-LOW.", nullable=False),
        Column("orders", "long", "How many."),
    ),
    key=("o_orderpriority",),
    inputs=(Input("silver.orders", span(WEEK)), Input("silver.lineitem", span(WEEK))),
)

TABLES = (
    *_source("orders", ("o_orderkey",), ORDERS),
    *_source("lineitem", ("l_orderkey", "l_linenumber"), LINES),
    PRICING,
    LATE_LINES,
)

DOMAIN = Domain(name="tpch", tables=TABLES, transforms="benchmarks.tpch.transforms")
