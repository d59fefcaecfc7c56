"""The retail domain with rules of every kind on its till lines and its daily sales, and its reconciliations."""

from dataclasses import replace

from platform_assets import contracts as declare
from platform_assets.contracts import Contract, Domain, Rule
from platform_assets.domains.retail.contracts import TABLES

_TRANSACTIONS = (
    Rule("week_given", declare.not_null("week"), "Weeks are known.", severity="block"),
    Rule(
        "some_spent", declare.in_range("net_amount", -1000), "Little is given back.", severity="block", tolerance="1 %"
    ),
    Rule("weeks", declare.one_of("week", *range(1, 54)), "Weeks of a year.", severity="block"),
    Rule(
        "written_late",
        declare.compare("updated_at", ">=", "transaction_timestamp"),
        "After the sale.",
        severity="block",
    ),
    Rule("discounts", "retail_disc + coupon_disc <= 10000", "Discounts are small.", severity="warn"),
    Rule(
        "line_once", declare.unique("basket_id", "product_id", "transaction_timestamp"), "Each once.", severity="block"
    ),
)
_SALES = (
    Rule("department_given", declare.length("department", 1, 60), "A department has a name.", severity="block"),
    Rule("department_named", declare.matches("department", r"[A-Z][A-Z /&()'.-]*"), "In capitals.", severity="warn"),
    Rule("sold", declare.in_range("lines", 1), "Something was sold.", severity="block"),
    Rule(
        "cents", declare.compare("net", "<=", "gross"), "Discounts are not negative.", severity="warn", tolerance="5 %"
    ),
    Rule("one_row", declare.unique("store_id", "department"), "One row each.", severity="block"),
    Rule(
        "known",
        declare.exists("department", table="silver.products"),
        "Products have such a department.",
        severity="warn",
        where="department <> 'UNKNOWN'",
    ),
)
_MORE = {"silver.transactions": _TRANSACTIONS, "gold.daily_sales": _SALES}


def _ruled(contract: Contract) -> Contract:
    return replace(contract, rules=(*contract.rules, *_MORE.get(contract.name, ())))


DOMAIN = Domain("retail", tuple(map(_ruled, TABLES)), "platform_assets.domains.retail.transforms")
