"""Till lines in raw and silver alone, for tests of what becomes of arrivals: without gold they take half the time."""

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS

DOMAIN = Domain("tills", (RAW_TRANSACTIONS, SILVER_TRANSACTIONS), "platform_assets.domains.retail.transforms")
