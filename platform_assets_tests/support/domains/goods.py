"""Products in raw and silver alone, of which a source tells two days ahead, and no more."""

from dataclasses import replace

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import RAW_PRODUCTS, SILVER_PRODUCTS

TABLES = (replace(RAW_PRODUCTS, ahead_days=2), SILVER_PRODUCTS)
DOMAIN = Domain("goods", TABLES, "platform_assets.domains.retail.transforms")
