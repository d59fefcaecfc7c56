"""A grocer's sales: transactions and products as delivered, cleaned, and summed per day.

Contracts in `contracts`, pure transforms in `transforms`, the sample year and its arrivals in `sample`.
"""

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import TABLES

DOMAIN = Domain(name="retail", tables=TABLES, transforms="platform_assets.domains.retail.transforms")
