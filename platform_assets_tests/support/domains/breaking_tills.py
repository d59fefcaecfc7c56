"""The tables of `tills`, whose silver table opens its circuit with the first broken promise."""

from dataclasses import replace

from platform_assets.contracts import Circuit, Domain
from platform_assets_tests.support.domains import tills

ONCE = Circuit(at_once=("contract",))
DOMAIN = Domain(
    "breaking",
    tuple(replace(t, circuit=ONCE) if t.name == "silver.transactions" else t for t in tills.DOMAIN.tables),
    "platform_assets.domains.retail.transforms",
)
