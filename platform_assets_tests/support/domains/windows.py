"""Till lines and one table that reads them through a window, for tests of what a change reaches."""

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import HOUSEHOLD_28D, RAW_TRANSACTIONS, SILVER_TRANSACTIONS

TABLES = (RAW_TRANSACTIONS, SILVER_TRANSACTIONS, HOUSEHOLD_28D)
DOMAIN = Domain("windows", TABLES, "platform_assets.domains.retail.transforms")
