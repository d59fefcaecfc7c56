"""The retail domain with rules of every kind on its till lines and its daily sales, and its reconciliations."""

from dataclasses import replace

from platform_assets.contracts import (
    Contract,
    Domain,
    Rule,
    compare,
    exists,
    in_range,
    length,
    matches,
    not_null,
    one_of,
    unique,
)
from platform_assets.domains.retail.contracts import TABLES

_TRANSACTIONS = (
    Rule("week_given", not_null("week"), "Weeks are known.", severity="block"),
    Rule("some_spent", in_range("net_amount", -1000), "Little is given back.", severity="block", tolerance="1 %"),
    Rule("weeks", one_of("week", *range(1, 54)), "Weeks of a year.", severity="block"),
    Rule("written_late", compare("updated_at", ">=", "transaction_timestamp"), "After the sale.", severity="block"),
    Rule("discounts", "retail_disc + coupon_disc <= 10000", "Discounts are small.", severity="warn"),
    Rule("line_once", unique("basket_id", "product_id", "transaction_timestamp"), "Each once.", severity="block"),
)
_SALES = (
    Rule("department_given", length("department", 1, 60), "A department has a name.", severity="block"),
    Rule("department_named", matches("department", r"[A-Z][A-Z /&()'.-]*"), "In capitals.", severity="warn"),
    Rule("sold", in_range("lines", 1), "Something was sold.", severity="block"),
    Rule("cents", compare("net", "<=", "gross"), "Discounts are not negative.", severity="warn", tolerance="5 %"),
    Rule("one_row", unique("store_id", "department"), "One row each.", severity="block"),
    Rule(
        "known",
        exists("department", table="silver.products"),
        "Products have such a department.",
        severity="warn",
        where="department <> 'UNKNOWN'",
    ),
)
_MORE = {"silver.transactions": _TRANSACTIONS, "gold.daily_sales": _SALES}


def _ruled(contract: Contract) -> Contract:
    return replace(contract, rules=(*contract.rules, *_MORE.get(contract.name, ())))


DOMAIN = Domain("retail", tuple(map(_ruled, TABLES)), "platform_assets.domains.retail.transforms")
