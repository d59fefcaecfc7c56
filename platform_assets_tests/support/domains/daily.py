"""Till lines and products up to the sales of each day, for tests that look at no window of several days."""

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)

TABLES = (RAW_TRANSACTIONS, RAW_PRODUCTS, SILVER_TRANSACTIONS, SILVER_PRODUCTS, DAILY_SALES)
DOMAIN = Domain("daily", TABLES, "platform_assets.domains.retail.transforms")
