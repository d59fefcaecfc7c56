"""Till lines, products and two gold tables, of which one looks at a day and the other back over a window."""

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import HOUSEHOLD_28D
from platform_assets_tests.support.domains import daily

DOMAIN = Domain("two_golds", (*daily.TABLES, HOUSEHOLD_28D), "platform_assets.domains.retail.transforms")
