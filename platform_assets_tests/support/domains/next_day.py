"""Till lines in raw and silver alone; those of a day come with the files of the next."""

from dataclasses import replace

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS

TABLES = (replace(RAW_TRANSACTIONS, delivered_after_days=1), SILVER_TRANSACTIONS)
DOMAIN = Domain("next_day", TABLES, "platform_assets.domains.retail.transforms")
