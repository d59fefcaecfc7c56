"""Silver: the grocer's own."""

from platform_assets.domains.retail.transforms.silver import transactions

__all__ = ["transactions"]
