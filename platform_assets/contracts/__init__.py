"""What tables promise: pure values without any engine behind them.

Put here the vocabulary of contracts (columns, keys, read windows, rules, sources, checks) and the tests that a
declaration is consistent. What follows from a contract is computed in the rooms above.
"""

from platform_assets.contracts.calendar import EveryDays, Protected, Weekdays
from platform_assets.contracts.checks import (
    Aggregate,
    Amount,
    Checks,
    Circuit,
    Comparison,
    Freshness,
    Reconciliation,
    Settled,
    Severity,
)
from platform_assets.contracts.columns import Column
from platform_assets.contracts.domain import Catalogue, Domain, Exposure
from platform_assets.contracts.errors import ContractError, UnknownTableError
from platform_assets.contracts.files import Csv
from platform_assets.contracts.kinds import compare, exists, in_range, length, matches, not_null, one_of, unique
from platform_assets.contracts.landing import LandingFiles
from platform_assets.contracts.rules import Rule
from platform_assets.contracts.table import (
    DAY,
    Contract,
    Input,
    Layer,
)
from platform_assets.contracts.windows import (
    AllHistory,
    AsOf,
    MonthToDate,
    Offsets,
    Span,
    Window,
    all_history,
    as_of,
    month_to_date,
    offsets,
    same_date,
    same_day,
    span,
)

__all__ = [
    "DAY",
    "Aggregate",
    "AllHistory",
    "Amount",
    "AsOf",
    "Catalogue",
    "Checks",
    "Circuit",
    "Column",
    "Comparison",
    "Contract",
    "ContractError",
    "Csv",
    "Domain",
    "EveryDays",
    "Exposure",
    "Freshness",
    "Input",
    "LandingFiles",
    "Layer",
    "MonthToDate",
    "Offsets",
    "Protected",
    "Reconciliation",
    "Rule",
    "Settled",
    "Severity",
    "Span",
    "UnknownTableError",
    "Weekdays",
    "Window",
    "all_history",
    "as_of",
    "compare",
    "exists",
    "in_range",
    "length",
    "matches",
    "month_to_date",
    "not_null",
    "offsets",
    "one_of",
    "same_date",
    "same_day",
    "span",
    "unique",
]
