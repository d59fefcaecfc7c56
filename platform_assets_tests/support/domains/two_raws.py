"""Two raw tables that take the files of one folder, and nothing that is made from them."""

from dataclasses import replace

from platform_assets.contracts import Domain
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS

RECEIPTS = replace(RAW_TRANSACTIONS, name="raw.receipts", description="The same files, for somebody else.")
DOMAIN = Domain("two_raws", (RAW_TRANSACTIONS, RECEIPTS), "platform_assets.domains.retail.transforms")
