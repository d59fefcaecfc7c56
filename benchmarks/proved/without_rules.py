"""The retail domain without rules and reconciliations; contract, conservation and volume are checked always."""

from dataclasses import replace

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import TABLES

DOMAIN = Domain(
    "retail",
    tuple(replace(contract, rules=(), reconciles=()) for contract in TABLES),
    "platform_assets.domains.retail.transforms",
)
